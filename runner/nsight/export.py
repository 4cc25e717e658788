"""The tables of an nsys SQLite export, whatever version wrote them.

The schema differs between versions and tables are left out where nothing was recorded: both are
probed. Exports promise no order of rows: every query says its own.
"""

import sqlite3
from collections.abc import Iterator
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
        rows = list(self._rows("NVTX_EVENTS", "start, rowid"))
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
            if row["eventType"] in (_PUSH_POP, _START_END)
        ]
        return sorted(opened, key=lambda r: (r.start, -(r.end if r.end is not None else 1 << 63)))

    def calls(self) -> list[tuple[Key, int, int, int]]:
        """Runtime and driver calls by their start: key, thread, start, end."""
        return [
            (
                (row["globalTid"] & GLOBAL_PROCESS, row["correlationId"]),
                row["globalTid"],
                row["start"],
                row["end"],
            )
            for row in self._rows("CUPTI_ACTIVITY_KIND_RUNTIME", "start, rowid")
            if row["correlationId"] is not None
        ]

    def work(self) -> list[tuple[Key, Activity]]:
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
