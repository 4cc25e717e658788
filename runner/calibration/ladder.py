"""The section `ladder`: each subject by every instrument, side by side."""

from typing import Any

from ..worker.device_clock import DeviceClock
from ..worker.evidence import warm_profiler
from ..worker.host_clock import HostClock
from ..worker.load import resolve
from . import methods
from .bench import Bench, device_clock, periods
from .request import Report, Request, over
from .subjects import Absent, Filled, Subject, middle, subjects

OURS = ("period_us", "host_us", "sm_mhz")
STAMPS = ("stamp_us", "stamp_events_us", "stamp_calls")
GRAPH = ("graph_us", "graph_period_us", "graph_copies", "graph_slope", "nodes", "node_kinds")
TRACE = ("busy_us", "span_us", "launches", "traced_calls")
DEVICE = (*OURS, *STAMPS, *GRAPH, "event_us", "event_unheld_us", *TRACE)

HOST_US = 50.0
"""Host time for a call to return, where it is not known."""

NO_DEVICE = "cpu: no device clock, no events, no graph, no device timestamps"


def run(request: Request, report: Report) -> None:
    """A row a subject. On a GPU the profiler comes after everything that is timed: once it has been
    there, it may leave something behind in each launch."""
    rows: list[Filled] = []
    for subject in subjects(request, report):
        rows.append(timed(subject, request.paths) if request.gpu else on_cpu(subject))
        report.add(rows[-1].done())
    if not request.gpu:
        return
    warm_profiler()
    for place, subject in enumerate(subjects(request, report)):
        trace(subject, rows[place])
        report.replace(place, rows[place].done())


def on_cpu(subject: Subject) -> Filled:
    """The host's clock alone."""
    filled = Filled(row=subject.row())
    filled.absent(DEVICE, NO_DEVICE)
    filled.attempt(("wall_us",), lambda: {"wall_us": over(wall_rounds(subject))})
    return filled


def wall_rounds(subject: Subject) -> list[float]:
    """Host us a call, warm, one of each round of a standard run's fewest."""
    protocol = subject.experiment.protocol
    clock = HostClock({subject.name: subject.call()}, subject.draw(), protocol)
    clock.prepare(subject.name)
    blocks = [clock.block(subject.name, "warm", k, 0) for k in range(protocol.min_rounds)]
    return [sum(block.samples_us) / len(block.samples_us) for block in blocks]


def timed(subject: Subject, paths: dict[str, str]) -> Filled:
    """Every instrument but the profiler, in turn; one that fails costs its own keys."""
    filled = Filled(row=subject.row())
    filled.absent(TRACE, "not traced yet")
    made: list[Bench] = []
    clocks: list[DeviceClock] = []

    def ours() -> dict[str, Any]:
        call = subject.call()
        clock = device_clock(subject, call, warm=False)
        clocks.append(clock)
        found = periods(clock, subject)
        host, period = clock.host_us(subject.name), found["cold_us"]
        made.append(
            Bench(
                subject,
                call,
                clock.rotation,
                period["median"],
                host or HOST_US,
                sample_calls=clock.per_sample[subject.name],
            )
        )
        return {"period_us": period, "host_us": host, "sm_mhz": found["sm_mhz"]}

    if not filled.attempt(OURS, ours):
        filled.absent(DEVICE[len(OURS) :], f"no period: {filled.reasons['period_us']}")
        return filled
    bench = made[0]
    if filled.row["sm_mhz"] is None:
        filled.absent(("sm_mhz",), subject.monitor.reason or "the driver gives no clock")
    filled.attempt(("event_us",), lambda: methods.event_us(bench))
    filled.attempt(("event_unheld_us",), lambda: methods.event_unheld_us(bench))
    filled.attempt(STAMPS, lambda: methods.stamp_us(bench, _stamp(paths)))

    def period() -> float:
        return middle(clocks[0].block(subject.name, "cold", 0, 0).samples_us)

    filled.attempt(GRAPH, lambda: methods.graph_us(bench, period))
    return filled


def trace(subject: Subject, filled: Filled) -> None:
    """The profiler's part of a row, where the subject has a period."""
    period = filled.row["period_us"]
    if period is None:
        return

    def made() -> dict[str, Any]:
        host = filled.row["host_us"] or HOST_US
        return methods.traced(Bench.alone(subject, subject.call(), period["median"], host))

    if filled.attempt(TRACE, made) and filled.row["span_us"] is None:
        filled.absent(("span_us",), "the queue was not held while the profiler looked on")


def _stamp(paths: dict[str, str]) -> methods.Stamp:
    if not paths.get("stamp"):
        raise Absent("options.paths.stamp is not given")
    return resolve(paths["stamp"])
