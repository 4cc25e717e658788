"""The Markdown that MLflow shows as a run's description."""

from typing import Any

from ..records import Job
from ..results import expected, implementations, rows, speedup_geomean

_LIMIT = 40
"""Lines of results in a note; the artifacts hold them all."""


def job_note(job: Job) -> str:
    """Question, verdict, each expectation, and the latencies with their speed-ups."""
    parts = [f"**{_cell(job.question)}**"] if job.question else []
    claim = job.judgement.claim
    if claim is not None:
        parts.append(f"Claim: **{claim.verdict.value}**")
        parts.append(
            _table(
                ["expectation", "verdict", "cells", "seen"],
                [
                    [e.expectation, e.verdict.value, str(len(e.cells) or ""), _seen(e.seen)]
                    for e in expected(job)
                ],
            )
        )
    table = rows(job)
    lines = []
    for row in table[:_LIMIT]:
        latency, compared = row.latency, row.comparison
        lines.append(
            [
                row.cell.workload.label,
                row.record.implementation,
                f"{latency.median:.4g}" if latency else "",
                f"{compared.speedup.median:.3g}" if compared else "",
                compared.verdict.value if compared else "",
                row.record.status.value,
            ]
        )
    heads = ["cell", "implementation", "latency_us", "speed-up", "verdict", "status"]
    parts.append(_table(heads, lines))
    parts.append(_reports(job))
    if len(table) > _LIMIT:
        parts.append(f"{len(table) - _LIMIT} more in results.csv")
    parts.append(f"`{job.command}`")
    return "\n\n".join(part for part in parts if part)


def _reports(job: Job) -> str:
    """Where each traced call stands in which report: the range to look for in its timeline."""
    lines = [
        [
            evidence.report,
            row.cell.workload.label,
            row.record.implementation,
            f"`cell={row.cell.index:04d};impl={row.record.implementation}` > `trace`",
            str(evidence.calls or ""),
        ]
        for row in rows(job)
        for evidence in row.record.evidence
        if evidence.report
    ][:_LIMIT]
    return _table(["report", "cell", "implementation", "range, domain kernel-lab", "calls"], lines)


def _seen(texts: tuple[str, ...]) -> str:
    return texts[0] if len(set(texts)) == 1 else f"first {texts[0]}"


def sweep_note(jobs: list[Job], filed: dict[str, dict[str, Any]]) -> str:
    """One line a job: what was asked, how it ended, its verdict, and its run."""
    lines = []
    for job in jobs:
        claim = job.judgement.claim
        best = [(speedup_geomean(job, name)[0], name) for name in implementations(job)]
        fastest = max(((s, n) for s, n in best if s is not None), default=None)
        lines.append(
            [
                " ".join(job.overrides),
                job.status.value,
                claim.verdict.value if claim else "",
                f"{fastest[1]} {fastest[0]:.3g}x" if fastest else "",
                str(filed.get(job.id, {}).get("job", "")),
            ]
        )
    return _table(["overrides", "status", "claim", "fastest, geometric mean", "run"], lines)


def _table(heads: list[str], lines: list[list[str]]) -> str:
    if not lines:
        return ""
    rule = ["---"] * len(heads)
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in [heads, rule, *lines])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
