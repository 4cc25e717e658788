"""The GPU's clock: what a call costs in a full stream and in a CUDA graph, cold and warm.

The times of a GPU, each per call:

- `period_us`: the slope (T_2N - T_N) / N, with T the time between two CUDA events around N
  back-to-back calls in one stream. A spinning kernel holds the stream until every launch is
  queued, so that no host time enters; what the events cost, the first launch and the last drain
  are in both and cancel. It holds the kernels, the gaps between them and the gap to the next call.
- `graph_us`: the same slope over N calls captured in one CUDA graph and 2N in another. Gaps
  between nodes of a graph are shorter than between launches in a stream.
- `busy_us`: the union of the intervals of a call's kernels, memcpys and memsets, by the device's
  own timestamps (profiler, nsys, ncu). No gap is in it.
- `span_us`: from the first start to the last end of one call by the same timestamps, the queue
  held. Of a call's n gaps it holds n - 1, so it flatters a fusion of small kernels.
- `host_us`: host time for a call to return with an empty queue.
- `wall_us`, on a CPU: host time of a call, warm.

The headline is `period_us`, or `graph_us` with `submit: graph`, with `period_us` beside it. Cold
and warm are those of `rotation`; a graph rotates inside itself, and the L2 is read full before
each replay, outside the window. Whether the queue really was held is looked at in every run.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..records import Block, DeviceState
from ..schema import Protocol, Submit
from ..statistics import steady, trend
from .clock_rules import fault
from .device_state import DeviceMonitor
from .graph_runs import GraphRuns
from .inputs import Inputs
from .rotation import Rotation
from .stream_runs import StreamRuns
from .untimed import NoSlope, OutsideWork, work_outside

Call = Callable[..., Any]

COLD = "cold"
"""The state in which a run takes copies in turn."""

TRIES = 3
"""A block that the GPU's clock spoiled, or whose queue was not held, is taken so often at most."""

WINDOW = 16
"""Runs of the warm-up in which no trend must show."""

MOST_S = 10.0
"""Wall seconds of a warm-up whose calls cost the host far more than the device."""

MOST_RUNS = 10_000
"""Calls that take no device time at all must end the warm-up too."""

PATIENCE = 10
"""So many times `warmup_ms` at most, while there is one."""


