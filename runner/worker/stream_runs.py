"""Runs of back-to-back calls in one stream, between two events, the queue held."""

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..statistics import median_interval
from .inputs import copies_needed, nbytes, tensors
from .rotation import MAX_CALLS, Rotation

Call = Callable[..., Any]

HOLD_MARGIN = 1.5
"""The stream is held this much longer than filling the queue took the last time."""

MOST_HOLD_US = 100_000.0
"""Never longer. A call that waits for the device fills no queue however long it is held: without
an end each hold would be half as long again as the one before."""


class StreamRuns:
    """Calls of one cell, submitted one by one. `host_us` is known after `prepare`."""

    def __init__(
        self,
        calls: Mapping[str, Call],
        rotation: Rotation,
        *,
        device: torch.device,
        cache_bytes: int,
        free_memory: int,
    ) -> None:
        self._calls = calls
        self._rotation = rotation
        self._device = device
        self._cache_bytes = cache_bytes
        self._free_memory = free_memory
        self._enqueue: dict[str, float] = {}  # host us a call while the queue is filled
        self.slots: dict[str, int] = {}
        """Outputs that stay alive, so that as much lies between two writes of the same memory."""
        self.host_us: dict[str, float] = {}
        """Host time for a call to return with an empty queue."""

    def prepare(self, name: str) -> None:
        """Sets the output ring, and what a call costs the host."""
        call, inputs = self._calls[name], self._rotation.copies[0]
        out_bytes = nbytes(tensors(call(*inputs)))
        self.slots[name] = copies_needed(
            out_bytes, self._cache_bytes, MAX_CALLS, self._free_memory // 4
        )
        hosts: list[float] = []
        for _ in range(7):
            torch.cuda.synchronize(self._device)
            started = time.perf_counter()
            call(*inputs)
            hosts.append((time.perf_counter() - started) * 1e6)
        self.host_us[name] = self._enqueue[name] = median_interval(hosts).median

    def run(self, name: str, count: int, *, cold: bool) -> tuple[float, bool]:
        """Device time in us between events around `count` calls, and whether the queue was held."""
        call = self._calls[name]
        copies, place = self._rotation.take(count) if cold else ([self._rotation.last], 0)
        ring: list[Any] = [None] * (self.slots[name] if cold else 1)
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        copies_count, slots = len(copies), len(ring)
        if cold:
            self._rotation.before_run()
        else:  # else the first call of N finds what was cold, that of 2N what is warm
            call(*copies[0])
        torch.cuda.synchronize(self._device)
        collecting = gc.isenabled()
        gc.disable()
        try:
            hold = min(MOST_HOLD_US, HOLD_MARGIN * self._enqueue[name] * count)
            torch.cuda._sleep(cycles(hold))
            begin.record()
            started = time.perf_counter()
            for k in range(count):
                ring[k % slots] = call(*copies[(place + k) % copies_count])
            enqueued = (time.perf_counter() - started) * 1e6
            held = not begin.query()
            end.record()
        finally:
            if collecting:
                gc.enable()
        torch.cuda.synchronize(self._device)
        # the next hold is as long as this filling took, so that one slow run costs one long hold
        self._enqueue[name] = max(enqueued / count, 0.7 * self._enqueue[name])
        return begin.elapsed_time(end) * 1e3, held


def cycles(microseconds: float) -> int:
    """Cycles to spin for that long at 2 GHz, the highest clock of the GPUs at hand."""
    return int(microseconds * 2000) + 100_000
