"""What Hydra and OmegaConf raise, said in one message: key, value, choices, next step."""

import dataclasses
import re
import shlex
from collections.abc import Sequence

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from .. import schema
from ..errors import ConfigError, unknown
from .keys import no_such_key
from .vocabulary import GROUPS, Vocabulary, broken

Raised = HydraException | OmegaConfBaseException | AssertionError | ValueError
RAISED = (HydraException, OmegaConfBaseException, AssertionError, ValueError)
"""What composing may raise. Hydra's AssertionError means `override` entries out of place, its
ValueError a group that is given something else than a name."""

_MAP = "keys with values are meant, e.g. {key: value}"
_OUTSIDE = "Folders from outside are added by --config-dir or KLAB_PATH."


def explained(error: Raised, vocabulary: Vocabulary, overrides: Sequence[str]) -> ConfigError:
    """The one message for an error met while composing these overrides."""
    text = str(error).split("Config search path")[0].strip()
    if isinstance(error, OverrideParseException):
        return _unreadable(error, vocabulary)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _no_such_word(error, text, vocabulary)
    if text.startswith("You must specify 'kernel'"):
        return no_kernel(vocabulary)
    if text.startswith("Ambiguous value for argument"):
        return _ambiguous(text, vocabulary, overrides)
    if text.startswith("Config group override must be"):
        return _no_name(vocabulary, overrides)
    cause: BaseException = error
    while not isinstance(cause, OmegaConfBaseException) and cause.__cause__ is not None:
        cause = cause.__cause__
    where = _where(text, vocabulary)
    if isinstance(cause, OmegaConfBaseException):
        return ConfigError(_of_value(_said(cause, text), vocabulary, overrides) + where)
    if "raised while composing config:" in text:
        # Hydra gives the error of a file as text only
        return ConfigError(_of_value(_read(text), vocabulary, overrides) + where)
    dropped = re.search(r"Could not override '([^']+)'", text)
    if dropped:
        group = dropped.group(1).split("@")[0].lstrip("/")
        groups = [g for g in GROUPS if g != "implementation"]
        return unknown("defaults: override group", group, groups, next_step=where.strip())
    return ConfigError(" ".join(text.split()) or type(error).__name__)


def no_kernel(vocabulary: Vocabulary) -> ConfigError:
    return ConfigError(
        "kernel: not given. Say kernel=NAME "
        f"({', '.join(vocabulary.names('kernel')) or 'there is none'}) or experiment=NAME "
        f"({', '.join(vocabulary.names('experiment')) or 'there is none'}). "
        "In a file: defaults: [override /kernel: NAME]."
    )


def _unreadable(error: OverrideParseException, vocabulary: Vocabulary) -> ConfigError:
    key, equals, value = error.override.partition("=")
    if not equals or not key:
        meant = [f"{g}={key}" for g in GROUPS if key and key in vocabulary.names(g)]
        hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
        return ConfigError(f"{error.override}: not of the form key=value.{hint}")
    quoted = value.replace('"', '\\"')
    detail = str(error).split("See https://")[0].strip().splitlines()[1:]
    reason = f" ({' '.join(' '.join(detail).split())})" if detail else ""
    return ConfigError(
        f"{error.override}: the value cannot be read{reason}. "
        f"To give it as text: '{key}=\"{quoted}\"' (both pairs of quotes)."
    )


def _no_name(vocabulary: Vocabulary, overrides: Sequence[str]) -> ConfigError:
    for override in overrides:
        key, _, value = override.partition("=")
        if not key:
            return ConfigError(f"{override}: not of the form key=value.")
        if key in vocabulary.entries and (value == "null" or not value[:1].isalpha()):
            return ConfigError(
                f"{override}: a name is meant. Choices: {', '.join(vocabulary.names(key))}."
            )
    return ConfigError(f"{' '.join(overrides)}: a group is given something that is no name.")


def _ambiguous(text: str, vocabulary: Vocabulary, overrides: Sequence[str]) -> ConfigError:
    argument = text.splitlines()[0].partition("'")[2].rstrip("'")
    key, _, value = argument.partition("=")
    if key in vocabulary.entries and key != "trace":
        whole = shlex.join(["klab", "run", "-m", *overrides])
        return ConfigError(f"{argument}: several jobs, so say -m: {whole}")
    quoted = value.replace('"', '\\"')
    return ConfigError(
        f"{argument}: a comma or a sweep function without -m. "
        f"As a sweep: {shlex.join(['klab', 'run', '-m', *overrides])}. "
        f"As a list: '{key}=[{value}]'. As one text: '{key}=\"{quoted}\"' (both pairs of quotes)."
    )


