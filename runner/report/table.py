"""The job as text within 100 columns: results by cell, the claim, what failed and why.

Lines are laid out here and only coloured by rich, so that a pipe, a log and a terminal hold the
same characters.
"""

import io
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ..records import FAILED, ClaimVerdict, Job, Record, Status, Verdict
from ..results import Expected, Row, band, expected, noisy_cells, rows, speedup_geomean
from .footnotes import footnotes
from .ran import ran
from .text import ABSENT, interval, number, percent, ranges, rate, speedup

WIDTH = 100

_LISTED = 12
"""Cells listed under an expectation that did not hold."""

_HEAD = ("implementation", "latency us [95 %]", "speed-up [95 %]", "verdict", "rate")
_TAIL = ("of copy", "of floor", "launches")
_COLOURS = {
    Verdict.faster: "green",
    Verdict.slower: "red",
    Verdict.undecided: "yellow",
    ClaimVerdict.supported: "green",
    ClaimVerdict.refuted: "red",
    ClaimVerdict.undecided: "yellow",
}


def render(job: Job, console: Console) -> None:
    """Prints the job's results, claim, failures and footnotes."""
    for line in lines(job):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def as_text(job: Job) -> str:
    """The same without colour, e.g. for a file."""
    stream = io.StringIO()
    render(job, Console(file=stream, width=WIDTH, color_system=None))
    return stream.getvalue()


def lines(job: Job) -> Iterator[Text]:
    """The report line by line."""
    yield from _results(job)
    yield from _claim(job)
    yield from _failures(job)
    yield from ran(job)
    yield from footnotes(job)


def _results(job: Job) -> Iterator[Text]:
    table = rows(job)
    shown = (
        any(r.share_of_copy for r in table),
        any(r.share_of_floor for r in table),
        any(r.launches is not None for r in table),
    )
    heads = (*_HEAD, *(head for head, there in zip(_TAIL, shown, strict=True) if there))
    if any(ranges(r.timing) for r in job.records if r.timing):
        heads = tuple("latency us [range]" if head == _HEAD[1] else head for head in heads)
    baselines = frozenset(compared.against for compared in job.judgement.comparisons)
    margin = band(job)
    filled, widths = _filled(table, heads, baselines, margin)
    if sum(widths) + len(widths) - 1 > WIDTH:
        # results.csv has it
        heads = tuple(head for head in heads if head != "of floor")
        filled, widths = _filled(table, heads, baselines, margin)
    yield Text(_laid_out(heads, widths), style="bold")
    previous = ""
    for row in table:
        if row.cell.id != previous:
            previous = row.cell.id
            yield Text.assemble((row.cell.workload.label, "cyan"), (f"  {row.cell.id}", "dim"))
        yield _result_line(row, filled[id(row)], widths)
    yield Text()


def _filled(
    table: tuple[Row, ...], heads: tuple[str, ...], baselines: frozenset[str], margin: float
) -> tuple[dict[int, tuple[str, ...]], list[int]]:
    """The columns of each row, and the widths that the timed ones need."""
    filled = {id(row): _columns(row, heads, baselines, margin) for row in table}
    timed = [filled[id(row)] for row in table if row.latency]
    names = [f"  {row.record.implementation}" for row in table]
    first, *others = heads
    widths = [max(map(len, [first, *names]))]
    widths += [
        max(map(len, [head, *(columns[place] for columns in timed)]))
        for place, head in enumerate(others, 1)
    ]
    return filled, widths


def _columns(
    row: Row, heads: tuple[str, ...], baselines: frozenset[str], margin: float
) -> tuple[str, ...]:
    record, compared = row.record, row.comparison
    bound = record.cost.bound if record.cost else None
    tail = {
        "of copy": percent(row.share_of_copy) + ("*" if row.l2_absorbed else ""),
        "of floor": percent(row.share_of_floor),
        "launches": ABSENT if row.launches is None else str(row.launches),
    }
    return (
        f"  {record.implementation}",
        interval(row.latency),
        speedup(compared.speedup, margin) if compared else ABSENT,
        compared.verdict.value if compared else _baseline(row, baselines),
        rate(row.gbps, row.tflops, bound or row.likely_bound),
        *(tail[head] for head in heads if head in tail),
    )


def _baseline(row: Row, baselines: frozenset[str]) -> str:
    return "baseline" if row.record.implementation in baselines and row.latency else ABSENT


def _laid_out(columns: tuple[str, ...], widths: list[int]) -> str:
    left = {0, 1, 2, 3}
    padded = [
        text.ljust(width) if place in left else text.rjust(width)
        for place, (text, width) in enumerate(zip(columns, widths, strict=True))
    ]
    gap = "  " if sum(widths) + 2 * len(widths) - 2 <= WIDTH else " "
    return gap.join(padded).rstrip()


