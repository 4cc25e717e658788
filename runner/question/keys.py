"""Keys that the grammar does not have: what was composed, held against what the schema kept."""

import dataclasses
import difflib
import re
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ..errors import ConfigError, unknown
from ..schema import Experiment


def no_such_key(key: str, owner: type, asked: str = "") -> ConfigError:
    """The error for a key that a dataclass of the schema does not have.

    `asked` is the override that brought it, for a near match anywhere in the grammar where this
    place has none.
    """
    parent, _, name = key.rpartition(".")
    choices = [field.name for field in dataclasses.fields(owner)]
    if owner is Experiment:
        choices = [c for c in choices if c != "experiment_name"] + ["experiment"]
    rest = str(unknown("KEY", name, choices)).split("unknown. Choices:", 1)[1]
    text = f"{key}: no such key{f' in {parent}' if parent else ''}{f' ({asked})' if asked else ''}."
    head, _, leaf = asked.partition("=")[0].rpartition(".")
    if head and "Did you mean" not in rest:
        every = {path.rpartition(".")[2]: path for path in _paths(Experiment)}
        alike = [name for name in every if abs(len(name) - len(leaf)) <= 3]
        near = difflib.get_close_matches(leaf, alike, n=2)
        rest += f" Did you mean {' or '.join(every[name] for name in near)}?" if near else ""
    return ConfigError(f"{text} Keys:{rest}")


def _paths(owner: type, prefix: str = "") -> Iterator[str]:
    for name, kind in typing.get_type_hints(owner).items():
        yield prefix + name
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            yield from _paths(kind, f"{prefix}{name}.")


def refuse_unknown_keys(
    config: DictConfig, value: Any, overrides: Sequence[str] = (), path: str = ""
) -> None:
    """Compares what was composed with what the schema kept: `+x=1` would vanish silently.

    Raises ConfigError for the first key that the dataclass does not have.
    """
    here = {str(key) for key in config}
    if dataclasses.is_dataclass(value):
        kept = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, dict):
        kept = {str(key): item for key, item in value.items()}
    else:
        return
    for key in sorted(here - kept.keys()):
        full = f"{path}{key}"
        asked = (o for o in overrides if re.match(rf"\++{re.escape(full)}\b", o))
        raise no_such_key(full, type(value), next(asked, ""))
    for key in here:
        if OmegaConf.is_missing(config, key) or OmegaConf.is_interpolation(config, key):
            continue
        item = config[key]
        if isinstance(item, DictConfig):
            refuse_unknown_keys(item, kept[key], overrides, f"{path}{key}.")
