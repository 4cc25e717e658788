"""The shared form of klab's command lines: flags, folders, and Hydra's overrides in any order."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ConfigError, unknown


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """A command line taken apart; `flags` holds the command's own that were given."""

    overrides: tuple[str, ...]
    config_dirs: tuple[str, ...] = ()
    multirun: bool = False
    help: bool = False
    flags: frozenset[str] = frozenset()


def parse(argv: Sequence[str], *, flags: Sequence[str] = ()) -> Arguments:
    """Flags may stand before, between or after the overrides. Raises ConfigError."""
    overrides: list[str] = []
    dirs: list[str] = []
    given: set[str] = set()
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name in ("--config-dir", "-cd"):
            folder = value if equals else next(words, "")
            if not folder:
                raise ConfigError(f"{name}: a folder is missing after it.")
            dirs.append(folder)
        elif word.startswith("-"):
            given.add({"--multirun": "-m", "-h": "--help"}.get(word, word))
        else:
            overrides.append(word)
    for word in sorted(given - {"-m", "--help", *flags}):
        raise unknown("option", word, ["-m", "--config-dir", "--help", *flags], between=" ")
    return Arguments(
        overrides=tuple(overrides),
        config_dirs=tuple(dirs),
        multirun="-m" in given,
        help="--help" in given,
        flags=frozenset(given & set(flags)),
    )
