"""The section `calls` under Nsight Systems and Nsight Compute, as rows of every subject.

A subject that a tool did not see, and a tool that is not here, is a row with its reason.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..nsight import ncu, nsys
from ..nsight.join import joined
from ..nsight.tools import NsightError, Tool, find
from ..nsight.work import Range
from ..schema import Experiment
from ..statistics import median_interval
from .sections import LIMIT_S, Place, Row, Section

DOMAIN = "kernel-lab"
"""The NVTX domain of a worker's ranges."""

PHASE = "trace"
"""The innermost range around a traced call."""

CALLS = {"nsys": 20, "ncu": 5}

Subject = tuple[str, str]
"""Cell id and implementation."""

_WHO = re.compile(r"cell=\d+;impl=[^\s:;,]+")


def by_nsys(
    place: Place, experiments: Sequence[Experiment], subjects: Sequence[Subject]
) -> Section:
    """Busy and span of every subject over its calls, the queue held."""
    tool: Tool | None = None
    try:
        tool = find("nsys")
        options = _options(CALLS["nsys"], subjects, hold=True)
        report = nsys.profile(
            tool,
            place.words("nsys", "calls", experiments, options),
            report=place.file("nsys", "nsys-rep"),
            environment=place.environment,
            limit_s=LIMIT_S["calls"],
        )
        result = place.result("nsys")
        calls = _by_subject(joined(report.sqlite, domain=DOMAIN), result.ranges)
    except NsightError as error:
        return _nothing("nsys", subjects, str(error), tool)
    made = {(row["cell_id"], row["implementation"]): row for row in result.rows}
    rows = [_nsys_row(who, calls.get(who, []), tool, made.get(who, {})) for who in subjects]
    return Section(name="nsys", rows=rows, environment=result.environment, seconds=report.seconds)


def _options(calls: int, subjects: Sequence[Subject], *, hold: bool) -> dict[str, Any]:
    return {"calls": calls, "cells": [list(who) for who in subjects], "hold": hold}


def _by_subject(found: Sequence[Range], table: Sequence[Row]) -> dict[Subject, list[Range]]:
    """The traced calls of every subject; the payload is the place in the worker's table."""
    entries = {entry["index"]: entry for entry in table}
    calls: dict[Subject, list[Range]] = {}
    for each in found:
        entry = entries.get(each.payload) if each.payload is not None else None
        if entry is not None and entry["phase"] == PHASE and each.name == PHASE:
            calls.setdefault((entry["cell"], entry["implementation"]), []).append(each)
    return calls


def _nsys_row(who: Subject, calls: Sequence[Range], tool: Tool, made: Row) -> Row:
    """`made` is the worker's own row: why it made no calls, and whether the queue was held."""
    worked = [call for call in calls if call.work]
    if not worked:
        reason = f"{len(calls)} calls, and no device work in them" if calls else "no such range"
        said = (made.get("reasons") or {}).get("calls")
        return _row(who, tool.name, tool.version, reason=said or reason)
    held = made.get("held")
    counts = Counter(len(call.work) for call in worked)
    kernels = Counter(call.kernels for call in worked)
    return _row(
        who,
        tool.name,
        tool.version,
        busy_us=_interval([call.busy_us for call in worked]),
        # without a held queue a span holds the host's time between launches
        span_us=_interval([call.span_us for call in worked]) if held else None,
        launches=counts.most_common(1)[0][0],
        kernels=kernels.most_common(1)[0][0],
        calls=len(worked),
        held=held,
    )


def by_ncu(
    place: Place,
    experiments: Sequence[Experiment],
    subjects: Sequence[Subject],
    kernels: dict[Subject, int],
) -> Section:
    """The sum of the kernel times of one call, of every subject; the median over its calls.

    `kernels` says how many a call launches, for where ncu does not tell who launched what.
    """
    tool: Tool | None = None
    try:
        tool = find("ncu")
        # kernels run one at a time under ncu: behind a held stream the first would never run
        options = _options(CALLS["ncu"], subjects, hold=False)
        launches = ncu.profile(
            tool,
            place.words("ncu", "calls", experiments, options),
            csv_file=place.file("ncu", "csv"),
            include=f"{DOMAIN}@{PHASE}/",
            environment=place.environment,
            limit_s=LIMIT_S["calls"],
        )
        result = place.result("ncu")
        found = _launched(launches, result, kernels)
        rows = [_ncu_row(who, found.get(who, []), tool) for who in subjects]
    except NsightError as error:
        return _nothing("ncu", subjects, str(error), tool)
    return Section(name="ncu", rows=rows, environment=result.environment, seconds=result.seconds)