def _result_line(row: Row, columns: tuple[str, ...], widths: list[int]) -> Text:
    record = row.record
    state = f"{record.status.value}: {record.reason}" if record.reason else record.status.value
    if row.latency is None:
        text = f"{columns[0].ljust(widths[0])}  {state}"
        return Text(_short(text), style="red" if record.status in FAILED else "dim")
    line = _laid_out(columns, widths)
    if record.status != Status.ok:
        line += f"\n{' ' * (widths[0] + 2)}{_short(state, WIDTH - widths[0] - 2)}"
    verdict = row.comparison.verdict if row.comparison else None
    text = Text(line)
    if verdict in _COLOURS:
        text.highlight_words([verdict.value], style=_COLOURS[verdict])
    return text


def _short(text: str, width: int = WIDTH) -> str:
    text = " ".join(text.split("\n")[0:1])
    return text if len(text) <= width else text[: width - 3] + "..."


def _claim(job: Job) -> Iterator[Text]:
    if job.question:
        yield Text(job.question, style="bold")
    claim = job.judgement.claim
    if claim is not None:
        yield Text.assemble("  claim: ", (claim.verdict.value, _COLOURS.get(claim.verdict, "")))
        for entry in expected(job):
            yield from _expectation(entry)
    for name in dict.fromkeys(c.implementation for c in job.judgement.comparisons):
        mean, count, total = speedup_geomean(job, name)
        noisy = noisy_cells(job, name)
        if total < 2 or (mean is None and not noisy):
            continue
        against = next(c.against for c in job.judgement.comparisons if c.implementation == name)
        over = f"geometric mean of {count} of {total} cells"
        doubtful = sum(
            c.verdict is Verdict.undecided
            for c in job.judgement.comparisons
            if c.implementation == name
        )
        doubtful -= noisy  # which are undecided too, and not in the mean
        over += f", {doubtful} of them undecided" if doubtful > 0 else ""
        over += f", {noisy} noisy left out" if noisy else ""
        value = f"{number(mean, 3)}x" if mean is not None else "no mean against"
        yield Text(f"  {name}: {value} {against}, {over}")
    if job.question or claim is not None or job.judgement.comparisons:
        yield Text()


def _expectation(entry: Expected) -> Iterator[Text]:
    """One line; where it did not hold, one line a cell, up to a number that can be read."""
    verdict = (entry.verdict.value, _COLOURS.get(entry.verdict, ""))
    if len(entry.cells) < 2:
        where = f"{entry.cells[0]}: " if entry.cells else ""
        text = _short(entry.seen[0], WIDTH)
        yield Text.assemble(f"  {where}{entry.expectation}: ", verdict, f", {text}")
        return
    alike = dict.fromkeys(entry.seen)
    shown = next(iter(alike)) if len(alike) == 1 else f"first {entry.seen[0]}"
    listed = entry.verdict in (ClaimVerdict.refuted, ClaimVerdict.undecided)
    more = "" if listed else f", {shown}"
    yield Text.assemble(f"  {entry.expectation}: ", verdict, f" in {len(entry.cells)} cells{more}")
    if listed:
        for label, seen in list(zip(entry.cells, entry.seen, strict=True))[:_LISTED]:
            yield Text(f"    {label}: {seen}")
        if len(entry.cells) > _LISTED:
            yield Text(f"    and {len(entry.cells) - _LISTED} more: judgement.json")


def _failures(job: Job) -> Iterator[Text]:
    """One entry for records that ended alike: who, how, why, where, and how to see it again."""
    alike: dict[tuple[str, str, str], list[Record]] = {}
    for row in rows(job):
        record = row.record
        if record.status in (Status.ok, Status.empty, Status.checked):
            continue
        alike.setdefault((record.implementation, record.status.value, record.reason), []).append(
            record
        )
    if not alike:
        return
    yield Text("Not ok", style="bold")
    for (name, status, reason), records in alike.items():
        style = "red" if Status(status) in FAILED else "yellow"
        where = records[0].cell.workload.label
        if len(records) > 1:
            where += f" and {len(records) - 1} more"
        yield Text.assemble(f"  {name}  ", (status, style), f"  {where}")
        if reason:
            yield from (Text(f"    {part}") for part in reason.strip().split("\n")[:4])
        # what the plan left out would be left out again
        if records[0].repro and records[0].phase != "plan":
            yield Text(f"    {records[0].repro}", style="dim")
    yield Text()
