"""The claim of an experiment, expectation by expectation, over all its cells. Pure."""

from collections.abc import Sequence

from ..bands import Band, parse
from ..errors import ConfigError, unknown
from ..records import ClaimResult, ClaimVerdict, Finding, Interval, Record, Status
from ..schema import Claim, Experiment
from .conditions import other_precision
from .stages import mismatch
from .usable import comparable, launch_limited, ratio

EXPECTATIONS = ("speedup", "stages", "launches", "bytes_saved")

_ORDER = (ClaimVerdict.refuted, ClaimVerdict.undecided, ClaimVerdict.supported)


def check_claim(claim: Claim) -> None:
    """Refuses expectations that cannot be read. Raises ConfigError naming key and choices."""
    for key, value in claim.expect.items():
        if key not in EXPECTATIONS:
            raise unknown("claim.expect", key, EXPECTATIONS)
        if key in ("stages", "launches"):
            if not isinstance(value, dict):
                raise ConfigError(
                    f"claim.expect.{key}: {value!r} is no map of implementation to count."
                )
            for name, band in dict(value).items():
                parse(f"claim.expect.{key}.{name}", band)
        else:
            parse(f"claim.expect.{key}", value)
            for role in ("fused", "unfused"):
                if not getattr(claim, role):
                    raise ConfigError(
                        f"claim.{role}: empty. claim.expect.{key} compares claim.fused with "
                        "claim.unfused: name both."
                    )


def judge_claim(records: Sequence[Record], experiment: Experiment) -> ClaimResult | None:
    """The claim's verdict: refuted if any expectation is, supported if all that were measured are
    and at least one was: what the cost model predicts is no measurement.

    None where the experiment claims nothing.
    """
    claim = experiment.claim
    if not claim.expect:
        return None
    confidence = experiment.protocol.confidence
    findings: list[Finding] = []
    for key, value in claim.expect.items():
        name = f"claim.expect.{key}"
        if key == "speedup":
            tf32 = experiment.dtype.tf32
            findings += _speedups(records, claim, parse(name, value), confidence, tf32=tf32)
        elif key == "bytes_saved":
            findings += _bytes_saved(records, claim, parse(name, value))
        else:
            for implementation, band in dict(value).items():
                of = [r for r in records if r.implementation == implementation]
                findings += _counts(of, key, implementation, parse(name, band))
    measured = [f.verdict for f in findings if f.verdict is not ClaimVerdict.not_measured]
    if all(f.predicted for f in findings if f.verdict is ClaimVerdict.supported):
        # arithmetic of the cost model may refute a claim, but is no evidence for one
        measured = [verdict for verdict in measured if verdict is not ClaimVerdict.supported]
    verdict = next((v for v in _ORDER if v in measured), ClaimVerdict.not_measured)
    return ClaimResult(verdict=verdict, findings=tuple(findings))


def _pairs(records: Sequence[Record], claim: Claim) -> list[tuple[Record, Record]]:
    fused = {r.cell.id: r for r in records if r.implementation == claim.fused}
    unfused = {r.cell.id: r for r in records if r.implementation == claim.unfused}
    return [(fused[key], unfused[key]) for key in fused if key in unfused]


def _speedups(
    records: Sequence[Record], claim: Claim, band: Band, confidence: float, *, tf32: bool
) -> list[Finding]:
    expectation = f"{claim.fused} against {claim.unfused}: speed-up {band.text}"
    findings = []
    for fused, unfused in _pairs(records, claim):
        label = fused.cell.workload.label
        if not comparable(fused, unfused):
            reason = fused.reason or unfused.reason or f"{fused.status}, {unfused.status}"
            findings.append(_not_measured(expectation, reason, label))
            continue
        assert fused.timing is not None
        assert unfused.timing is not None
        found = ratio(unfused.timing, fused.timing, confidence)
        verdict, seen = band.judge(found), f"{found.median:.3f} [{found.low:.3f}, {found.high:.3f}]"
        if limited := launch_limited(unfused, fused):
            verdict, seen = ClaimVerdict.undecided, f"{seen}, {limited}"
        if Status.noisy in (fused.status, unfused.status):
            verdict, seen = ClaimVerdict.undecided, f"{seen}, noisy"
        if reason := other_precision(fused, unfused, tf32=tf32):
            verdict, seen = ClaimVerdict.undecided, f"{seen}, {reason}"
        findings.append(Finding(cell=label, expectation=expectation, verdict=verdict, seen=seen))
    return findings or [_not_measured(expectation, "no cell holds both")]


def _bytes_saved(records: Sequence[Record], claim: Claim, band: Band) -> list[Finding]:
    expectation = f"{claim.fused} against {claim.unfused}: bytes saved {band.text} (predicted)"
    findings = []
    for fused, unfused in _pairs(records, claim):
        label = fused.cell.workload.label
        if fused.cost is None or unfused.cost is None or not unfused.cost.bytes:
            findings.append(_not_measured(expectation, "no cost", label))
            continue
        share = 1 - fused.cost.bytes / unfused.cost.bytes
        findings.append(
            Finding(
                cell=label,
                expectation=expectation,
                verdict=band.judge(Interval(median=share, low=share, high=share)),
                seen=f"{share:.3f}",
                predicted=True,
            )
        )
    return findings or [_not_measured(expectation, "no cell holds both")]


def _counts(records: Sequence[Record], key: str, implementation: str, band: Band) -> list[Finding]:
    """Stages as the cost declares and the trace did not deny them; launches as the trace saw."""
    expectation = f"{implementation}: {key} {band.text}"
    findings = []
    for record in records:
        label = record.cell.workload.label
        traced = record.traced
        if traced is None or traced.launch_count is None:
            reason = next((e.reason for e in record.evidence if e.reason), record.reason)
            findings.append(_not_measured(expectation, reason or _untraced(record), label))
            continue
        if key == "launches":
            count = traced.launch_count
        else:
            count = len(record.cost.stages) if record.cost is not None else 0
        whole = float(count)
        verdict = band.judge(Interval(median=whole, low=whole, high=whole))
        seen = str(count)
        denied = mismatch(record) if traced.launch_count else "the trace saw no device work"
        if key == "stages" and denied:
            verdict, seen = ClaimVerdict.refuted, denied
        findings.append(Finding(expectation=expectation, verdict=verdict, seen=seen, cell=label))
    return findings or [_not_measured(expectation, "no record")]


def _untraced(record: Record) -> str:
    return "no device trace on cpu" if record.device == "cpu" else "no trace of this cell"


def _not_measured(expectation: str, reason: str, cell: str = "") -> Finding:
    verdict = ClaimVerdict.not_measured
    return Finding(expectation=expectation, verdict=verdict, seen=reason, cell=cell)
