"""Tables in Markdown files, printed from findings between markers.

<!-- findings: h200/bias_gelu_fusion -->     one finding, compact: a line a cell
<!-- findings: all -->                       every finding, a line a record
<!-- findings: h200/doctor -->               what `klab doctor --measure` found, every table
<!-- findings: h200/doctor summary -->       a line a check
<!-- end -->
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from ..clocks import OBSERVE, said
from ..errors import ConfigError, unknown
from ..records import Interval
from . import doctor
from .doctor_finding import is_doctor
from .text import interval, markdown_table, number, percent, short_commit, speedup

Values = dict[str, Any]

_MARKED = re.compile(
    r"(?P<head><!-- findings: (?P<name>\S+(?: summary)?) -->\n)(?P<body>.*?)(?P<end><!-- end -->)",
    re.DOTALL,
)
_HEAD = re.compile(r"<!-- findings: [^\n>]+ -->")


def read_findings(folder: Path) -> dict[str, Values]:
    """Every finding by its name, `<gpu>/<file>`. Raises ConfigError for one that is no JSON."""
    found = {}
    for path in sorted(folder.glob("*/*.json")):
        try:
            found[f"{path.parent.name}/{path.stem}"] = json.loads(path.read_text())
        except ValueError as error:
            raise ConfigError(f"{path}: not JSON: {error}") from error
    return found


def filled(text: str, findings: dict[str, Values], *, source: str) -> str:
    """The text with every marked stretch printed anew.

    Raises ConfigError for a marker without an end and for a finding that is not there.
    """
    if len(_HEAD.findall(text)) != len(_MARKED.findall(text)):
        raise ConfigError(f"{source}: a `<!-- findings: NAME -->` has no `<!-- end -->`")

    def printed(found: re.Match[str]) -> str:
        name = found["name"]
        of, _, part = name.partition(" ")
        if name == "all":  # of experiments; a doctor's tables have markers of their own
            kept = {key: values for key, values in findings.items() if not is_doctor(values)}
            body = "\n".join(full(name, values) for name, values in kept.items())
        elif of in findings and is_doctor(findings[of]):
            body = (doctor.summary if part else doctor.full)(of, findings[of])
        elif name in findings:
            body = compact(name, findings[name])
        else:
            raise unknown(f"{source}: findings", name, ["all", *findings])
        return f"{found['head']}{body}{found['end']}"

    return _MARKED.sub(printed, text)


def full(name: str, values: Values) -> str:
    """A heading, what was measured on and with, a line a record, and the claim."""
    over = "range" if 1 < values["protocol"].get("processes", 1) < 6 else "95 %"
    heads = ["cell", "implementation", f"latency us [{over}]", "speed-up [95 %]", "verdict"]
    heads += ["GB/s", "TFLOP/s", "of roof", "launches"]
    lines = [
        [
            _cell(row),
            row["implementation"],
            _latency(row) or _ended(row),
            _speedup(row, values["protocol"].get("band", 0.01)),
            row["verdict"] or "",
            _number(row["gbps"]),
            _number(row["tflops"]),
            percent(row["share_of_roof"]) if row["share_of_roof"] else "",
            "" if row["launches"] is None else str(row["launches"]),
        ]
        for row in values["rows"]
    ]
    parts = [
        f"### {name}",
        values["question"],
        f"`{command}`" if (command := _command(values)) else "",
        _source(values),
        markdown_table(heads, lines, left=2),
    ]
    return "\n\n".join(part for part in [*parts, _claim(values)] if part) + "\n"


def compact(name: str, values: Values) -> str:
    """A line a cell, a column an implementation: its latency and its speed-up."""
    names = list(dict.fromkeys(row["implementation"] for row in values["rows"]))
    by_cell: dict[str, dict[str, Values]] = {}
    for row in values["rows"]:
        by_cell.setdefault(_cell(row), {})[row["implementation"]] = row
    lines = [
        [cell, *(_entry(rows[name]) if name in rows else "" for name in names)]
        for cell, rows in by_cell.items()
    ]
    against = next((row["speedup"]["against"] for row in values["rows"] if row["speedup"]), None)
    note = f"`{name}`: latency in us"
    if against:
        note += f" (speed-up against {against})"
    if command := _command(values):
        note += f", `{command}`"
    table = markdown_table(["cell", *names], lines, left=1)
    return f"{note}. {_source(values)}\n\n{table}\n"


def _entry(row: Values) -> str:
    if row["latency_us"] is None:
        return row["status"]
    text = number(row["latency_us"]["median"])
    if row["speedup"]:
        text += f" ({number(row['speedup']['value'], 3)}x, {row['verdict']})"
    return text if row["status"] == "ok" else f"{text} {row['status']}"


def _cell(row: Values) -> str:
    axes = [
        f"{axis}={value}" if not isinstance(value, bool) else axis if value else f"no {axis}"
        for axis, value in row["axes"].items()
    ]
    layout = [] if row["layout"] == "contiguous" else [row["layout"]]
    drawn = _distribution(row)
    return " ".join([*axes, row["dtype"], *layout, *([] if drawn == "normal" else [drawn])])


def _distribution(row: Values) -> str:
    """How the inputs were drawn: `normal` where the finding is from before it said so."""
    return str(row.get("distribution", "normal"))


_PLAIN = ("experiment", "shapes", "dtype", "protocol", "target", "tracking", "trace", "device")
"""Overrides that the name, the source or the rows of a finding tell already."""


def _command(values: Values) -> str:
    """The command where it holds more than the words of a plain run: what was asked otherwise."""
    words = shlex.split(values["command"])
    keys = [word.partition("=")[0] for word in words if "=" in word]
    return values["command"] if any(key not in _PLAIN for key in keys) else ""


def _latency(row: Values) -> str:
    """With the status where the time is there but not `ok`."""
    if row["latency_us"] is None:
        return ""
    text = interval(Interval(**row["latency_us"]))
    return text if row["status"] == "ok" else f"{text} {row['status']}"


def _ended(row: Values) -> str:
    return f"{row['status']}: {row['reason']}" if row["reason"] else row["status"]


def _speedup(row: Values, band: float) -> str:
    found = row["speedup"]
    if found is None:
        return ""
    value = Interval(median=found["value"], low=found["low"], high=found["high"])
    return speedup(value, band)


def _number(value: float | None) -> str:
    return "" if value is None else number(value, 3)


def _source(values: Values) -> str:
    """Device, date, versions, commit and protocol: no table stands without them."""
    environment, protocol = values["environment"], values["protocol"]
    versions = [
        f"{name} {environment[key]}"
        for name, key in (
            ("driver", "driver"),
            ("CUDA", "cuda"),
            ("torch", "torch"),
            ("triton", "triton"),
        )
        if environment.get(key)
    ]
    ways = "; ".join(
        dict.fromkeys(
            ", ".join(part for part in (way["quantity"], way["state"], way["timer"]) if part)
            for way in protocol["latency"]
        )
    )
    sampling = f"protocol {protocol.get('name', '?')}"
    if protocol.get("rounds"):
        sampling += f", {protocol['rounds']} rounds"
    if protocol.get("processes", 1) > 1:
        sampling += f" over {protocol['processes']} fresh processes"
    if clocks := said(protocol.get("clocks", OBSERVE)):
        sampling += f", {clocks}"
    drawn = list(dict.fromkeys(map(_distribution, values["rows"])))
    if drawn != ["normal"]:
        sampling += f", inputs {' and '.join(drawn)}"
    device = environment.get("device") or environment.get("target") or "device unknown"
    copy = environment.get("copy_gbps")
    if copy:
        ways += f", copy in the same run {number(copy['median'])} GB/s"
    return (
        ", ".join(
            [device, values["date"], *versions, short_commit(values["commit"]), sampling, ways]
        )
        + "."
    )


def _claim(values: Values) -> str:
    claim = values["claim"]
    if claim is None:
        return ""
    lines = [f"Claim: **{claim['verdict']}**.", ""]
    for found in claim["expectations"]:
        seen = list(dict.fromkeys(found["seen"]))
        where = f" in {len(found['cells'])} cells" if len(found["cells"]) > 1 else ""
        text = seen[0] if len(seen) == 1 else f"first {seen[0]}"
        lines.append(f"- {found['expectation']}: {found['verdict']}{where}, {text}")
    return "\n".join(lines)
