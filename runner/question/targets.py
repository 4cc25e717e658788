"""The known targets, as `target=auto` compares them with the GPU that is here."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..schema import Target
from . import vocabulary

_target = TypeAdapter(Target)


def targets(config_dirs: Iterable[str | Path] = ()) -> list[Target]:
    """Every target of conf/ and of the outside folders, in the order of their names.

    A file that is no target is passed over: it stops the command that names it, as it composes.
    """
    found = vocabulary.read(config_dirs)
    known = []
    for name in found.names("target"):
        entry = found.entries["target"][name]
        if entry.error:
            continue
        try:
            known.append(_target.validate_python({**entry.node, "name": name}))
        except ValidationError:
            continue
    return known
