"""One record in full, as text: what `klab show` prints."""

from collections.abc import Iterator

from rich.text import Text

from ..clocks import said
from ..counted import dram_ratio
from ..records import FAILED, Correctness, Cost, Evidence, Job, Status, Sustained, Timing
from ..results import Row, band, device, rows
from ..worker.tiles import choice
from .text import (
    ABSENT,
    cache_state,
    counted,
    covers,
    duration,
    interval,
    number,
    percent,
    quantity,
    speedup,
)

_DEFINITIONS = {
    "period_us": "what a call costs in a full stream: (T_2N - T_N) / N with the queue held",
    "graph_us": "what a call costs inside a CUDA graph: (T_2N - T_N) / N",
    "wall_us": "host clock around the calls / calls",
    "busy_us": "union of kernel, copy and memset intervals of one call",
    "span_us": "first start to last end of one call, the queue held full",
    "host_us": "host time until the call returns",
}


def lines(job: Job, row: Row) -> Iterator[Text]:
    """The record line by line: status, correctness, times, cost, evidence, how to repeat it."""
    record = row.record
    style = "red" if record.status in FAILED else "green" if record.status == Status.ok else ""
    yield Text.assemble(
        (f"{record.cell.kernel}  {record.cell.workload.label}", "bold"), f"  {record.cell.id}"
    )
    yield Text.assemble(f"{record.implementation}  ", (record.status.value, style))
    yield from _block("reason", record.reason)
    if record.phase and record.status in FAILED:
        yield _field("phase", record.phase)
    yield _field("job", f"{record.job}  {record.experiment}")
    yield _field("device", ", ".join(filter(None, dict.fromkeys((device(job), record.target)))))
    yield from _correctness("check", record.correctness)
    yield from _correctness("check after timing", record.recheck)
    yield from _times(record.timing, _confidence(job))
    yield from _compared(row, band(job))
    yield from _cost(record.cost, row)
    for evidence in record.evidence:
        yield from _evidence(evidence)
    if record.compile_s is not None:
        yield _field("compile", duration(record.compile_s))
    if record.tuning_s is not None:
        yield _field("autotune", duration(record.tuning_s))
    if record.first_call_s is not None:
        yield _field("first call", duration(record.first_call_s))
    if record.tuning:
        yield _field("tuned to", record.tuning)
    if record.peak_memory_bytes:
        yield _field("peak memory", quantity(record.peak_memory_bytes, "B"))
    if record.attempts > 1:
        yield _field("attempts", str(record.attempts))
    if record.settings:
        yield _field("settings", ", ".join(f"{k}={v}" for k, v in record.settings.items()))
    yield from _block("traceback", record.traceback)
    if record.log:
        yield _field("log", record.log)
    yield _field("repeat", record.repro)
    yield _field("folder", job.folder)


def rows_of(job: Job, *, cell: str = "", implementation: str = "") -> tuple[Row, ...]:
    """The job's rows of one cell and one implementation; empty: of any."""
    return tuple(
        row
        for row in rows(job)
        if (not cell or row.cell.id == cell)
        and (not implementation or row.record.implementation == implementation)
    )


def _field(name: str, text: str) -> Text:
    return Text.assemble((f"  {name:<20}", "dim"), text)


def _block(name: str, text: str) -> Iterator[Text]:
    for place, part in enumerate(text.strip().split("\n") if text.strip() else ()):
        yield _field("" if place else name, part)


def _correctness(name: str, checked: Correctness | None) -> Iterator[Text]:
    if checked is None:
        return
    yield _field(
        name,
        f"max error {number(checked.max_error, 3)} of {number(checked.max_tolerance, 3)} allowed, "
        f"rms {number(checked.rms_error, 3)} of {number(checked.rms_tolerance, 3)}, "
        f"{checked.checks} inputs",
    )
    yield _field(
        "",
        f"{checked.yardstick} errs {number(checked.yardstick_max_error, 3)} max, "
        f"{number(checked.yardstick_rms_error, 3)} rms; "
        f"|y - y64| / (|y64| + rms of its row), worst at {tuple(checked.worst_index)}",
    )
    if checked.nonfinite or checked.nonfinite_reference:
        counts = f"{checked.nonfinite} values, {checked.nonfinite_reference} of the reference"
        yield _field("", f"not finite: {counts}")


def _confidence(job: Job) -> float:
    return float((job.config.get("protocol") or {}).get("confidence", 0.95))


