"""Which times may be held against each other. Pure."""

from ..records import Record, Status


def usable(record: Record) -> bool:
    """Whether a record's time may be compared."""
    return record.timing is not None and record.status in (Status.ok, Status.noisy)


def comparable(one: Record, other: Record) -> bool:
    """Whether two records of a cell were timed side by side, in the same rounds."""
    if one.timing is None or other.timing is None or not (usable(one) and usable(other)):
        return False
    rounds = len(one.timing.rounds_us)
    return rounds == len(other.timing.rounds_us) and rounds > 1
