"""What each method of `klab doctor --measure` includes: a line a method."""

LEGEND = {
    "period": "a call in a full stream: its kernels and the gaps between; slope over back-to-back "
    "calls between events",
    "stamp": "the same slope between two kernels that read the GPU's global timer",
    "graph": "a node of a CUDA graph of the same calls: the slope over its number of calls",
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
    "written, read: L2 emptied before each call, by filling 2x of it or by reading 3x of it",
    "rotated: inputs of another copy each call, 3x L2 in all; warm: the same inputs; these four: "
    "events around one call, queue held",
    "period cold, warm: the headline's slope with inputs rotated, and with the same inputs",
)


def legend(*names: str) -> tuple[str, ...]:
    """The lines of the methods named."""
    return tuple(f"{name}: {LEGEND[name]}" for name in names)
