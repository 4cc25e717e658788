"""NVTX ranges joined to the device work that was launched in them, from an nsys SQLite export.

A kernel belongs to the range in which it was *launched*: its row and the runtime call that
launched it share a correlation id within a process, and the call stands inside the range on the
range's thread. A range that was opened with start/end (not push/pop) belongs to the process: it
also owns calls of threads that have no range open. Of nested ranges the innermost owns.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from .export import GLOBAL_PROCESS, Export, Key, Opened
from .tools import NsightError
from .work import Activity, Range


def joined(sqlite: Path, *, domain: str | None = None, any_thread: bool = False) -> list[Range]:
    """Every range of the domain (None: of all), by start, with the work launched in it.

    With `any_thread` a launch from a thread that has no range open belongs to the innermost range
    open in its process: for programs whose one thread opens ranges around what others launch.

    Raises NsightError where the file is no export, or holds no such range or no device work.
    """
    try:
        with closing(sqlite3.connect(f"file:{sqlite}?mode=ro", uri=True)) as connection:
            return _joined(Export(connection), domain, any_thread)
    except sqlite3.Error as error:
        raise NsightError(f"{sqlite.name} cannot be read as an nsys export: {error}") from error


def _joined(export: "Export", domain: str | None, any_thread: bool) -> list[Range]:
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
    owners = _owners(opened, export.calls(), any_thread)
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


def _owners(
    opened: list[Opened], calls: list[tuple[Key, int, int, int]], any_thread: bool
) -> dict[Key, int]:
    """The innermost range of each launch, as its place in `opened`; both are sorted by start."""
    owners: dict[Key, int] = {}
    alive: list[int] = []
    waiting = 0
    for key, thread, start, end in calls:
        while waiting < len(opened) and opened[waiting].start <= start:
            alive.append(waiting)
            waiting += 1
        alive = [n for n in alive if (last := opened[n].end) is None or last >= start]
        around = [n for n in reversed(alive) if opened[n].holds(start, end)]
        own = [n for n in around if opened[n].thread == thread]
        process = thread & GLOBAL_PROCESS
        near = [n for n in around if opened[n].thread & GLOBAL_PROCESS == process]
        wide = [n for n in near if opened[n].process_wide or any_thread]
        if own or wide:
            owners.setdefault(key, (own or wide)[0])
    return owners
