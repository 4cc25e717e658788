"""The known targets, as `target=auto` compares them with the GPU that is here."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from ..schema import Target
from . import library

_target = TypeAdapter(Target)


def targets(config_dirs: Iterable[str | Path] = ()) -> list[Target]:
    """Every target of conf/ and of the outside folders, in the order of their names."""
    found = library.read(config_dirs)
    return [
        _target.validate_python({**entry.node, "name": name})
        for name in found.names("target")
        if (entry := found.get("target", name)) is not None and not entry.error
    ]
