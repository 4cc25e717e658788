"""The command that runs one implementation of one cell again."""

import shlex
from collections.abc import Sequence

from .records import Record


def repro(record: Record, overrides: Sequence[str], config_dirs: Sequence[str]) -> str:
    """The words of the job's own command, less its choice of cell and implementations."""
    own = [o for o in overrides if not o.startswith(("cell=", "implementations="))]
    dirs = [part for d in config_dirs for part in ("--config-dir", d)]
    words = ["klab", "run", *dirs, *own, f"cell={record.cell.id}"]
    words.append(f"implementations=[{record.implementation}]")
    return shlex.join(words)
