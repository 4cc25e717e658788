"""The tables of `klab doctor --measure`, as cells of text: one shape for terminal and Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .doctor_cells import short_cells
from .doctor_legend import COLD_LEGEND, legend
from .text import ABSENT, number

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A title, columns of which the first `left` are words, and a line of explanation each."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    left: int
    legend: tuple[str, ...] = ()


_OURS = {
    "period": "period_us",
    "stamp": "stamp_us",
    "graph": "graph_us",
    "busy": "busy_us",
    "span": "span_us",
    "host": "host_us",
}
_THEIRS = {"period": "period_us", "event": "event_us", "unheld": "event_unheld_us"}
_COLD = {
    "written": "write_flush_us",
    "read": "read_flush_us",
    "rotated": "rotated_us",
    "warm": "warm_us",
    "period cold": "period_cold_us",
    "period warm": "period_warm_us",
}
_OTHERS = {"do_bench": "do_bench_us", "Timer": "timer_us"}


def tables(values: Row) -> list[Table]:
    """Every table of a `doctor.json`; a section that was not measured has none."""
    rows = values["rows"]
    kind = values["kind"]
    found = []
    if rows.get("ladder"):
        found += _ladder(rows, kind)
    if rows.get("cold"):
        found.append(_cold(rows["cold"], kind))
    if rows.get("pairs"):
        found.append(_pairs(rows["pairs"], values["settings"]["pairs"]))
    if rows.get("repeats"):
        found.append(_repeats(rows["repeats"], kind))
    if values["checks"]:
        found.append(checks(values["checks"]))
    return found


def _ladder(rows: Mapping[str, Sequence[Row]], kind: str) -> list[Table]:
    """One table of the package's own times, one beside what others say."""
    ladder = rows["ladder"]
    cells, said = short_cells(ladder)
    if kind == "cpu":
        return [
            Table(
                title="ladder: the same call by every instrument, us",
                heads=("cell", "implementation", "wall"),
                lines=tuple(
                    (cell, row["implementation"], us(row, "wall_us"))
                    for cell, row in zip(cells, ladder, strict=True)
                ),
                left=2,
                legend=(said, *legend("wall")),
            )
        ]
    tools = {
        name: {(row["cell_id"], row["implementation"]): row for row in rows.get(name, [])}
        for name in ("nsys", "ncu")
    }
    ours, theirs = [], []
    for cell, row in zip(cells, ladder, strict=True):
        who = (row["cell_id"], row["implementation"])
        head = (cell, row["implementation"])
        launches = ABSENT if row.get("launches") is None else str(row["launches"])
        times = (us(row, key) for key in _OURS.values())
        ours.append((*head, launches, *times, number(_line(row))))
        outside = [us(tools[name].get(who, {}), "busy_us") for name in tools]
        events = [us(row, key) for key in _THEIRS.values()]
        theirs.append((*head, *events, us(row, "busy_us"), *outside))
    return [
        Table(
            title="ladder: the same call by our instruments, us",
            heads=("cell", "implementation", "launches", *_OURS, "line"),
            lines=tuple(ours),
            left=2,
            legend=(said, *legend(*_OURS, "line")),
        ),
        Table(
            title="ladder: beside what other tools and usual methods say, us",
            heads=("cell", "implementation", *_THEIRS, "busy", *tools),
            lines=tuple(theirs),
            left=2,
            legend=legend("event", "unheld", *tools),
        ),
    ]


def _line(row: Row) -> float | None:
    """us a call from the smallest graph that was replayed to the largest; None with fewer than
    two."""
    copies = row.get("graph_copies") or []
    if len(copies) < 2:
        return None
    (few, first), (many, last) = copies[0], copies[-1]
    return (last - first) / (many - few)


def _cold(rows: Sequence[Row], kind: str) -> Table:
    cells, said = short_cells(rows)
    ways = {"wall": "wall_us"} if kind == "cpu" else _COLD
    return Table(
        title="cold: one call after each way to empty the cache, us"
        if kind != "cpu"
        else "cold: ways to empty the cache are of GPUs; on a CPU the same call warm, us",
        heads=("cell", "MB read", *ways),
        lines=tuple(
            (cell, number(_megabytes(row)), *(us(row, key) for key in ways.values()))
            for cell, row in zip(cells, rows, strict=True)
        ),
        left=1,
        legend=(said, *(legend("wall") if kind == "cpu" else COLD_LEGEND)),
    )


