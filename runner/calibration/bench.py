"""The calls of one subject on a GPU, warmed up and ready for every instrument: the same copies in
the same turn, behind a queue that is held until all of them are in."""

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import torch

from ..statistics import median_interval
from ..worker.device_clock import DeviceClock
from ..worker.inputs import copies_needed, nbytes, tensors
from ..worker.rotation import MAX_CALLS, TIMES, Rotation
from ..worker.stream_runs import HOLD_MARGIN, cycles
from .request import Row, over
from .subjects import Absent, Call, Subject

ATTEMPTS = 4
"""How often a queue is filled anew behind a hold twice as long, before it counts as not held."""

LEAST_BLOCKS = 6
"""The fewest values of which the median has a 95 % interval."""


def device_clock(subject: Subject, call: Call, *, warm: bool) -> DeviceClock:
    """Our clock over the one call, prepared; raises as `DeviceClock.prepare` does."""
    context = subject.context
    call(*subject.draw())  # what compiles and tunes does so before memory is shared out
    context.synchronize()
    clock = DeviceClock(
        {subject.name: call},
        subject.draw(),
        replace(subject.experiment.protocol, warm=warm),
        device=context.device,
        cache_bytes=context.cache_bytes,
        free_memory=context.free_memory(),
        monitor=subject.monitor,
    )
    clock.prepare(subject.name)
    return clock


def periods(clock: DeviceClock, subject: Subject) -> dict[str, Any]:
    """Our time: a standard run's fewest rounds in each state, with the SM clock beside it.

    Blocks whose queue was not held, or whose clock was not its usual one, do not count. Raises
    Absent where fewer than LEAST_BLOCKS of a state do.
    """
    rounds = subject.experiment.protocol.min_rounds
    found: dict[str, list[float]] = {state: [] for state in clock.states}
    clocks: list[int] = []
    for round_ in range(rounds):
        for state in clock.states:
            block = clock.block(subject.name, state, round_, 0)
            if block.held is False or block.fault:
                continue
            found[state].append(median_interval(block.samples_us).median)
            if block.after is not None and block.after.sm_mhz:
                clocks.append(block.after.sm_mhz)
    for state, us in found.items():
        if len(us) < LEAST_BLOCKS:
            raise Absent(f"{len(us)} of {rounds} blocks {state}: the queue held, the clock usual")
    values: Row = {f"{state}_us": over(us) for state, us in found.items()}
    values["sm_mhz"] = median_interval(clocks).median if clocks else None
    return values


class Bench:
    """Calls in turn over the copies of a rotation, with a ring of outputs."""

    def __init__(
        self,
        subject: Subject,
        call: Call,
        rotation: Rotation,
        period_us: float,
        host_us: float,
        *,
        sample_calls: int = 1,
    ) -> None:
        context = subject.context
        self.call = call
        self.rotation = rotation
        self.device = context.device
        self.period_us = period_us
        self.sample_calls = sample_calls
        """N of our own slope: others take as many, since a longer burst of a large product is
        another thing to the GPU's power."""
        self._host_us = host_us
        self._l2 = context.cache_bytes
        self._clean: torch.Tensor | None = None
        output = nbytes(tensors(call(*rotation.copies[0])))
        self.slots = copies_needed(output, self._l2, MAX_CALLS, context.free_memory() // 4)
        self._ring: list[Any] = [None] * self.slots
        self.calls(self.slots)  # the allocator has every block before anything is timed
        self.synchronize()

    @classmethod
    def alone(cls, subject: Subject, call: Call, period_us: float, host_us: float) -> Self:
        """One with a rotation of its own, where none of our clock's is at hand."""
        context, inputs = subject.context, subject.draw()
        call(*inputs)
        context.synchronize()
        rotation = Rotation(
            inputs,
            device=context.device,
            cache_bytes=context.cache_bytes,
            free_memory=context.free_memory(),
        )
        return cls(subject, call, rotation, period_us, host_us)

    def calls(self, count: int) -> None:
        """Queues so many cold calls."""
        copies, place = self.rotation.take(count)
        for k in range(count):
            self._ring[k % self.slots] = self.call(*copies[(place + k) % len(copies)])

    def forget_outputs(self) -> None:
        """Their memory is the next outputs'."""
        self._ring = [None] * self.slots

    def read_flush(self) -> None:
        """Fills L2 with clean lines: 3x its size is read."""
        if self._clean is None:
            self._clean = torch.ones(TIMES * self._l2 // 4, device=self.device)
        self._clean.sum()

    def synchronize(self) -> None:
        """Waits for the device."""
        torch.cuda.synchronize(self.device)

    def host_guess(self, count: int) -> float:
        """Host us that so many calls take to be queued."""
        return self._host_us * count + 100.0

    def held(self, fill: Callable[[], object], guess_us: float) -> None:
        """Runs `fill` while a spinning kernel holds the stream, and waits for the device.

        Cold: the rotation's own flush comes before. Raises Absent where the queue is not held
        until `fill` returns, in so many attempts.
        """
        for _ in range(ATTEMPTS):
            held, took = self.held_once(fill, guess_us)
            if held:
                return
            guess_us = 2 * max(guess_us, took)
        raise Absent(f"the queue was not held in {ATTEMPTS} attempts")

    def held_once(self, fill: Callable[[], object], guess_us: float) -> tuple[bool, float]:
        """The same without another attempt: whether the queue was held, and the host us taken."""
        self.rotation.before_run()
        self.synchronize()
        gate = torch.cuda.Event()
        collecting = gc.isenabled()
        gc.disable()
        try:
            torch.cuda._sleep(cycles(HOLD_MARGIN * guess_us))
            gate.record()
            started = time.perf_counter()
            fill()
            took = (time.perf_counter() - started) * 1e6
            held = not gate.query()
        finally:
            if collecting:
                gc.enable()
        self.synchronize()
        return held, took

    def between_events(self, fill: Callable[[], object], guess_us: float) -> float:
        """Device us between events around `fill`, the queue held."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def all_of_it() -> None:
            begin.record()
            fill()
            end.record()

        self.held(all_of_it, guess_us)
        return begin.elapsed_time(end) * 1e3
