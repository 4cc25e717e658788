"""The section `ladder`: each subject by every instrument, side by side."""

from typing import Any

from ..worker.evidence import warm_profiler
from ..worker.host_clock import HostClock
from ..worker.load import resolve
from . import methods
from .bench import Bench, device_clock, periods
from .request import Report, Request, Row, over
from .subjects import Absent, Filled, Subject, subjects

OURS = ("period_us", "host_us", "sm_mhz")
STAMPS = ("stamp_us", "stamp_calls")
GRAPH = ("graph_us", "graph_copies", "graph_slope", "nodes", "node_kinds")
TRACE = ("busy_us", "span_us", "launches", "traced_calls")
DEVICE = (*OURS, *STAMPS, *GRAPH, "event_us", "event_unheld_us", *TRACE)

NO_DEVICE = "cpu: no device clock, no events, no graph, no device timestamps"


def run(request: Request, report: Report) -> None:
    """A row a subject."""
    if request.gpu:
        warm_profiler()
    for subject in subjects(request, report):
        report.add(on_gpu(subject, request.paths) if request.gpu else on_cpu(subject))


def on_cpu(subject: Subject) -> Row:
    """The host's clock alone."""
    filled = Filled(row=subject.row())
    filled.absent(DEVICE, NO_DEVICE)
    filled.attempt(("wall_us",), lambda: {"wall_us": over(wall_rounds(subject))})
    return filled.done()


def wall_rounds(subject: Subject) -> list[float]:
    """Host us a call, warm, one of each round of a standard run's fewest."""
    protocol = subject.experiment.protocol
    clock = HostClock({subject.name: subject.call()}, subject.draw(), protocol)
    clock.prepare(subject.name)
    blocks = [clock.block(subject.name, "warm", k, 0) for k in range(protocol.min_rounds)]
    return [sum(block.samples_us) / len(block.samples_us) for block in blocks]


def on_gpu(subject: Subject, paths: dict[str, str]) -> Row:
    """Every instrument in turn; one that fails costs its own keys."""
    filled = Filled(row=subject.row())
    made: list[Bench] = []

    def ours() -> dict[str, Any]:
        call = subject.call()
        clock = device_clock(subject, call, warm=False)
        found = periods(clock, subject)
        host = clock.host_us(subject.name)
        period = found["cold_us"]
        made.append(Bench(subject, call, clock.rotation, period["median"], host or 50.0))
        return {"period_us": period, "host_us": host, "sm_mhz": found["sm_mhz"]}

    if not filled.attempt(OURS, ours):
        filled.absent(DEVICE[len(OURS) :], f"no period: {filled.reasons['period_us']}")
        return filled.done()
    bench = made[0]
    if filled.row["sm_mhz"] is None:
        filled.absent(("sm_mhz",), subject.monitor.reason or "the driver gives no clock")
    filled.attempt(("event_us",), lambda: methods.event_us(bench))
    filled.attempt(("event_unheld_us",), lambda: methods.event_unheld_us(bench))
    filled.attempt(STAMPS, lambda: methods.stamp_us(bench, _stamp(paths)))
    filled.attempt(GRAPH, lambda: methods.graph_us(bench))
    if filled.attempt(TRACE, lambda: methods.traced(bench)) and filled.row["span_us"] is None:
        filled.absent(("span_us",), "the queue was not held while the profiler looked on")
    return filled.done()


def _stamp(paths: dict[str, str]) -> methods.Stamp:
    if not paths.get("stamp"):
        raise Absent("options.paths.stamp is not given")
    return resolve(paths["stamp"])
