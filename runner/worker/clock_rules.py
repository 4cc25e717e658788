"""What the GPU's clock may do during a block, and what makes the block no sample. Pure."""

import statistics
from collections.abc import Sequence

from ..records import Block, DeviceState

SLOWED = (
    "hardware_slowdown",
    "thermal_slowdown",
    "hardware_thermal_slowdown",
    "power_brake",
)
"""Throttle reasons under which the GPU is not itself."""

POWER = "power_cap"
"""At the power limit the clock is what the work leaves: a result, not a fault."""

OFF = 0.03
"""How far the clock may be off the implementation's own median."""

ENOUGH = 5
"""Clocks of earlier blocks that make a median."""

LABELLED = 0.1
"""More labelled blocks than this share make a record noisy."""


def fault(after: DeviceState | None, usual: Sequence[int]) -> str:
    """Why a block that ended in this state is no sample of its implementation; '' where it is.

    `usual`: the SM clocks in MHz of its earlier blocks. An idle clock is found by its distance
    from them: the driver may call a GPU idle between two blocks that ran at full clock.
    """
    if after is None:
        return ""
    if slowed := [reason for reason in after.throttle if reason in SLOWED]:
        return f"{', '.join(slowed)} at {after.sm_mhz} MHz"
    if after.sm_mhz is None or len(usual) < ENOUGH or POWER in after.throttle:
        return ""
    median = statistics.median(usual)
    if abs(after.sm_mhz / median - 1) <= OFF:
        return ""
    return f"SM clock {after.sm_mhz} MHz, usually {median:.0f}"


def clock_mhz(blocks: Sequence[Block]) -> list[int]:
    """The SM clocks that were read after the blocks."""
    return [b.after.sm_mhz for b in blocks if b.after is not None and b.after.sm_mhz]


def power_limited(blocks: Sequence[Block]) -> bool | None:
    """Whether most blocks ended at the power limit; None where nothing was read."""
    read = [POWER in b.after.throttle for b in blocks if b.after is not None]
    return sum(read) * 2 > len(read) if read else None


def labels(blocks: Sequence[Block]) -> tuple[str, bool]:
    """What to say of blocks that stayed faulty after their repeats, and whether they are too many
    for the record to be decided by."""
    faulty = [block for block in blocks if block.fault]
    if not faulty:
        return "", False
    text = f"{len(faulty)} of {len(blocks)} blocks off: {faulty[0].fault}"
    return text, len(faulty) > LABELLED * len(blocks)
