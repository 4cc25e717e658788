"""What the numbers of a job mean: how times were taken, on what, at which clock and power."""

import re
import statistics
from collections.abc import Iterator

from rich.text import Text

from ..clocks import said
from ..records import Job, JobStatus, Timing
from ..results import copy_ceiling, device, rows
from ..statistics import range_coverage
from .text import cache_state, interval

_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")


def footnotes(job: Job) -> Iterator[Text]:
    """What the numbers mean: once for each way in which this job took times."""
    timed = [record.timing for record in job.records if record.timing]
    yield from _ways(timed)
    yield from _notes(job)
    bound = [timing for timing in timed if timing.launch_bound]
    if bound:
        yield Text(
            f"launch-bound: in {len(bound)} of {len(timed)} records the host takes longer to "
            "submit a call than the GPU to do it"
            + (
                "; no winner from a stream then (submit=graph decides)"
                if any(timing.headline == "period_us" for timing in bound)
                else ""
            ),
            style="dim",
        )
    if any(r.cost and r.cost.floor_us and r.timing for r in job.records):
        target = next((r.target for r in job.records if r.target), "the target")
        yield Text(
            f"of floor: floor by the datasheet of {target} / latency, for each path's own stages",
            style="dim",
        )
    copy = copy_ceiling(job)
    if copy is not None:
        absorbed = any(row.l2_absorbed for row in rows(job))
        text = f"of copy: bytes moved / latency, over a copy in this job, {interval(copy)} GB/s"
        yield Text(text + ("; * the L2 took a part" if absorbed else ""), style="dim")
    yield Text(", ".join(part for part in (device(job), _power(job)) if part), style="dim")
    if job.status in (JobStatus.killed, JobStatus.failed):
        yield Text(f"job {job.status.value}: {job.status_reason}", style="red")
    yield Text(f"job {job.id}  {job.folder}", style="dim")


def _ways(timed: list[Timing]) -> Iterator[Text]:
    """How times were taken. Cells whose caches were cleared alike, but for the numbers of copies
    and bytes, share a line: the smallest and the largest number stand in it."""
    alike: dict[tuple[str, str, str, str, str], list[str]] = {}
    for timing in timed:
        form = _NUMBER.sub("#", timing.cache)
        way = (timing.headline, timing.state, timing.timer, said(timing.clocks), form)
        alike.setdefault(way, []).append(timing.cache)
    for (headline, state, timer, clocks, form), caches in alike.items():
        found: list[list[str]] = [_NUMBER.findall(cache) for cache in caches]
        for numbers in zip(*found, strict=True):
            ordered: list[str] = sorted(numbers, key=float)
            low, high = ordered[0], ordered[-1]
            form = form.replace("#", low if low == high else f"{low} to {high}", 1)
        parts = [f"latency: {headline}", *cache_state(state, form), f"timer {timer}"]
        parts += [clocks] if clocks else []
        yield Text(", ".join(parts), style="dim")
    count = max((len(timing.by_process) for timing in timed), default=1)
    if count > 1:
        yield Text(
            f"over {count} fresh processes: a speed-up's interval is over their means, a latency's "
            "over their medians" + _range(count),
            style="dim",
        )


def _range(count: int) -> str:
    """What a latency's interval is where so few processes allow no more."""
    reached = range_coverage(count)
    if reached >= 0.95:
        return ""
    return f", which is their range and covers with {100 * reached:.4g} %"


def _notes(job: Job) -> Iterator[Text]:
    """Each note once, with a count where it stands at several records but for its numbers."""
    alike: dict[str, list[str]] = {}
    for record in job.records:
        for note in record.timing.notes if record.timing else ():
            where = f"{record.implementation}, {record.cell.workload.label}: {note}"
            alike.setdefault(_NUMBER.sub("#", note.partition(":")[0]), []).append(where)
    for found in alike.values():
        more = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
        yield Text(f"note: {found[0]}{more}", style="dim")


def _power(job: Job) -> str:
    blocks = [b for r in job.records if r.timing for b in r.timing.blocks]
    states = [block.after for block in blocks if block.after]
    clocks = [state.sm_mhz for state in states if state.sm_mhz is not None]
    watts = [state.watts for state in states if state.watts is not None]
    own = {"idle"}  # between two blocks: nothing held the clock back
    if any(r.timing and said(r.timing.clocks) for r in job.records):
        own.add("applications_clocks")  # as which the driver shows the lock itself
    reasons = sorted({reason for state in states for reason in state.throttle} - own)
    parts = []
    if clocks:
        parts.append(f"SM clock {statistics.median(clocks):.0f} MHz")
    if watts:
        parts.append(f"{statistics.median(watts):.0f} W")
    if parts:
        parts[-1] += " (medians over blocks)"
    if reasons:
        held = sum(1 for state in states if set(state.throttle) - own)
        parts.append(f"clock held back in {held} of {len(states)} blocks: {', '.join(reasons)}")
    return ", ".join(parts)
