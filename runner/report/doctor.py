"""`klab doctor --measure` as text of at most 100 columns, and as Markdown from its finding."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .doctor_finding import unasked
from .doctor_tables import Table, tables, verdict_of
from .text import markdown_table, number, short_commit

Row = Mapping[str, Any]

WIDTH = 100


def lines(values: Row) -> Iterator[str]:
    """The report: what was measured on, the tables with what each method includes, the checks."""
    yield from _wrapped(source(values))
    for table in tables(values):
        yield ""
        yield table.title
        yield from _plain(table)
        for line in table.legend:
            yield from _wrapped(line, indent="    ")
    yield ""
    for note in values["notes"]:
        yield from _wrapped(note)
    for check in values["checks"]:
        if check["verdict"] in ("differs", "explained"):
            yield from _wrapped(_said(check), indent="    ")
    for reason in unmeasured(values):
        yield from _wrapped(reason, indent="    ")


def _said(check: Row) -> str:
    subject = f"{check['subject']}: " if check["subject"] else ""
    reason = f"; {check['reason']}" if check["reason"] else ""
    return f"{check['verdict']}: {check['name']}, {subject}{check['seen']}{reason}"


def unmeasured(values: Row) -> list[str]:
    """Why checks were not made or not judged: each reason once, with its checks and their count."""
    found: dict[tuple[str, str], list[str]] = {}
    for check in values["checks"]:
        if check["verdict"] == "not_measured":
            way = verdict_of(check).replace("_", " ")
            found.setdefault((way, _bare(check["reason"])), []).append(check["name"])
    return [
        f"{way}: {', '.join(dict.fromkeys(names))} ({len(names)}): {reason}"
        for (way, reason), names in found.items()
    ]


def _bare(reasons: str) -> str:
    """`KEY: REASON; KEY: REASON` without the keys of times: one reason may hold for several."""
    bare = []
    for reason in reasons.split("; "):
        key, _, rest = reason.partition(": ")
        bare.append(rest if rest and key.endswith("_us") else reason)
    return "; ".join(dict.fromkeys(bare))


def source(values: Row) -> str:
    """Device, date, versions and commit."""
    environment = values["environment"]
    gpu, software = environment.get("gpu") or {}, environment.get("software") or {}
    host = environment.get("host") or {}
    device = gpu.get("name") or host.get("processor") or "device unknown"
    parts = [device, values["date"][:10]]
    parts += [
        f"{name} {found}"
        for name, found in (
            ("driver", gpu.get("driver")),
            ("CUDA", gpu.get("cuda_runtime")),
            ("torch", software.get("torch")),
            ("triton", software.get("triton")),
            *((tool, tool_version(values, tool)) for tool in ("nsys", "ncu")),
        )
        if found
    ]
    return ", ".join([*parts, short_commit(values["commit"])]) + "."


def tool_version(values: Row, tool: str) -> str | None:
    """The version of the tool that gave numbers; None where it gave none."""
    rows = values["rows"].get(tool) or []
    return next((r["version"] for r in rows if r["busy_us"] is not None and r["version"]), None)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)


def _plain(table: Table) -> Iterator[str]:
    """Columns as wide as their widest word; the first is cut where the line would be too long."""
    every = [table.heads, *table.lines]
    widths = [max(len(line[place]) for line in every) for place in range(len(table.heads))]
    over = sum(widths) + 2 * (len(widths) - 1) - WIDTH
    if over > 0:
        wide = max(range(table.left), key=lambda place: widths[place])
        widths[wide] = max(widths[wide] - over, 8)
    for line in every:
        parts = [
            _cut(text, width).ljust(width) if place < table.left else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(parts).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."


def full(name: str, values: Row) -> str:
    """Every table in Markdown, with what each method includes, and every check that stands out."""
    parts = [f"### {name}", f"What do the instruments say? {source(values)}"]
    for table in tables(values):
        parts += [
            f"**{table.title[0].upper()}{table.title[1:]}**",
            markdown_table(table.heads, table.lines, left=table.left),
        ]
        if table.legend:
            parts.append("\n".join(f"- {line}" for line in table.legend if line))
    said = [*values["notes"]]
    said += [_said(c) for c in values["checks"] if c["verdict"] in ("differs", "explained")]
    said += unmeasured(values)
    if said:
        parts.append("\n".join(f"- {line}" for line in said))
    return "\n\n".join(parts) + "\n"


def summary(name: str, values: Row) -> str:
    """The short table: a line a kind of check, with how far it was off at most."""
    heads = ["check", "limit", "subjects", "agree", "largest difference"]
    lines_ = []
    for check in dict.fromkeys(c["name"] for c in values["checks"]):
        own = [c for c in values["checks"] if c["name"] == check]
        judged = [c for c in own if c["verdict"] != "not_measured"]
        agreeing = sum(c["verdict"] == "agrees" for c in judged)
        explained = sum(c["verdict"] == "explained" for c in judged)
        agree = str(agreeing) + (f", {explained} explained" if explained else "")
        worst = max(judged, key=_off, default=None)
        seen = worst["seen"] if worst else own[0]["seen"] or _bare(own[0]["reason"])
        lines_.append([check, own[0]["limit"], str(len(judged)), agree if judged else "", seen])
    text = markdown_table(heads, lines_, left=2)
    return f"`{name}`: {source(values)}\n\n{text}\n"


def _off(check: Row) -> float:
    """The share in the parentheses of what was seen; 0 where there is none."""
    text = check["seen"].rpartition("(")[2].partition("%")[0]
    try:
        return abs(float(text))
    except ValueError:
        return 0.0


def closing(values: dict[str, Any], folder: Path, failures: Sequence[str]) -> Iterator[str]:
    """The end of the command's output: the verdict, and where the files are."""
    checks = values["checks"]
    counts = {
        word: sum(verdict_of(check) == verdict for check in checks)
        for word, verdict in (
            ("agree", "agrees"),
            ("explained", "explained"),
            ("differ", "differs"),
            ("not judged", "not_judged"),
            ("not measured", "not_measured"),
        )
    }
    if checks:
        yield "checks: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    for section, found in values["sections"].items():
        if found["reason"]:
            yield from _wrapped(f"{section} did not end well: {found['reason']}", indent="    ")
    seconds = sum(found["seconds"] for found in values["sections"].values())
    yield f"measured in {number(seconds, 3)} s; files: {folder}"
    if failures:
        yield f"exit code 1: {len(failures)} of them differ or did not end well"
    elif lacking := unasked(values):
        yield f"no finding without {', '.join(lacking)}: klab doctor --measure takes every section"
    else:
        yield f"keep it: klab finding {folder}"
