"""What each method of `klab doctor --measure` includes: a line a method."""

LEGEND = {
    "period": "a call in a full stream, its kernels and their gaps: slope over back-to-back calls",
    "stamp": "the same slope between two kernels that read the GPU's global timer",
    "graph": "a node of a CUDA graph of the same calls: the slope over its number of calls",
    "line": "graph by its ends: from a graph of 1 call to one of 64, or the longest below 20 ms",
    "event": "events around one call, the queue held: its kernels and the cost of two events",
    "unheld": "events around one call, the queue empty: also what the host takes to launch",
    "busy": "the kernels, copies and fills alone: their device timestamps (CUPTI), overlap once",
    "span": "from the first start to the last end by the same timestamps: n - 1 of n gaps",
    "host": "host time for the call to return",
    "wall": "host clock around calls, warm",
    "nsys": "busy, by Nsight Systems wrapped around a process of its own",
    "ncu": "the sum of its kernels' times by Nsight Compute, one at a time; no copies, no fills",
}

COLD_LEGEND = (
    "written: one call between events after 2x of L2 was filled, as most tools do",
    "read: one call between events after 3x of L2 was read",
    "rotated: one call between events on inputs of another copy, 3x L2 in all",
    "warm: one call between events on the same inputs again",
    "period cold, period warm: the headline's slope, inputs rotated, and the same inputs",
)


def legend(*names: str) -> tuple[str, ...]:
    """The lines of the methods named."""
    return tuple(f"{name}: {LEGEND[name]}" for name in names)
