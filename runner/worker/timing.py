"""Sampled blocks become the timing of an implementation, with what a reader must know of it."""

import statistics
from collections.abc import Sequence

import torch

from ..question.plan import CONSTANT_INPUTS
from ..records import Block, Interval, Sustained, Timing
from ..schema import Device, Distribution
from ..statistics import median_interval, two_modes
from .clock_rules import clock_mhz, labels, power_limited
from .context import Context
from .device_clock import DeviceClock
from .host_clock import HostClock
from .rounds import Sampled

Clock = HostClock | DeviceClock


def timing_of(
    name: str,
    context: Context,
    clock: Clock,
    sampled: Sampled,
    stopped: str,
    sustained: Sustained | str = "",
) -> Timing:
    """The times of one implementation in the states of its clock. `sustained` is text where it
    says why there is none."""
    headline, *others = clock.states
    confidence = context.experiment.protocol.confidence
    rounds = sampled.rounds(headline)
    of_warm = headline.removesuffix("cold") + "warm"
    warm = sampled.rounds(of_warm) if of_warm in others else ()
    stream = sampled.rounds("cold") if "cold" in others else ()
    calls, seconds = clock.warmup[name]
    latency, host = median_interval(rounds, confidence), clock.host_us(name)
    submitted = median_interval(stream, confidence) if stream else latency
    clocks = clock_mhz(sampled.blocks)
    return Timing(
        timer=clock.timer,
        headline=clock.headline,
        state=headline.split()[-1],
        latency_us=latency,
        rounds_us=rounds,
        calls=clock.per_sample[name],
        cache=clock.cache,
        warm_us=_interval(warm, confidence),
        warm_rounds_us=warm,
        stream_us=_interval(stream, confidence),
        stream_rounds_us=stream,
        host_us=host,
        graph_nodes=clock.nodes(name),
        launch_bound=None if host is None else host > submitted.median,
        power_limited=power_limited(sampled.blocks),
        sm_mhz=statistics.median(clocks) if clocks else None,
        sustained=sustained if isinstance(sustained, Sustained) else None,
        clocks=context.experiment.protocol.clocks,
        blocks=tuple(sampled.blocks),
        warmup_calls=calls,
        warmup_s=seconds,
        warmup_settled=clock.settled[name],
        threads=torch.get_num_threads() if context.kind is Device.cpu else None,
        stopped=stopped,
        clock_spread=(max(clocks) - min(clocks)) / max(clocks) if clocks else None,
        notes=tuple(_notes(name, context, clock, sampled, rounds, sustained)),
    )


def late(blocks: Sequence[Block]) -> int:
    """How many blocks hold host time: the device caught up with the host."""
    return sum(block.held is False for block in blocks)


def _interval(rounds: Sequence[float], confidence: float) -> Interval | None:
    return median_interval(rounds, confidence) if rounds else None


def _notes(
    name: str,
    context: Context,
    clock: Clock,
    sampled: Sampled,
    rounds: Sequence[float],
    sustained: Sustained | str,
) -> list[str]:
    notes = list(_of_inputs(context.experiment.distribution))
    if not_held := late(sampled.blocks):
        notes.append(f"queue not held in {not_held} of {len(sampled.blocks)} blocks")
    if modes := two_modes(rounds):
        low, high, share = modes
        notes.append(f"two modes: {share:.0%} of rounds near {low:.4g} us, rest {high:.4g} us")
    if faulty := labels(sampled.blocks)[0]:
        notes.append(faulty)
    if clock.settled[name] is False:
        _, seconds = clock.warmup[name]
        notes.append(f"the warm-up of {seconds:.3g} s ended while its times still had a trend")
    if isinstance(sustained, str) and sustained:
        notes.append(sustained)
    return notes


def _of_inputs(distribution: Distribution) -> tuple[str, ...]:
    """What a reader of a time must know of its inputs; nothing where they are the usual ones."""
    if distribution is Distribution.zeros:
        return (CONSTANT_INPUTS,)
    if distribution is Distribution.normal:
        return ()
    return (f"inputs drawn by distribution={distribution}",)
