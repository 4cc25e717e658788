"""Who a run is: its readable name, and the tags by which it is found again. Pure."""

from typing import Any

from ..clocks import OBSERVE
from ..records import Job
from .names import TAG_LENGTH, safe, shortened


def identity(job: Job) -> dict[str, str]:
    """The tags by which runs are found again; shared by a job and its implementations."""
    gpu = job.environment.get("gpu") or {}
    code = job.environment.get("code") or {}
    software = job.environment.get("software") or {}
    values: dict[str, Any] = {
        "job": job.id,
        "job_sig": job.signature,
        "sweep_id": job.sweep_id,
        "experiment": job.experiment,
        "kernel": job.kernel,
        "dtype": name_of(job, "dtype"),
        "shapes": name_of(job, "shapes"),
        "target": name_of(job, "target"),
        "protocol": name_of(job, "protocol"),
        "clocks": locked(job),
        "gpu": gpu.get("name"),
        "gpu_uuid": gpu.get("uuid"),
        "gpu_driver": gpu.get("driver"),
        "cuda": gpu.get("cuda_runtime"),
        "torch": software.get("torch"),
        "triton": software.get("triton"),
        "git_commit": code.get("commit"),
        "git_dirty": code.get("dirty"),
    }
    return as_tags(values)


def as_tags(values: dict[str, Any]) -> dict[str, str]:
    return {
        safe(key): shortened(str(value), TAG_LENGTH)
        for key, value in values.items()
        if value not in (None, "")
    }


def job_name(job: Job) -> str:
    """Readable in the runs table: experiment, dtype, shapes, target, and the end of the id."""
    parts = [job.experiment, *_where(job)]
    # ids read KIND-DATE-TIME-TOKEN[-NUMBER]: the date is the run's own column
    own = job.id.split("-", 3)[-1]
    return " ".join([*parts, own])


def implementation_name(job: Job, implementation: str) -> str:
    """Readable in a legend, where only the beginning shows."""
    return " ".join([implementation, *_where(job)])


def _where(job: Job) -> list[str]:
    names = [name_of(job, group) for group in ("dtype", "shapes", "target")]
    return [name for name in names if name not in ("", "default", job.kernel)]


def locked(job: Job) -> str | None:
    """The protocol's clock rule; None where clocks were only observed."""
    clocks = dig(job.config, "protocol", "clocks")
    return None if clocks == OBSERVE else clocks


def name_of(job: Job, group: str) -> str:
    return str(dig(job.config, group, "name") or "")


def dig(values: Any, *keys: str) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values
