"""A job's folder: the truth on disk, appended as the job goes, from which every sink is made.

    job.json            id, signature, command, status
    config.json         the resolved experiment
    environment.json    GPU, host, software, code
    records.jsonl       one line a record, flushed per cell; evidence lines follow and join them;
                        of a cell measured again the later line counts; lines of several fresh
                        processes (`process` from 1) are merged as they are read
    ranges.json         NVTX payload -> cell, implementation, phase
    judgement.json      verdicts
    plots/ logs/

Knows nothing of Hydra, CUDA or MLflow.
"""

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from .errors import StoreError
from .merging import merged
from .records import Evidence, Job, JobStatus, Judgement, Record

_record = TypeAdapter(Record)
_evidence = TypeAdapter(Evidence)
_judgement = TypeAdapter(Judgement)
_job = TypeAdapter(Job)

_ELSEWHERE = ("records", "judgement", "environment", "config")


class JobFolder:
    """Writes a job's files; each line of `records.jsonl` is whole or absent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "logs").mkdir(parents=True, exist_ok=True)

    def write_job(self, job: Job) -> None:
        """Replaces job.json in one step, so that a reader never sees half of it."""
        values = {
            key: value
            for key, value in _job.dump_python(job, mode="json").items()
            if key not in _ELSEWHERE
        }
        self.write_json("job.json", values)

    def write_json(self, name: str, values: object) -> None:
        """Writes a JSON file beside the records, atomically."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(target.suffix + ".partial")
        partial.write_text(json.dumps(values, indent=1, allow_nan=False, default=str) + "\n")
        partial.replace(target)

    def write_judgement(self, judgement: Judgement) -> None:
        self.write_json("judgement.json", _judgement.dump_python(judgement, mode="json"))

    def append(self, items: Iterable[Record | Evidence]) -> None:
        """Appends records and evidence, flushed to the disk before it returns.

        A line that a crash cut short is taken off first. Raises ValueError, and writes nothing,
        where a value is no JSON (NaN, infinity).
        """
        lines = []
        for item in items:
            if isinstance(item, Record):
                values = {"record": _record.dump_python(item, mode="json")}
            else:
                values = {"evidence": _evidence.dump_python(item, mode="json")}
            lines.append(json.dumps(values, allow_nan=False, separators=(",", ":")) + "\n")
        path = self.path / "records.jsonl"
        if path.exists():
            _take_off_half_a_line(path)
        with path.open("ab") as stream:
            stream.write("".join(lines).encode())
            stream.flush()
            os.fsync(stream.fileno())


def _take_off_half_a_line(path: Path) -> None:
    with path.open("r+b") as stream:
        if stream.seek(0, os.SEEK_END) == 0:
            return
        stream.seek(-1, os.SEEK_END)
        if stream.read(1) != b"\n":
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)


def read_records(path: Path, confidence: float = 0.95) -> tuple[Record, ...]:
    """The records of a `records.jsonl`, each with the evidence that followed it; those of several
    processes as one, with intervals of this confidence.

    A last line cut short by a crash is passed over; a broken line elsewhere is an error.
    Raises StoreError with the file and line.
    """
    found: dict[tuple[str, str], dict[int, Record]] = {}
    traced: dict[tuple[str, str], tuple[Evidence, ...]] = {}
    if not path.exists():
        return ()
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values: dict[str, Any] = json.loads(line)
            if "record" in values:
                record = _record.validate_python(values["record"])
                key = record.cell.id, record.implementation
                of_process = found.setdefault(key, {})
                if record.process == 0:
                    of_process.clear()
                of_process[record.process] = record
                traced[key] = record.evidence
            else:
                evidence = _evidence.validate_python(values["evidence"])
                key = evidence.cell_id, evidence.implementation
                kept = tuple(e for e in traced[key] if e.tool != evidence.tool)
                traced[key] = (*kept, evidence)
        except (ValueError, KeyError, ValidationError) as error:
            if number == len(lines):
                break
            raise StoreError(f"{path}:{number}: not a record: {error}") from error
    return tuple(
        dataclasses.replace(_one(of_process, confidence), evidence=traced[key])
        for key, of_process in found.items()
    )


def _one(of_process: dict[int, Record], confidence: float) -> Record:
    return of_process[0] if 0 in of_process else merged(list(of_process.values()), confidence)


def read_job(folder: Path) -> Job:
    """The job that a folder holds. Raises StoreError where there is none, or a broken one."""
    source = folder / "job.json"
    if not source.exists():
        raise StoreError(f"{folder}: no job.json there, so it is no job folder")
    values = _read_json(source)
    for name, file in (("environment", "environment.json"), ("config", "config.json")):
        path = folder / file
        values[name] = _read_json(path) if path.exists() else {}
    judged = folder / "judgement.json"
    judgement = Judgement()
    try:
        job = _job.validate_python({**values, "folder": str(folder)})
        if judged.exists():
            judgement = _judgement.validate_python(_read_json(judged))
    except ValidationError as error:
        raise StoreError(f"{folder}: not a job as this version writes it: {error}") from error
    confidence = (job.config.get("protocol") or {}).get("confidence", 0.95)
    records = read_records(folder / "records.jsonl", confidence)
    return dataclasses.replace(job, records=records, judgement=judgement)


def ranges_of(folder: Path) -> list[dict[str, Any]]:
    """What the payloads of the job's NVTX ranges mean. Raises StoreError where nothing says."""
    path = folder / "ranges.json"
    if not path.exists():
        raise StoreError(f"{folder}: no ranges.json there, so no report can be joined to its job")
    return _read_json(path)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise StoreError(f"{path}: no JSON: {error}") from error


def finished(job: Job, *, status: JobStatus, reason: str, ended: str) -> Job:
    """The job with its end."""
    return dataclasses.replace(job, status=status, status_reason=reason, ended=ended)
