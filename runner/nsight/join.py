"""NVTX ranges joined to the device work that was launched in them, from an nsys SQLite export.

A kernel belongs to the range in which it was *launched*: its row and the runtime call that
launched it share a correlation id within a process, and the call stands inside the range on the
range's thread. A range that was opened with start/end (not push/pop) belongs to the process: it
also owns calls of threads that have no range open. Of nested ranges the innermost owns.

The schema differs between versions and tables are left out where nothing was recorded: both are
probed. Exports promise no order of rows: every query says its own.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .tools import NsightError

_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75
_PROCESS = 0x0000FFFFFF000000
_GLOBAL_PROCESS = ~0xFFFFFF
_KINDS = {"KERNEL": "kernel", "MEMCPY": "memcpy", "MEMSET": "memset"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """One kernel, copy or fill on the device; times in ns from the session's start."""

    kind: str
    name: str
    start_ns: int
    end_ns: int
    device: int
    stream: int
    graph_node: int | None = None
    bytes: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    static_shared: int | None = None
    dynamic_shared: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """One opened range and the device work launched in it, and in no range inside it."""

    domain: str
    name: str
    payload: int | None
    start_ns: int
    end_ns: int | None
    work: tuple[Activity, ...] = ()

    @property
    def kernels(self) -> int:
        return sum(activity.kind == "kernel" for activity in self.work)

    @property
    def busy_us(self) -> float:
        """The union of the work's intervals; 0 where there is none."""
        total, reached = 0, None
        for activity in sorted(self.work, key=lambda a: a.start_ns):
            begin = activity.start_ns if reached is None else max(activity.start_ns, reached)
            total += max(0, activity.end_ns - begin)
            reached = max(activity.end_ns, begin)
        return total / 1000

    @property
    def span_us(self) -> float:
        """From the first start to the last end; 0 where there is no work."""
        if not self.work:
            return 0.0
        first = min(activity.start_ns for activity in self.work)
        return (max(activity.end_ns for activity in self.work) - first) / 1000


def joined(sqlite: Path, *, domain: str | None = None) -> list[Range]:
    """Every range of the domain (None: of all), by start, with the work launched in it.

    Raises NsightError where the file is no export, or holds no such range or no device work.
    """
    try:
        with closing(sqlite3.connect(f"file:{sqlite}?mode=ro", uri=True)) as connection:
            return _joined(_Export(connection), domain)
    except sqlite3.Error as error:
        raise NsightError(f"{sqlite.name} cannot be read as an nsys export: {error}") from error


