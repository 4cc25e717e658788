"""Bands as claims write them: `">= 1.05"`, `"< 2"`, `"1.94..2.06"`, or an exact number."""

import re
from dataclasses import dataclass

from .errors import ConfigError
from .records import ClaimVerdict, Interval

_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_COMPARED = re.compile(rf"^\s*(>=|<=|>|<)\s*({_NUMBER})\s*$")
_RANGE = re.compile(rf"^\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*$")
_EXACT = re.compile(rf"^\s*({_NUMBER})\s*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """The values that an expectation allows."""

    low: float = float("-inf")
    high: float = float("inf")
    open_low: bool = False
    open_high: bool = False
    text: str = ""

    def holds(self, value: float) -> bool:
        """Whether one value lies inside."""
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below

    def judge(self, seen: Interval) -> ClaimVerdict:
        """Supported where the whole interval lies inside, refuted where all of it lies outside."""
        if self.holds(seen.low) and self.holds(seen.high):
            return ClaimVerdict.supported
        outside_below = seen.high < self.low or (self.open_low and seen.high == self.low)
        outside_above = seen.low > self.high or (self.open_high and seen.low == self.high)
        return ClaimVerdict.refuted if outside_below or outside_above else ClaimVerdict.undecided


def parse(key: str, value: object) -> Band:
    """The band that a YAML value says. Raises ConfigError naming the key and the forms."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _not_a_band(key, value)
    text = str(value)
    if match := _COMPARED.match(text):
        sign, number = match.group(1), float(match.group(2))
        if sign.startswith(">"):
            return Band(low=number, open_low=sign == ">", text=text)
        return Band(high=number, open_high=sign == "<", text=text)
    if match := _RANGE.match(text):
        low, high = float(match.group(1)), float(match.group(2))
        if low <= high:
            return Band(low=low, high=high, text=text)
    if match := _EXACT.match(text):
        number = float(match.group(1))
        return Band(low=number, high=number, text=text)
    raise _not_a_band(key, value)


def _not_a_band(key: str, value: object) -> ConfigError:
    return ConfigError(
        f"{key}: {value!r} is no band. Forms: '>= 1.05', '> 1', '<= 2', '< 3', '1.94..2.06', 2"
    )
