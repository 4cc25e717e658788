"""The tables of an nsys SQLite export, whatever version wrote them.

The schema differs between versions and tables are left out where nothing was recorded: tables and
columns are probed. A column that the join or a time stands on must be there, with a whole number in
every row: NsightError names it. Exports promise no order of rows: every query says its own.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .tools import NsightError
from .work import Activity

_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75
_PROCESS = 0x0000FFFFFF000000
GLOBAL_PROCESS = ~0xFFFFFF
_KINDS = {"KERNEL": "kernel", "MEMCPY": "memcpy", "MEMSET": "memset"}

Key = tuple[int, int]
"""Process and correlation id: the id alone is unique only within its process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A range as it was opened, before anything is joined to it; `end` is None where it never
    closed, `process_wide` says start/end and not push/pop."""

    domain: str
    name: str
    payload: int | None
    start: int
    end: int | None
    thread: int
    process_wide: bool

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and (self.end is None or end <= self.end)


class Export:
    """The tables of one export, whatever version wrote them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {name for (name,) in rows}
        if "StringIds" not in self._tables:
            raise NsightError("the file is no nsys export: it has no table StringIds")
        self._texts = dict(connection.execute("SELECT id, value FROM StringIds"))

    def ranges(self) -> list[Opened]:
        """Push/pop and start/end ranges by their start, outer before inner."""
        table = "NVTX_EVENTS"
        needed = ("start", "end", "eventType", "globalTid", "domainId")
        known = (_PUSH_POP, _START_END, _DOMAIN)
        rows = [row for row in self._rows(table, needed) if row["eventType"] in known]
        for row in rows:
            _whole(table, row, ("globalTid",))
            if row["eventType"] != _DOMAIN:
                open_ = row["end"] is None
                _whole(table, row, ("start",) if open_ else ("start", "end"))
        domains = {
            (row["domainId"], row["globalTid"] & _PROCESS): self._text(row)
            for row in rows
            if row["eventType"] == _DOMAIN
        }
        opened = [
            Opened(
                domain=domains.get((row["domainId"], row["globalTid"] & _PROCESS), ""),
                name=self._text(row),
                payload=_payload(row),
                start=row["start"],
                end=row["end"],
                thread=row["globalTid"],
                process_wide=row["eventType"] == _START_END,
            )
            for row in rows
            if row["eventType"] != _DOMAIN
        ]
        return sorted(opened, key=lambda r: (r.start, -(r.end if r.end is not None else 1 << 63)))

    def calls(self) -> list[tuple[Key, int, int, int]]:
        """Runtime and driver calls by their start: key, thread, start, end."""
        table = "CUPTI_ACTIVITY_KIND_RUNTIME"
        needed = ("globalTid", "start", "end")
        return [
            (
                (row["globalTid"] & GLOBAL_PROCESS, row["correlationId"]),
                row["globalTid"],
                row["start"],
                row["end"],
            )
            for row in self._rows(table, (*needed, "correlationId"))
            if row["correlationId"] is not None and _whole(table, row, needed)
        ]

    def work(self) -> list[tuple[Key, Activity]]:
        """Kernels, copies and fills by their start."""
        needed = ("globalPid", "start", "end")
        found = [
            ((row["globalPid"], row["correlationId"]), self._activity(kind, row))
            for suffix, kind in _KINDS.items()
            for table in (f"CUPTI_ACTIVITY_KIND_{suffix}",)
            for row in self._rows(table, (*needed, "correlationId"))
            if _whole(table, row, needed)
        ]
        return sorted(found, key=lambda entry: entry[1].start_ns)

    def _activity(self, kind: str, row: dict[str, Any]) -> Activity:
        common = {
            "kind": kind,
            "start_ns": row["start"],
            "end_ns": row["end"],
            "device": row.get("deviceId"),
            "stream": row.get("streamId"),
            "graph_node": row.get("graphNodeId"),
        }
        if kind != "kernel":
            return Activity(name=kind, bytes=row.get("bytes"), **common)
        return Activity(
            name=self._texts.get(
                row.get("demangledName"), self._texts.get(row.get("shortName"), "")
            ),
            grid=_three(row, "grid"),
            block=_three(row, "block"),
            registers=row.get("registersPerThread"),
            static_shared=row.get("staticSharedMemory"),
            dynamic_shared=row.get("dynamicSharedMemory"),
            **common,
        )

    def _rows(self, table: str, needed: Sequence[str]) -> Iterator[dict[str, Any]]:
        """A table's rows by column name, by their start; nothing where the table was left out.
        Raises NsightError where it has not the columns."""
        if table not in self._tables:
            return
        names = [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]
        lacking = [column for column in needed if column not in names]
        if lacking:
            raise NsightError(
                f"the export's table {table} has no column {lacking[0]}: the nsys that wrote it is "
                "too old or too new for this join"
            )
        cursor = self._connection.execute(f"SELECT * FROM {table} ORDER BY start, rowid")
        for row in cursor:
            yield dict(zip(names, row, strict=True))

    def _text(self, row: dict[str, Any]) -> str:
        """A registered message stands in StringIds, any other in the row itself."""
        return row.get("text") or self._texts.get(row.get("textId"), "")


def _whole(table: str, row: dict[str, Any], columns: Sequence[str]) -> bool:
    """True. Raises NsightError where a column of the row holds none: left out, its time would be
    missing from a sum and nobody would know."""
    for column in columns:
        if not isinstance(row[column], int):
            raise NsightError(
                f"a row of {table} has no whole number as its {column} ({row[column]!r:.40}): the "
                "report was cut short, or nsys ended while work ran"
            )
    return True


def _three(row: dict[str, Any], name: str) -> tuple[int, int, int] | None:
    """`gridX`, `gridY`, `gridZ`; None where one is not told."""
    x, y, z = (row.get(f"{name}{axis}") for axis in "XYZ")
    return None if x is None or y is None or z is None else (x, y, z)


def _payload(row: dict[str, Any]) -> int | None:
    for column in ("int64Value", "uint64Value", "int32Value", "uint32Value"):
        if isinstance(row.get(column), int):
            return row[column]
    return None
