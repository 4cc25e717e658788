"""What two records must share before the one's time may be held against the other's. Pure."""

from ..records import Record

PRECISION_RATIO = 16.0
"""tf32 keeps 13 bits less than fp32: an rms error this many times another's is another mode."""

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
    return tuple(f"{name}: {a} against {b}" for name, a, b in pairs if a != b)
