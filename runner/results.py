"""A record in numbers: the one place where rates, shares and sizes are derived for the sinks.

Pure. Table, plot, CSV, finding and tracking all show these values, so that they cannot differ.
A number that is not there is None.
"""

import math
from dataclasses import dataclass

from .records import (
    FAILED,
    Cell,
    ClaimVerdict,
    Comparison,
    Evidence,
    Interval,
    Job,
    Record,
    Status,
)
from .statistics import geometric_mean

L2_MARGIN = 0.02
"""A share of the copy bandwidth above 1 by less than this is within what both measurements vary."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One record with what follows from it. Rates are decimal: 1e9 bytes/s, 1e12 FLOP/s."""

    record: Record
    comparison: Comparison | None
    gbps: float | None
    tflops: float | None
    share_of_floor: float | None
    """floor_us / latency: 1 is the datasheet's roof for this implementation's own stages."""
    share_of_copy: float | None
    """gbps over the copy bandwidth measured in the same job; None where the cell is not bound by
    memory. Above 1 the L2 took a part: `l2_absorbed`."""

    @property
    def l2_absorbed(self) -> bool:
        """More bytes a second than memory gives: writes, or small inputs, stayed in the cache."""
        return self.share_of_copy is not None and self.share_of_copy > 1.0 + L2_MARGIN

    @property
    def likely_bound(self) -> str | None:
        """What decides where no datasheet says so: ten FLOP a byte is past any CPU's ridge."""
        intensity = self.record.cost.intensity if self.record.cost else None
        return None if intensity is None else "compute" if intensity > 10 else "memory"

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
    gbps = tflops = share = of_copy = None
    if latency and cost:
        gbps = cost.bytes / latency / 1e3 if cost.bytes else None
        tflops = cost.flops / latency / 1e6 if cost.flops else None
        share = cost.floor_us / latency if cost.floor_us else None
        copy = copy_ceiling(job)
        if copy and gbps and cost.bound == "memory":
            of_copy = gbps / copy.median
    return Row(
        record=record,
        comparison=job.judgement.of(record.cell.id, record.implementation),
        gbps=gbps,
        tflops=tflops,
        share_of_floor=share,
        share_of_copy=of_copy,
    )


def implementations(job: Job) -> tuple[str, ...]:
    """Names in the order of the question, then any others as they came; a baseline that the
    question does not name comes first."""
    asked = job.config.get("implementations") or []
    baseline = (job.config.get("kernel") or {}).get("baseline")
    if asked and baseline and baseline not in asked:
        asked = [baseline, *asked]  # added to what was asked for, and run first
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

    Only cells in which both this implementation and the baseline have a time that is `ok` count.
    """
    ratios = [
        comparison.speedup.median
        for comparison in _compared(job, implementation, (Status.ok,))
        if math.isfinite(comparison.speedup.median) and comparison.speedup.median > 0
    ]
    return geometric_mean(ratios), len(ratios), len(cells(job))


def noisy_cells(job: Job, implementation: str) -> int:
    """The cells that its geometric mean leaves out since one of the two times is `noisy`."""
    timed = _compared(job, implementation, (Status.ok, Status.noisy))
    return len(timed) - len(_compared(job, implementation, (Status.ok,)))


def _compared(job: Job, implementation: str, wanted: tuple[Status, ...]) -> list[Comparison]:
    """Its comparisons in cells where it and what it is held against ended so."""
    fine = {(r.cell.id, r.implementation) for r in job.records if r.status in wanted}
    return [
        found
        for found in job.judgement.comparisons
        if found.implementation == implementation
        and {(found.cell_id, implementation), (found.cell_id, found.against)} <= fine
    ]


def band(job: Job) -> float:
    """The indifference band of the job's verdicts."""
    return float((job.config.get("protocol") or {}).get("band", 0.01))


def device(job: Job) -> str:
    """The GPU's name, else the processor's with the threads that torch used."""
    environment = job.environment
    gpu = (environment.get("gpu") or {}).get("name")
    processor = (environment.get("host") or {}).get("processor")
    threads = (environment.get("settings") or {}).get("threads")
    if gpu or not processor:
        return gpu or next((record.device for record in job.records if record.device), "")
    return f"{processor}, {threads} threads" if threads else processor


def copy_ceiling(job: Job) -> Interval | None:
    """GB/s of a copy, read plus written bytes, measured in this job."""
    found = ((job.environment.get("ceilings") or {}).get("copy_gbps")) or None
    return Interval(**found) if found else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """One expectation of a claim over the cells in which it came out alike."""

    expectation: str
    verdict: ClaimVerdict
    cells: tuple[str, ...]
    """Labels of the cells; empty where the expectation names none."""
    seen: tuple[str, ...]


def expected(job: Job) -> tuple[Expected, ...]:
    """The claim's expectations; cells that agree stand together."""
    claim = job.judgement.claim
    alike: dict[tuple[str, ClaimVerdict], list[tuple[str, str]]] = {}
    for found in claim.findings if claim else ():
        alike.setdefault((found.expectation, found.verdict), []).append((found.cell, found.seen))
    return tuple(
        Expected(
            expectation=text,
            verdict=verdict,
            cells=tuple(label for label, _ in found if label),
            seen=tuple(seen for _, seen in found),
        )
        for (text, verdict), found in alike.items()
    )


def exit_code(job: Job, *, strict: bool) -> int:
    """0 or 1 by the statuses of the records and, with `strict`, by the claim."""
    if any(record.status in FAILED for record in job.records):
        return 1
    if strict:
        doubtful = {Status.noisy, Status.unsupported, Status.unavailable}
        claim = job.judgement.claim
        if any(r.status in doubtful for r in job.records) or (
            claim is not None and claim.verdict == "refuted"
        ):
            return 1
    return 0
