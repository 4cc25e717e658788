"""What Hydra and OmegaConf raise, said in one message: key, value, choices, next step."""

import dataclasses
import difflib
import re
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from .. import schema
from ..errors import ConfigError, unknown
from ..schema import Experiment
from .library import GROUPS, Library, broken

Raised = HydraException | OmegaConfBaseException | AssertionError
RAISED = (HydraException, OmegaConfBaseException, AssertionError)
"""What composing may raise; an AssertionError is Hydra's for `override` entries out of place."""

_OUTSIDE = "Folders from outside are added by --config-dir or KLAB_PATH."


def explained(error: Raised, library: Library, overrides: Sequence[str]) -> ConfigError:
    """The one message for an error met while composing these overrides."""
    text = str(error).split("Config search path")[0].strip()
    if isinstance(error, OverrideParseException):
        return _unreadable(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _no_such_word(error.missing_cfg_file, text, library)
    if text.startswith("You must specify 'kernel'"):
        return no_kernel(library)
    if text.startswith("Ambiguous value for argument"):
        return _ambiguous(text)
    cause: BaseException = error
    while not isinstance(cause, OmegaConfBaseException) and cause.__cause__ is not None:
        cause = cause.__cause__
    where = _where(text, library)
    if isinstance(cause, OmegaConfBaseException):
        return ConfigError(_of_value(_said(cause), library, overrides) + where)
    if "raised while composing config:" in text:
        # Hydra gives the error of a file as text only
        return ConfigError(_of_value(_read(text), library, overrides) + where)
    dropped = re.search(r"Could not override '([^']+)'", text)
    if dropped:
        group = dropped.group(1).split("@")[0].lstrip("/")
        groups = [g for g in GROUPS if g != "implementation"]
        return unknown("defaults: override group", group, groups, next_step=where.strip())
    return ConfigError(" ".join(text.split()) or type(error).__name__)


def no_kernel(library: Library) -> ConfigError:
    return ConfigError(
        "kernel: not given. Say kernel=NAME "
        f"({', '.join(library.names('kernel')) or 'there is none'}) or experiment=NAME "
        f"({', '.join(library.names('experiment')) or 'there is none'})."
    )


def _unreadable(error: OverrideParseException) -> ConfigError:
    key, equals, value = error.override.partition("=")
    if not equals:
        return ConfigError(f"{error.override}: not of the form key=value.")
    quoted = value.replace('"', '\\"')
    detail = str(error).split("See https://")[0].strip().splitlines()[1:]
    reason = f" ({' '.join(' '.join(detail).split())})" if detail else ""
    return ConfigError(
        f"{error.override}: the value cannot be read{reason}. "
        f"To give it as text: '{key}=\"{quoted}\"' (both pairs of quotes)."
    )


def _ambiguous(text: str) -> ConfigError:
    argument = text.splitlines()[0].partition("'")[2].rstrip("'")
    key, _, value = argument.partition("=")
    quoted = value.replace('"', '\\"')
    return ConfigError(
        f"{argument}: a comma or a sweep function without -m. As a sweep: -m {argument}. "
        f"As a list: '{key}=[{value}]'. As one text: '{key}=\"{quoted}\"' (both pairs of quotes)."
    )


def _no_such_word(path: str, text: str, library: Library) -> ConfigError:
    group, _, name = path.rpartition("/")
    unread = broken(library, group, [name])
    if unread:
        return unread
    if not group:
        return ConfigError(" ".join(text.split()))
    parent = re.match(r"In '([^']+)'", text)
    key = f"{_file(parent.group(1), library)}: {group}" if parent else group
    key = key.removeprefix("config: ")
    step = _OUTSIDE if group in ("kernel", "experiment") else ""
    return unknown(key, name, library.names(group), next_step=step)


def _file(config: str, library: Library) -> str:
    group, _, name = config.rpartition("/")
    entry = library.get(group, name)
    return str(entry.path) if entry else config


def _where(text: str, library: Library) -> str:
    parent = re.match(r"In '([^']+)'", text)
    return f" (in {_file(parent.group(1), library)})" if parent else ""


@dataclasses.dataclass(frozen=True)
class _Said:
    """What OmegaConf says: the first line, the full key and the class that holds it."""

    message: str
    key: str
    owner: type | None
    missing: bool = False


def _said(error: OmegaConfBaseException) -> _Said:
    owner = getattr(error, "object_type", None)
    return _Said(
        message=(str(error).splitlines() or [""])[0],
        key=str(getattr(error, "full_key", None) or getattr(error, "key", None) or ""),
        owner=owner if isinstance(owner, type) else None,
        missing=isinstance(error, MissingMandatoryValue),
    )


def _read(text: str) -> _Said:
    lines = text.partition("raised while composing config:")[2].strip().splitlines()
    parts = {
        name: value.strip()
        for name, value in re.findall(r"^\s*(full_key|object_type)[:=](.*)$", text, re.MULTILINE)
    }
    owner = getattr(schema, parts.get("object_type", ""), None)
    return _Said(
        message=lines[0] if lines else text,
        key=parts.get("full_key", ""),
        owner=owner if isinstance(owner, type) else None,
    )


def _of_value(said: _Said, library: Library, overrides: Sequence[str]) -> str:
    key, message = said.key, said.message
    if said.missing:
        return f"{key or message}: missing; a value must be given."
    if re.match(r"Key '.*' (is )?not in", message):
        return _of_key(said, library, overrides)
    enum = re.match(r"Invalid value '(.*)', expected one of \[(.*)\]", message)
    if enum:
        given = enum.group(1)
        shown = given.lower() if given in ("True", "False") else given
        return str(unknown(key, shown, enum.group(2).split(", ")))
    kind = re.match(r"Value '(.*)' of type '(\w+)' could not be converted to (\w+)", message)
    if kind:
        meant = {"Integer": "an integer", "Float": "a number"}.get(kind.group(3), kind.group(3))
        return f"{key}={kind.group(1)}: {meant} is meant."
    boolean = re.match(r"Value '(.*)' is not a valid bool", message)
    if boolean:
        return f"{key}={boolean.group(1)}: true or false is meant."
    if re.search(r"is not Optional|Cannot assign None|incompatible.*None", message):
        return f"{key}=null: a value is meant."
    return f"{key}: {message}" if key else message


def _of_key(said: _Said, library: Library, overrides: Sequence[str]) -> str:
    key = said.key
    if key in library.entries:
        asked = [o.split("=", 1)[1] for o in overrides if o.startswith(f"{key}=")]
        unread = broken(library, key, asked)
        return str(unread or unknown(key, ", ".join(asked) or "?", library.names(key)))
    if said.owner and dataclasses.is_dataclass(said.owner):
        return str(no_such_key(key, said.owner))
    asked = [o for o in overrides if o.partition("=")[0].startswith(key)]
    step = f" To add it: +{asked[0].lstrip('+')}" if asked else ""
    return f"{asked[0].partition('=')[0] if asked else key}: no such key.{step}"


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
        near = difflib.get_close_matches(leaf, every, n=2)
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
