"""The pass under Nsight Systems: a worker of its own, its report, and what the report says of every
record."""

import csv
import io
import json
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..nsight import nsys
from ..nsight.join import joined
from ..nsight.leaks import strangers
from ..nsight.tools import NsightError, Tool, allowed
from ..nsight.work import Activity, Range
from ..process import Around
from ..records import Evidence, Launch
from ..worker.dispatch import classify
from ..worker.ranges import DOMAIN
from .keeping import keep, link

PHASE = "trace"
"""The innermost range around a traced call."""

PATIENCE_S = 300.0
"""How long nsys may take to write its report after the worker has ended."""

COLUMNS = (
    "cell_id", "implementation", "call", "range", "instance", "kind", "name", "start_us",
    "duration_us", "stream", "grid", "block", "registers", "static_shared", "dynamic_shared",
    "bytes", "graph_node",
)  # fmt: skip

Who = tuple[str, str]
"""Cell id and implementation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NsysPass:
    """Nsight Systems around the workers of one pass; `folder` keeps its reports and tables."""

    tool: Tool
    folder: Path
    prefix: tuple[str, ...] = ()
    """Words before nsys' own, such as those that show it no other process."""
    name: str = "nsys"

    def report(self, number: int) -> Path:
        """The report of the pass's n-th worker: a worker that died has one of its own."""
        return self.folder / f"nsys-{number:02d}.nsys-rep"

    def around(self, number: int) -> Around:
        """What the n-th worker runs under."""
        self.folder.mkdir(parents=True, exist_ok=True)
        words = [*self.prefix, *nsys.profile_words(self.tool, self.report(number), ())]
        return Around(words=tuple(words), patience_s=PATIENCE_S, seen=allowed)

    def evidence(
        self, number: int, table: Sequence[dict[str, Any]], said: Sequence[Evidence]
    ) -> list[Evidence]:
        """What the n-th worker's report holds of the calls that the worker said it made, with the
        command that asked for it. See `read`."""
        command = shlex.join(self.around(number).words)
        return self.read(self.report(number), table, [replace(e, command=command) for e in said])

    def read(
        self, report: Path, table: Sequence[dict[str, Any]], said: Sequence[Evidence]
    ) -> list[Evidence]:
        """What a report in the folder holds of the calls of these records.

        `table` is the worker's ranges by payload. The joined rows are written beside the report,
        as CSV and JSON. Evidence that cannot be had says why.
        """
        said = [replace(e, version=self.tool.version or "") for e in said]
        try:
            if not report.is_file() or not report.stat().st_size:
                raise NsightError("nsys wrote no report")
            calls = by_call(self.joined(report), table)
        except NsightError as error:
            return [replace(e, reason=e.reason or f"no evidence: {error}") for e in said]
        rows = [row for who, ranges in calls.items() for row in _rows(who, ranges)]
        _write(report, rows)
        place = f"{self.folder.name}/{report.name}"
        return [
            _seen(replace(e, report=place), calls.get((e.cell_id, e.implementation), []))
            for e in said
        ]

    def joined(self, report: Path) -> list[Range]:
        """The ranges of our domain in a report, with the work launched in them. A report that must
        not be filed is linked. Raises NsightError."""
        export = nsys.export(self.tool, report)
        try:
            keep(report, strangers(export))
            return joined(export, domain=DOMAIN, any_thread=True)
        except sqlite3.Error as error:
            link(report, "it could not be looked through")
            raise NsightError(f"{report.name} cannot be read as a report: {error}") from error
        finally:
            export.unlink()  # as large as the report, and with all its secrets


def by_call(ranges: Sequence[Range], table: Sequence[dict[str, Any]]) -> dict[Who, list[Range]]:
    """The ranges around traced calls by whose they are, in the order of calling."""
    meaning = {entry["index"]: entry for entry in table}
    found: dict[Who, list[Range]] = {}
    for each in ranges:
        entry = meaning.get(each.payload) if each.payload is not None else None
        if entry is not None and entry["phase"] == PHASE and each.name == PHASE:
            found.setdefault((entry["cell"], entry["implementation"]), []).append(each)
    return found


def _seen(said: Evidence, calls: Sequence[Range]) -> Evidence:
    """The evidence of the call with the median span; without a call, or with a reason of the
    worker's own, only what stands around it."""
    if said.reason:
        return said
    if not calls:
        return replace(said, reason="no evidence: the report holds none of its calls")
    working = [call for call in calls if call.work]
    if not working:
        return replace(
            said,
            calls=len(calls),
            launch_count=0,
            reason="nsys saw no device work in any of the calls",
        )
    chosen = sorted(working, key=lambda call: call.span_us)[len(working) // 2]
    first = min(activity.start_ns for activity in chosen.work)
    launches = tuple(
        launch(activity, first) for activity in sorted(chosen.work, key=lambda a: a.start_ns)
    )
    return replace(
        said,
        calls=len(calls),
        launches=launches,
        launch_count=len(launches),
        busy_us=round(chosen.busy_us, 3),
        span_us=round(chosen.span_us, 3) if said.held else None,
    )


def launch(activity: Activity, first_ns: int) -> Launch:
    """A row of the timeline as a launch; times in us from `first_ns`."""
    family, kind = classify(activity.name)
    shared = None
    if activity.static_shared is not None and activity.dynamic_shared is not None:
        shared = activity.static_shared + activity.dynamic_shared
    return Launch(
        name=activity.name,
        kind=kind,
        family=family,
        duration_us=(activity.end_ns - activity.start_ns) / 1000,
        start_us=(activity.start_ns - first_ns) / 1000,
        grid=activity.grid or (),
        block=activity.block or (),
        registers=activity.registers,
        shared_bytes=shared,
        bytes=activity.bytes,
        stream=activity.stream,
    )


def _rows(who: Who, calls: Sequence[Range]) -> Iterator[dict[str, Any]]:
    """One row a kernel, copy or fill of every traced call."""
    for number, call in enumerate(calls):
        for activity in call.work:
            values = asdict(activity)
            yield {
                "cell_id": who[0],
                "implementation": who[1],
                "call": number,
                "range": f"{call.domain}:{call.name}",
                "instance": call.payload,
                "start_us": activity.start_ns / 1000,
                "duration_us": (activity.end_ns - activity.start_ns) / 1000,
                **{
                    key: values[key]
                    for key in COLUMNS
                    if key in values and key not in ("grid", "block")
                },
                "grid": "x".join(map(str, activity.grid or ())),
                "block": "x".join(map(str, activity.block or ())),
            }


def _write(report: Path, rows: Sequence[dict[str, Any]]) -> None:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows([{key: row.get(key) for key in COLUMNS} for row in rows])
    report.with_suffix(".csv").write_text(stream.getvalue())
    report.with_suffix(".json").write_text(json.dumps(list(rows), indent=1) + "\n")
