"""The section `pairs`: one function under two names, and two that truly differ, told apart or not
by the very rounds and verdicts that a run uses."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ..records import Verdict
from ..schema import Protocol
from ..statistics import paired_ratio, verdict
from ..worker.context import Context
from ..worker.device_clock import DeviceClock
from ..worker.device_state import DeviceMonitor
from ..worker.host_clock import HostClock
from ..worker.rounds import run_rounds
from ..worker.timing import Clock
from .request import Report, Request, Row, short
from .subjects import Call, free, middle, monitor_of, sessions

GPU_US = (2.0, 10.0, 50.0, 300.0)
CPU_US = (10.0, 50.0, 300.0)
"""About how long the calls of a case take."""

MORE_US = 50.0
MORE = 1.02
"""The case with a true difference: so many times the elements."""

PAIRS = 200
LEAST, MOST = 1 << 10, 1 << 28
"""Elements of a case."""


def run(request: Request, report: Report) -> None:
    """A row a case; `options.pairs` or more in all of the same, half as many of the other."""
    session = next(sessions(request, report))
    context, monitor = session.context, monitor_of(session)
    protocol = replace(context.experiment.protocol, warm=False)
    wanted = int(request.options.get("pairs", PAIRS))
    cases = GPU_US if request.gpu else CPU_US
    for us in cases:
        count = math.ceil(wanted / len(cases))
        report.add(_case(context, monitor, protocol, us, count, more=False))
    report.add(_case(context, monitor, protocol, MORE_US, max(1, wanted // 2), more=True))


def _case(
    context: Context,
    monitor: DeviceMonitor,
    protocol: Protocol,
    us: float,
    count: int,
    *,
    more: bool,
) -> Row:
    """Warms up once, then takes pair after pair, each in rounds of an order of its own."""
    elements = _elements(context, monitor, protocol, us)
    larger = math.ceil(elements * MORE) if more else elements
    # `base` is the one that does more: the other is rightly called faster
    calls = {"base": double(larger), "other": double(elements)}
    clock = _clock(context, monitor, protocol, calls, larger)
    for name in calls:
        clock.prepare(name)
    state = clock.states[0]
    seen: list[Verdict] = []
    widths: list[float] = []
    times: list[float] = []
    for pair in range(count):
        sampled, _ = run_rounds(clock, list(calls), "base", protocol, seed=1000 + pair)
        base, other = sampled["base"].rounds(state), sampled["other"].rounds(state)
        ratio = paired_ratio(base, other, protocol.confidence)
        seen.append(verdict(ratio, protocol.band))
        widths.append(math.sqrt(ratio.high / ratio.low) - 1)
        times.append(middle(other))
    clock.release()
    row: dict[str, Any] = {
        "kind": "more" if more else "same",
        "case": f"x * 2, {elements} fp32" + (f" against {larger}" if more else " twice"),
        "us": short(middle(times)),
        "pairs": count,
        **counts(seen, more=more),
        "width": short(middle(widths)),
    }
    free(context)
    return row


def counts(seen: Sequence[Verdict], *, more: bool) -> dict[str, int]:
    """How often each verdict was given; of pairs that differ, how often the right and the wrong
    one: the other does less than the base, so that it is faster."""
    found = {each.value: seen.count(each) for each in Verdict}
    if more:
        found["found"], found["reversed"] = found["faster"], found["slower"]
    return found


def double(elements: int) -> Call:
    """x: (N,) -> (elements,), one read and one write an element. Each a function of its own."""

    def call(x: torch.Tensor) -> torch.Tensor:
        return x[:elements] * 2

    return call


def _elements(context: Context, monitor: DeviceMonitor, protocol: Protocol, us: float) -> int:
    """So many elements as take about `us`; the fewest or the most allowed where none do."""
    quick = replace(protocol, warmup_ms=min(5.0, protocol.warmup_ms))
    elements = 1 << 16
    for _ in range(4):
        clock = _clock(context, monitor, quick, {"x": double(elements)}, elements)
        clock.prepare("x")
        blocks = [clock.block("x", clock.states[0], k, 0) for k in range(3)]
        took = min(min(block.samples_us) for block in blocks)
        clock.release()
        if abs(took / us - 1) < 0.1:
            break
        elements = min(MOST, max(LEAST, round(elements * us / took)))
        free(context)
    return elements


def _clock(
    context: Context,
    monitor: DeviceMonitor,
    protocol: Protocol,
    calls: dict[str, Call],
    elements: int,
) -> Clock:
    x = torch.ones(elements, device=context.device)
    x.normal_(generator=torch.Generator(device=context.device).manual_seed(0))
    if not context.cache_bytes:
        return HostClock(calls, (x,), protocol)
    return DeviceClock(
        calls,
        (x,),
        protocol,
        device=context.device,
        cache_bytes=context.cache_bytes,
        free_memory=context.free_memory(),
        monitor=monitor,
    )