def _megabytes(row: Row) -> float | None:
    read = row.get("bytes_read")
    return None if read is None else read / 1e6


def _pairs(rows: Sequence[Row], asked: int) -> Table:
    counts = ("pairs", "faster", "slower", "equal", "undecided", "found", "reversed")
    cases = [row["case"] for row in rows]
    whats = {case.rpartition(", ")[0] for case in cases}
    what = whats.pop() if len(whats) == 1 else ""
    return Table(
        title="pairs: a function against itself, and against one of 2 % more elements",
        heads=("case", "us", *counts, "width"),
        lines=tuple(
            (
                case.removeprefix(f"{what}, ") if what else case,
                us(row, "us"),
                *(ABSENT if row.get(key) is None else str(row[key]) for key in counts),
                _percent(row.get("width")),
            )
            for case, row in zip(cases, rows, strict=True)
        ),
        left=1,
        legend=(
            what,
            _divided(rows, asked),
            "faster to undecided: verdicts; found: the true direction; width: half the interval",
        ),
    )


def _divided(rows: Sequence[Row], asked: int) -> str:
    """How many pairs each case got."""
    same, more = ([row["pairs"] for row in rows if row["kind"] == k] for k in ("same", "more"))
    parts = [f"{sum(same)} of the same function, divided among {len(same)} cases"] if same else []
    parts += [f"half as many, {sum(more)}, of the true difference"] if more else []
    return f"pairs={asked}: {'; '.join(parts)}"


def _repeats(rows: Sequence[Row], kind: str) -> Table:
    cells, said = short_cells(rows)
    ours = "wall" if kind == "cpu" else "period"
    methods = {ours: f"{ours}_us", **_OTHERS}
    lines = []
    for cell, row in zip(cells, rows, strict=True):
        line = [cell, row["implementation"]]
        for key in methods.values():
            line += [us(row, key), _percent((row.get(key) or {}).get("spread"))]
        lines.append(tuple(line))
    counts = [found["processes"] for row in rows for key in methods.values() if (found := row[key])]
    return Table(
        title=f"repeats: {max(counts, default=0)} fresh processes, us and spread",
        heads=("cell", "implementation", *(head for name in methods for head in (name, "spread"))),
        lines=tuple(lines),
        left=2,
        legend=(
            said,
            "spread: largest / smallest - 1 of the processes' medians",
            f"{ours}: ours, the median of 20 rounds",
            "do_bench: triton.testing's median, as it comes: events, L2 zeroed before each call",
            "Timer: torch.utils.benchmark's blocked_autorange: host clock around warm calls",
        ),
    )


def verdict_of(check: Row) -> str:
    """Its verdict; `not_judged` where something was seen that no limit is set for."""
    seen_only = check["verdict"] == "not_measured" and check["seen"]
    return "not_judged" if seen_only else str(check["verdict"])


def checks(found: Sequence[Row]) -> Table:
    """The verdicts of every kind of check counted, with the farthest that was judged."""
    lines = []
    for name in dict.fromkeys(check["name"] for check in found):
        own = [check for check in found if check["name"] == name]
        counts = [
            sum(verdict_of(check) == verdict for check in own)
            for verdict in ("agrees", "explained", "differs", "not_judged", "not_measured")
        ]
        lines.append((name, own[0]["limit"], *(str(count) if count else "" for count in counts)))
    return Table(
        title="checks",
        heads=("check", "limit", "agrees", "explained", "differs", "not judged", "not measured"),
        lines=tuple(lines),
        left=2,
    )


def us(row: Row, key: str) -> str:
    """A time: the median of an interval, or a number; '-' where it is absent."""
    value = row.get(key)
    return number(value["median"] if isinstance(value, Mapping) else value)


def _percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.2f} %"
