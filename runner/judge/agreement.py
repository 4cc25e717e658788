"""Whether instruments agree: what one says of a subject held against what another says. Pure.

Two times agree within a share of the second. A pair that cannot be held against each other is
`not_measured`, with the reason.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .instruments import Agreement, Check, Measured, Traced

BUSY_NSYS = (0.02, 2.0)
BUSY_NCU = (0.05, 20.0)
PERIOD_STAMP = (0.02, 5.0)
PERIOD_GRAPH = (0.02, 5.0)
"""Each: the share that two may differ by, and the us from which that is asked."""

STREAM_GAP_US = 2.0
"""How much later a launch in a stream may come after the one before than a node of a graph does:
published for an H100 are 2.1 and 1.3 us; a kernel that moves a few MB shows up to 1.8 us more."""

BUSY_ABOVE_PERIOD = 0.02
"""A stream runs one call after another: the period holds the whole work. Less this share."""


def judge_ladder(ladder: Sequence[Measured], traced: Sequence[Traced] = ()) -> list[Check]:
    """The instruments of every subject against each other, and against tools from outside."""
    checks = []
    for each in ladder:
        # a subject would always be explained by its own
        more = ncu_more_us([other for other in ladder if other is not each], traced)
        checks += [
            _within("period vs stamp", each, "stamp_events_us", "stamp_us", PERIOD_STAMP),
            _graph(each),
            _holds_the_work(each),
            _outside(each, traced, "nsys", BUSY_NSYS),
            _less(_outside(each, traced, "ncu", BUSY_NCU), each, traced, more),
        ]
    return checks


def gap_us(ladder: Sequence[Measured]) -> float | None:
    """How much longer a launch of the smallest one-kernel subject takes in a stream than in a
    graph, in us; None where no such subject has both times."""
    both = [
        (period, period - graph)
        for each in ladder
        if each.launches == 1
        if (period := each.us("period_us")) is not None
        if (graph := each.us("graph_us")) is not None
    ]
    return min(both)[1] if both else None


def ncu_more_us(ladder: Sequence[Measured], traced: Sequence[Traced]) -> float | None:
    """How much longer ncu says that the smallest one-kernel subject takes, in us: it counts from
    before the kernel starts. None where no such subject has both times."""
    found = [
        (busy, theirs.busy_us - busy)
        for each in ladder
        if each.launches == 1 and (busy := each.us("busy_us")) is not None
        if (theirs := _theirs(each, traced, "ncu")) is not None and theirs.busy_us is not None
    ]
    return min(found)[1] if found else None


def _theirs(each: Measured, traced: Sequence[Traced], tool: str) -> Traced | None:
    who = (each.cell_id, each.implementation)
    return next(
        (t for t in traced if t.tool == tool and (t.cell_id, t.implementation) == who), None
    )


def _less(check: Check, each: Measured, traced: Sequence[Traced], more: float | None) -> Check:
    """A difference that is what ncu adds to every kernel is explained."""
    busy, theirs = each.us("busy_us"), _theirs(each, traced, "ncu")
    if check.verdict is not Agreement.differs or more is None or not each.launches:
        return check
    if busy is None or theirs is None or theirs.busy_us is None:
        return check
    less = theirs.busy_us - each.launches * more
    if less <= 0 or abs(busy / less - 1) > BUSY_NCU[0]:
        return check
    return replace(
        check,
        verdict=Agreement.explained,
        reason=f"ncu adds {more:.2f} us to the smallest kernel; less that for {each.launches} "
        f"launches it is {less:.4g} us",
    )


def _absent(each: Measured, *keys: str) -> str:
    """Why one of the times is not there; empty: all are."""
    lacking = [key for key in keys if each.us(key) is None]
    return "; ".join(f"{key}: {each.reasons.get(key, 'absent')}" for key in lacking)


def _check(
    name: str, limit: tuple[float, float], subject: str, one: str, other: str, **rest: Any
) -> Check:
    share, least = limit
    return Check(
        name=name,
        compared=f"{one} against {other}",
        limit=f"within {share:.3g} of it from {least:g} us up",
        subject=subject,
        **rest,
    )


def unmeasured(reason: str) -> dict[str, Any]:
    """What a check that cannot be made comes to."""
    return {"seen": "", "verdict": Agreement.not_measured, "reason": reason}


def _held(one: float, other: float, limit: tuple[float, float]) -> dict[str, Any]:
    """Two times against each other."""
    share, least = limit
    off = one / other - 1
    seen = f"{one:.4g} us against {other:.4g} us ({off:+.2%})"
    if min(one, other) < least:
        reason = f"below {least:g} us it is not asked"
        return {"seen": seen, "verdict": Agreement.not_measured, "reason": reason}
    return {"seen": seen, "verdict": Agreement.agrees if abs(off) <= share else Agreement.differs}


def _within(name: str, each: Measured, key: str, other: str, limit: tuple[float, float]) -> Check:
    one, two = each.us(key), each.us(other)
    if one is None or two is None:
        outcome = unmeasured(_absent(each, key, other))
    else:
        outcome = _held(one, two, limit)
    return _check(name, limit, each.name, key, other, **outcome)


def _graph(each: Measured) -> Check:
    """A launch in a stream and a node in a graph stand apart by different gaps, and both hold the
    work: a difference of no more than STREAM_GAP_US a launch is that of the gaps."""
    name = "period vs graph"
    found = _within(name, each, "graph_period_us", "graph_us", PERIOD_GRAPH)
    period, graph, busy = each.us("graph_period_us"), each.us("graph_us"), each.us("busy_us")
    if found.verdict is not Agreement.differs or period is None or graph is None:
        return found
    if busy is None or not each.launches or graph < busy * (1 - BUSY_ABOVE_PERIOD):
        return found
    gap = (period - graph) / each.launches
    if not 0 <= gap <= STREAM_GAP_US:
        return found
    return replace(
        found,
        verdict=Agreement.explained,
        reason=f"{each.launches} launches, each {gap:.2f} us further apart in a stream than in a "
        f"graph; busy is {busy:.4g} us",
    )


def _holds_the_work(each: Measured) -> Check:
    period, busy = each.us("period_us"), each.us("busy_us")
    if period is None or busy is None:
        outcome: dict[str, Any] = unmeasured(_absent(each, "period_us", "busy_us"))
    else:
        enough = period >= busy * (1 - BUSY_ABOVE_PERIOD)
        outcome = {
            "seen": f"{period:.4g} us, {busy:.4g} us ({period / busy - 1:+.2%})",
            "verdict": Agreement.agrees if enough else Agreement.differs,
        }
    return Check(
        name="period holds busy",
        compared="period_us against busy_us",
        limit=f"no shorter, less {BUSY_ABOVE_PERIOD:.3g}",
        subject=each.name,
        **outcome,
    )


def _outside(
    each: Measured, traced: Sequence[Traced], tool: str, limit: tuple[float, float]
) -> Check:
    busy, theirs = each.us("busy_us"), _theirs(each, traced, tool)
    if busy is None:
        outcome = unmeasured(_absent(each, "busy_us"))
    elif theirs is None or theirs.busy_us is None:
        outcome = unmeasured((theirs.reason if theirs else "") or f"{tool} saw nothing of it")
    else:
        outcome = _held(busy, theirs.busy_us, limit)
    return _check(f"busy vs {tool}", limit, each.name, "busy_us", tool, **outcome)


def notes(ladder: Sequence[Measured]) -> list[str]:
    """What is said and not judged: twice the launches in one cell, against twice the period; and
    the gap that explains a difference between stream and graph."""
    said = []
    gap = gap_us(ladder)
    if gap is not None:
        said.append(f"a launch of the smallest kernel: {gap:+.3g} us longer than its graph node")
    for one in ladder:
        for two in ladder:
            if one.cell_id != two.cell_id or not one.launches:
                continue
            first, second = one.us("period_us"), two.us("period_us")
            if two.launches == 2 * one.launches and first is not None and second is not None:
                said.append(
                    f"{one.cell}: {two.implementation} ({two.launches} launches) takes "
                    f"{second / first:.3f} times {one.implementation} ({one.launches})"
                )
    return said
