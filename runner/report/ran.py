"""What ran, in one line a way: of each implementation the kernels of a call, and in how many cells.

A change of the library's choice over sizes is a line of its own, so that a cliff can be read.
"""

import textwrap
from collections.abc import Iterator

from rich.text import Text

from ..judge.stages import short
from ..records import Evidence, Job, Launch
from ..results import implementations, rows
from ..worker.tiles import choice

_WAYS = 5
"""Ways of one implementation that are printed; `klab show` has every launch."""

_NAME = 34
_WIDTH = 100


def ran(job: Job) -> Iterator[Text]:
    """Lines for the report; none where nothing was traced."""
    ways: dict[str, dict[str, list[str]]] = {}
    for row in rows(job):
        if row.traced is not None and row.traced.launches:
            of = ways.setdefault(row.record.implementation, {})
            of.setdefault(way(row.traced), []).append(row.cell.workload.label)
    if not ways:
        return
    yield Text("What ran in a call, by the trace", style="bold")
    for name in implementations(job):
        for number, (text, labels) in enumerate(ways.get(name, {}).items()):
            if number == _WAYS:
                more = len(ways[name]) - _WAYS
                yield Text(f"  {name}: {more} more ways, see klab show", style="dim")
                break
            where = labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"
            *first, last = textwrap.wrap(f"{name}: {text}", _WIDTH - 2, subsequent_indent="    ")
            yield from (Text(f"  {line}") for line in first)
            gap = "  " if len(last) + len(where) + 4 <= _WIDTH else "\n      "
            yield Text.assemble(f"  {last}", (gap + where, "dim"))
    yield Text()


def way(evidence: Evidence) -> str:
    """The launches of a call in order; the same one after another is counted."""
    parts: list[tuple[str, int]] = []
    for launch in evidence.launches:
        text = _said(launch)
        if parts and parts[-1][0] == text:
            parts[-1] = (text, parts[-1][1] + 1)
        else:
            parts.append((text, 1))
    return " + ".join(text if count == 1 else f"{count}x {text}" for text, count in parts)


def _said(launch: Launch) -> str:
    told = choice(launch.name).text
    name = short(launch).rpartition("::")[2]
    if told:
        name = name.split("_")[0]  # the rest of a library's name is what was told
    family = "" if launch.family in ("unknown", name) else f"{launch.family} "
    name = name if len(name) <= _NAME else f"{name[: _NAME - 2]}.."
    return f"{family}{name}{' ' + told if told else ''}"
