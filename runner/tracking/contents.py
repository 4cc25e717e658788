"""What a job becomes in a tracking store: metrics, params, tags and a note, as plain values.

Pure: knows nothing of the store's client. At most about 30 metric keys a run, grouped by prefix;
a metric's step is the cell's index, so that lines over sizes overlay when runs are compared.
"""

import json
import math
import statistics
from collections.abc import Iterator
from typing import Any

from ..records import FAILED, Job, Record, Status
from ..results import Row, Sizes, cells, copy_ceiling, implementations, rows, sizes, speedup_geomean
from .names import TAG_LENGTH, VALUE_LENGTH, safe, shortened

Metric = tuple[str, float, int]
"""Key, value, step."""

_DOCUMENTATION = frozenset({"doc", "source", "question"})


def implementation_metrics(job: Job, implementation: str) -> list[Metric]:
    """Stepped metrics of one implementation over the cells, then its unstepped summary."""
    size = sizes(job)
    own = [row for row in rows(job) if row.record.implementation == implementation]
    metrics = [metric for row in own for metric in _cell_metrics(row, size)]
    metrics += [(key, value, 0) for key, value in _summary(job, implementation, own).items()]
    return [(safe(key), value, step) for key, value, step in metrics if math.isfinite(value)]


def _cell_metrics(row: Row, size: Sizes) -> Iterator[Metric]:
    step = row.cell.index
    for key, value in (_case(row, size) | _measured(row)).items():
        if value is not None:
            yield key, float(value), step


