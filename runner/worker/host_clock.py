"""The host clock, for implementations that run on the CPU: `wall_us`, warm.

A sample is the mean of enough consecutive calls to last `sample_us`, so that the clock's own
cost and tick do not show.
"""

import gc
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ..records import Block
from ..schema import Protocol
from ..statistics import steady, trend
from .inputs import Inputs

Call = Callable[..., Any]

WINDOW = 16
"""Calls of the warm-up in which no trend must show."""

PATIENCE = 10
"""So many times `warmup_ms` at most, while there is one."""

DISTURBED = 3.0
"""A median this many times the fastest call says more of the machine than of the calls."""


class HostClock:
    """Samples calls by `time.perf_counter_ns`; inputs stay where they are, so caches are warm."""

    timer = "host perf_counter_ns"
    headline = "wall_us"
    states: tuple[str, ...] = ("warm",)
    cache = "warm: the same inputs in every call"

    def __init__(self, calls: Mapping[str, Call], inputs: Inputs, protocol: Protocol) -> None:
        self._calls = calls
        self._inputs = inputs
        self._protocol = protocol
        self.per_sample: dict[str, int] = {}
        self.warmup: dict[str, tuple[int, float]] = {}
        self.settled: dict[str, bool | None] = {}
        self._fastest: dict[str, float] = {}

    def prepare(self, name: str) -> None:
        """Warms up for `warmup_ms`, longer while the calls' times fall, and sets how many calls a
        sample holds."""
        call, inputs = self._calls[name], self._inputs
        least = self._protocol.warmup_ms / 1e3
        count, spent, settled, look = 0, 0.0, False, 3
        fastest = float("inf")  # calls that other work interrupts must not decide
        window: deque[float] = deque(maxlen=WINDOW)
        while not settled and (spent < PATIENCE * least or count < 3):
            started = time.perf_counter()
            call(*inputs)
            last = time.perf_counter() - started
            fastest = min(fastest, last)
            window.append(last)
            spent += last
            count += 1
            # looked at once a window: a look at every call would find a trend by chance
            if spent >= least and count >= look:
                settled = not trend(window)
                look = count + WINDOW
        self.settled[name] = steady(window)
        self.warmup[name] = (count, spent)
        self._fastest[name] = max(fastest * 1e6, 0.1)
        self.per_sample[name] = max(1, round(self._protocol.sample_us / self._fastest[name]))

    def block(self, name: str, state: str, round_: int, position: int) -> Block:
        call, inputs, count = self._calls[name], self._inputs, self.per_sample[name]
        samples: list[float] = []
        collecting = gc.isenabled()
        gc.disable()
        try:
            call(*inputs)  # what ran before left other data in the caches
            for _ in range(self._protocol.samples):
                started = time.perf_counter_ns()
                for _ in range(count):
                    call(*inputs)
                samples.append((time.perf_counter_ns() - started) / count / 1e3)
        finally:
            if collecting:
                gc.enable()
        self._fastest[name] = min(self._fastest[name], *samples)
        return Block(
            round=round_, position=position, state=state, calls=count, samples_us=tuple(samples)
        )

    def release(self) -> tuple[Inputs, ...]:
        """The inputs that were timed."""
        return (self._inputs,)

    def disturbed(self, name: str, latency_us: float) -> str:
        """Why a latency is no property of the calls: a few of them were several times faster."""
        fastest = self._fastest[name]
        if latency_us <= DISTURBED * fastest:
            return ""
        return (
            f"the median round is {latency_us / fastest:.1f} times the fastest ({fastest:.4g} us): "
            "other work on this machine, or threads that wait for each other (settings.threads=1)"
        )

    def host_us(self, name: str) -> float | None:
        """On the CPU the call's own time is the host's."""
        return None

    def nodes(self, name: str) -> dict[str, float]:
        """There are no graphs on a CPU."""
        return {}
