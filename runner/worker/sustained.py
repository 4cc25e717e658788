"""A GPU kept at it: back-to-back calls for a good part of a second, with what power leaves.

A block lasts about a millisecond, too short to heat anything: its clock is the burst's. Here the
clock settles under the load, and the energy counter, which the driver updates some ten times a
second, ticks often enough to give joules a call.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from ..records import Sustained
from .clock_rules import POWER
from .device_state import DeviceMonitor
from .rotation import Rotation

BATCH_US = 10_000.0
"""Calls between two events: the host looks at NVML while the next batch runs."""

TICKS = 3
"""Updates of the energy counter within the stretch that make a mean power."""

FED = 0.7
"""The host must submit a call in less than this share of its time, or the GPU would wait for it."""


def joules_and_watts(
    ticks: list[tuple[float, int]], period_us: float
) -> tuple[float | None, float | None]:
    """Joules a call and mean watts from (seconds, millijoules) at updates of the energy counter.

    From the first update to the last, so that where the stretch began between two does not count.
    (None, None) with fewer than TICKS.
    """
    if len(ticks) < TICKS:
        return None, None
    (first_s, first_mj), (last_s, last_mj) = ticks[0], ticks[-1]
    watts = (last_mj - first_mj) / 1e3 / (last_s - first_s)
    return watts * period_us / 1e6, watts


def sustain(
    call: Callable[..., Any],
    rotation: Rotation,
    *,
    slots: int,
    period_us: float,
    host_us: float | None,
    milliseconds: float,
    monitor: DeviceMonitor,
    device: torch.device,
) -> Sustained | str:
    """Calls on rotating copies for so long, after half as long to settle; or why there is no such
    time.

    The queue is kept two batches deep. Raises what the calls raise.
    """
    if host_us is not None and host_us > FED * period_us:
        return f"no sustained time: the host takes {host_us:.4g} us a call of {period_us:.4g} us"
    if not rotation.rotates:
        return "no sustained time: back to back, its inputs would not stay cold"
    copies = rotation.copies
    batch = max(1, round(BATCH_US / period_us))
    clocks: list[int] = []
    limited = 0
    ticks: list[tuple[float, int]] = []
    done: list[torch.cuda.Event] = []
    settle = max(1, round(0.5 * milliseconds * 1e3 / (batch * period_us)))
    batches = settle + max(4, round(milliseconds * 1e3 / (batch * period_us)))
    ring: list[Any] = [None] * slots  # outputs rotate as the timed ones do
    place, slot, last = 0, 0, monitor.energy_mj()
    for number in range(batches):
        for _ in range(batch):
            ring[slot] = call(*copies[place])
            place, slot = (place + 1) % len(copies), (slot + 1) % slots
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        done.append(event)
        if number >= 2:
            done[number - 2].synchronize()
        now = monitor.energy_mj()
        if number >= settle and now is not None and now != last:
            ticks.append((time.perf_counter(), now))
        last = now
        state = monitor.read() if number >= settle else None
        if state is not None and state.sm_mhz:
            clocks.append(state.sm_mhz)
            limited += POWER in state.throttle
    torch.cuda.synchronize(device)
    ring.clear()
    calls = batch * (batches - settle)
    elapsed_us = done[settle - 1].elapsed_time(done[-1]) * 1e3
    period = elapsed_us / calls
    joules, watts = joules_and_watts(ticks, period)
    return Sustained(
        period_us=period,
        seconds=elapsed_us / 1e6,
        calls=calls,
        sm_mhz=statistics.median(clocks) if clocks else None,
        watts=watts,
        joules=joules,
        power_limited=limited * 2 > len(clocks) if clocks else False,
    )
