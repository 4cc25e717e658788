"""What ran in one call, on one time axis: a strip an implementation, fused and unfused above each
other, from the trace. matplotlib is imported only in use.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ..judge.stages import short
from ..records import Cell, Evidence, Job, Launch
from ..results import Row, cells, device, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# by the kind of launch, in Okabe and Ito's colours; the hatch tells the same in grey print
_LOOKS = {
    "matmul": ("#0072B2", ""),
    "pointwise": ("#E69F00", "//"),
    "reduction": ("#009E73", ".."),
    "attention": ("#CC79A7", "xx"),
    "copy": ("#56B4E9", "--"),
    "memset": ("#999999", "++"),
}
_OTHER = ("#D55E00", "\\\\")
_HEIGHT = 0.62
_NARROW = 0.06
"""Of the axis: a shorter bar has no room for its name."""


def write_timelines(job: Job, folder: Path) -> list[Path]:
    """Writes `timeline-CELL.png` for every cell of which a trace tells when each kernel ran."""
    by_cell: dict[str, list[tuple[Row, Evidence]]] = {}
    for row in rows(job):
        if (seen := traced(row)) is not None:
            by_cell.setdefault(row.cell.id, []).append((row, seen))
    if not by_cell:
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for cell in cells(job):
        strips = by_cell.get(cell.id)
        if not strips:
            continue
        figure = Figure(figsize=(9.2, 1.5 + 0.5 * len(strips)), dpi=160, layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure.add_subplot(), job, cell, strips)
        path = folder / f"timeline-{cell.index:04d}-{cell.id}.png"
        figure.savefig(path)
        written.append(path)
    return written


def traced(row: Row) -> Evidence | None:
    """The evidence that says when kernels ran: of the profiler or nsys, not of ncu, under which
    they run one at a time."""
    return next((e for e in row.record.evidence if e.launches and e.busy_us is not None), None)


def _draw(axes: "Axes", job: Job, cell: Cell, strips: list[tuple[Row, Evidence]]) -> None:
    end = max(_end(seen.launches) for _, seen in strips)
    seen_before: set[str] = set()
    for place, (_, seen) in enumerate(strips):
        for launch in seen.launches:
            colour, hatch = _LOOKS.get(launch.kind, _OTHER)
            what = launch.family if launch.kind == "unknown" else launch.kind
            axes.barh(
                place,
                launch.duration_us,
                left=launch.start_us,
                height=_HEIGHT,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.6,
                label=what if what not in seen_before else None,
            )
            seen_before.add(what)
            if launch.duration_us >= _NARROW * end:
                room = max(4, int(90 * launch.duration_us / end))
                axes.text(
                    launch.start_us + launch.duration_us / 2,
                    place,
                    _cut(short(launch).rpartition("::")[2], room),
                    ha="center",
                    va="center",
                    fontsize=7,
                    bbox={"facecolor": "white", "alpha": 0.85, "pad": 1, "linewidth": 0},
                )
        whole = _end(seen.launches)
        axes.text(whole + 0.012 * end, place, f"{whole:.4g} us", va="center", fontsize=8)
    axes.set_yticks(range(len(strips)), [row.record.implementation for row, _ in strips])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.14 * end)
    axes.set_xlabel("us from the first start; the call with the median span, traced, not timed")
    parts = (job.kernel, cell.workload.label, device(job))
    axes.set_title(", ".join(part for part in parts if part), fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _end(launches: tuple[Launch, ...]) -> float:
    return max(launch.start_us + launch.duration_us for launch in launches)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 2)] + ".."
