"""Which cells an evidence pass looks at: `trace.cells` over the records of a job."""

import re
from collections.abc import Sequence

from .errors import ConfigError
from .question.expressions import holds
from .records import Cell, Record, Status
from .schema import TOOLS, Experiment, Mode

_KEY = "trace.cells"
_COUNTED = re.compile(r"^(first|slowest)\s*:\s*(.*)$")


def check_cells(experiment: Experiment, cells: Sequence[Cell]) -> None:
    """Refuses a choice of cells that cannot be read. Raises ConfigError naming key and forms."""
    text = experiment.trace.cells
    if text == "all" or _counted(text):
        return
    for cell in cells[:1]:
        _holds(text, cell)


def traced_cells(experiment: Experiment, records: Sequence[Record]) -> set[str]:
    """Cell ids by `first:N`, `all`, `slowest:N`, or an expression over the axes.

    Raises ConfigError as `check_cells` does.
    """
    text = experiment.trace.cells
    cells = {record.cell.id: record.cell for record in records}
    if text == "all":
        return set(cells)
    if counted := _counted(text):
        kind, count = counted
        order = list(cells) if kind == "first" else _slowest(records)
        return set(order[:count])
    return {key for key, cell in cells.items() if _holds(text, cell)}


def _counted(text: str) -> tuple[str, int] | None:
    match = _COUNTED.match(text)
    if match is None:
        return None
    kind, count = match.groups()
    if not count.isdecimal():
        raise ConfigError(
            f"{_KEY}={text}: a whole number is meant after the colon. Forms: first:8, all, "
            "slowest:3, or an expression over the axes such as M >= 4096."
        )
    return kind, int(count)


def _slowest(records: Sequence[Record]) -> list[str]:
    latency: dict[str, float] = {}
    for record in records:
        if record.timing is not None:
            median = record.timing.latency_us.median
            latency[record.cell.id] = max(median, latency.get(record.cell.id, 0.0))
    return sorted(latency, key=lambda key: -latency[key])


def _holds(text: str, cell: Cell) -> bool:
    workload = cell.workload
    values = {**workload.axes, "dtype": workload.dtype, "layout": workload.layout}
    return holds(text, values, _KEY)


def tools(experiment: Experiment, *, gpu: bool) -> tuple[str, ...]:
    """The tools whose passes the experiment asks for, in their order; `auto` is torch on a GPU."""
    if experiment.mode is Mode.check:
        return ()
    if experiment.trace.auto is not None:
        return ("torch",) if gpu else ()
    return tuple(name for name in TOOLS if getattr(experiment.trace, name) is not None)


def traceable(experiment: Experiment, records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records that an evidence pass looks at, by cell: those with a time, or in mode=profile
    those that are right."""
    wanted = {Status.ok, Status.noisy}
    if experiment.mode is Mode.profile:
        wanted.add(Status.checked)
    chosen = traced_cells(experiment, records)
    by_cell: dict[str, list[Record]] = {}
    for record in records:
        if record.cell.id in chosen and record.status in wanted:
            by_cell.setdefault(record.cell.id, []).append(record)
    return by_cell
