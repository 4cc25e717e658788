"""What instruments said of the subjects of a calibration, read from its rows. Pure.

A subject is one implementation of one cell. Times are us.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from ..records import Interval

Row = Mapping[str, Any]

SECTIONS = ("ladder", "cold", "pairs", "repeats")
"""The parts of a calibration, in the order in which they are measured."""


class Agreement(StrEnum):
    """What came of a check."""

    agrees = "agrees"
    differs = "differs"
    explained = "explained"
    not_measured = "not_measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One comparison: its name, what is compared, the limit, what was seen, and the verdict.

    `subject` is the cell's label and the implementation; empty for checks over all of them.
    """

    name: str
    compared: str
    limit: str
    seen: str
    verdict: Agreement
    reason: str = ""
    subject: str = ""


def interval(value: Any) -> Interval | None:
    """An interval from its JSON form; a bare number is its own; None stays None."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return Interval(median=value["median"], low=value["low"], high=value["high"])
    return Interval(median=value, low=value, high=value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One subject on the ladder: the same calls by several instruments; `times` by their keys."""

    cell: str
    cell_id: str
    implementation: str
    launches: int | None = None
    times: Mapping[str, Interval] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Row) -> Self:
        """From a row of the section `ladder`."""
        times = {key: interval(row.get(key)) for key in row if key.endswith("_us")}
        return cls(
            cell=row["cell"],
            cell_id=row["cell_id"],
            implementation=row["implementation"],
            launches=row.get("launches"),
            times={key: found for key, found in times.items() if found is not None},
            reasons=row.get("reasons") or {},
        )

    @property
    def name(self) -> str:
        return f"{self.cell} {self.implementation}"

    def us(self, key: str) -> float | None:
        """The median by one instrument."""
        return self.times[key].median if key in self.times else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Traced:
    """What a tool outside this package saw of a subject."""

    cell_id: str
    implementation: str
    tool: str
    busy_us: float | None
    launches: float | None = None
    reason: str = ""

    @classmethod
    def of(cls, row: Row) -> Self:
        """From a joined row; `busy_us` an interval or a number."""
        busy = interval(row.get("busy_us"))
        return cls(
            cell_id=row["cell_id"],
            implementation=row["implementation"],
            tool=row["tool"],
            busy_us=None if busy is None else busy.median,
            launches=row.get("launches"),
            reason=row.get("reason") or (row.get("reasons") or {}).get("busy_us", ""),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeated:
    """The medians of one subject by one instrument, one a process."""

    cell: str
    cell_id: str
    implementation: str
    key: str
    us: tuple[float, ...]

    @property
    def spread(self) -> float | None:
        """max / min - 1; None of fewer than two."""
        return max(self.us) / min(self.us) - 1 if len(self.us) > 1 else None


REPEATED_KEYS = ("period_us", "wall_us", "do_bench_us", "timer_us")


def repeated(rows: Sequence[Row]) -> list[Repeated]:
    """All rows of the section `repeat`, of all processes, gathered by subject and instrument."""
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for row in rows:
        for key in REPEATED_KEYS:
            if row.get(key) is not None:
                who = (row["cell"], row["cell_id"], row["implementation"], key)
                found.setdefault(who, []).append(row[key])
    return [
        Repeated(cell=cell, cell_id=cell_id, implementation=name, key=key, us=tuple(us))
        for (cell, cell_id, name, key), us in found.items()
    ]
