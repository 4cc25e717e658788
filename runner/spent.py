"""Where the wall time of a job went, by part. What no part claims is `other`, never left out."""

import time
from collections.abc import Callable, Mapping

OTHER = "other"

PARTS = (
    "prepare",
    "start workers",
    "compile and first calls",
    "check",
    "warm-up",
    "sampling",
    "recheck",
    "evidence",
    "end workers",
    "judge",
    "filing",
    OTHER,
)
"""In the order in which a job goes through them. `prepare` holds what the command did since it
began, or since its last job ended: composing, checking, opening the store; `start workers`
imports, the device and the copy ceiling; `check` the reference; `filing` the report, plots and
tracking; `other` messages and files."""

WORK = ("compile and first calls", "check", "warm-up", "sampling", "recheck")
"""The parts that a measurement is made of; every other part is overhead."""

_PART_OF = {
    "load": "compile and first calls",
    "compile": "compile and first calls",
    "reference": "check",
    "check": "check",
    "warmup": "warm-up",
    "time": "sampling",
    "recheck": "recheck",
    "trace": "evidence",
}


def part_of(phase: str) -> str:
    """The part that a phase, as a worker announces it, belongs to."""
    return _PART_OF.get(phase, OTHER)


class Stopwatch:
    """Books time by part: one part at a time, from the call that enters it to the next call."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._part = OTHER
        self._since = clock()

    def enter(self, part: str) -> None:
        now = self._clock()
        self._seconds[self._part] = self._seconds.get(self._part, 0.0) + now - self._since
        self._part, self._since = part, now

    def take(self) -> dict[str, float]:
        """What was booked since the last time; from here on it is `other`."""
        self.enter(OTHER)
        taken, self._seconds = self._seconds, {}
        return taken


def added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The sums, in the order of PARTS."""
    return {p: one.get(p, 0.0) + other.get(p, 0.0) for p in PARTS if p in one or p in other}


def whole(seconds: Mapping[str, float], wall: float, rest: str = OTHER) -> dict[str, float]:
    """The split with what is missing to the wall time booked under `rest`."""
    missing = max(0.0, wall - sum(seconds.values()))
    return added(seconds, {rest: missing})


def overhead(seconds: Mapping[str, float]) -> float | None:
    """The share of a job's time that was neither compilation, reference nor sampling; from 0 to
    1, None where no time was booked.

    Compilation is `compile and first calls`. Reference is `check`, and `recheck`, the same gate
    once more. Sampling is `sampling`, and `warm-up`, without which a sample is none. All the rest
    is overhead, evidence and the copy ceiling too, and every part that is not known here.
    """
    total = sum(seconds.values())
    if total <= 0:
        return None
    return (total - sum(seconds.get(part, 0.0) for part in WORK)) / total
