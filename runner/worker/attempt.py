"""One implementation in one cell: what is known of it so far, and the record it ends as."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..records import TIMED, Cell, Correctness, Cost, Record, Status, Sustained, Timing
from ..schema import Compile, Implementation, Language
from .clock_rules import labels
from .context import Context
from .locked import off_lock
from .rounds import Sampled
from .timing import Clock, late, timing_of

Call = Callable[..., Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """What was compiled while the implementations of a cell were timed: graphs of torch.compile,
    and kernels in Triton's cache on disk."""

    graphs: int = 0
    kernels: int = 0

    def of(self, implementation: Implementation) -> str:
        """Why the times of this implementation hold compiling; '' where they cannot. Whose it was
        is not known: it is charged to everyone who compiles that way."""
        if self.graphs > 0 and implementation.compile is not Compile.none:
            return f"torch.compile ran {self.graphs} times during timing"
        if self.kernels > 0 and implementation.language is Language.triton:
            return f"Triton compiled {self.kernels} kernels during timing"
        return ""


@dataclass(slots=True)
class Attempt:
    """What is known so far of one implementation in this cell."""

    name: str
    status: Status = Status.ok
    reason: str = ""
    phase: str = ""
    trace: str = ""
    cost: Cost | None = None
    call: Call | None = None
    correctness: Correctness | None = None
    recheck: Correctness | None = None
    timing: Timing | None = None
    first_call_s: float | None = None
    tuning_s: float | None = None
    tuning: str = ""
    peak_bytes: int | None = None
    range_id: int | None = None

    @property
    def function(self) -> Call:
        """What was bound. An attempt that could not be loaded is never called."""
        assert self.call is not None
        return self.call

    def fail(self, status: Status, reason: str, phase: str, trace: str = "") -> None:
        self.status, self.reason, self.phase, self.trace = status, reason, phase, trace
        if status not in TIMED:
            self.timing = None

    def settle(
        self,
        context: Context,
        clock: Clock,
        sampled: Sampled,
        stopped: str,
        built: Built,
        sustained: Sustained | str = "",
    ) -> None:
        """Takes in the sampled blocks as the timing, or says why they are no time."""
        self.timing = timing_of(self.name, context, clock, sampled, stopped, sustained)
        not_held = late(sampled.blocks)
        faulty, too_many = labels(sampled.blocks)
        if reason := built.of(context.experiment.kernel.implementations[self.name]):
            self.fail(Status.invalid, reason, "time")
        elif not_held * 2 > len(sampled.blocks):
            reason = f"host-limited: queue not held in {not_held} of {len(sampled.blocks)} blocks"
            self.fail(Status.invalid, reason, "time")
        elif reason := off_lock(context.experiment.protocol.clocks, sampled.blocks):
            self.fail(Status.invalid, reason, "time")
        elif too_many:
            self.fail(Status.noisy, faulty, "time")
        elif reason := clock.disturbed(self.name, self.timing.latency_us.median):
            self.fail(Status.noisy, reason, "time")

    def record(self, context: Context, cell: Cell) -> Record:
        """The record as it stands."""
        experiment = context.experiment
        implementation = experiment.kernel.implementations[self.name]
        compiles = (
            implementation.compile is not Compile.none
            or implementation.language is not Language.torch
        )
        return Record(
            job=context.job,
            experiment=experiment.experiment_name,
            cell=cell,
            implementation=self.name,
            status=self.status,
            reason=self.reason,
            phase=self.phase,
            cost=self.cost,
            correctness=self.correctness,
            recheck=self.recheck,
            timing=self.timing,
            first_call_s=self.first_call_s,
            compile_s=self.first_call_s - (self.tuning_s or 0.0)
            if compiles and self.first_call_s is not None
            else None,
            tuning_s=self.tuning_s,
            tuning=self.tuning,
            target=experiment.target.name,
            peak_memory_bytes=self.peak_bytes,
            range_id=self.range_id,
            traceback=self.trace,
        )