class DeviceClock:
    """Samples calls of one cell on one GPU. Every implementation sees the same copies."""

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
        submit: Submit = Submit.stream,
        warm: Mapping[str, int] | None = None,
    ) -> None:
        self._calls = calls
        self._protocol = protocol
        self._device = device
        self._monitor = monitor
        graph = submit is Submit.graph
        self.headline = "graph_us" if graph else "period_us"
        self.timer = "cuda events, slope over back-to-back calls, queue held"
        if graph:
            self.timer = "cuda events, slope over calls in a CUDA graph, queue held"
        kind = "graph " if graph else ""
        states = [f"{kind}cold", *([f"{kind}warm"] if protocol.warm else [])]
        self.states: tuple[str, ...] = (*states, "cold") if graph else tuple(states)
        """Sampled in each round, the headline's first; beside a graph the stream's cold period."""
        self._rotation = Rotation(
            inputs,
            device=device,
            cache_bytes=cache_bytes,
            free_memory=free_memory,
            warm=set((warm or {}).values()),
            always_flush=graph,
        )
        self.cache = self._rotation.method(list(warm or {}))
        self._streams = StreamRuns(
            calls,
            self._rotation,
            device=device,
            cache_bytes=cache_bytes,
            free_memory=free_memory,
        )
        self._graphs = GraphRuns(self._rotation, device) if graph else None
        self._state: DeviceState | None = None
        self._clocks: dict[str, list[int]] = {}
        self.per_sample: dict[str, int] = {}
        self.warmup: dict[str, tuple[int, float]] = {}
        self.settled: dict[str, bool | None] = {}

    def release(self) -> tuple[Inputs, ...]:
        """The first and the last copy that were timed; the memory of the rest goes back."""
        if self._graphs is not None:
            self._graphs.release()
        return self._rotation.release()

    def disturbed(self, name: str, latency_us: float) -> str:
        """The queue is held: nothing on the host reaches these times."""
        return ""

    def host_us(self, name: str) -> float | None:
        """Host time for a call to return with an empty queue."""
        return self._streams.host_us.get(name)

    def nodes(self, name: str) -> dict[str, float]:
        """What a call became in the graph, by kind of node; empty without a graph."""
        return self._graphs.nodes(name) if self._graphs is not None else {}

    def slots(self, name: str) -> int:
        """Outputs that stay alive at once, so that as much lies between two writes of a place."""
        return self._streams.slots[name]

    @property
    def rotation(self) -> Rotation:
        """The copies that calls take in turn."""
        return self._rotation

    def prepare(self, name: str) -> None:
        """Warms up until no trend is left; sets N, the hold and the output ring.

        Raises OutsideWork where calls leave work on other streams that none of theirs awaits,
        NoSlope where not even two fit behind a hold, and Uncapturable or EmptyGraph where a graph
        is asked for and they cannot become one.
        """
        call, inputs = self._calls[name], self._rotation.copies[0]
        self._streams.prepare(name)
        if reason := work_outside(lambda: call(*inputs), self._device):
            raise OutsideWork(f"{name}: {reason}")
        # a first guess at the period, warm: cold calls would still be given their memory
        elapsed = min(self._streams.run(name, 4, cold=False)[0] for _ in range(3))
        wanted = max(1, math.ceil(self._protocol.sample_us / max(elapsed / 4, 0.5)))
        self.per_sample[name] = min(wanted, self._rotation.most_calls // 2)
        while not (held := self._can_hold(name)) and self.per_sample[name] > 1:
            # the stream's queue is full before all launches are in: fewer calls a run
            self.per_sample[name] //= 2
        if self._graphs is not None:
            count, slots = self.per_sample[name], self._streams.slots[name]
            self._graphs.make(name, call, count, slots, warm=self._protocol.warm)
        if not held:
            raise NoSlope(f"{name}: host-limited: no hold lasts until two calls are queued")
        self._warm_up(name)

    def _warm_up(self, name: str) -> None:
        """Runs until `warmup_ms` of device time are spent and the last runs show no trend."""
        least = self._protocol.warmup_ms * 1e3
        window: deque[float] = deque(maxlen=WINDOW)
        count, spent, runs, ends = 0, 0.0, 0, time.monotonic() + MOST_S
        while True:
            elapsed, _ = self._run(name, 2 * self.per_sample[name], self.states[0])
            window.append(max(elapsed, 1e-3))  # calls without work may take no tick of the clock
            spent, runs = spent + elapsed, runs + 1
            count += 2 * self.per_sample[name]
            if spent >= least and len(window) == WINDOW and not trend(window):
                break
            if spent >= PATIENCE * least or runs >= MOST_RUNS or time.monotonic() > ends:
                break
        self.settled[name] = steady(window)
        self.warmup[name] = (count, spent / 1e6)

    def _can_hold(self, name: str) -> bool:
        """Whether 2N launches fit behind the hold, once the allocator has its blocks."""
        return any(self._run(name, 2 * self.per_sample[name], "cold")[1] for _ in range(4))

    def block(self, name: str, state: str, round_: int, position: int) -> Block:
        """One block, taken anew while its queue was not held or the clock was not its usual one.

        Raises NoSlope where no positive slope comes out in five attempts.
        """
        usual = self._clocks.setdefault(name, [])
        found: Block | None = None
        for repeat in range(TRIES):
            before = self._state or self._monitor.read()
            samples, held = self._positive(name, state)
            # read once between two blocks: after the one and before the next
            self._state = self._monitor.read()
            found = Block(
                round=round_,
                position=position,
                state=state,
                calls=self.per_sample[name],
                samples_us=samples,
                held=held,
                before=before,
                after=self._state,
                fault=fault(self._state, usual),
                repeats=repeat,
            )
            if held and not found.fault:
                break
        assert found is not None
        if self._state is not None and self._state.sm_mhz:
            usual.append(self._state.sm_mhz)
        return found

    def _positive(self, name: str, state: str) -> tuple[tuple[float, ...], bool]:
        for _ in range(5):
            samples, held = self._slopes(name, state)
            if min(samples) > 0:
                return samples, held
        raise NoSlope(f"{name}: {2 * self.per_sample[name]} calls took no longer than half")

    def _slopes(self, name: str, state: str) -> tuple[tuple[float, ...], bool]:
        count = self.per_sample[name]
        samples: list[float] = []
        all_held = True
        for _ in range(self._protocol.samples):
            one, held_one = self._run(name, count, state)
            # the same copies first, where they are cold again: their place in memory cancels
            back = state == COLD and self._rotation.rewind(count)
            two, held_two = self._run(name, 2 * count, state)
            if back:
                self._rotation.skip()
            all_held = all_held and held_one and held_two
            samples.append((two - one) / count)
        return tuple(samples), all_held

    def _run(self, name: str, count: int, state: str) -> tuple[float, bool]:
        """Device time in us between events around `count` calls, and whether the queue was held."""
        cold = state.endswith("cold")
        if self._graphs is not None and state.startswith("graph"):
            if not cold:  # else the first call of N finds what was cold, that of 2N what is warm
                self._calls[name](*self._rotation.copies[0])
            return self._graphs.run(name, count, cold=cold)
        return self._streams.run(name, count, cold=cold)
