"""A record in numbers: the one place where rates, shares and sizes are derived for the sinks.

Pure. Table, plot, CSV, finding and tracking all show these values, so that they cannot differ.
A number that is not there is None.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .records import Cell, Comparison, Evidence, Interval, Job, Record, Status
from .statistics import geometric_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One record with what follows from it. Rates are decimal: 1e9 bytes/s, 1e12 FLOP/s."""

    record: Record
    comparison: Comparison | None
    gbps: float | None
    tflops: float | None
    share_of_floor: float | None
    """floor_us / latency: 1 is the datasheet's roof for this implementation's own stages."""

    @property
    def cell(self) -> Cell:
        return self.record.cell

    @property
    def latency(self) -> Interval | None:
        return self.record.timing.latency_us if self.record.timing else None

    @property
    def traced(self) -> Evidence | None:
        return self.record.traced

    @property
    def launches(self) -> int | None:
        return self.traced.launch_count if self.traced else None

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of what ran in the median call, in order of launch."""
        return tuple(launch.name for launch in self.traced.launches) if self.traced else ()


def rows(job: Job) -> tuple[Row, ...]:
    """One row a record, ordered by cell, then as the job ran its implementations."""
    order = {name: place for place, name in enumerate(implementations(job))}
    ordered = sorted(job.records, key=lambda r: (r.cell.index, order[r.implementation]))
    return tuple(_row(job, record) for record in ordered)


def _row(job: Job, record: Record) -> Row:
    latency = record.timing.latency_us.median if record.timing else None
    cost = record.cost
    gbps = tflops = share = None
    if latency and cost:
        gbps = cost.bytes / latency / 1e3 if cost.bytes else None
        tflops = cost.flops / latency / 1e6 if cost.flops else None
        share = cost.floor_us / latency if cost.floor_us else None
    return Row(
        record=record,
        comparison=job.judgement.of(record.cell.id, record.implementation),
        gbps=gbps,
        tflops=tflops,
        share_of_floor=share,
    )


def implementations(job: Job) -> tuple[str, ...]:
    """Names in the order of the question, then any others as they came."""
    asked = job.config.get("implementations") or []
    seen = dict.fromkeys([*asked, *(record.implementation for record in job.records)])
    ran = {record.implementation for record in job.records}
    return tuple(name for name in seen if name in ran)


def cells(job: Job) -> tuple[Cell, ...]:
    """The job's cells by index."""
    return tuple(sorted({r.cell.id: r.cell for r in job.records}.values(), key=lambda c: c.index))


def varying(job: Job) -> tuple[str, ...]:
    """Axes that take more than one value in this job."""
    seen: dict[str, set[object]] = {}
    for cell in cells(job):
        for axis, value in cell.workload.axes.items():
            seen.setdefault(axis, set()).add(value)
    return tuple(axis for axis, values in seen.items() if len(values) > 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """One number a cell that orders cells by work: `unit` is bytes or FLOP."""

    unit: str
    by_cell: dict[str, int]


def sizes(job: Job) -> Sizes:
    """The least bytes that any path of the cell moves or, where most cells are compute-bound, FLOP.

    The path with the fewest bytes is the fused one, so that the size is the workload's own and
    the same for all implementations.
    """
    least: dict[str, tuple[int, int, str | None]] = {}
    for record in job.records:
        if record.cost is None or not record.cost.bytes:
            continue
        entry = record.cost.bytes, record.cost.flops, record.cost.bound
        known = least.get(record.cell.id)
        least[record.cell.id] = entry if known is None or entry[0] < known[0] else known
    computing = sum(1 for _, flops, bound in least.values() if bound == "compute" and flops)
    if least and computing * 2 > len(least):
        return Sizes(unit="FLOP", by_cell={key: value[1] for key, value in least.items()})
    return Sizes(unit="bytes", by_cell={key: value[0] for key, value in least.items()})


def speedup_geomean(job: Job, implementation: str) -> tuple[float | None, int, int]:
    """The geometric mean of the speed-ups, the cells behind it, and all cells of the job.

    Only cells in which both this implementation and the baseline have a valid time count.
    """
    valid = {
        record.cell.id
        for record in job.records
        if record.implementation == implementation and record.status in (Status.ok, Status.noisy)
    }
    ratios = [
        comparison.speedup.median
        for comparison in job.judgement.comparisons
        if comparison.implementation == implementation
        and comparison.cell_id in valid
        and math.isfinite(comparison.speedup.median)
        and comparison.speedup.median > 0
    ]
    return geometric_mean(ratios), len(ratios), len(cells(job))


RESULT_COLUMNS = (
    "implementation", "status", "reason", "timer", "state", "latency_us", "latency_low_us",
    "latency_high_us", "warm_us", "busy_us", "span_us", "host_us", "speedup", "speedup_low",
    "speedup_high", "speedup_against", "verdict", "bytes", "flop", "gbps", "tflops", "floor_us",
    "share_of_floor", "launches", "max_error", "max_error_tolerance", "compile_s", "repro",
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
        traced.busy_us if traced else None,
        traced.span_us if traced else None,
        timing.host_us if timing else None,
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
        row.launches,
        checked.max_error if checked else None,
        checked.max_tolerance if checked else None,
        record.compile_s,
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
