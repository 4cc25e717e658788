"""Records become verdicts: each implementation against the baseline of its cell. Pure."""

import math
from collections.abc import Sequence

from ..records import Comparison, Judgement, Record, Status, Verdict
from ..schema import Experiment
from ..statistics import detectable, verdict
from .claims import judge_claim
from .usable import comparable, paired, ratio, usable


def judge(records: Sequence[Record], experiment: Experiment) -> Judgement:
    """Comparisons of every timed implementation with its cell's baseline, and the claim."""
    return Judgement(
        comparisons=tuple(compare(records, experiment)),
        claim=judge_claim(records, experiment),
    )


def compare(records: Sequence[Record], experiment: Experiment) -> list[Comparison]:
    """One comparison for each implementation that has a valid time beside a valid baseline."""
    baseline = experiment.kernel.baseline
    protocol = experiment.protocol
    bases = {r.cell.id: r for r in records if r.implementation == baseline and usable(r)}
    found = []
    for record in records:
        base = bases.get(record.cell.id)
        if record.implementation == baseline or base is None or not comparable(base, record):
            continue
        assert base.timing is not None
        assert record.timing is not None
        pairs = paired(base.timing, record.timing)
        speedup = ratio(base.timing, record.timing, protocol.confidence)
        reached = verdict(speedup, protocol.band)
        note = ""
        several = max(len(t.by_process) for t in (base.timing, record.timing)) > 1
        if several and len(pairs) == 1:
            note = "one process alone holds both"
        if (
            host_bound(record)
            and host_bound(base)
            and math.isclose(
                record.timing.latency_us.median, base.timing.latency_us.median, rel_tol=0.02
            )
        ):
            note = "both end with the host's launch rate"
        found.append(
            Comparison(
                cell_id=record.cell.id,
                implementation=record.implementation,
                against=baseline,
                state=record.timing.state,
                speedup=speedup,
                verdict=reached if record.status is base.status is Status.ok else Verdict.undecided,
                rounds=sum(len(rounds) for rounds, _ in pairs),
                processes=len(pairs),
                detectable=detectable(speedup, protocol.band),
                note=note,
            )
        )
    return found


def host_bound(record: Record) -> bool:
    """Whether the host could not have kept the queue of such calls full by itself."""
    timing = record.timing
    return (
        timing is not None
        and timing.host_us is not None
        and (timing.host_us > timing.latency_us.median)
    )
