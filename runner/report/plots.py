"""Latency against size as pictures: one line an implementation, failed points as gaps.

One picture for each combination of the axes that are no numbers (activation, layout ...), since
a line through several of them means nothing. matplotlib is imported only here and only in use.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..records import Cell, Job
from ..results import Row, cells, device, implementations, rows, sizes, varying

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by most colour-blind readers; with markers also in grey print
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Picture:
    """Cells that share a picture: `name` is empty where there is only one."""

    name: str
    cells: tuple[Cell, ...]
    x: dict[str, float]
    label: str


def write_plots(job: Job, folder: Path) -> list[Path]:
    """Writes `latency[-COMBINATION].png` into the folder; none where fewer than two sizes ran."""
    pictures = list(_pictures(job))
    if not pictures:
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for picture in pictures:
        figure = Figure(figsize=(8.4, 4.6), dpi=160, layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure.add_subplot(), job, picture)
        path = folder / f"latency{'-' if picture.name else ''}{picture.name}.png"
        figure.savefig(path)
        written.append(path)
    return written


def _pictures(job: Job) -> Iterator[_Picture]:
    numeric, named = _varying_kinds(job)
    groups: dict[str, list[Cell]] = {}
    for cell in cells(job):
        groups.setdefault(_combination(cell, named), []).append(cell)
    timed = {row.cell.id for row in rows(job) if row.latency}
    for name, members in groups.items():
        x, label = _positions(job, members, numeric)
        if len({x[c.id] for c in members if c.id in x and c.id in timed}) >= 2:
            yield _Picture(name=name, cells=tuple(members), x=x, label=label)


def _varying_kinds(job: Job) -> tuple[list[str], list[str]]:
    numeric, named = [], []
    for axis in varying(job):
        values = [cell.workload.axes.get(axis) for cell in cells(job)]
        number = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        (numeric if number else named).append(axis)
    return numeric, named


def _combination(cell: Cell, named: Sequence[str]) -> str:
    layouts = [cell.workload.layout] if cell.workload.layout != "contiguous" else []
    parts = [f"{axis}-{cell.workload.axes.get(axis)}" for axis in named] + layouts
    return re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(parts))


def _positions(
    job: Job, members: Sequence[Cell], numeric: Sequence[str]
) -> tuple[dict[str, float], str]:
    """Where each cell stands: the one axis that varies, else the fused plan's bytes or FLOP."""
    if len(numeric) == 1:
        axis = numeric[0]
        values = {cell.id: float(cell.workload.axes[axis]) for cell in members}
        label = axis
    else:
        size = sizes(job)
        values = {c.id: float(size.by_cell[c.id]) for c in members if c.id in size.by_cell}
        label = f"{size.unit} of the fused path"
        label += f" ({', '.join(numeric)} vary)" if numeric else ""
    # a logarithmic axis has no place for an empty problem
    return {key: value for key, value in values.items() if value > 0}, label


def _draw(axes: "Axes", job: Job, picture: _Picture) -> None:
    from matplotlib.ticker import LogFormatter

    table = {(row.cell.id, row.record.implementation): row for row in rows(job)}
    ordered = sorted((c for c in picture.cells if c.id in picture.x), key=lambda c: picture.x[c.id])
    for place, name in enumerate(implementations(job)):
        line = [(picture.x[c.id], table.get((c.id, name))) for c in ordered]
        _draw_line(axes, name, place, line)
    _draw_floor(axes, table, ordered, picture)
    timing = next((row.record.timing for row in table.values() if row.record.timing), None)
    state = f"{timing.headline}, {timing.state}" if timing else ""
    axes.set_xscale("log", base=2 if picture.label in cells(job)[0].workload.axes else 10)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
    axes.set_xlabel(picture.label)
    axes.set_ylabel(f"latency (us; {state})")
    axes.set_title(_title(job, picture), fontsize=10)
    axes.grid(visible=True, which="major", linewidth=0.5, alpha=0.4)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda k: (" " in labels[k], ":" not in labels[k]))
    axes.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        fontsize=8,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )


def _draw_line(
    axes: "Axes", name: str, place: int, line: Sequence[tuple[float, Row | None]]
) -> None:
    """The medians with their intervals; a cell without a time breaks the line and is marked."""
    x = [position for position, _ in line]
    bounds = [row.latency if row else None for _, row in line]
    median = [b.median if b else math.nan for b in bounds]
    below = [b.median - b.low if b else math.nan for b in bounds]
    above = [b.high - b.median if b else math.nan for b in bounds]
    colour, marker = _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]
    if any(bounds):
        axes.errorbar(
            x,
            median,
            yerr=[below, above],
            label=name,
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.4,
            linestyle="-" if place < len(_COLOURS) else "--",
            capsize=2.5,
            elinewidth=1,
        )
    failed = [position for position, bound in zip(x, bounds, strict=True) if bound is None]
    if failed:
        # on the lower edge, in the line's colour; none where the line is absent altogether
        axes.plot(
            failed if any(bounds) else [],
            [0.0] * len(failed) if any(bounds) else [],
            linestyle="",
            marker="x",
            markersize=6,
            color=colour,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            zorder=5,
            label=f"{name}: no time",
        )


def _draw_floor(
    axes: "Axes", table: dict[tuple[str, str], Row], ordered: Sequence[Cell], picture: _Picture
) -> None:
    """The lowest floor of any path of each cell, where the target has a datasheet."""
    points = []
    for cell in ordered:
        floors = [
            row.record.cost.floor_us
            for (cell_id, _), row in table.items()
            if cell_id == cell.id and row.record.cost and row.record.cost.floor_us
        ]
        if floors:
            points.append((picture.x[cell.id], min(floors)))
    if points:
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color="0.45", linestyle=":", linewidth=1.2, label="floor by datasheet")


def _title(job: Job, picture: _Picture) -> str:
    workload = picture.cells[0].workload
    fixed = [
        f"{axis}={value}"
        for axis, value in workload.axes.items()
        if axis not in _varying_kinds(job)[0]
    ]
    if workload.layout != "contiguous":
        fixed.append(workload.layout)
    first = ", ".join(part for part in (job.kernel, workload.dtype, device(job)) if part)
    return f"{first}\n{', '.join(fixed)}" if fixed else first
