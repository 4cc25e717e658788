"""Which times may be held against each other. Pure."""

from ..records import Interval, Record, Status, Timing
from ..statistics import paired_ratio, process_ratio


def usable(record: Record) -> bool:
    """Whether a record's time may be compared."""
    return record.timing is not None and record.status in (Status.ok, Status.noisy)


def comparable(one: Record, other: Record) -> bool:
    """Whether two records of a cell were timed side by side, in the same rounds and under the
    same clock rule."""
    if one.timing is None or other.timing is None or not (usable(one) and usable(other)):
        return False
    if one.timing.clocks != other.timing.clocks:
        return False
    return bool(paired(one.timing, other.timing))


def paired(one: Timing, other: Timing) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """The rounds that both ran side by side, of each process that holds as many of either."""
    ours, theirs = one.by_process, other.by_process
    return [
        (ours[process], theirs[process])
        for process in ours
        if process in theirs and 1 < len(ours[process]) == len(theirs[process])
    ]


def ratio(one: Timing, other: Timing, confidence: float) -> Interval:
    """one / other, with an interval over the processes that hold both; of a single one, over its
    rounds. Raises ValueError where no rounds pair."""
    pairs = paired(one, other)
    if not pairs:
        raise ValueError("no process holds paired rounds of both")
    return (
        process_ratio(pairs, confidence) if len(pairs) > 1 else paired_ratio(*pairs[0], confidence)
    )


def launch_limited(one: Record, other: Record) -> str:
    """Why two times in a stream have no winner: the host cannot submit such calls as fast as the
    device does them, so that the device's time is not what a stream of them takes. '' where it is,
    and in a CUDA graph, which is submitted at once."""
    limited = [
        record.implementation
        for record in (one, other)
        if record.timing is not None
        and record.timing.headline == "period_us"
        and record.timing.launch_bound
    ]
    if not limited:
        return ""
    return (
        f"launch-bound ({', '.join(limited)}): the host takes longer to submit a call than the "
        "device to do it; submit=graph decides"
    )
