"""`klab doctor`: is this machine set up, and (--measure) do its instruments agree?"""

import argparse
import shlex
import sys
from collections.abc import Sequence

from ..device import gpus, settle
from ..doctor.driver import DriverState, driver_state
from ..doctor.probe import torch_state
from ..doctor.sections import NUMBERS, PLACE
from ..doctor.setup import Line, State, set_up
from ..errors import ConfigError, unknown
from ..judge.instruments import SECTIONS
from ..question.targets import targets

SUMMARY = "check this machine's set-up; --measure: prove its measurement"

_LEAST = 2
"""Of pairs and of repeats: one alone says nothing."""

EPILOG = """sections: ladder (the same calls by every instrument, by nsys and ncu too), cold (ways
to empty the cache), pairs (a function against itself, and against a true difference), repeats
(fresh processes). pairs=200 in all are divided among the cases of one function against itself (4
on a GPU, 3 on a CPU), and half as many are of the true difference; under 60 are not judged. cold
is of GPUs: on a CPU its calls are timed warm. Exit code 1: something that a run needs is broken,
or instruments differ."""


def main(arguments: Sequence[str]) -> int:
    """The exit code. Raises ConfigError for an unknown section or setting."""
    parser = argparse.ArgumentParser(prog="klab doctor", description=SUMMARY, epilog=EPILOG)
    parser.add_argument("--measure", action="store_true", help="measure; takes minutes on a GPU")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="SECTION|KEY=VALUE",
        help=f"with --measure: {', '.join(SECTIONS)} (none named: all), pairs=200, repeats=10; "
        "target=cpu, device=0",
    )
    asked = parser.parse_intermixed_args(list(arguments))
    sections, settings = parse(asked.words)
    if asked.measure:
        from .doctor_measure import measure

        return measure(sections or SECTIONS, settings)
    extra = [*sections, *(key for key in settings if key in NUMBERS)]
    if extra:
        words = shlex.join(["klab", "doctor", "--measure", *asked.words])
        raise ConfigError(f"{extra[0]}: goes with --measure: {words}")
    return _set_up(settings)


def parse(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Sections in their own order, and settings. Raises ConfigError with the choices."""
    settings: dict[str, str] = {}
    named = set()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            if word not in SECTIONS:
                raise unknown("section", word, SECTIONS, between=" ")
            named.add(word)
            continue
        if key not in (*NUMBERS, *PLACE):
            raise unknown("setting", key, (*NUMBERS, *PLACE), between=" ")
        settings[key] = value
        if key in NUMBERS and not (value.isdecimal() and int(value) >= _LEAST):
            raise ConfigError(f"{key}={value}: a whole number from {_LEAST} is meant.")
    return tuple(section for section in SECTIONS if section in named), settings


def _set_up(settings: dict[str, str]) -> int:
    known = targets()
    name = settings.get("target", "auto")
    target = next((t for t in known if t.name == name), None)
    if target is None:
        raise unknown("target", name, [t.name for t in known])
    found = gpus()
    device = settings.get("device", "0")
    _, gpu = settle(target, known, found, device) if "device" in settings else (None, None)
    gpu = gpu or (found[0] if found else None)
    driver = driver_state(gpu) if gpu is not None else DriverState()
    worst = 0
    for line in set_up(torch_state(), driver, target, known, [gpu] if gpu else []):
        _say(line)
        worst |= line.state is State.broken
    sys.stdout.write(
        "something that a run needs is broken\n"
        if worst
        else "next: klab run experiment=quickstart; klab doctor --measure proves the measurement\n"
    )
    return int(worst)


def _say(line: Line) -> None:
    sys.stdout.write(f"{line.state.value:<8} {line.what:<9} {line.text}\n")
    if line.next_step:
        sys.stdout.write(f"{'':<18} next: {line.next_step}\n")
    sys.stdout.flush()
