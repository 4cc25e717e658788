"""The last lines of a command, and a job as JSON for other programs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..judge.conditions import apart
from ..records import Job, Judgement, Record
from ..results import noisy_cells, rows, speedup_geomean
from ..spent import overhead
from .text import number

_record = TypeAdapter(Record)
_judgement = TypeAdapter(Judgement)


def closing(jobs: Sequence[Job], command_id: str, store: str) -> Iterator[str]:
    """Where the results are, how to look at them, and of several jobs what each found."""
    if len(jobs) > 1:
        yield from side_by_side(jobs)
    for job in jobs:
        parts = (f"{name} {value:.1f}" for name, value in job.seconds.items() if value >= 0.05)
        yield f"{job.id}: {job.status}" + (f" ({job.status_reason})" if job.status_reason else "")
        if (share := overhead(job.seconds)) is not None:
            total = sum(job.seconds.values())
            yield f"  spent   {total:.1f} s (overhead {share:.0%}): {', '.join(parts)}"
    if jobs:
        yield f"  files   {jobs[0].folder if len(jobs) == 1 else Path(jobs[0].folder).parent}"
    if store:
        yield f"  MLflow  klab ui   (filed in {store})"
    yield f"  again   klab show {command_id}"


def side_by_side(jobs: Sequence[Job]) -> Iterator[str]:
    """One line a job of a multirun: what was varied, speed-ups (geometric means), the claim."""
    for job in jobs:
        varied = [o for o in job.overrides if any(o not in other.overrides for other in jobs)]
        means = []
        for name in dict.fromkeys(c.implementation for c in job.judgement.comparisons):
            mean, count, total = speedup_geomean(job, name)
            noisy = noisy_cells(job, name)
            left = f" of {count} cells" * (count < total) + f" ({noisy} noisy left out)" * (
                noisy > 0
            )
            if mean is not None or noisy:
                means.append(f"{name} {number(mean, 3)}{'x' if mean is not None else ''}{left}")
        claim = f"claim {job.judgement.claim.verdict}" if job.judgement.claim else ""
        yield "  ".join(part for part in (" ".join(varied), ", ".join(means), claim) if part)
    for text in apart(jobs):
        yield f"note: the jobs' times stand under other conditions, {text}"


def job_json(job: Job) -> dict[str, Any]:
    """A job with its records, strictly JSON: no time where none was measured."""
    return {
        "id": job.id,
        "experiment": job.experiment,
        "kernel": job.kernel,
        "status": job.status,
        "folder": job.folder,
        "records": [_record.dump_python(row.record, mode="json") for row in rows(job)],
        "judgement": _judgement.dump_python(job.judgement, mode="json"),
    }