def _no_such_word(error: MissingConfigException, text: str, vocabulary: Vocabulary) -> ConfigError:
    group, _, name = str(error.missing_cfg_file).rpartition("/")
    unread = broken(vocabulary, group, [name])
    if unread:
        return unread
    if not group:
        return ConfigError(" ".join(text.split()))
    parent = re.match(r"In '([^']+)'", text)
    inside = f"{_file(parent.group(1), vocabulary)}: " if parent else ""
    key = group if inside in ("config: ", "hydra/config: ") else inside + group
    step = _OUTSIDE if group in ("kernel", "experiment") else ""
    return unknown(key, name, vocabulary.names(group) or error.options or (), next_step=step)


def _file(config: str, vocabulary: Vocabulary) -> str:
    group, _, name = config.rpartition("/")
    entry = vocabulary.get(group, name)
    return str(entry.path) if entry else config


def _where(text: str, vocabulary: Vocabulary) -> str:
    parent = re.match(r"In '([^']+)'", text)
    return f" (in {_file(parent.group(1), vocabulary)})" if parent else ""


@dataclasses.dataclass(frozen=True)
class _Said:
    """What OmegaConf says: the first line, the full key and the class that holds it."""

    message: str
    key: str
    owner: type | None
    missing: bool = False


def _said(error: OmegaConfBaseException, text: str) -> _Said:
    owner = getattr(error, "object_type", None)
    key = str(getattr(error, "full_key", None) or getattr(error, "key", None) or "")
    merged = re.match(r"Error merging override \+*([^=]+)=", text)
    if merged and merged.group(1).endswith(key):
        # inside a list or a map of lists OmegaConf knows only the last part of the key
        key = merged.group(1)
    return _Said(
        message=(str(error).splitlines() or [""])[0],
        key=key,
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


def _of_value(said: _Said, vocabulary: Vocabulary, overrides: Sequence[str]) -> str:
    key, message = said.key, said.message
    if said.missing:
        return f"{key or message}: missing; a value must be given."
    if re.match(r"Key '.*' (is )?not in", message):
        return _of_key(said, vocabulary, overrides)
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
    hint = re.match(r"Value '?(.*?)'? \(\w+\) is incompatible with type hint '(.*)'", message)
    if hint and (kind_of := re.match(r"typing\.(List|Dict)", hint.group(2))):
        meant = f"a list is meant, e.g. '{key}=[...]'" if kind_of.group(1) == "List" else _MAP
        return f"{key}={hint.group(1)}: {meant}."
    plain = re.match(r"Merge error: \w+ is not a subclass of (\w+)\. value: (.*)", message)
    if plain and not key and said.owner:
        return _plain(_field(said.owner, plain.group(1)), plain.group(2), vocabulary)
    if "is not a ListConfig, list or tuple" in message:
        return f"{_asked(key, overrides)}: a list is meant, e.g. '{key}=[...]'."
    if re.search(r"is not a subclass of|Cannot assign \w+ to Dict", message):
        return f"{_asked(key, overrides)}: {_MAP}."
    if re.search(r"is not Optional|Cannot assign None|incompatible.*None", message):
        return f"{key}=null: a value is meant."
    return f"{key}: {message}" if key else message


def _field(owner: type, holds: str) -> str:
    """The key of owner whose values are of this class: OmegaConf names the class alone."""
    fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    return next((f.name for f in fields if getattr(f.type, "__name__", "") == holds), holds)


def _plain(key: str, value: str, vocabulary: Vocabulary) -> str:
    step = f" A name is chosen under defaults: `- override /{key}: {value}`."
    named = key in vocabulary.entries and value[:1].isalpha()
    return f"{key}={value}: {_MAP}.{step if named else ''}"


def _asked(key: str, overrides: Sequence[str]) -> str:
    return next((o for o in overrides if o.partition("=")[0].lstrip("+") == key), key)


def _of_key(said: _Said, vocabulary: Vocabulary, overrides: Sequence[str]) -> str:
    key = said.key
    if key in vocabulary.entries:
        asked = [o.split("=", 1)[1] for o in overrides if o.startswith(f"{key}=")]
        unread = broken(vocabulary, key, asked)
        return str(unread or unknown(key, ", ".join(asked) or "?", vocabulary.names(key)))
    if said.owner and dataclasses.is_dataclass(said.owner):
        return str(no_such_key(key, said.owner))
    asked = [o for o in overrides if o.partition("=")[0].startswith(key)]
    step = f" To add it: +{asked[0].lstrip('+')}" if asked else ""
    return f"{asked[0].partition('=')[0] if asked else key}: no such key.{step}"