def _case(row: Row, size: Sizes) -> dict[str, float | None]:
    axes = {
        f"case/{axis}": float(value)
        for axis, value in row.cell.workload.axes.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return {**axes, "case/size": size.by_cell.get(row.cell.id)}


def _measured(row: Row) -> dict[str, float | None]:
    record, timing, cost = row.record, row.record.timing, row.record.cost
    latency, traced, checked = row.latency, row.traced, row.record.correctness
    speedup = row.comparison.speedup if row.comparison else None
    return {
        "latency_us/median": latency.median if latency else None,
        "latency_us/low": latency.low if latency else None,
        "latency_us/high": latency.high if latency else None,
        "latency_us/floor": cost.floor_us if cost else None,
        "time_us/warm": timing.warm_us.median if timing and timing.warm_us else None,
        "time_us/busy": traced.busy_us if traced else None,
        "time_us/span": traced.span_us if traced else None,
        "time_us/host": timing.host_us if timing else None,
        "rate/gbps": row.gbps,
        "rate/tflops": row.tflops,
        "rate/share_of_floor": row.share_of_floor,
        "rate/share_of_copy": row.share_of_copy,
        "speedup/median": speedup.median if speedup else None,
        "speedup/low": speedup.low if speedup else None,
        "speedup/high": speedup.high if speedup else None,
        "check/max_error": checked.max_error if checked else None,
        "check/share_of_tolerance": _share_of_tolerance(record),
        "evidence/launches": row.launches,
        "evidence/compile_s": record.compile_s,
    }


def _share_of_tolerance(record: Record) -> float | None:
    checked = record.correctness
    if checked is None or not checked.max_tolerance:
        return None
    return checked.max_error / checked.max_tolerance


def _summary(job: Job, implementation: str, own: list[Row]) -> dict[str, float]:
    values = _counts([row.record for row in own])
    speedup, behind, _ = speedup_geomean(job, implementation)
    if speedup is not None:
        values["summary/speedup_geomean"] = speedup
        values["summary/speedup_cells"] = behind
    latencies = [row.latency.median for row in own if row.latency and row.latency.median > 0]
    if latencies:
        values["summary/latency_us_geomean"] = statistics.geometric_mean(latencies)
    return values


def _counts(records: list[Record]) -> dict[str, float]:
    return {
        "summary/cells_ok": sum(record.status == Status.ok for record in records),
        "summary/cells_failed": sum(record.status in FAILED for record in records),
        "summary/cells": len(records),
    }


def job_metrics(job: Job) -> list[Metric]:
    """The job's own, unstepped: the children hold the lines."""
    values: dict[str, float] = {
        "summary/cells": len(cells(job)),
        "summary/records_ok": sum(record.status == Status.ok for record in job.records),
        "summary/records_failed": sum(record.status in FAILED for record in job.records),
    }
    for name in implementations(job):
        speedup = speedup_geomean(job, name)[0]
        if speedup is not None and len(values) < 24:
            values[f"speedup_geomean/{name}"] = speedup
    if job.seconds:
        values["summary/seconds"] = sum(job.seconds.values())
    copy = copy_ceiling(job)
    if copy is not None:
        values["summary/copy_gbps"] = copy.median
    return [(safe(key), float(v), 0) for key, v in values.items() if math.isfinite(v)]


def job_params(job: Job) -> tuple[dict[str, str], dict[str, str]]:
    """The resolved config as flat scalars, and in full the values that were too long for it."""
    params, long = {}, {}
    for key, value in _flat(job.config, ""):
        if len(value) > VALUE_LENGTH:
            long[key] = value
        params[safe(key)] = shortened(value, VALUE_LENGTH)
    return params, long


def _flat(value: object, key: str) -> Iterator[tuple[str, str]]:
    """Leaves that say something: documentation and what is left empty are in config.json."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _DOCUMENTATION:
                yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif value not in (None, "", [], ()):
        yield key, value if isinstance(value, str) else json.dumps(value, default=str)


def implementation_params(job: Job, implementation: str) -> dict[str, str]:
    """What tells two children apart on the compare page."""
    chosen = _dig(job.config, "kernel", "implementations", implementation) or {}
    values = {
        "implementation": implementation,
        "kernel.name": job.kernel,
        "dtype.name": _name(job, "dtype"),
        "shapes.name": _name(job, "shapes"),
        "target.name": _name(job, "target"),
        "protocol.name": _name(job, "protocol"),
        "language": chosen.get("language"),
        "compile": chosen.get("compile"),
        "kwargs": json.dumps(chosen["kwargs"]) if chosen.get("kwargs") else None,
    }
    return {k: shortened(str(v), VALUE_LENGTH) for k, v in values.items() if v not in (None, "")}


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
        "dtype": _name(job, "dtype"),
        "shapes": _name(job, "shapes"),
        "target": _name(job, "target"),
        "protocol": _name(job, "protocol"),
        "gpu": gpu.get("name"),
        "gpu_uuid": gpu.get("uuid"),
        "gpu_driver": gpu.get("driver"),
        "cuda": gpu.get("cuda_runtime"),
        "torch": software.get("torch"),
        "triton": software.get("triton"),
        "git_commit": code.get("commit"),
        "git_dirty": code.get("dirty"),
    }
    return _tags(values)


def outcome(job: Job) -> dict[str, str]:
    """Tags known at the end."""
    claim = job.judgement.claim
    size = sizes(job)
    return _tags(
        {
            "status_reason": job.status_reason,
            "verdict": claim.verdict.value if claim else None,
            "case_size_unit": size.unit if size.by_cell else None,
            "command": job.command,
            "folder": job.folder,
        }
    )


def implementation_outcome(job: Job, implementation: str) -> dict[str, str]:
    """How often the implementation ended how, and its verdicts against the baseline."""
    own = [record for record in job.records if record.implementation == implementation]
    ends: dict[str, int] = {}
    for record in own:
        ends[record.status.value] = ends.get(record.status.value, 0) + 1
    verdicts: dict[str, int] = {}
    for compared in job.judgement.comparisons:
        if compared.implementation == implementation:
            verdicts[compared.verdict.value] = verdicts.get(compared.verdict.value, 0) + 1
    reasons = dict.fromkeys(record.reason for record in own if record.reason)
    return _tags(
        {
            "implementation": implementation,
            "statuses": ", ".join(f"{name} {count}" for name, count in ends.items()),
            "verdict": ", ".join(f"{name} {count}" for name, count in verdicts.items()),
            "status_reason": "; ".join(reasons),
        }
    )


def _tags(values: dict[str, Any]) -> dict[str, str]:
    return {
        safe(key): shortened(str(value), TAG_LENGTH)
        for key, value in values.items()
        if value not in (None, "")
    }


def job_name(job: Job) -> str:
    """Readable in the runs table: experiment, dtype, shapes, target, and the end of the id."""
    parts = [job.experiment, *_where(job)]
    return " ".join([*parts, job.id.rsplit("-", 1)[-1][:8]])


def implementation_name(job: Job, implementation: str) -> str:
    """Readable in a legend, where only the beginning shows."""
    return " ".join([implementation, *_where(job)])


def _where(job: Job) -> list[str]:
    names = [_name(job, group) for group in ("dtype", "shapes", "target")]
    return [name for name in names if name and name != job.kernel]


def _name(job: Job, group: str) -> str:
    return str(_dig(job.config, group, "name") or "")


def _dig(values: Any, *keys: str) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values
