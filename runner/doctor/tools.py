"""The section `calls` under Nsight Systems and Nsight Compute, as rows of every subject.

A subject that a tool did not see, and a tool that is not here, is a row with its reason.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..evidence.ncu import by_subject
from ..evidence.nsys import PHASE, by_call
from ..nsight import ncu, nsys
from ..nsight.join import joined
from ..nsight.tools import NsightError, Tool, find
from ..nsight.work import Range
from ..schema import Experiment
from ..statistics import median_interval
from ..worker.ranges import DOMAIN
from .sections import LIMIT_S, Place, Row, Section

CALLS = {"nsys": 20, "ncu": 5}

Subject = tuple[str, str]
"""Cell id and implementation."""


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
        calls = by_call(joined(report.sqlite, domain=DOMAIN), result.ranges)
    except NsightError as error:
        return _nothing("nsys", subjects, str(error), tool)
    made = {(row["cell_id"], row["implementation"]): row for row in result.rows}
    rows = [_nsys_row(who, calls.get(who, []), tool, made.get(who, {})) for who in subjects]
    return Section(name="nsys", rows=rows, environment=result.environment, seconds=report.seconds)


def _options(calls: int, subjects: Sequence[Subject], *, hold: bool) -> dict[str, Any]:
    return {"calls": calls, "cells": [list(who) for who in subjects], "hold": hold}


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


def by_ncu(place: Place, experiments: Sequence[Experiment], subjects: Sequence[Subject]) -> Section:
    """The sum of the kernel times of one call, of every subject; the median over its calls."""
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
        found = by_subject(launches, result.ranges)
        calls = {(row["cell_id"], row["implementation"]): row.get("calls") for row in result.rows}
        rows = [_ncu_row(who, found.get(who, []), calls.get(who) or 0, tool) for who in subjects]
    except NsightError as error:
        return _nothing("ncu", subjects, str(error), tool)
    return Section(name="ncu", rows=rows, environment=result.environment, seconds=result.seconds)


def _ncu_row(who: Subject, launches: Sequence[ncu.Launch], made: int, tool: Tool) -> Row:
    if not launches:
        return _row(who, tool.name, tool.version, reason="ncu saw no kernel of it")
    try:
        calls = ncu.split(launches, made)
        sums = [sum(launch.us() for launch in call) for call in calls]
    except NsightError as error:
        return _row(who, tool.name, tool.version, reason=str(error))
    return _row(
        who,
        tool.name,
        tool.version,
        busy_us=_interval(sums),
        launches=len(calls[0]),
        kernels=len(calls[0]),
        calls=len(calls),
    )


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
