"""What this GPU's memory gives, measured in the same job by the same clock, and times beyond it.

A device-to-device copy of 1 GiB reads and writes as many bytes, the pattern of a pointwise kernel;
a sum of 1 GiB only reads.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..records import Interval, Record, Status
from ..schema import Protocol
from ..statistics import median_interval
from .device_clock import DeviceClock
from .device_state import DeviceMonitor

COPY_BYTES = 1 << 30
ROUNDS = 20

MARGIN = 1.05
"""A kernel may read faster than the library's sum and copy do; not by more than this."""


def measure(
    protocol: Protocol,
    *,
    device: torch.device,
    cache_bytes: int,
    free_memory: int,
    monitor: DeviceMonitor,
) -> dict[str, Any] | None:
    """Decimal GB/s of a copy (read plus written bytes) and of a read; None where memory is too
    short for one, a `reason` alone where no block was sound. Raises as the clock does."""
    if free_memory < 6 * COPY_BYTES:
        return None
    source = torch.empty(COPY_BYTES // 4, dtype=torch.float32, device=device).normal_()
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "copy": lambda x: torch.empty_like(x).copy_(x),
        "read": lambda x: x.sum(),
    }
    clock = DeviceClock(
        calls,
        (source,),
        dataclasses.replace(protocol, samples=1, warm=False),
        device=device,
        cache_bytes=cache_bytes,
        free_memory=free_memory,
        monitor=monitor,
    )
    moved = {"copy": 2 * COPY_BYTES, "read": COPY_BYTES}
    found: dict[str, Any] = {}
    for name in calls:
        clock.prepare(name)
        blocks = [clock.block(name, "cold", k, 0) for k in range(ROUNDS)]
        rounds = [b.samples_us[0] for b in blocks if b.held and not b.fault]
        if not rounds:
            return {"reason": f"no ceilings: no block of {name} was held at its usual clock"}
        latency = median_interval(rounds, protocol.confidence)
        rate = [moved[name] / us / 1e3 for us in (latency.median, latency.high, latency.low)]
        found[f"{name}_gbps"] = dict(zip(("median", "low", "high"), rate, strict=True))
    return {
        **found,
        "copy_bytes": 2 * COPY_BYTES,
        "method": f"a device-to-device copy and a sum of 1 GiB, {ROUNDS} rounds each; "
        f"{clock.timer}; {clock.cache}",
    }


def too_fast(record: Record, ceilings: dict[str, Any] | None, datasheet: float | None) -> str:
    """Why a cold time cannot be cold: in it the bytes to be read alone come faster than memory
    gives them. '' where they do not, or no roof is known.

    The roof is the faster of the measured read and copy, with MARGIN, and never above the
    datasheet's bandwidth in GB/s; the whole interval must lie beyond it. Writes do not count: L2
    takes them in, and more than the roof with them is no more than a label.
    """
    timing, cost = record.timing, record.cost
    if timing is None or cost is None or timing.state != "cold":
        return ""
    if not ceilings or "copy_gbps" not in ceilings:
        return ""
    measured = max(Interval(**ceilings[key]).high for key in ("copy_gbps", "read_gbps"))
    roof = min(MARGIN * measured, datasheet or float("inf"))
    rate = cost.bytes_read / timing.latency_us.high / 1e3
    if rate <= roof:
        return ""
    return (
        f"cold, and {cost.bytes_read:.4g} bytes are read at {rate:.4g} GB/s at the least: memory "
        f"gives {roof:.4g} (measured {measured:.4g} GB/s in this job). The cache held inputs, or "
        "the cost states more than is read"
    )


def within_the_roof(
    record: Record, ceilings: dict[str, Any] | None, datasheet: float | None
) -> Record:
    """The record; `invalid` where its time is too fast to be cold."""
    if record.status not in (Status.ok, Status.noisy):
        return record
    reason = too_fast(record, ceilings, datasheet)
    if not reason:
        return record
    return dataclasses.replace(record, status=Status.invalid, reason=reason, phase="time")
