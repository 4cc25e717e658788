"""Errors that end a command before work begins.

    KlabError
    ├── ConfigError      what was asked cannot be run: exit code 2
    │   └── TargetError  the target is not the GPU that is here: exit code 2
    ├── StoreError       the tracking store or the outputs folder cannot be used: exit code 2
    └── WorkerError      the worker process cannot be started at all: exit code 1

A failure of one implementation in one cell is no exception: it is a `Status` in a `Record`.
"""

import difflib
from collections.abc import Iterable


class KlabError(Exception):
    """A message for the person at the terminal, complete in itself."""

    exit_code = 1


class ConfigError(KlabError):
    """The question cannot be run as asked; the message names key, value and choices."""

    exit_code = 2


class TargetError(ConfigError):
    """The experiment's target and the device of this machine differ."""


class StoreError(KlabError):
    """The tracking store or the outputs folder cannot be used."""

    exit_code = 2


class WorkerError(KlabError):
    """The worker process could not be started; `killed`: by a signal from outside."""

    def __init__(self, message: str, *, killed: bool = False) -> None:
        super().__init__(message)
        self.killed = killed


def unknown(
    key: str, value: object, choices: Iterable[str], *, next_step: str = "", between: str = "="
) -> ConfigError:
    """The error for a name that is not among the known ones: key, value, choices, near match.

    `between` key and value: a blank where nobody writes `key=value` (`section pears`).
    """
    known = sorted(choices)
    text = f"{key}{between}{value}: unknown. Choices: {', '.join(known) or '(none)'}."
    if near := nearest(str(value), known):
        text += f" Did you mean {near}?"
    if next_step:
        text += f" {next_step}"
    return ConfigError(text)


def nearest(text: str, known: Iterable[str]) -> str:
    """The known name that begins so, else the most alike one; empty where none is alike."""
    names = sorted(known)
    begun = [name for name in names if text and name.startswith(text)]
    return next(iter([*begun, *difflib.get_close_matches(text, names, n=1)]), "")
