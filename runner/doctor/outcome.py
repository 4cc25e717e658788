"""All that was measured as one JSON value, `doctor.json`: rows, checks, and what they stand on."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..judge.agreement import judge_ladder, notes
from ..judge.instruments import (
    REPEATED_KEYS,
    Agreement,
    Check,
    Measured,
    Repeated,
    Traced,
    repeated,
)
from ..judge.repeatability import judge_pairs, judge_repeats
from ..schema import Device
from ..statistics import median_interval
from .sections import Row, Section

Sections = Mapping[str, Section]

JUDGED = ("ladder", "pairs", "repeats")
"""The sections that checks are made of; the others are shown."""


def outcome(sections: Sections, head: Row, *, gpu: bool) -> Row:
    """The whole value. `head` says what was asked: id, command, date, code, kind, settings."""
    rows = {name: found.rows for name, found in sections.items()}
    repeats = repeated(rows.get("repeats", []))
    if "repeats" in rows:
        asked = {row["cell_id"]: row.get("experiment", "") for row in rows["repeats"]}
        rows["repeats"] = [
            {"experiment": asked[row["cell_id"]], **row} for row in _summaries(repeats)
        ]
    ladder = [Measured.of(row) for row in rows.get("ladder", [])]
    return {
        "kind": (Device.cuda if gpu else Device.cpu).value,
        **head,
        "environment": next((s.environment for s in sections.values() if s.environment), {}),
        "sections": {
            name: {"rows": len(found.rows), "seconds": found.seconds, "reason": found.reason}
            for name, found in sections.items()
        },
        "rows": rows,
        "notes": notes(ladder),
        "checks": [
            {"section": section, **dataclasses.asdict(check)}
            for section, checks in _checks(rows, ladder, repeats, gpu=gpu).items()
            for check in checks
        ],
    }


def _checks(
    rows: Mapping[str, Sequence[Row]],
    ladder: Sequence[Measured],
    repeats: Sequence[Repeated],
    *,
    gpu: bool,
) -> dict[str, list[Check]]:
    """The checks of the sections that were asked for, by section."""
    checks: dict[str, list[Check]] = {}
    if "ladder" in rows:
        traced = [Traced.of(row) for tool in ("nsys", "ncu") for row in rows.get(tool, [])]
        checks["ladder"] = judge_ladder(ladder, traced)
    if "pairs" in rows:
        checks["pairs"] = judge_pairs(rows["pairs"], gpu=gpu)
    if "repeats" in rows:
        checks["repeats"] = judge_repeats(repeats)
    return checks


def failed(values: Row) -> list[str]:
    """What makes the exit code 1: checks that differ, sections that did not end well, and those
    that proved nothing: a ladder without a time, and on a GPU a section without a judged check."""
    differing = [
        f"{check['name']}: {check['subject'] or 'all'}: {check['seen']}"
        for check in values["checks"]
        if check["verdict"] == Agreement.differs
    ]
    broken = [
        f"{name}: {section['reason']}"
        for name, section in values["sections"].items()
        if section["reason"]
    ]
    return differing + broken + unproved(values)


def unproved(values: Row) -> list[str]:
    """The sections that ended well and say nothing of the instruments, each with why."""
    return [
        f"{name}: {why}"
        for name, section in values["sections"].items()
        if not section["reason"] and (why := _nothing_proved(values, name))
    ]


def _nothing_proved(values: Row, section: str) -> str:
    """Why a section that ended well says nothing of the instruments; empty where it does."""
    if section == "ladder":
        measured = [Measured.of(row) for row in values["rows"][section]]
        if not any(each.times for each in measured):
            return "no subject of it has any time"
    if section not in JUDGED or values["kind"] != Device.cuda:
        return ""  # on a CPU instruments are shown and mostly not judged
    checks = [check for check in values["checks"] if check["section"] == section]
    if any(check["verdict"] != Agreement.not_measured for check in checks):
        return ""
    reasons = dict.fromkeys(check["reason"] for check in checks if check["reason"])
    if not checks:
        return "it holds nothing that could be judged"
    return f"none of its {len(checks)} checks could be judged: {next(iter(reasons), 'no reason')}"


def _summaries(found: Sequence[Repeated]) -> list[Row]:
    """One row a subject: of each instrument the medians of all processes, and how they spread."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for each in found:
        row = rows.setdefault(
            (each.cell_id, each.implementation),
            {
                "cell": each.cell,
                "cell_id": each.cell_id,
                "implementation": each.implementation,
                **dict.fromkeys(REPEATED_KEYS),
            },
        )
        middle = median_interval(each.us)
        row[each.key] = {
            "median": middle.median,
            "low": min(each.us),
            "high": max(each.us),
            "spread": each.spread,
            "processes": len(each.us),
        }
    return list(rows.values())
