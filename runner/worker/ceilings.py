"""What this GPU's memory gives, measured in the same job by the same clock: the copy ceiling.

A device-to-device copy of 1 GiB reads and writes as many bytes, the pattern of a pointwise kernel.
"""

import dataclasses
from typing import Any

import torch

from ..schema import Protocol
from ..statistics import median_interval
from .device_clock import DeviceClock
from .device_state import DeviceMonitor

COPY_BYTES = 1 << 30
ROUNDS = 20


def copy_ceiling(
    protocol: Protocol,
    *,
    device: torch.device,
    cache_bytes: int,
    free_memory: int,
    monitor: DeviceMonitor,
) -> dict[str, Any] | None:
    """Decimal GB/s of a copy, read plus written bytes; None where memory is too short for one."""
    if free_memory < 6 * COPY_BYTES:
        return None
    source = torch.empty(COPY_BYTES // 4, dtype=torch.float32, device=device).normal_()
    clock = DeviceClock(
        {"copy": lambda x: torch.empty_like(x).copy_(x)},
        (source,),
        dataclasses.replace(protocol, samples=1, warm=False),
        device=device,
        cache_bytes=cache_bytes,
        free_memory=free_memory,
        monitor=monitor,
    )
    clock.prepare("copy")
    rounds = [clock.block("copy", "cold", k, 0).samples_us[0] for k in range(ROUNDS)]
    latency = median_interval(rounds, protocol.confidence)
    rate = [2 * COPY_BYTES / us / 1e3 for us in (latency.median, latency.high, latency.low)]
    return {
        "copy_gbps": dict(zip(("median", "low", "high"), rate, strict=True)),
        "copy_bytes": 2 * COPY_BYTES,
        "method": f"device-to-device copy of 1 GiB, {ROUNDS} rounds; {clock.timer}; {clock.cache}",
    }
