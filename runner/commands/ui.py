"""`klab ui`: the MLflow UI on the store in use, with filters to start from."""

import argparse
import sys
from collections.abc import Sequence

from ..outputs import outputs
from ..tracking.server import serve
from ..tracking.store import locate

SUMMARY = "open the MLflow UI on this machine's runs"


def main(arguments: Sequence[str]) -> int:
    """Runs until interrupted. Raises StoreError where the store or the port cannot be used."""
    parser = argparse.ArgumentParser(prog="klab ui", description=SUMMARY)
    parser.add_argument("--port", type=int, default=5000, help="default 5000; 0 takes a free one")
    asked = parser.parse_args(arguments)
    return serve(locate(outputs()), port=asked.port, say=_say)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
