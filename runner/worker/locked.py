"""Whether the SM clock stayed where `protocol.clocks` locked it, by the readings around blocks."""

from collections.abc import Sequence

from ..clocks import TOLERANCE, locked_mhz
from ..records import Block, DeviceState

CAUSES = (
    "power_cap",
    "hardware_slowdown",
    "thermal_slowdown",
    "hardware_thermal_slowdown",
    "power_brake",
)
"""Throttle reasons that pull a clock below its lock. The driver shows the lock itself as
`applications_clocks`."""


def off_lock(clocks: str, blocks: Sequence[Block]) -> str:
    """Why times taken under this rule are invalid; empty where the clock held, or nothing locks it.

    A reading more than TOLERANCE off the lock denies it, unless the GPU was idle then: an idle
    clock says nothing of the calls. A lock that no reading confirms is denied as well. The reason
    names both clocks, and what held the GPU back.
    """
    mhz = locked_mhz(clocks)
    if mhz is None:
        return ""
    off = [block for block in blocks if any(_off(state, mhz) for state in _states(block))]
    if off:
        states = [state for block in off for state in _states(block) if _off(state, mhz)]
        worst = max((s.sm_mhz for s in states if s.sm_mhz is not None), key=lambda c: abs(c - mhz))
        seen = {reason for state in states for reason in state.throttle}
        causes = [reason for reason in CAUSES if reason in seen]
        return (
            f"the SM clock was {worst} MHz and protocol.clocks locks it at {mhz} MHz: "
            f"in {len(off)} of {len(blocks)} blocks it was more than {TOLERANCE:.0%} off"
            + (f", held back by {', '.join(causes)}: lock a lower clock" if causes else "")
        )
    if not any(_near(state, mhz) for block in blocks for state in _states(block)):
        return (
            f"protocol.clocks locks the SM clock at {mhz} MHz, and no reading in {len(blocks)} "
            "blocks confirms it"
        )
    return ""


def _states(block: Block) -> list[DeviceState]:
    return [s for s in (block.before, block.after) if s is not None and s.sm_mhz is not None]


def _near(state: DeviceState, mhz: int) -> bool:
    return state.sm_mhz is not None and abs(state.sm_mhz - mhz) <= TOLERANCE * mhz


def _off(state: DeviceState, mhz: int) -> bool:
    return not _near(state, mhz) and "idle" not in state.throttle
