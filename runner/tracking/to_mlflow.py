"""A job in MLflow: a run for the job, a child run an implementation, a roll-up for a multirun.

Everything is made from the job's folder after the work is done, by explicit ids; what was filed
is written to `filed.json` there, so that filing again adds nothing.
"""

import json
import os
import platform
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from ..folder import JobFolder
from ..records import FAILED, Job, JobStatus
from ..results import implementations
from . import contents
from .identity import identity, implementation_name, job_name
from .names import safe
from .notes import job_note, sweep_note
from .store import SWEEPS, Store, connect, experiment_id, translated

if TYPE_CHECKING:
    from mlflow import MlflowClient

FILED_FILE = "filed.json"
LOG_LIMIT = 10_000_000
"""Bytes: larger logs stay in the job's folder."""

_ENDS = {
    JobStatus.finished: "FINISHED",
    JobStatus.failed: "FAILED",
    JobStatus.killed: "KILLED",
    JobStatus.running: "RUNNING",
}


def open_job(job: Job, store: Store) -> str:
    """The run of a job that starts now: RUNNING, with what is needed to find out if it died.

    Raises StoreError where the store cannot be used; the job's folder is then as before.
    """
    client = connect(store)
    with translated(store):
        run_id = _create_job_run(client, store, job, _this_process())
    _write_filed(job, {"store": store.uri, "complete": False, "job": run_id, "implementations": {}})
    return run_id


def file_job(job: Job, store: Store) -> dict[str, Any]:
    """Files a job that ended, completing the run that `open_job` began, if it did so here.

    Returns what `filed.json` then holds: store, job run id, implementation run ids. A job that
    is complete in this store is left alone. Raises StoreError; filing again then takes up where
    it stopped.
    """
    filed = read_filed(job)
    if filed.get("store") != store.uri:
        filed = {}
    if filed.get("complete"):
        return filed
    client = connect(store)
    with translated(store):
        run_id = filed.get("job") or _create_job_run(client, store, job, {})
        done: dict[str, str] = filed.get("implementations") or {}
        filed = {"store": store.uri, "complete": False, "job": run_id, "implementations": done}
        _write_filed(job, filed)
        experiment = client.get_run(run_id).info.experiment_id
        _remove_halves(client, experiment, run_id, set(done.values()))
        for name in implementations(job):
            if name not in done:
                done[name] = _file_implementation(client, experiment, run_id, job, name)
                _write_filed(job, filed)
        _complete_job(client, run_id, job)
    filed["complete"] = True
    _write_filed(job, filed)
    return filed


def file_sweep(sweep_id: str, jobs: list[Job], store: Store) -> str:
    """The roll-up run of a multirun, in the experiment `sweeps`. Raises StoreError.

    The job runs are found by the tag `sweep_id`; the roll-up counts and lists them.
    """
    client = connect(store)
    failed = sum(job.status != JobStatus.finished for job in jobs)
    killed = any(job.status == JobStatus.killed for job in jobs)
    records = [record for job in jobs for record in job.records]
    starts = [job.started for job in jobs]
    with translated(store):
        run = client.create_run(
            experiment_id(client, store, SWEEPS),
            start_time=_milliseconds(min(starts)) if starts else None,
            run_name=sweep_id,
            tags={
                "role": "sweep",
                "sweep_id": sweep_id,
                "mlflow.note.content": sweep_note(jobs, {j.id: read_filed(j) for j in jobs}),
                "kernels": ", ".join(dict.fromkeys(job.kernel for job in jobs)),
                "experiments": ", ".join(dict.fromkeys(job.experiment for job in jobs)),
            },
        )
        metrics = [
            ("summary/jobs", float(len(jobs)), 0),
            ("summary/jobs_failed", float(failed), 0),
            ("summary/records_ok", float(sum(record.status == "ok" for record in records)), 0),
        ]
        _log(client, run.info.run_id, metrics, {}, {}, _now())
        ends = [job.ended for job in jobs if job.ended]
        client.set_terminated(
            run.info.run_id,
            "KILLED" if killed else "FAILED" if failed else "FINISHED",
            end_time=_milliseconds(max(ends)) if ends else None,
        )
    return run.info.run_id


