"""The host clock, for implementations that run on the CPU: `wall_us`, warm.

A sample is the mean of enough consecutive calls to last `sample_us`, so that the clock's own
cost and tick do not show.
"""

import gc
import time
from collections import deque
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from ..records import Block
from ..schema import Protocol
from .inputs import Inputs

Call = Callable[..., Any]


class HostClock:
    """Samples calls by `time.perf_counter_ns`; inputs stay where they are, so caches are warm."""

    timer = "host perf_counter_ns"
    headline = "wall_us"
    states = ("warm",)
    cache = "warm: the same inputs in every call"

    def __init__(self, calls: Mapping[str, Call], inputs: Inputs, protocol: Protocol) -> None:
        self._calls = calls
        self._inputs = inputs
        self._protocol = protocol
        self.per_sample: dict[str, int] = {}
        self.warmup: dict[str, tuple[int, float]] = {}

    def prepare(self, name: str) -> None:
        """Warms up for `warmup_ms`, and sets how many calls a sample holds."""
        call, inputs = self._calls[name], self._inputs
        count, spent = 0, 0.0
        recent: deque[float] = deque(maxlen=5)  # one call that was interrupted must not decide
        while spent < self._protocol.warmup_ms / 1e3 or count < 3:
            started = time.perf_counter()
            call(*inputs)
            recent.append(time.perf_counter() - started)
            spent += recent[-1]
            count += 1
        self.warmup[name] = (count, spent)
        one_us = max(median(recent) * 1e6, 0.1)
        self.per_sample[name] = max(1, round(self._protocol.sample_us / one_us))

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
        return Block(
            round=round_, position=position, state=state, calls=count, samples_us=tuple(samples)
        )

    def host_us(self, name: str) -> float | None:
        """On the CPU the call's own time is the host's."""
        return None
