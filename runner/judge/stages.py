"""What an implementation says of its stages against what its trace saw.

A stage is a tensor written and read back. Launches are more (split-K, a memset), never fewer; but
the passes over memory that only move elements, the pointwise kernels, are countable: fewer than
said means that something was fused behind its back, more that it was not fused after all.
"""

import math
import re
from collections import Counter

from ..records import Launch, Record, Stage

_NO_PART_OF_A_NAME = re.compile(
    r"^void |^std::enable_if<.*?>::type |\(anonymous namespace\)::|<unnamed>::"
)


OFFSETS = 1 << 31
"""Bytes that a signed 32-bit offset spans."""


SIDE_STREAM = 1.25
ONE_STREAM = 3.0
"""How much longer the traced work of a call may be than its period: clocks of the two passes may
differ; with work on several streams less is suspicious."""


def uncovered(record: Record) -> str:
    """Why the time does not cover the work that the trace saw of a call; '' where it does.

    Calls queue in the timed stream one after another, so a period holds a call's whole work: one
    that is much shorter left work on streams that the events do not see.
    """
    evidence, timing = record.traced, record.timing
    if evidence is None or timing is None or timing.headline == "wall_us":
        return ""
    streams = sorted({e.stream for e in evidence.launches if e.stream is not None})
    allowed = SIDE_STREAM if len(streams) > 1 else ONE_STREAM
    period = (timing.stream_us or timing.latency_us).median
    if evidence.busy_us is None or evidence.busy_us <= allowed * period + 2:
        return ""
    return (
        f"work outside the timed stream: the trace saw {evidence.busy_us:.4g} us of device work in "
        f"a call, on stream {' and '.join(map(str, streams))}; its time is {period:.4g} us"
    )


def mismatch(record: Record) -> str:
    """Why the trace disagrees with the record's time or with the stages that its cost declares;
    '' if it does not.

    Without evidence nothing is said. A kernel of unknown kind may stand for any stage. Memsets are
    no stage; copies are, where the cost declares some, and else they are left out of the count.
    """
    if reason := uncovered(record):
        return reason
    evidence, cost = record.traced, record.cost
    if evidence is None or cost is None or not evidence.launch_count:
        return ""
    declared = Counter(stage.kind for stage in cost.stages)
    aside = {"memset"} if declared["copy"] else {"memset", "copy"}
    seen = Counter(launch.kind for launch in evidence.launches if launch.kind not in aside)
    names = ", ".join(short(launch) for launch in evidence.launches)
    total = sum(seen.values())
    if total < len(cost.stages):
        return f"declares {len(cost.stages)} stages, the trace saw {total} kernels: {names}"
    missing = max(0, declared["pointwise"] - seen["pointwise"])
    if missing > seen["unknown"]:
        return (
            f"declares {declared['pointwise']} pointwise stages, the trace saw "
            f"{seen['pointwise']}: {names}"
        )
    most = sum(_parts(stage) for stage in cost.stages)
    most_pointwise = sum(_parts(stage) for stage in cost.stages if stage.kind == "pointwise")
    # nothing but a product or a reduction is split over several kernels
    if declared["pointwise"] == len(cost.stages) and total > most:
        return f"declares {len(cost.stages)} stages, the trace saw {total} kernels: {names}"
    if seen["pointwise"] > most_pointwise and seen["pointwise"] > most:
        return (
            f"declares {len(cost.stages)} stages, the trace saw {seen['pointwise']} pointwise "
            f"kernels: {names}"
        )
    if declared["matmul"] and seen["pointwise"] > most_pointwise:
        return (
            f"declares {declared['pointwise']} pointwise stages beside the matrix product, the "
            f"trace saw {seen['pointwise']}: {names}"
        )
    return ""


def _parts(stage: Stage) -> int:
    """Launches that one pass may take: libraries split a tensor that 32-bit offsets cannot span."""
    return max(1, math.ceil(max(stage.bytes_read, stage.bytes_written) / OFFSETS))


def short(launch: Launch) -> str:
    """A kernel's name without its template arguments and parameters."""
    name = _NO_PART_OF_A_NAME.sub("", launch.name)
    for cut in ("<", "("):
        name = name.split(cut, 1)[0]
    return name[:60]
