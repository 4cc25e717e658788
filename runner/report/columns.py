"""Records and raw samples as CSV: numbers in columns of their own, blank where there is none."""

import csv
import io
import math
from collections.abc import Iterable, Iterator

from ..records import Job
from ..results import Row, cells, rows

RESULT_COLUMNS = (
    "implementation", "status", "reason", "timer", "state", "latency_us", "latency_low_us",
    "latency_high_us", "warm_us", "stream_us", "busy_us", "span_us", "host_us", "launch_bound",
    "sm_mhz", "power_limited", "sustained_us", "joules", "speedup", "speedup_low",
    "speedup_high", "speedup_against", "verdict", "bytes", "flop", "gbps", "tflops", "floor_us",
    "share_of_floor", "share_of_copy", "launches", "max_error", "max_error_tolerance",
    "compile_s", "tuning_s", "repro",
)  # fmt: skip


def results_csv(job: Job) -> str:
    """One line a record: axes and numbers in columns of their own, blank where there is none."""
    axes = list(dict.fromkeys(axis for cell in cells(job) for axis in cell.workload.axes))
    head = ["cell", "cell_id", "kernel", *axes, "dtype", "layout", *RESULT_COLUMNS]
    return _csv(head, (_result_line(row, axes) for row in rows(job)))


def _result_line(row: Row, axes: list[str]) -> list[object]:
    record, timing, compared = row.record, row.record.timing, row.comparison
    cost, checked, traced = record.cost, record.correctness, row.traced
    latency, speedup = row.latency, compared.speedup if compared else None
    workload = record.cell.workload
    sustained = timing.sustained if timing else None
    return [
        record.cell.index,
        record.cell.id,
        record.cell.kernel,
        *(workload.axes.get(axis) for axis in axes),
        workload.dtype,
        workload.layout,
        record.implementation,
        record.status.value,
        record.reason,
        timing.timer if timing else None,
        timing.state if timing else None,
        latency.median if latency else None,
        latency.low if latency else None,
        latency.high if latency else None,
        timing.warm_us.median if timing and timing.warm_us else None,
        timing.stream_us.median if timing and timing.stream_us else None,
        traced.busy_us if traced else None,
        traced.span_us if traced else None,
        timing.host_us if timing else None,
        timing.launch_bound if timing else None,
        timing.sm_mhz if timing else None,
        timing.power_limited if timing else None,
        sustained.period_us if sustained else None,
        sustained.joules if sustained else None,
        speedup.median if speedup else None,
        speedup.low if speedup else None,
        speedup.high if speedup else None,
        compared.against if compared else None,
        compared.verdict.value if compared else None,
        cost.bytes if cost else None,
        cost.flops if cost else None,
        row.gbps,
        row.tflops,
        cost.floor_us if cost else None,
        row.share_of_floor,
        row.share_of_copy,
        row.launches,
        checked.max_error if checked else None,
        checked.max_tolerance if checked else None,
        record.compile_s,
        record.tuning_s,
        record.repro,
    ]


def samples_csv(job: Job) -> str:
    """Every raw sample with its round, place, cache state and the calls it holds."""
    head = ["cell", "cell_id", "implementation", "round", "position", "state", "calls", "sample_us"]
    return _csv(head, _sample_lines(job))


def _sample_lines(job: Job) -> Iterator[list[object]]:
    for row in rows(job):
        for block in row.record.timing.blocks if row.record.timing else ():
            for sample in block.samples_us:
                yield [
                    row.cell.index,
                    row.cell.id,
                    row.record.implementation,
                    block.round,
                    block.position,
                    block.state,
                    block.calls,
                    sample,
                ]


def _csv(head: list[str], lines: Iterable[list[object]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for line in lines:
        writer.writerow(["" if _absent(value) else value for value in line])
    return stream.getvalue()


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
