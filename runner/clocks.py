"""The clock rule of a protocol as it is written: `observe`, or `lock:<MHz>`. Pure."""

import re

from .errors import ConfigError

OBSERVE = "observe"
FORMS = "observe, or lock:<MHz> with a whole number of MHz from 1, e.g. lock:1500"

TOLERANCE = 0.01
"""How far a clock may lie from the one asked for, as a share of it: the driver's own clocks stand
15 MHz apart on the GPUs known here."""

_LOCK = re.compile(r"lock:([1-9]\d{0,5})", re.ASCII)


def locked_mhz(clocks: str) -> int | None:
    """The SM clock in MHz that the rule locks; None: it only observes.

    Raises ConfigError for a rule of neither form.
    """
    if clocks == OBSERVE:
        return None
    found = _LOCK.fullmatch(clocks)
    if found is None:
        raise ConfigError(f"protocol.clocks={clocks}: no such rule. Choices: {FORMS}.")
    return int(found.group(1))


def check_clocks(clocks: str, *, target: str, max_mhz: int | None) -> None:
    """Raises ConfigError for a rule of no known form, and for one above the target's highest SM
    clock (None: not known)."""
    mhz = locked_mhz(clocks)
    if mhz is not None and max_mhz is not None and mhz > max_mhz:
        raise ConfigError(
            f"protocol.clocks={clocks}: above {max_mhz} MHz, the highest SM clock of "
            f"target={target}. Choices: {OBSERVE}, lock:1 to lock:{max_mhz}."
        )


def said(clocks: str) -> str:
    """The rule in words, for people; empty where clocks were only observed."""
    mhz = locked_mhz(clocks)
    return "" if mhz is None else f"SM clock locked at {mhz} MHz"
