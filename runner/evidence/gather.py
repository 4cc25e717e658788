"""The evidence passes of a job, tool by tool, each in a worker of its own after all timing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from ..nsight.leaks import apart
from ..nsight.tools import find
from ..process import Around
from ..records import Evidence, Record
from ..schema import Kernel
from ..supervisor import Supervisor
from ..worker.dispatch import own
from .ncu import NcuPass
from .nsys import NsysPass

PROFILER = "torch"
"""The tool inside the worker; every other stands around it."""

ByCell = Mapping[str, Sequence[Record]]


class Start(Protocol):
    """Makes the supervisor of a pass; its workers' logs bear the name, and `around` is what the
    n-th of them runs under."""

    def __call__(
        self, logs_as: str = "", around: Callable[[int], Around] | None = None
    ) -> Supervisor: ...


def evidence_of(
    tools: Sequence[str],
    by_cell: ByCell,
    *,
    profiling: Supervisor | None,
    start: Start,
    folder: Path,
    kernel: Kernel,
) -> Iterator[Evidence]:
    """Evidence of every record by every tool, as it comes. `profiling` is the supervisor of the
    profiler's pass, whose worker may wait already; `folder` keeps the tools' reports; `kernel`
    says in which language a path is written, whose own a name is that no table knows.

    Raises NsightError where a tool is not here, WorkerError where no worker starts.
    """
    for name in tools:
        if name != PROFILER:
            for seen in _around(_pass(name, folder), start, by_cell):
                launches = own(seen.launches, kernel.implementations[seen.implementation].language)
                yield replace(seen, launches=tuple(launches))
        elif profiling is not None:
            for records in by_cell.values():
                names = [record.implementation for record in records]
                yield from profiling.trace(records[0].cell, names)


def _pass(name: str, folder: Path) -> NsysPass | NcuPass:
    if name == "ncu":
        return NcuPass(tool=find(name), folder=folder)
    return NsysPass(tool=find(name), folder=folder, prefix=apart())


def _around(tool: NsysPass | NcuPass, start: Start, by_cell: ByCell) -> Iterator[Evidence]:
    """By one tool around a worker: what it saw is known once it has ended. A worker that dies
    costs what it was at, and a fresh one goes on with a report of its own."""
    said: dict[int, list[Evidence]] = {}
    tables: dict[int, list[dict[str, Any]]] = {}
    with start(tool.name, tool.around) as supervisor:
        for records in by_cell.values():
            names = [record.implementation for record in records]
            for evidence in supervisor.trace(records[0].cell, names, tool.name):
                said.setdefault(supervisor.number, []).append(evidence)
            tables[supervisor.number] = supervisor.ranges
    for number, of_worker in said.items():
        yield from tool.evidence(number, tables.get(number, []), of_worker)
