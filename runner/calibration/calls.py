"""The section `calls`: a few cold calls of each subject in NVTX ranges, for a tool around this
process. Nothing is timed."""

from collections.abc import Callable
from typing import Any

from ..schema import Device
from ..worker.ranges import Ranges
from .bench import Bench
from .request import Report, Request
from .subjects import Filled, Subject, subjects

CALLS = 20
WARM_UP = 3

HOST_US = 400.0
"""Host time for a call to return under a tool: more than without."""


def run(request: Request, report: Report) -> None:
    """A row a subject; the ranges of all of them in one table under `ranges`.

    Options: `calls`, how many of each; `cells`, [cell id, implementation] pairs or None for all;
    `hold`, whether the queue is held until all calls of a subject are in.
    """
    count = int(request.options.get("calls") or CALLS)
    hold = bool(request.options.get("hold", True))
    cells = request.options.get("cells")
    only = {(cell, name) for cell, name in cells} if cells else None
    ranges = Ranges("doctor", "all")  # one table: a payload means one thing in the whole report
    with ranges.job():
        for subject in subjects(request, report, only=only):
            filled = Filled(row=subject.row())

            def made(subject: Subject = subject) -> dict[str, Any]:
                return _calls(subject, ranges, count, hold=hold)

            filled.attempt(("calls", "held"), made)
            report.put("ranges", ranges.table)
            report.add(filled.done())


def _calls(subject: Subject, ranges: Ranges, count: int, *, hold: bool) -> dict[str, Any]:
    context, cell, name = subject.context, subject.cell, subject.name
    call, inputs = subject.call(), subject.draw()
    with ranges.step(cell.index, cell.id, name, "warmup"):
        for _ in range(WARM_UP):
            call(*inputs)
        context.synchronize()
    each = _step_of(subject, ranges)
    if context.kind is Device.cpu:
        for _ in range(count):
            each(lambda: call(*inputs))
        return {"calls": count, "held": None}
    bench = Bench.alone(subject, call, 1.0, HOST_US)

    def all_of_them() -> None:
        for _ in range(count):
            each(lambda: bench.calls(1))

    held: bool | None = None
    if hold:
        held, _ = bench.held_once(all_of_them, bench.host_guess(count))
    else:
        bench.rotation.before_run()
        bench.synchronize()
        all_of_them()
        bench.synchronize()
    return {"calls": count, "held": held}


def _step_of(subject: Subject, ranges: Ranges) -> Callable[[Callable[[], object]], None]:
    """Runs one call in a range of its own, so that a tool's report tells calls apart."""

    def each(call: Callable[[], object]) -> None:
        with ranges.step(subject.cell.index, subject.cell.id, subject.name, "trace"):
            call()

    return each
