"""The section `cold`: what each way to empty the cache does to the time of one call."""

from collections.abc import Callable
from typing import Any

import torch

from .bench import Bench, device_clock, periods
from .ladder import HOST_US, NO_DEVICE, wall_rounds
from .request import Report, Request, Row, over
from .subjects import Absent, Filled, Subject, subjects

TIMES_WRITTEN = 2
"""A write flush zeroes so many times the L2, as most tools do."""

REPEATS = 30
OURS = ("period_cold_us", "period_warm_us")
ONE_CALL = ("write_flush_us", "read_flush_us", "rotated_us", "warm_us")


def run(request: Request, report: Report) -> None:
    """A row a subject."""
    for subject in subjects(request, report):
        report.add(on_gpu(subject) if request.gpu else on_cpu(subject))


def on_cpu(subject: Subject) -> Row:
    """A CPU's caches are not emptied: the host's clock alone, warm."""
    filled = Filled(row=_row(subject))
    filled.absent((*OURS, *ONE_CALL), NO_DEVICE)
    filled.attempt(("wall_us",), lambda: {"wall_us": over(wall_rounds(subject))})
    return filled.done()


def _row(subject: Subject) -> Row:
    return {**subject.row(), "bytes_read": subject.cost.bytes_read if subject.cost else None}


def on_gpu(subject: Subject) -> Row:
    """Our period cold and warm, and one call between events behind each flush."""
    filled = Filled(row=_row(subject))
    made: list[Bench] = []

    def ours() -> dict[str, Any]:
        call = subject.call()
        clock = device_clock(subject, call, warm=True)
        found = periods(clock, subject)
        host = clock.host_us(subject.name) or HOST_US
        period = found["cold_us"]["median"]
        made.append(Bench(subject, call, clock.rotation, period, host))
        return {"period_cold_us": found["cold_us"], "period_warm_us": found["warm_us"]}

    if not filled.attempt(OURS, ours):
        filled.absent(ONE_CALL, f"no period: {filled.reasons[OURS[0]]}")
        return filled.done()
    bench = made[0]
    write = torch.empty(
        TIMES_WRITTEN * subject.context.cache_bytes // 4, dtype=torch.int32, device=bench.device
    )
    first, call = bench.rotation.copies[0], bench.call
    # what stands right before the call's first event, and the call
    ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "rotated_us": (lambda: bench.calls(1), lambda: bench.calls(1)),
        "warm_us": (lambda: call(*first), lambda: call(*first)),
        "read_flush_us": (bench.read_flush, lambda: call(*first)),
        "write_flush_us": (write.zero_, lambda: call(*first)),
    }
    for key, (before, timed) in ways.items():
        filled.attempt((key,), lambda k=key, b=before, t=timed: {k: over(_one(bench, k, b, t))})
    return filled.done()


def _one(
    bench: Bench, key: str, before: Callable[[], object], timed: Callable[[], object]
) -> list[float]:
    """Us of one call, again and again. Ways are not mixed: lines that one leaves dirty would be
    written back in the next; each starts from a cache full of clean lines."""
    if key == "rotated_us" and not bench.rotation.rotates:
        raise Absent("too few copies fit for a rotation")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def fill() -> None:
        before()
        begin.record()
        timed()
        end.record()

    bench.read_flush()
    found = []
    for _ in range(REPEATS):
        bench.held(fill, bench.host_guess(3))
        found.append(begin.elapsed_time(end) * 1e3)
    return found
