"""A job's findings as strict JSON: what is kept in the repository of a run.

A finding holds the experiment, what was measured on and with, a row a record, and the claim's
verdict; no host names and no paths.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..provenance import commit_text
from ..records import Interval, Job, JobStatus
from ..results import Row, copy_ceiling, device, expected, rows
from .finding_place import place

Values = dict[str, Any]


def finding(job: Job) -> Values:
    """The finding of a job that ended. Raises ConfigError where it is no whole answer."""
    _whole(job)
    claim = job.judgement.claim
    environment = job.environment
    return strict(
        {
            "experiment": job.experiment,
            "question": job.question,
            "job": job.id,
            "command": job.command,
            "date": (job.ended or job.started)[:10],
            "commit": commit_text(environment.get("code") or {}),
            "environment": _environment(job),
            "protocol": _protocol(job),
            "rows": [_row(row) for row in rows(job)],
            "claim": None
            if claim is None
            else {
                "verdict": claim.verdict.value,
                "expectations": [
                    {
                        "expectation": entry.expectation,
                        "verdict": entry.verdict.value,
                        "cells": list(entry.cells),
                        "seen": list(entry.seen),
                    }
                    for entry in expected(job)
                ],
            },
        }
    )


def _whole(job: Job) -> None:
    where = f"job {job.id}"
    if job.status in (JobStatus.running, JobStatus.killed):
        raise ConfigError(f"{where} is {job.status.value}: a finding is of a job that ended")
    if not job.records:
        raise ConfigError(f"{where} has no records")
    mode = job.config.get("mode", "run")
    if mode != "run":
        raise ConfigError(f"{where} has mode={mode}: a finding needs times, mode=run")
    if job.config.get("cell"):
        raise ConfigError(f"{where} ran cell={job.config['cell']} only: a finding is of all cells")


def _environment(job: Job) -> Values:
    """What a reader must know to compare: the device and the versions, none of the host's names."""
    gpu = job.environment.get("gpu") or {}
    host = job.environment.get("host") or {}
    software = job.environment.get("software") or {}
    copy = copy_ceiling(job)
    values = {
        "target": next((record.target for record in job.records if record.target), None),
        "device": device(job) or None,
        "capability": gpu.get("capability"),
        "driver": gpu.get("driver"),
        "cuda": gpu.get("cuda_runtime"),
        "cpu": host.get("processor"),
        "python": software.get("python"),
        "torch": software.get("torch"),
        "triton": software.get("triton"),
        "copy_gbps": _interval(copy),
    }
    return {key: value for key, value in values.items() if value is not None}


def _protocol(job: Job) -> Values:
    """The protocol's name, and what each way of timing in this job was."""
    timed = [record.timing for record in job.records if record.timing]
    ways = dict.fromkeys((t.headline, t.state, t.timer, t.cache) for t in timed)
    return {
        **{k: v for k, v in (job.config.get("protocol") or {}).items() if v is not None},
        "rounds": max((len(timing.rounds_us) for timing in timed), default=None),
        "latency": [
            {"quantity": quantity, "state": state, "timer": timer, "cache": cache}
            for quantity, state, timer, cache in ways
        ],
    }


def _row(row: Row) -> Values:
    record, compared, workload = row.record, row.comparison, row.record.cell.workload
    timing = record.timing
    return {
        "kernel": record.cell.kernel,
        "cell": record.cell.id,
        "axes": workload.axes,
        "dtype": workload.dtype,
        "layout": workload.layout,
        "distribution": workload.distribution,
        "implementation": record.implementation,
        "status": record.status.value,
        "reason": record.reason or None,
        "latency_us": _interval(row.latency),
        "stream_us": _interval(timing.stream_us) if timing else None,
        "host_us": timing.host_us if timing else None,
        "launch_bound": timing.launch_bound if timing else None,
        "sm_mhz": timing.sm_mhz if timing else None,
        "power_limited": timing.power_limited if timing else None,
        "sustained": dataclasses.asdict(timing.sustained) if timing and timing.sustained else None,
        "busy_us": row.traced.busy_us if row.traced else None,
        "speedup": None
        if compared is None
        else {
            "value": compared.speedup.median,
            "low": compared.speedup.low,
            "high": compared.speedup.high,
            "against": compared.against,
        },
        "gbps": row.gbps,
        "tflops": row.tflops,
        "bound": record.cost.bound if record.cost else None,
        "share_of_roof": row.share_of_floor if row.share_of_copy is None else row.share_of_copy,
        "roof": _roof(row),
        "launches": row.launches,
        "kernels": list(row.kernels) if row.traced else None,
        "error": record.correctness.max_error if record.correctness else None,
        "verdict": compared.verdict.value if compared else None,
    }


def _roof(row: Row) -> str | None:
    """What the share is of: memory-bound cells are held against the copy of the same job."""
    if row.share_of_copy is not None:
        return "copy measured in the job" + (", L2 took a part" if row.l2_absorbed else "")
    return "datasheet" if row.share_of_floor is not None else None


def _interval(value: Interval | None) -> Values | None:
    return None if value is None else dataclasses.asdict(value)


def strict(value: Any) -> Any:
    """JSON has no NaN: what is not finite is null. Six significant digits hold every reading."""
    if isinstance(value, dict):
        return {key: strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [strict(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def write_finding(job: Job, findings: Path) -> Path:
    """Writes the finding below the findings folder, in place of an earlier one. Its path."""
    return save(finding(job), findings / place(job))


def save(values: Values, path: Path) -> Path:
    """Writes a finding, whole; its path."""
    text = json.dumps(values, indent=1, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
