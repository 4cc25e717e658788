"""The timed part of a cell: the right implementations, in rounds, each block in its NVTX range.

One that fails in the rounds is taken out, and the rest start anew without it.
"""

import gc
import traceback
from collections.abc import Callable, Sequence

import torch

from ..records import Block, Cell, Status, Sustained
from ..schema import Device
from ..statistics import median_interval
from .attempt import Attempt, Built
from .context import Context
from .device_clock import DeviceClock
from .device_state import DeviceMonitor
from .failure import Poisoned, classify
from .gate import Gate
from .graph import EmptyGraph, Uncapturable
from .host_clock import HostClock
from .load import graphs_compiled, kernels_built
from .rotation import places
from .rounds import Sampled, run_rounds
from .sustained import sustain
from .timing import Clock
from .untimed import NoSlope


class Measuring:
    """Times attempts of one cell side by side."""

    def __init__(
        self,
        context: Context,
        cell: Cell,
        monitor: DeviceMonitor,
        *,
        progress: Callable[[int], None],
        after_rounds: Callable[[Clock, Sequence[Attempt]], None],
        stop_if_sticky: Callable[[str, Exception], None],
    ) -> None:
        self._context = context
        self._cell = cell
        self._monitor = monitor
        self._progress = progress
        self._after_rounds = after_rounds
        self._stop_if_sticky = stop_if_sticky
        self._attempts: dict[str, Attempt] = {}
        self._at = ""

    def run(self, attempts: Sequence[Attempt], seed: int) -> None:
        """Gives each attempt its timing, or the reason why it has none."""
        self._attempts = {attempt.name: attempt for attempt in attempts}
        while self._attempts:
            # what the checks or a failed try held: copies take its memory, and a capture can have
            # none that the allocator keeps
            gc.collect()
            if self._context.kind is Device.cuda:
                torch.cuda.empty_cache()
            if self._try(seed):
                return

    def _try(self, seed: int) -> bool:
        """Times all attempts side by side; False where one failed and is taken out."""
        self._at = next(iter(self._attempts))
        try:
            self._context.announce(self._at, "warmup")
            clock = self._clock(seed)
            for name in self._attempts:
                self._warm_up(clock, name)
            built = Built(graphs=graphs_compiled(), kernels=kernels_built())
            sampled, stopped = self._rounds(clock, seed)
            kept_at_it = {name: self._sustain(clock, name, sampled) for name in self._attempts}
        except NoSlope as reason:
            self._attempts.pop(self._at).fail(Status.invalid, str(reason), "time")
        except EmptyGraph as empty:
            self._attempts.pop(self._at).fail(Status.invalid, empty.reason, "time")
        except Uncapturable as refused:
            if refused.harmed:
                trace = traceback.format_exc()
                raise Poisoned(self._at, Status.unsupported, refused.reason, trace) from None
            self._attempts.pop(self._at).fail(Status.unsupported, refused.reason, "time")
        except Exception as error:
            self._stop_if_sticky(self._at, error)
            trace = traceback.format_exc()
            self._attempts.pop(self._at).fail(*classify(error), "time", trace)
        else:
            late = Built(
                graphs=graphs_compiled() - built.graphs, kernels=kernels_built() - built.kernels
            )
            for name, attempt in self._attempts.items():
                attempt.settle(self._context, clock, sampled[name], stopped, late, kept_at_it[name])
            self._after_rounds(clock, list(self._attempts.values()))
            return True
        return False

    def _clock(self, seed: int) -> Clock:
        context = self._context
        calls = {name: attempt.function for name, attempt in self._attempts.items()}
        named = Gate.named(context, self._cell, seed)
        warm = places(context.experiment.warm_inputs, named)
        inputs = tuple(named.values())
        if context.kind is Device.cpu:
            return HostClock(calls, inputs, context.experiment.protocol)
        return DeviceClock(
            calls,
            inputs,
            context.experiment.protocol,
            device=context.device,
            cache_bytes=context.cache_bytes,
            free_memory=context.free_memory(),
            monitor=self._monitor,
            submit=context.experiment.submit,
            warm=warm,
        )

    def _warm_up(self, clock: Clock, name: str) -> None:
        self._at = name
        self._context.announce(name, "warmup")
        with self._context.ranges.step(self._cell.index, self._cell.id, name, "warmup"):
            clock.prepare(name)

    def _rounds(self, clock: Clock, seed: int) -> tuple[dict[str, Sampled], str]:
        names = list(self._attempts)
        wanted = self._context.experiment.kernel.baseline
        return run_rounds(
            _InRanges(clock, self._context, self._cell, self._attempts),
            names,
            wanted if wanted in names else names[0],
            self._context.experiment.protocol,
            seed=seed + 1_000_033 * (self._context.process - 1),
            before_block=self._before,
        )

    def _sustain(self, clock: Clock, name: str, sampled: dict[str, Sampled]) -> Sustained | str:
        protocol = self._context.experiment.protocol
        if isinstance(clock, HostClock) or not protocol.sustained_ms:
            return ""
        self._before(name, protocol.max_rounds)
        try:
            with self._context.ranges.step(self._cell.index, self._cell.id, name, "measure"):
                return sustain(
                    self._attempts[name].function,
                    clock.rotation,
                    slots=clock.slots(name),
                    period_us=median_interval(sampled[name].rounds("cold")).median,
                    host_us=clock.host_us(name),
                    milliseconds=protocol.sustained_ms,
                    monitor=self._monitor,
                    device=self._context.device,
                )
        except Exception as error:  # the rounds are good all the same
            self._stop_if_sticky(name, error)
            return f"no sustained time: {classify(error)[1]}"

    def _before(self, name: str, round_: int) -> None:
        self._at = name
        self._context.announce(name, "time")
        self._progress(round_)


class _InRanges:
    """A clock whose every block stands in its NVTX range."""

    def __init__(
        self, clock: Clock, context: Context, cell: Cell, attempts: dict[str, Attempt]
    ) -> None:
        self.states = clock.states
        self._clock = clock
        self._context = context
        self._cell = cell
        self._attempts = attempts

    def block(self, name: str, state: str, round_: int, position: int) -> Block:
        ranges = self._context.ranges
        with ranges.step(self._cell.index, self._cell.id, name, "measure") as index:
            self._attempts[name].range_id = index
            return self._clock.block(name, state, round_, position)
