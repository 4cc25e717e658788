"""What two records must share before the one's time may be held against the other's. Pure."""

import json
from collections.abc import Sequence

from ..records import Job, Record

CONDITIONS = ("distribution:", "device:", "headline:", "state:", "timer:", "clocks:", "SM clock:")
"""What is no part of a question, and yet decides a time."""

PRECISION_RATIO = 16.0
"""tf32 keeps 13 bits less than fp32: an rms error this many times another's is another mode."""

CLOCK_RATIO = 1.03
"""Clocks further apart than this are no longer alike."""

ROUGH = 2.0**-16
"""An rms error below this is full fp32's, whatever the ratio."""


def other_precision(one: Record, other: Record, *, tf32: bool) -> str:
    """Why two answers of a cell were not computed in one precision mode; '' where they were, as
    far as their errors tell.

    Where `tf32` is asked for, a path may take it or leave it (a library leaves it for some sizes,
    a kernel may not know it), and a speed-up for that alone is none of the path.
    """
    if not tf32 or one.correctness is None or other.correctness is None:
        return ""
    full, rough = sorted((one, other), key=_rms)
    if _rms(rough) <= max(PRECISION_RATIO * _rms(full), ROUGH):
        return ""
    return (
        f"another precision, no plain speed-up: {rough.implementation} errs {_rms(rough):.2g} rms "
        f"as tf32 does, {full.implementation} {_rms(full):.2g} as full fp32"
    )


def _rms(record: Record) -> float:
    return record.correctness.rms_error if record.correctness else 0.0


def other_clock(one: Record, other: Record) -> str:
    """How far apart the SM clocks of two times are; '' within CLOCK_RATIO, or where one is not
    known. At the power limit that is what the work left, and still to be known beside a ratio."""
    if one.timing is None or other.timing is None:
        return ""
    ours, theirs = one.timing.sm_mhz, other.timing.sm_mhz
    if not ours or not theirs or max(ours, theirs) <= CLOCK_RATIO * min(ours, theirs):
        return ""
    return f"SM clock: {ours:.0f} against {theirs:.0f} MHz"


def differing(one: Record, other: Record) -> tuple[str, ...]:
    """What two records, of runs of their own, differ in beside what ran: each as `name: the one's
    against the other's`. Their times compare only where nothing is named.

    The same kernel takes another time on other values (power), in another layout, in another
    state of the cache, by another timer.
    """
    ours, theirs = one.cell.workload, other.cell.workload
    pairs: list[tuple[str, object, object]] = [
        ("kernel", one.cell.kernel, other.cell.kernel),
        *(
            (name, ours.axes.get(name), theirs.axes.get(name))
            for name in dict.fromkeys([*ours.axes, *theirs.axes])
        ),
        ("dtype", ours.dtype, theirs.dtype),
        ("layout", ours.layout, theirs.layout),
        ("distribution", ours.distribution, theirs.distribution),
        ("seed", ours.seed, theirs.seed),
        ("device", one.device, other.device),
    ]
    if one.timing is not None and other.timing is not None:
        pairs += [
            (name, getattr(one.timing, name), getattr(other.timing, name))
            for name in ("headline", "state", "timer", "clocks", "threads")
        ]
    found = tuple(f"{name}: {a} against {b}" for name, a, b in pairs if a != b)
    clock = other_clock(one, other)
    return (*found, clock) if clock else found


def apart(jobs: Sequence[Job]) -> tuple[str, ...]:
    """What else than the question differs between the first of several jobs and the others, over
    the records of the same implementation and axes: each once. A reader must know it of times
    that stand side by side."""
    if not jobs:
        return ()
    found: dict[str, None] = {}
    own = {_who(record): record for record in jobs[0].records}
    for job in jobs[1:]:
        for record in job.records:
            if (first := own.get(_who(record))) is not None:
                for text in differing(first, record):
                    if text.startswith(CONDITIONS):
                        found[text] = None
    return tuple(found)


def _who(record: Record) -> tuple[str, str, str]:
    return (
        record.cell.kernel,
        json.dumps(record.cell.workload.axes, sort_keys=True),
        record.implementation,
    )
