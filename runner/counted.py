"""What counters say of a record beside what its cost states. Pure."""

from .records import Record


def dram_ratio(record: Record) -> float | None:
    """Bytes that memory moved in a call over those that the cost states; None where nobody counted.

    Below 1 the L2 kept writes back; a fused path that still moves its intermediate stands well
    above.
    """
    metrics = next((e.metrics for e in record.evidence if e.metrics), {})
    moved = [metrics.get(f"dram_bytes_{way}") for way in ("read", "written")]
    if record.cost is None or not record.cost.bytes or None in moved:
        return None
    return sum(bytes_ for bytes_ in moved if bytes_ is not None) / record.cost.bytes
