"""The last lines of a command, and a job as JSON for other programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter

from ..records import Job, Judgement, Record
from ..results import rows

_record = TypeAdapter(Record)
_judgement = TypeAdapter(Judgement)


def closing(jobs: Sequence[Job], command_id: str, store: str) -> Iterator[str]:
    """Where the results are, and how to look at them."""
    for job in jobs:
        seconds = ", ".join(f"{name} {value:.1f} s" for name, value in job.seconds.items())
        yield f"{job.id}: {job.status}" + (f" ({job.status_reason})" if job.status_reason else "")
        yield f"  files   {job.folder}"
        if seconds:
            yield f"  spent   {seconds}"
    if store:
        yield "  MLflow  klab ui" + (f"   (filed in {store})" if store else "")
    yield "  one     klab show " + (jobs[0].id if jobs else command_id)


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
