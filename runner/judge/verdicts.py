"""Records become verdicts: each implementation against the baseline of its cell. Pure."""

from collections.abc import Sequence

from ..records import Comparison, Judgement, Record, Status, Verdict
from ..schema import Experiment
from ..statistics import detectable, verdict
from .claims import judge_claim
from .conditions import other_clock, other_precision
from .usable import comparable, launch_limited, paired, ratio, usable


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
        if limited := launch_limited(base, record):
            reached, note = Verdict.undecided, limited
        if precision := other_precision(record, base, tf32=experiment.dtype.tf32):
            reached, note = Verdict.undecided, precision
        if clocks := other_clock(base, record):
            note = "; ".join(part for part in (note, clocks) if part)
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
