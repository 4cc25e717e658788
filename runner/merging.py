"""One record out of those of several fresh processes: all rounds kept, the process as the unit.

Pure. A wrong answer or a crash in one process is the implementation's own and decides; a process
that was lost says nothing of it and is said in a note.
"""

import dataclasses
import statistics
from collections.abc import Sequence

from .records import FAILED, Block, Correctness, Interval, Record, Status, Sustained, Timing
from .statistics import median_interval


def merged(records: Sequence[Record], confidence: float = 0.95) -> Record:
    """The record of an implementation that was measured in these processes.

    The latency is the median of the processes' medians with its order-statistic interval, which
    for five or fewer is their range. Status: the worst of them but for `lost`. Raises ValueError
    on an empty sequence.
    """
    if not records:
        raise ValueError("no records")
    ordered = sorted(records, key=lambda record: record.process)
    count = len(ordered)
    worst = min(ordered, key=_rank)
    if _rank(worst) == 0 and count > 1:
        reason = f"in process {worst.process}: {worst.reason}"
        return dataclasses.replace(worst, reason=reason, timing=None, process=0)
    timed = [record for record in ordered if record.timing is not None]
    if not timed or _rank(worst) == 0:
        return dataclasses.replace(worst, process=0)
    reason = worst.reason
    if count > 1 and worst.status is not Status.ok:
        alike = sum(record.status is worst.status for record in ordered)
        reason = f"in {alike} of {count} processes: {reason}"
    lost = tuple(
        f"lost in process {record.process}: {record.reason}"
        for record in ordered
        if record.status is Status.lost
    )
    return dataclasses.replace(
        worst,
        reason=reason,
        process=0,
        timing=_timing(timed, lost, confidence),
        correctness=_largest([r.correctness for r in timed]),
        recheck=_largest([r.recheck for r in timed]),
        compile_s=timed[0].compile_s,
        tuning_s=timed[0].tuning_s,
        first_call_s=timed[0].first_call_s,
        peak_memory_bytes=max((r.peak_memory_bytes or 0 for r in timed), default=0) or None,
        attempts=max(record.attempts for record in ordered),
    )


def _rank(record: Record) -> int:
    """0 where it was the implementation that failed; the lower decides."""
    order = {Status.invalid: 1, Status.noisy: 2, Status.lost: 4}
    return order.get(record.status, 0 if record.status in FAILED else 3)


def _timing(timed: Sequence[Record], lost: tuple[str, ...], confidence: float) -> Timing:
    parts = [(record.process, record.timing) for record in timed if record.timing is not None]
    timings = [timing for _, timing in parts]
    warm = [t.warm_rounds_us for t in timings if t.warm_rounds_us]
    stream = [t.stream_rounds_us for t in timings if t.stream_rounds_us]
    host = [t.host_us for t in timings if t.host_us is not None]
    clocks = [t.sm_mhz for t in timings if t.sm_mhz is not None]
    settled = [t.warmup_settled for t in timings if t.warmup_settled is not None]
    spread = [t.clock_spread for t in timings if t.clock_spread is not None]
    stopped = [f"process {process}: {timing.stopped}" for process, timing in parts]
    if len({timing.stopped for timing in timings}) == 1:
        stopped = [timings[0].stopped]
    blocks: list[Block] = []
    rounds = 0
    for timing in timings:
        blocks += [dataclasses.replace(b, round=b.round + rounds) for b in timing.blocks]
        rounds += len(timing.rounds_us)
    return dataclasses.replace(
        timings[0],
        latency_us=_over([t.rounds_us for t in timings], confidence),
        rounds_us=tuple(us for timing in timings for us in timing.rounds_us),
        process_of_round=tuple(process for process, timing in parts for _ in timing.rounds_us),
        warm_us=_over(warm, confidence) if warm else None,
        warm_rounds_us=tuple(us for rounds_us in warm for us in rounds_us),
        stream_us=_over(stream, confidence) if stream else None,
        stream_rounds_us=tuple(us for rounds_us in stream for us in rounds_us),
        host_us=statistics.median(host) if host else None,
        launch_bound=_most([t.launch_bound for t in timings]),
        power_limited=_most([t.power_limited for t in timings]),
        sm_mhz=statistics.median(clocks) if clocks else None,
        sustained=_middle([t.sustained for t in timings if t.sustained is not None]),
        warmup_settled=all(settled) if settled else None,
        clock_spread=max(spread, default=None),
        blocks=tuple(blocks),
        stopped="; ".join(stopped),
        notes=(*dict.fromkeys(note for t in timings for note in t.notes), *lost),
    )


def _most(values: Sequence[bool | None]) -> bool | None:
    """What more than half of those that know say; None where none does."""
    known = [value for value in values if value is not None]
    return sum(known) * 2 > len(known) if known else None


def _middle(found: Sequence[Sustained]) -> Sustained | None:
    """The stretch with the median time, whole: its clock, power and joules belong together."""
    ordered = sorted(found, key=lambda one: one.period_us)
    return ordered[len(ordered) // 2] if ordered else None


def _over(processes: Sequence[Sequence[float]], confidence: float) -> Interval:
    """Over the processes' medians; over the rounds where there is one process."""
    if len(processes) == 1:
        return median_interval(processes[0], confidence)
    return median_interval([statistics.median(rounds) for rounds in processes], confidence)


def _largest(found: Sequence[Correctness | None]) -> Correctness | None:
    there = [correctness for correctness in found if correctness is not None]
    return max(there, key=lambda correctness: correctness.max_error, default=None)
