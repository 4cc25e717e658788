"""The GPU's clock: `period_us`, what a call costs in a full stream, cold and warm.

One sample is a slope, (T_2N - T_N) / N: the time between two CUDA events around 2N back-to-back
calls less that around N calls, over N. A spinning kernel holds the stream until every launch is
queued, so that no host time enters; what the events themselves cost, the first launch and the
last drain are in both and cancel. Whether the queue really was held is looked at in every run.

Cold: inputs rotate through copies, outputs are kept in a ring, so that 3x the L2 lies between two
uses of the same memory. Where that many copies would outnumber the calls of a sample, each copy
is used once, and L2 is filled by *reading* clean memory before the run, outside the window
(writing would leave dirty lines, whose write-back lands in the next kernel).
"""

import gc
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..records import Block, DeviceState
from ..schema import Protocol
from ..statistics import median_interval
from .device_state import DeviceMonitor
from .inputs import Inputs, clone, copies_needed, nbytes, tensors
from .untimed import NoSlope, OutsideWork, outside, tails_us

Call = Callable[..., Any]

MAX_CALLS = 256
"""2N stays below this: a stream takes about a thousand launches before the host must wait."""

HOLD_MARGIN = 1.5
"""The stream is held this much longer than filling the queue took the last time."""


class DeviceClock:
    """Samples calls of one cell on one GPU. Every implementation sees the same copies."""

    timer = "cuda events, slope over back-to-back calls, queue held"
    headline = "period_us"
    states: tuple[str, ...] = ("cold", "warm")

    def __init__(
        self,
        calls: Mapping[str, Call],
        inputs: Inputs,
        protocol: Protocol,
        *,
        device: torch.device,
        cache_bytes: int,
        free_memory: int,
        monitor: DeviceMonitor,
        draw_copy: Callable[[], Inputs] | None = None,
    ) -> None:
        self._calls = calls
        self._protocol = protocol
        self._device = device
        self._cache_bytes = cache_bytes
        self._monitor = monitor
        self._free_memory = free_memory
        if not protocol.warm:
            self.states = ("cold",)
        size = nbytes(inputs)
        count = copies_needed(size, cache_bytes, MAX_CALLS, free_memory // 2)
        copy = draw_copy or (lambda: clone(inputs))
        self._copies: list[Inputs] = [inputs, *(copy() for _ in range(count - 1))]
        self._rotates = count * size >= 3 * cache_bytes
        self._flush: Tensor | None = None
        if not self._rotates:
            elements = 3 * cache_bytes // 4
            self._flush = torch.ones(elements, dtype=torch.float32, device=device)
        self._rings: dict[str, int] = {}
        self._next = 0
        self._state: DeviceState | None = None
        self._host: dict[str, float] = {}
        self._enqueue: dict[str, float] = {}  # host us a call while the queue is filled
        self.per_sample: dict[str, int] = {}
        self.warmup: dict[str, tuple[int, float]] = {}
        self.cache = self._method(count, size)

    def _method(self, count: int, size: int) -> str:
        total = count * size / 1e6
        l2 = self._cache_bytes / 1e6
        if self._rotates:
            return f"cold: inputs rotate through {count} copies, {total:.0f} MB (L2 {l2:.0f} MB)"
        return (
            f"cold: {count} copies used once a run, L2 filled by reading "
            f"{3 * l2:.0f} MB before it (L2 {l2:.0f} MB)"
        )

    def release(self) -> tuple[Inputs, ...]:
        """The first and the last copy that were timed; the memory of the rest goes back."""
        self._copies = [self._copies[0], *self._copies[1:][-1:]]
        self._flush = None
        return tuple(self._copies)

    def disturbed(self, name: str, latency_us: float) -> str:
        """The queue is held: nothing on the host reaches these times."""
        return ""

    def host_us(self, name: str) -> float | None:
        """Host time for a call to return with an empty queue."""
        return self._host.get(name)

    def prepare(self, name: str) -> None:
        """Warms up for `warmup_ms` of device time; sets N, the hold and the output ring.

        Raises OutsideWork where calls leave work on other streams that none of theirs awaits.
        """
        call = self._calls[name]
        output = tensors(call(*self._copies[0]))
        out_bytes = nbytes(output)
        del output
        self._rings[name] = copies_needed(
            out_bytes, self._cache_bytes, MAX_CALLS, self._free_memory // 4
        )
        idle = tails_us(lambda: None, self._device)
        if reason := outside(tails_us(lambda: call(*self._copies[0]), self._device), idle):
            raise OutsideWork(f"{name}: {reason}")
        hosts: list[float] = []
        for _ in range(7):
            torch.cuda.synchronize(self._device)
            started = time.perf_counter()
            call(*self._copies[0])
            hosts.append((time.perf_counter() - started) * 1e6)
        self._host[name] = median_interval(hosts).median
        self._enqueue[name] = self._host[name]
        period = self._estimate(name)
        wanted = max(1, math.ceil(self._protocol.sample_us / period))
        # copies that do not rotate are cold only once a run
        most = MAX_CALLS if self._rotates else max(2, len(self._copies))
        self.per_sample[name] = min(wanted, most // 2)
        while self.per_sample[name] > 1 and not self._can_hold(name):
            # the stream's queue is full before all launches are in: fewer calls a run
            self.per_sample[name] //= 2
        count, spent = 0, 0.0
        while spent < self._protocol.warmup_ms * 1e3 or count < 2 * self.per_sample[name]:
            elapsed, _ = self._run(name, 2 * self.per_sample[name], "cold")
            spent += elapsed
            count += 2 * self.per_sample[name]
        self.warmup[name] = (count, spent / 1e6)

    def _can_hold(self, name: str) -> bool:
        """Whether 2N launches fit behind the hold, once the allocator has its blocks."""
        return any(self._run(name, 2 * self.per_sample[name], "cold")[1] for _ in range(4))

    def _estimate(self, name: str) -> float:
        """A first guess at the period in us, from the events around a few calls."""
        elapsed, _ = self._run(name, 4, "warm")
        return max(elapsed / 4, 0.5)

    def block(self, name: str, state: str, round_: int, position: int) -> Block:
        """One block. Raises NoSlope where no positive slope comes out in five attempts."""
        before = self._state or self._monitor.read()
        for _ in range(5):
            samples, held = self._slopes(name, state)
            if held and min(samples) > 0:
                break
        if min(samples) <= 0:
            raise NoSlope(f"{name}: {2 * self.per_sample[name]} calls took no longer than half")
        # read once between two blocks: after the one and before the next
        self._state = self._monitor.read()
        return Block(
            round=round_,
            position=position,
            state=state,
            calls=self.per_sample[name],
            samples_us=samples,
            held=held,
            before=before,
            after=self._state,
        )

    def _slopes(self, name: str, state: str) -> tuple[tuple[float, ...], bool]:
        count = self.per_sample[name]
        samples: list[float] = []
        all_held = True
        for _ in range(self._protocol.samples):
            one, held_one = self._run(name, count, state)
            two, held_two = self._run(name, 2 * count, state)
            all_held = all_held and held_one and held_two
            samples.append((two - one) / count)
        return tuple(samples), all_held

    def _run(self, name: str, count: int, state: str) -> tuple[float, bool]:
        """Device time in us between events around `count` calls, and whether the queue was held."""
        call = self._calls[name]
        copies = self._copies if state == "cold" else self._copies[:1]
        ring: list[Any] = [None] * (self._rings[name] if state == "cold" else 1)
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        place, copies_count, slots = self._next, len(copies), len(ring)
        if state == "cold" and self._flush is not None:
            self._flush.sum()
        torch.cuda.synchronize(self._device)
        collecting = gc.isenabled()
        gc.disable()
        try:
            torch.cuda._sleep(self._cycles(HOLD_MARGIN * self._enqueue[name] * count))
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
        self._next = (place + count) % copies_count if state == "cold" else place
        # the next hold is as long as this filling took, so that one slow run costs one long hold
        self._enqueue[name] = max(enqueued / count, 0.7 * self._enqueue[name])
        return begin.elapsed_time(end) * 1e3, held

    @staticmethod
    def _cycles(microseconds: float) -> int:
        """Cycles to spin for that long at 2 GHz, the highest clock of the GPUs at hand."""
        return int(microseconds * 2000) + 100_000
