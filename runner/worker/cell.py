"""One cell: load and check every implementation, time those that are right, check them again.

Whatever one implementation does short of killing the process costs only its own record; before
each step it is announced, so that a death has a name too.
"""

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..errors import ConfigError
from ..question.costs import cost_of
from ..records import Cell, Record, Status
from ..schema import Compile, Device, Language, Mode, Submit
from .attempt import Attempt
from .context import Context
from .device_state import DeviceMonitor
from .failure import Poisoned, classify, is_sticky
from .gate import Gate, WrongAnswer, place_of
from .graph import Uncapturable, graphed
from .hiding import look
from .inputs import clone
from .load import (
    bind,
    forget_compiled,
    graphs_compiled,
    require_compiled,
    tuning_of,
    tuning_seconds,
)
from .measuring import Measuring

Call = Callable[..., Any]


class CellRun:
    """Takes one cell from loading to records."""

    def __init__(
        self,
        context: Context,
        cell: Cell,
        names: Sequence[str],
        monitor: DeviceMonitor,
        progress: Callable[[int], None] = lambda round_: None,
    ) -> None:
        self._context = context
        self._cell = cell
        self._monitor = monitor
        self._progress = progress
        self._attempts = {name: Attempt(name=name) for name in names}

    def run(self) -> list[Record]:
        """Records of all implementations. Raises Poisoned after a sticky device error."""
        forget_compiled()
        # one mode for check and timing alike: compiled code is guarded by it
        with torch.no_grad():
            return self._run()

    def _run(self) -> list[Record]:
        context = self._context
        seed = context.experiment.seed + self._cell.workload.seed
        for attempt in self._attempts.values():
            self._state_cost(attempt)
        gate = self._gate(seed) if self._sound() else None
        if gate is None:
            return self._records()
        for attempt in self._sound():
            self._check(attempt, gate)
        good = self._sound()
        empty = gate.empty
        del gate  # its inputs and truths would take the memory that copies rotate through
        if empty:
            for attempt in good:
                attempt.fail(Status.empty, "the output has no elements", "check")
        elif reason := self._untimed():
            for attempt in good:
                attempt.fail(Status.checked, reason, "check")
        else:
            for attempt in good:
                if self._interpreted(attempt.name):
                    attempt.fail(
                        Status.checked, "Triton's interpreter: values checked, never timed", "check"
                    )
            Measuring(
                self._context,
                self._cell,
                self._monitor,
                progress=self._progress,
                after_rounds=lambda clock, timed: look(
                    self._context, self._cell, clock, timed, self._stop_if_sticky
                ),
                stop_if_sticky=self._stop_if_sticky,
            ).run([a for a in good if a.status is Status.ok], seed + 2)
            self._recheck(seed)
        return self._records()

    def _sound(self) -> list[Attempt]:
        return [a for a in self._attempts.values() if a.status is Status.ok]

    def _state_cost(self, attempt: Attempt) -> None:
        """What a call must do, before any work: without it the times would say nothing."""
        try:
            attempt.cost = cost_of(self._context.experiment, self._cell, attempt.name)
        except ConfigError as error:
            attempt.fail(Status.crashed, str(error), "cost", traceback.format_exc())

    def _gate(self, seed: int) -> Gate | None:
        yardstick = self._context.experiment.kernel.yardstick
        self._context.announce(f"yardstick {yardstick}", "reference")
        try:
            return Gate(self._context, self._cell, seed=seed)
        except WrongAnswer as wrong:
            for attempt in self._sound():
                attempt.fail(wrong.status, wrong.reason, "reference")
        except Exception as error:
            self._stop_if_sticky(f"yardstick {yardstick}", error)
            status, reason = classify(error)
            trace = traceback.format_exc()
            for attempt in self._sound():
                attempt.fail(status, f"{place_of(error)}: {reason}", "reference", trace)
        return None

    def _untimed(self) -> str:
        """Why this job publishes no time; '' where it does."""
        if self._context.profiled:
            return f"no time is published under a profiler ({self._context.profiled} is set)"
        mode = self._context.experiment.mode
        return "" if mode is Mode.run else f"mode={mode}: verified, not timed"

    def _interpreted(self, name: str) -> bool:
        language = self._context.experiment.kernel.implementations[name].language
        return self._context.interpreted and language is Language.triton

    def _check(self, attempt: Attempt, gate: Gate) -> None:
        context, name = self._context, attempt.name
        phase = "load"
        try:
            context.announce(name, phase)
            arguments = context.arguments(self._cell)
            attempt.call = bind(context.experiment, name, arguments, context.kind)
            phase = "compile"
            context.announce(name, phase)
            implementation = context.experiment.kernel.implementations[name]
            tuned = tuning_seconds(implementation)
            attempt.first_call_s = self._first_call(attempt, gate)
            if tuned is not None:
                attempt.tuning_s = (tuning_seconds(implementation) or 0.0) - tuned
            phase = "check"
            context.announce(name, phase)
            with context.ranges.step(self._cell.index, self._cell.id, name, "check"):
                self._start_peak()
                attempt.correctness = gate.check(attempt.function)
                attempt.peak_bytes = self._peak()
            attempt.tuning = tuning_of(context.experiment.kernel.implementations[name])
        except WrongAnswer as wrong:
            attempt.correctness = wrong.correctness
            attempt.fail(wrong.status, wrong.reason, phase)
        except Exception as error:
            self._stop_if_sticky(name, error)
            attempt.fail(*classify(error), phase, traceback.format_exc())
        self._free()

    def _first_call(self, attempt: Attempt, gate: Gate) -> float:
        inputs = clone(gate.first_inputs)
        graphs, started = graphs_compiled(), time.perf_counter()
        attempt.function(*inputs)
        self._context.synchronize()
        seconds = time.perf_counter() - started
        implementation = self._context.experiment.kernel.implementations[attempt.name]
        if implementation.compile is not Compile.none:
            require_compiled(graphs)
        return seconds

    def _recheck(self, seed: int) -> None:
        """The same gate on inputs that no call has seen: a result kept from timing shows."""
        timed = [a for a in self._attempts.values() if a.timing is not None]
        if not timed:
            return
        yardstick = self._context.experiment.kernel.yardstick
        self._context.announce(f"yardstick {yardstick}", "recheck")
        try:
            gate = Gate(self._context, self._cell, seed=seed + 3)
        except Exception as error:
            self._stop_if_sticky(f"yardstick {yardstick}", error)
            reason = str(error) if isinstance(error, WrongAnswer) else classify(error)[1]
            for attempt in timed:
                attempt.fail(
                    Status.invalid,
                    f"after timing, on unseen inputs, there was no check: {reason}",
                    "recheck",
                    traceback.format_exc(),
                )
            return
        cell = self._cell
        for attempt in timed:
            self._context.announce(attempt.name, "recheck")
            try:
                with self._context.ranges.step(cell.index, cell.id, attempt.name, "check"):
                    attempt.recheck = gate.check(self._as_timed(attempt, gate))
            except WrongAnswer as wrong:
                attempt.recheck = wrong.correctness
                why = f"after timing, on unseen inputs: {wrong.reason}"
                attempt.fail(wrong.status, why, "recheck")
            except Uncapturable as refused:
                if refused.harmed:
                    raise Poisoned(attempt.name, Status.invalid, refused.reason, "") from refused
                attempt.fail(Status.invalid, f"after timing: {refused.reason}", "recheck")
            except Exception as error:
                self._stop_if_sticky(attempt.name, error)
                attempt.fail(*classify(error), "recheck", traceback.format_exc())

    def _as_timed(self, attempt: Attempt, gate: Gate) -> Call:
        """What was timed: the call, or its replay where the headline is a graph's."""
        if self._context.experiment.submit is Submit.stream or attempt.timing is None:
            return attempt.function
        return graphed(attempt.function, gate.first_inputs, self._context.device)

    def _stop_if_sticky(self, name: str, error: Exception) -> None:
        """Raises Poisoned where the device no longer answers."""
        if self._context.kind is not Device.cuda:
            return
        sticky = is_sticky(error)
        if not sticky:
            try:
                self._context.synchronize()
            except Exception:
                sticky = True
        if sticky:
            _, reason = classify(error)
            raise Poisoned(name, Status.crashed, reason, traceback.format_exc()) from error

    def _start_peak(self) -> None:
        if self._context.kind is Device.cuda:
            torch.cuda.reset_peak_memory_stats(self._context.device)

    def _peak(self) -> int | None:
        cuda = self._context.kind is Device.cuda
        return torch.cuda.max_memory_allocated(self._context.device) if cuda else None

    def _free(self) -> None:
        if self._context.kind is Device.cuda:
            torch.cuda.empty_cache()

    def _records(self) -> list[Record]:
        self._free()
        return [attempt.record(self._context, self._cell) for attempt in self._attempts.values()]
