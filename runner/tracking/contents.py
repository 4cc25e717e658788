"""What a job becomes in a tracking store: metrics, params, tags and a note, as plain values.

Pure: knows nothing of the store's client. At most about 30 metric keys a run, grouped by prefix;
a metric's step is the cell's index, so that lines over sizes overlay when runs are compared.
"""

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterator

from ..counted import dram_ratio
from ..records import FAILED, Interval, Job, Record, Status
from ..results import Row, Sizes, cells, copy_ceiling, implementations, rows, sizes, speedup_geomean
from .identity import as_tags, dig, locked, name_of
from .names import VALUE_LENGTH, safe, shortened

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
    sustained = timing.sustained if timing else None
    return {
        **_interval("latency_us", latency),
        "latency_us/floor": cost.floor_us if cost else None,
        "time_us/warm": timing.warm_us.median if timing and timing.warm_us else None,
        "time_us/stream": timing.stream_us.median if timing and timing.stream_us else None,
        "time_us/sustained": sustained.period_us if sustained else None,
        "time_us/busy": traced.busy_us if traced else None,
        "time_us/span": traced.span_us if traced else None,
        "time_us/host": timing.host_us if timing else None,
        "rate/gbps": row.gbps,
        "rate/tflops": row.tflops,
        "rate/share_of_floor": row.share_of_floor,
        "rate/share_of_copy": row.share_of_copy,
        **_interval("speedup", speedup),
        "power/sm_mhz": timing.sm_mhz if timing else None,
        "power/joules": sustained.joules if sustained else None,
        "check/max_error": checked.max_error if checked else None,
        "check/share_of_tolerance": _share_of_tolerance(record),
        "evidence/launches": row.launches,
        "evidence/dram_ratio": dram_ratio(record),
        "evidence/compile_s": record.compile_s,
        "evidence/tuning_s": record.tuning_s,
    }


def _interval(prefix: str, value: Interval | None) -> dict[str, float | None]:
    bounds = (value.median, value.low, value.high) if value else (None, None, None)
    return dict(zip((f"{prefix}/median", f"{prefix}/low", f"{prefix}/high"), bounds, strict=True))


def _share_of_tolerance(record: Record) -> float | None:
    checked = record.correctness
    return checked.max_error / checked.max_tolerance if checked and checked.max_tolerance else None


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
        "summary/records": len(job.records),
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
    chosen = dig(job.config, "kernel", "implementations", implementation) or {}
    values = {
        "implementation": implementation,
        "kernel.name": job.kernel,
        "dtype.name": name_of(job, "dtype"),
        "shapes.name": name_of(job, "shapes"),
        "target.name": name_of(job, "target"),
        "protocol.name": name_of(job, "protocol"),
        "protocol.clocks": locked(job),
        "language": chosen.get("language"),
        "compile": chosen.get("compile"),
        "kwargs": json.dumps(chosen["kwargs"]) if chosen.get("kwargs") else None,
    }
    return {k: shortened(str(v), VALUE_LENGTH) for k, v in values.items() if v not in (None, "")}


def outcome(job: Job) -> dict[str, str]:
    """Tags known at the end."""
    claim, size = job.judgement.claim, sizes(job)
    return as_tags(
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
    ends = Counter(record.status.value for record in own)
    verdicts = Counter(
        compared.verdict.value
        for compared in job.judgement.comparisons
        if compared.implementation == implementation
    )
    reasons = dict.fromkeys(record.reason for record in own if record.reason)
    return as_tags(
        {
            "implementation": implementation,
            "statuses": ", ".join(f"{name} {count}" for name, count in ends.items()),
            "verdict": ", ".join(f"{name} {count}" for name, count in verdicts.items()),
            "status_reason": "; ".join(reasons),
        }
    )
