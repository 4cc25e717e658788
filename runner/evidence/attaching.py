"""A report that a user took by hand around `klab run`, joined to the records of its job."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..folder import JobFolder, ranges_of
from ..nsight.tools import NsightError, Tool
from ..records import Evidence, Job
from ..worker.dispatch import own
from .nsys import NsysPass

_JOB = re.compile(r"^job=([^;]+);kernel=")


def attach(report: Path, job: Job, tool: Tool) -> list[Evidence]:
    """Copies the report into the job's folder and appends what it holds of the job's records to
    `records.jsonl`; the evidence that came of it, one with a reason where nothing did.

    Raises ConfigError where the report is none, or is of other jobs, which it names.
    """
    if not report.is_file():
        raise ConfigError(f"report={report}: no such file. A report of nsys is meant (.nsys-rep).")
    if report.suffix != ".nsys-rep":
        raise ConfigError(f"report={report}: a report of nsys is meant (.nsys-rep).")
    folder = Path(job.folder)
    made = NsysPass(tool=tool, folder=folder / "traces")
    number = 1
    while made.report(number).exists():
        number += 1
    made.folder.mkdir(parents=True, exist_ok=True)
    kept = made.report(number)
    shutil.copyfile(report, kept)
    try:
        _of_this_job(made, kept, job, report.name)
    except BaseException:
        for file in made.folder.glob(f"{kept.stem}.*"):
            file.unlink()
        raise
    said = [
        Evidence(tool="nsys", cell_id=record.cell.id, implementation=record.implementation)
        for record in job.records
    ]
    found = [_own(job, evidence) for evidence in made.read(kept, ranges_of(folder), said)]
    JobFolder(folder).append(evidence for evidence in found if evidence.launch_count is not None)
    return found


def _of_this_job(made: NsysPass, report: Path, job: Job, name: str) -> None:
    try:
        ranges = [each.name for each in made.joined(report)]
    except NsightError as error:
        raise ConfigError(f"report={name}: {error}.") from error
    held = sorted({match.group(1) for each in ranges if (match := _JOB.match(each))})
    if job.id not in held:
        raise ConfigError(
            f"report={name}: it holds no range of job {job.id}. "
            f"Jobs in it: {', '.join(held) or 'none'}."
        )


def _own(job: Job, evidence: Evidence) -> Evidence:
    kernel: dict[str, Any] = (job.config.get("kernel") or {}).get("implementations") or {}
    language = (kernel.get(evidence.implementation) or {}).get("language", "torch")
    return replace(evidence, launches=tuple(own(evidence.launches, language)))