def _times(timing: Timing | None, confidence: float) -> Iterator[Text]:
    if timing is None:
        return
    yield _field("latency", f"{interval(timing.latency_us)} us, {covers(timing, confidence)}")
    yield _field("", f"{timing.headline}: {_DEFINITIONS.get(timing.headline, '')}")
    yield _field("", ", ".join(cache_state(timing.state, timing.cache)))
    yield _field(
        "timer",
        f"{timing.timer}, {len(timing.rounds_us)} rounds, {timing.calls} calls a sample"
        + (f", stopped by {timing.stopped}" if timing.stopped else ""),
    )
    if timing.warm_us is not None:
        yield _field("warm", f"{interval(timing.warm_us)} us")
    if timing.stream_us is not None:
        yield _field("period_us", f"{interval(timing.stream_us)}: {_DEFINITIONS['period_us']}")
    if timing.graph_nodes:
        nodes = ", ".join(f"{number(n)} {kind}" for kind, n in timing.graph_nodes.items())
        yield _field("graph nodes", f"{nodes} a call")
    if timing.host_us is not None:
        bound = "; launch-bound" if timing.launch_bound else ""
        yield _field("host_us", f"{number(timing.host_us)}: {_DEFINITIONS['host_us']}{bound}")
    if timing.sm_mhz is not None:
        limited = ", at the power limit" if timing.power_limited else ""
        yield _field("SM clock", f"{timing.sm_mhz:.0f} MHz, median over blocks{limited}")
    if timing.sustained is not None:
        yield _field("sustained", _sustained(timing.sustained))
    if timing.threads is not None:
        yield _field("threads", str(timing.threads))
    if clocks := said(timing.clocks):
        yield _field("clocks", clocks)
    if timing.clock_spread is not None:
        yield _field("clock spread", percent(timing.clock_spread))
    for note in timing.notes:
        yield _field("note", note)


def _sustained(found: Sustained) -> str:
    parts = [f"{number(found.period_us)} us a call over {duration(found.seconds)}"]
    if found.sm_mhz is not None:
        parts.append(f"{found.sm_mhz:.0f} MHz")
    if found.watts is not None:
        parts.append(f"{found.watts:.0f} W")
    if found.joules is not None:
        parts.append(f"{number(found.joules, 3)} J a call")
    return ", ".join(parts) + (", at the power limit" if found.power_limited else "")


def _compared(row: Row, margin: float) -> Iterator[Text]:
    compared = row.comparison
    if compared is None:
        return
    yield _field(
        "speed-up",
        f"{speedup(compared.speedup, margin)} against {compared.against}, {compared.state}: "
        f"{compared.verdict.value}",
    )
    pairs = f"{compared.rounds} paired rounds"
    if compared.processes > 1:
        pairs = f"{compared.processes} fresh processes ({pairs})"
    yield _field("", f"{pairs} would tell {compared.detectable:.3g}")
    if compared.note:
        yield _field("", compared.note)


def _cost(cost: Cost | None, row: Row) -> Iterator[Text]:
    if cost is None:
        return
    text = f"{quantity(cost.flops, 'FLOP')}, {quantity(cost.bytes, 'B')}, "
    text += counted(len(cost.stages), "stage")
    if cost.intensity is not None:
        text += f", {number(cost.intensity, 3)} FLOP a byte"
    yield _field("cost", text)
    if cost.floor_us is not None:
        bound = f", {cost.bound}-bound" if cost.bound else ""
        share = percent(row.share_of_floor)
        yield _field("floor", f"{number(cost.floor_us)} us{bound}; floor / latency {share}")
    if row.gbps is not None or row.tflops is not None:
        yield _field("rate", f"{number(row.gbps, 3)} GB/s, {number(row.tflops, 3)} TFLOP/s")
    if (moved := dram_ratio(row.record)) is not None:
        yield _field("memory moved", f"{number(moved, 3)} of the bytes stated, as counted")
    for stage in cost.stages:
        moved = f"reads {quantity(stage.bytes_read, 'B')}, writes "
        moved += quantity(stage.bytes_written, "B")
        yield _field("", f"{stage.name}: {stage.kind}, {quantity(stage.flops, 'FLOP')}, {moved}")


def _evidence(evidence: Evidence) -> Iterator[Text]:
    name = f"trace ({evidence.tool})"
    if evidence.launch_count is None:
        yield _field(name, f"none: {evidence.reason or 'no reason given'}")
        return
    yield _field(
        name,
        f"{counted(evidence.launch_count, 'launch', 'es')} a call, {evidence.calls} calls traced",
    )
    for quantity_name in ("busy_us", "span_us"):
        value = getattr(evidence, quantity_name)
        if value is not None:
            yield _field(quantity_name, f"{number(value)}: {_DEFINITIONS[quantity_name]}")
    if evidence.report:
        yield _field("report", evidence.report)
    if evidence.command:
        yield _field("asked by", " ".join(filter(None, (evidence.command, "WORKER"))))
    for name, value in evidence.metrics.items():
        yield _field("", f"{name.replace('_', ' ')} {number(value)}")
    for launch in evidence.launches:
        shape = f"grid {_shape(launch.grid)}, block {_shape(launch.block)}"
        parts = [launch.kind if launch.kind != "kernel" else launch.family]
        parts.append(f"{number(launch.duration_us)} us")
        if launch.grid:
            parts.append(shape)
        if launch.registers is not None:
            parts.append(f"{launch.registers} registers")
        if launch.shared_bytes is not None:
            parts.append(f"{launch.shared_bytes} B shared")
        if launch.bytes is not None:
            parts.append(quantity(launch.bytes, "B"))
        yield _field("", f"{launch.name}")
        if told := choice(launch.name).text:
            parts.append(told)
        yield _field("", f"  {', '.join(parts)}")


def _shape(values: tuple[int, ...]) -> str:
    return "x".join(map(str, values)) if values else ABSENT
