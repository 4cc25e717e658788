"""The section `repeat`: what one fresh process says of a few subjects, by our clock and by two that
most people use. Started several times; the spread over the processes is the answer."""

from collections.abc import Callable
from typing import Any

import torch

from ..question.costs import cost_of
from ..question.plan import plan
from ..worker.load import resolve
from .bench import device_clock, periods
from .ladder import NO_DEVICE, wall_rounds
from .request import Report, Request, Row, short
from .subjects import CPU_BYTES, CPU_FLOPS, Absent, Filled, Subject, interpreted, middle, subjects

SUBJECTS = 6

GPU_LIMITS = (30_000_000, 2_000_000_000, 5_000_000_000)
CPU_LIMITS = (1_000_000, 100_000_000, CPU_BYTES)
"""Bytes or FLOPs from which a call takes about 5 us and longer, and the most bytes: a subject must
be the same in every process, so nothing measured chooses it."""

FOREIGN = ("do_bench_us", "timer_us")


def run(request: Request, report: Report) -> None:
    """A row a subject."""
    for subject in subjects(request, report, only=chosen(request)):
        report.add(measured(subject, request))


def chosen(request: Request) -> set[tuple[str, str]]:
    """`options.cells`, else a few evenly out of those that take long enough, by what they move."""
    if request.options.get("cells"):
        return {(cell, name) for cell, name in request.options["cells"]}
    moved, computed, most = GPU_LIMITS if request.gpu else CPU_LIMITS
    fitting = []
    for experiment in request.experiments:
        for planned in plan(experiment, request.kind).cells:
            for name in planned.implementations:
                cost = cost_of(experiment, planned.cell, name)
                small = request.gpu or cost.flops <= CPU_FLOPS
                long = cost.bytes >= moved or cost.flops >= computed
                timed = not interpreted(experiment, name, request.kind)
                if timed and long and small and cost.bytes <= most:
                    fitting.append((planned.cell.id, name))
    count = min(SUBJECTS, len(fitting))
    return {fitting[k * len(fitting) // count] for k in range(count)}


def measured(subject: Subject, request: Request) -> Row:
    """Our median of a standard run's fewest rounds, and the medians of the others."""
    filled = Filled(row=subject.row())
    if request.gpu:
        filled.attempt(("period_us",), lambda: {"period_us": _period(subject)})
    else:
        filled.absent(("period_us",), NO_DEVICE)
        filled.attempt(("wall_us",), lambda: {"wall_us": middle(wall_rounds(subject))})
    foreign: dict[str, Callable[[], float]] = {
        "do_bench_us": lambda: _do_bench(subject, request),
        "timer_us": lambda: _timer(subject, request),
    }
    for key in FOREIGN:
        filled.attempt((key,), lambda k=key: {k: short(foreign[k]())})
    return filled.done()


def _period(subject: Subject) -> float:
    clock = device_clock(subject, subject.call(), warm=False)
    period = periods(clock, subject)["cold_us"]["median"]
    clock.release()
    return period


def _once(subject: Subject) -> Callable[[], Any]:
    """The call on one set of inputs, as other instruments take it."""
    call, inputs = subject.call(), subject.draw()
    call(*inputs)
    return lambda: call(*inputs)


def _do_bench(subject: Subject, request: Request) -> float:
    """Its own defaults, the median."""
    if not request.gpu:
        raise Absent("cpu: it needs a GPU")
    return resolve(_path(request, "do_bench"))(_once(subject), return_mode="median") * 1e3


def _timer(subject: Subject, request: Request) -> float:
    """Blocks of calls of its own choice, their median."""
    made = resolve(_path(request, "timer"))
    # its default is one thread; what was measured beside it ran on this many
    timer = made("once()", globals={"once": _once(subject)}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange().median * 1e6


def _path(request: Request, name: str) -> str:
    if not request.paths.get(name):
        raise Absent(f"options.paths.{name} is not given")
    return request.paths[name]
