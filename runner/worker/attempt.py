"""One implementation in one cell: what is known of it so far, and the record it ends as."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..question.plan import CONSTANT_INPUTS
from ..records import TIMED, Cell, Correctness, Cost, Record, Status, Timing
from ..schema import Compile, Device, Distribution, Language
from ..statistics import median_interval, two_modes
from .context import Context
from .device_clock import DeviceClock
from .host_clock import HostClock
from .rounds import Sampled

Call = Callable[..., Any]
Clock = HostClock | DeviceClock


def _of_inputs(distribution: Distribution) -> tuple[str, ...]:
    """What a reader of a time must know of its inputs; nothing where they are the usual ones."""
    if distribution is Distribution.zeros:
        return (CONSTANT_INPUTS,)
    if distribution is Distribution.normal:
        return ()
    return (f"inputs drawn by distribution={distribution}",)


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
        self, context: Context, clock: Clock, sampled: Sampled, stopped: str, recompiled: int
    ) -> None:
        """Takes in the sampled blocks as the timing, or says why they are no time."""
        headline, *others = clock.states
        confidence = context.experiment.protocol.confidence
        rounds = sampled.rounds(headline)
        warm = sampled.rounds("warm") if "warm" in others else ()
        calls, seconds = clock.warmup[self.name]
        not_held = sum(block.held is False for block in sampled.blocks)
        notes = list(_of_inputs(context.experiment.distribution))
        late = f"queue not held in {not_held} of {len(sampled.blocks)} blocks"
        if not_held:
            notes.append(late)
        if modes := two_modes(rounds):
            low, high, share = modes
            notes.append(f"two modes: {share:.0%} of rounds near {low:.4g} us, rest {high:.4g} us")
        clocks = [b.after.sm_mhz for b in sampled.blocks if b.after is not None and b.after.sm_mhz]
        self.timing = Timing(
            timer=clock.timer,
            headline=clock.headline,
            state=headline,
            latency_us=median_interval(rounds, confidence),
            rounds_us=rounds,
            calls=clock.per_sample[self.name],
            cache=clock.cache,
            warm_us=median_interval(warm, confidence) if warm else None,
            warm_rounds_us=warm,
            host_us=clock.host_us(self.name),
            blocks=tuple(sampled.blocks),
            warmup_calls=calls,
            warmup_s=seconds,
            threads=torch.get_num_threads() if context.kind is Device.cpu else None,
            stopped=stopped,
            clock_spread=(max(clocks) - min(clocks)) / max(clocks) if clocks else None,
            notes=tuple(notes),
        )
        compiled = context.experiment.kernel.implementations[self.name].compile
        if recompiled and compiled is not Compile.none:
            self.fail(Status.invalid, f"torch.compile ran {recompiled} times during timing", "time")
        elif not_held * 2 > len(sampled.blocks):
            self.fail(Status.invalid, f"host-limited: {late}", "time")
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
            compile_s=self.first_call_s if compiles else None,
            tuning=self.tuning,
            target=experiment.target.name,
            peak_memory_bytes=self.peak_bytes,
            range_id=self.range_id,
            traceback=self.trace,
        )