def _create_job_run(client: "MlflowClient", store: Store, job: Job, process: dict[str, str]) -> str:
    run = client.create_run(
        experiment_id(client, store, job.kernel),
        start_time=_milliseconds(job.started),
        run_name=job_name(job),
        tags={
            **identity(job),
            "role": "job",
            **process,
            "mlflow.source.name": job.command,
            "mlflow.source.type": "LOCAL",
        },
    )
    return run.info.run_id


def _file_implementation(
    client: "MlflowClient", experiment: str, parent: str, job: Job, name: str
) -> str:
    run = client.create_run(
        experiment,
        start_time=_milliseconds(job.started),
        run_name=implementation_name(job, name),
        tags={
            **identity(job),
            **contents.implementation_outcome(job, name),
            "role": "implementation",
            "mlflow.parentRunId": parent,
        },
    )
    run_id = run.info.run_id
    metrics = contents.implementation_metrics(job, name)
    _log(client, run_id, metrics, contents.implementation_params(job, name), {}, _end(job))
    failed = any(r.implementation == name and r.status in FAILED for r in job.records)
    end = "FAILED" if failed else "FINISHED"
    client.set_terminated(
        run_id, "KILLED" if job.status == JobStatus.killed else end, end_time=_end(job)
    )
    return run_id


def _complete_job(client: "MlflowClient", run_id: str, job: Job) -> None:
    params, long = contents.job_params(job)
    # the device is known only since the job ran
    tags = {**identity(job), **contents.outcome(job), "mlflow.note.content": job_note(job)}
    _log(client, run_id, contents.job_metrics(job), params, tags, _end(job))
    for key, text in long.items():
        client.log_text(run_id, text, f"params/{safe(key).replace('/', '_')}.txt")
    folder = Path(job.folder)
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and is_filed(inside, path):
            place = None if inside.parent == Path() else inside.parent.as_posix()
            client.log_artifact(run_id, str(path), place)
    if job.status != JobStatus.running:
        client.set_terminated(run_id, _ENDS[job.status], end_time=_end(job))


def is_filed(inside: Path, path: Path) -> bool:
    if inside.name == FILED_FILE or inside.suffix == ".partial":
        return False
    if inside.parts[0] == "logs":
        return path.stat().st_size <= LOG_LIMIT
    if inside.suffix != ".json" and path.with_suffix(".link.json").exists():
        return inside.suffix == ".csv"  # the report itself stays where it is: the link says why
    return inside.parts[0] in ("plots", "traces") or len(inside.parts) == 1


def _remove_halves(client: "MlflowClient", experiment: str, parent: str, whole: set[str]) -> None:
    """Deletes children of an attempt that broke off, so that no point is filed twice."""
    query = f"tags.`mlflow.parentRunId` = '{parent}'"
    for run in client.search_runs([experiment], query):
        if run.info.run_id not in whole:
            client.delete_run(run.info.run_id)


def _log(
    client: "MlflowClient",
    run_id: str,
    metrics: list[contents.Metric],
    params: dict[str, str],
    tags: dict[str, str],
    timestamp: int,
) -> None:
    from mlflow.entities import Metric, Param, RunTag

    client.log_batch(
        run_id,
        metrics=[Metric(key, value, timestamp, step) for key, value, step in metrics],
        params=[Param(key, value) for key, value in params.items()],
        tags=[RunTag(key, value) for key, value in tags.items()],
    )


def _end(job: Job) -> int:
    return _milliseconds(job.ended) if job.ended else _now()


def _now() -> int:
    return int(datetime.now().timestamp() * 1000)


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def _this_process() -> dict[str, str]:
    """Names one process for ever, so that a run left RUNNING by a dead one can be told."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "host": platform.node(),
        "pid": str(os.getpid()),
        "boot_id": boot.read_text().strip() if boot.exists() else "unknown",
    }


def read_filed(job: Job) -> dict[str, Any]:
    path = Path(job.folder) / FILED_FILE
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise StoreError(f"{path}: not JSON: {error}") from error


def _write_filed(job: Job, filed: dict[str, Any]) -> None:
    JobFolder(Path(job.folder)).write_json(FILED_FILE, filed)