def _joined(export: "_Export", domain: str | None) -> list[Range]:
    opened = [entry for entry in export.ranges() if domain in (None, entry.domain)]
    if not opened:
        which = f" of the domain {domain}" if domain else ""
        raise NsightError(
            f"the report holds no NVTX range{which}, though the command ended well: the package "
            "nvtx from 0.2.12 on records nothing under nsys up to 2023.4; use a newer nsys"
        )
    work = export.work()
    if not work:
        raise NsightError("the report holds no CUDA work: the command launched none")
    owners = _owners(opened, export.calls())
    held: dict[int, list[Activity]] = {}
    for key, activity in work:
        owner = owners.get(key)
        if owner is not None:
            held.setdefault(owner, []).append(activity)
    return [
        Range(
            domain=entry.domain,
            name=entry.name,
            payload=entry.payload,
            start_ns=entry.start,
            end_ns=entry.end,
            work=tuple(held.get(number, ())),
        )
        for number, entry in enumerate(opened)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Opened:
    domain: str
    name: str
    payload: int | None
    start: int
    end: int | None
    thread: int
    process_wide: bool

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and (self.end is None or end <= self.end)


_Key = tuple[int, int]
"""Process and correlation id: the id alone is unique only within its process."""


def _owners(opened: list[_Opened], calls: list[tuple[_Key, int, int, int]]) -> dict[_Key, int]:
    """The innermost range of each launch, as its place in `opened`; both are sorted by start."""
    owners: dict[_Key, int] = {}
    alive: list[int] = []
    waiting = 0
    for key, thread, start, end in calls:
        while waiting < len(opened) and opened[waiting].start <= start:
            alive.append(waiting)
            waiting += 1
        alive = [n for n in alive if (last := opened[n].end) is None or last >= start]
        around = [n for n in reversed(alive) if opened[n].holds(start, end)]
        own = [n for n in around if opened[n].thread == thread]
        process = thread & _GLOBAL_PROCESS
        wide = [
            n
            for n in around
            if opened[n].process_wide and opened[n].thread & _GLOBAL_PROCESS == process
        ]
        if own or wide:
            owners.setdefault(key, (own or wide)[0])
    return owners


class _Export:
    """The tables of one export, whatever version wrote them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {name for (name,) in rows}
        if "StringIds" not in self._tables:
            raise NsightError("the file is no nsys export: it has no table StringIds")
        self._texts = dict(connection.execute("SELECT id, value FROM StringIds"))

    def ranges(self) -> list[_Opened]:
        """Push/pop and start/end ranges by their start, outer before inner."""
        rows = list(self._rows("NVTX_EVENTS", "start, rowid"))
        domains = {
            (row["domainId"], row["globalTid"] & _PROCESS): self._text(row)
            for row in rows
            if row["eventType"] == _DOMAIN
        }
        opened = [
            _Opened(
                domain=domains.get((row["domainId"], row["globalTid"] & _PROCESS), ""),
                name=self._text(row),
                payload=_payload(row),
                start=row["start"],
                end=row["end"],
                thread=row["globalTid"],
                process_wide=row["eventType"] == _START_END,
            )
            for row in rows
            if row["eventType"] in (_PUSH_POP, _START_END)
        ]
        return sorted(opened, key=lambda r: (r.start, -(r.end if r.end is not None else 1 << 63)))

    def calls(self) -> list[tuple[_Key, int, int, int]]:
        """Runtime and driver calls by their start: key, thread, start, end."""
        return [
            (
                (row["globalTid"] & _GLOBAL_PROCESS, row["correlationId"]),
                row["globalTid"],
                row["start"],
                row["end"],
            )
            for row in self._rows("CUPTI_ACTIVITY_KIND_RUNTIME", "start, rowid")
            if row["correlationId"] is not None
        ]

    def work(self) -> list[tuple[_Key, Activity]]:
        """Kernels, copies and fills by their start."""
        found = [
            ((row["globalPid"], row["correlationId"]), self._activity(kind, row))
            for table, kind in _KINDS.items()
            for row in self._rows(f"CUPTI_ACTIVITY_KIND_{table}", "start, rowid")
        ]
        return sorted(found, key=lambda entry: entry[1].start_ns)

    def _activity(self, kind: str, row: dict[str, Any]) -> Activity:
        common = {
            "kind": kind,
            "start_ns": row["start"],
            "end_ns": row["end"],
            "device": row["deviceId"],
            "stream": row["streamId"],
            "graph_node": row.get("graphNodeId"),
        }
        if kind != "kernel":
            return Activity(name=kind, bytes=row["bytes"], **common)
        return Activity(
            name=self._texts.get(row["demangledName"], self._texts.get(row["shortName"], "")),
            grid=(row["gridX"], row["gridY"], row["gridZ"]),
            block=(row["blockX"], row["blockY"], row["blockZ"]),
            registers=row["registersPerThread"],
            static_shared=row["staticSharedMemory"],
            dynamic_shared=row["dynamicSharedMemory"],
            **common,
        )

    def _rows(self, table: str, order: str) -> Iterator[dict[str, Any]]:
        """A table's rows by column name; nothing where it was left out."""
        if table not in self._tables:
            return
        cursor = self._connection.execute(f"SELECT * FROM {table} ORDER BY {order}")
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))

    def _text(self, row: dict[str, Any]) -> str:
        """A registered message stands in StringIds, any other in the row itself."""
        return row.get("text") or self._texts.get(row.get("textId"), "")


def _payload(row: dict[str, Any]) -> int | None:
    for column in ("int64Value", "uint64Value", "int32Value", "uint32Value"):
        if row.get(column) is not None:
            return int(row[column])
    return None