def _launched(
    launches: Sequence[ncu.Launch], result: Section, kernels: dict[Subject, int]
) -> dict[Subject, list[list[ncu.Launch]]]:
    """The launches of every call of every subject: by the ranges that ncu tells, else by order."""
    counts = {
        (row["cell_id"], row["implementation"]): row["calls"]
        for row in result.rows
        if row.get("calls")
    }
    named = [_told(launch.nvtx, result.ranges) for launch in launches]
    if all(named):
        own: dict[Subject, list[ncu.Launch]] = {}
        for who, launch in zip(named, launches, strict=True):
            if who is not None:
                own.setdefault(who, []).append(launch)
        return {who: _split(held, counts.get(who, 1)) for who, held in own.items()}
    unknown = [who for who in counts if who not in kernels]
    if unknown:
        raise NsightError(
            f"ncu tells no ranges, and how many kernels {len(unknown)} subjects launch is unknown"
        )
    order = [who for who, calls in counts.items() for _ in range(calls)]
    split = ncu.by_call(launches, [kernels[who] for who in order])
    calls: dict[Subject, list[list[ncu.Launch]]] = {}
    for who, held in zip(order, split, strict=True):
        calls.setdefault(who, []).append(held)
    return calls


def _told(nvtx: str, table: Sequence[Row]) -> Subject | None:
    """Who launched a kernel, by the message of the range around it; None where that is not one."""
    found = _WHO.search(nvtx)
    who = {
        (entry["cell"], entry["implementation"])
        for entry in table
        if found and not entry["phase"] and entry["message"] == found[0]
    }
    return who.pop() if len(who) == 1 else None


def _split(launches: list[ncu.Launch], calls: int) -> list[list[ncu.Launch]]:
    if calls < 1 or len(launches) % calls:
        raise NsightError(f"ncu measured {len(launches)} launches in {calls} calls of one subject")
    return ncu.by_call(launches, [len(launches) // calls] * calls)


def _ncu_row(who: Subject, calls: Sequence[Sequence[ncu.Launch]], tool: Tool) -> Row:
    if not calls:
        return _row(who, tool.name, tool.version, reason="ncu saw no kernel of it")
    sums = [sum(launch.us() for launch in call) for call in calls]
    return _row(
        who,
        tool.name,
        tool.version,
        busy_us=_interval(sums),
        launches=len(calls[0]),
        kernels=len(calls[0]),
        calls=len(calls),
    )


def kernels_of(nsys_rows: Sequence[Row], ladder: Sequence[Row]) -> dict[Subject, int]:
    """How many kernels a call of each subject launches: as nsys saw, else as the ladder did."""
    found = {(row["cell_id"], row["implementation"]): row.get("launches") for row in ladder}
    seen = {(row["cell_id"], row["implementation"]): row.get("kernels") for row in nsys_rows}
    both = {**found, **{who: count for who, count in seen.items() if count is not None}}
    return {who: count for who, count in both.items() if count is not None}


def _interval(values: Sequence[float]) -> Row:
    return dataclasses.asdict(median_interval(values))


def _nothing(name: str, subjects: Sequence[Subject], reason: str, tool: Tool | None) -> Section:
    """Every subject's row without a number: not measured is no failure of the section."""
    version = tool.version if tool else None
    return Section(name=name, rows=[_row(who, name, version, reason=reason) for who in subjects])


def absent(name: str, subjects: Sequence[Subject], reason: str) -> Section:
    """A tool that was not started, and why."""
    return _nothing(name, subjects, reason, None)


def _row(who: Subject, tool: str, version: str | None, **values: Any) -> Row:
    """A row of the join; what was not measured is null."""
    blank = {"busy_us": None, "span_us": None, "launches": None, "kernels": None, "calls": None}
    head = {"cell_id": who[0], "implementation": who[1], "tool": tool, "version": version}
    return {**head, **blank, "reason": "", **values}
