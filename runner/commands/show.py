"""`klab show`: a job's table, or records in full."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import ConfigError, unknown
from ..folder import read_job
from ..outputs import find_job, is_job, job_folders, latest_job, outputs
from ..records import Job
from ..report import record, table
from ..report.console import Console
from ..report.summary import side_by_side

SUMMARY = "print a job's table, or its records in full"

_CELL = re.compile(r"c[0-9a-f]{8}")


def main(arguments: Sequence[str]) -> int:
    """Raises ConfigError for an id that is not there, StoreError for a folder that is broken."""
    parser = argparse.ArgumentParser(
        prog="klab show",
        description=SUMMARY,
        epilog="A cell id alone means the last job that holds that cell.",
    )
    parser.add_argument(
        "id",
        nargs="?",
        default="",
        help="JOB, SWEEP, CELL, JOB/CELL/IMPLEMENTATION, a doctor's id, or a folder; "
        "default: the last job",
    )
    asked = parser.parse_args(arguments)
    console = Console(soft_wrap=True)
    if jobs := jobs_of_sweep(asked.id):
        for job in jobs:
            table.render(job, console)
        for line in side_by_side(jobs):
            console.print(line, highlight=False, markup=False)
        return 0
    if report := _doctor(asked.id):
        sys.stdout.write(report.read_text())
        return 0
    job, cell, implementation = _resolve(asked.id)
    if not cell and not implementation:
        table.render(job, console)
        return 0
    chosen = record.rows_of(job, cell=cell, implementation=implementation)
    if not chosen:
        known = [f"{row.cell.id}/{row.record.implementation}" for row in record.rows_of(job)]
        raise unknown(
            f"job {job.id}", "/".join(filter(None, (cell, implementation))), known, between=": "
        )
    for place, row in enumerate(chosen):
        if place:
            console.print()
        for line in record.lines(job, row):
            console.print(line, highlight=False, markup=False)
    return 0


def _doctor(text: str) -> Path | None:
    """The report of a `klab doctor --measure` by its id or folder; None: it is no such."""
    places = (outputs() / "doctor" / text, Path(text).expanduser()) if text else ()
    return next((place / "report.txt" for place in places if _reported(place)), None)


def _reported(place: Path) -> bool:
    return (place / "doctor.json").is_file() and (place / "report.txt").is_file()


def jobs_of_sweep(text: str) -> list[Job]:
    """The jobs of a multirun by its id, in order; empty where the id is no sweep's."""
    held = [folder for folder in job_folders() if folder.parent.name == text]
    jobs = [read_job(folder) for folder in held if folder.name.startswith(f"{text}-")]
    return sorted(jobs, key=lambda job: int(job.id.rpartition("-")[2]))


def _resolve(text: str) -> tuple[Job, str, str]:
    """The job, the cell id and the implementation that an id names; empty: all."""
    if not text:
        return read_job(latest_job()), "", ""
    if is_job(text):
        return read_job(find_job(text)), "", ""
    if text.startswith(("/", ".", "~")):
        raise ConfigError(f"{text}: no job's folder; job.json is not there.")
    first, *rest = text.rstrip("/").split("/")
    if _CELL.fullmatch(first):
        return _last_with(first), first, "/".join(rest)
    job = read_job(find_job(first))
    if rest and not _CELL.fullmatch(rest[0]):
        return job, "", "/".join(rest)
    return job, rest[0] if rest else "", "/".join(rest[1:])


def _last_with(cell: str) -> Job:
    for folder in _newest_first():
        job = read_job(folder)
        if any(held.cell.id == cell for held in job.records):
            return job
    raise ConfigError(f"no job under {outputs()} holds the cell {cell}")


def _newest_first() -> Iterator[Path]:
    key = {folder: (folder / "job.json").stat().st_ctime for folder in job_folders()}
    yield from sorted(key, key=lambda folder: key[folder], reverse=True)
