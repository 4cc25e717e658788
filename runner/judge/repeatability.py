"""Whether the same comes out twice: pairs of one function, pairs that differ, repeats. Pure."""

from collections.abc import Sequence
from typing import Any

from .agreement import unmeasured
from .instruments import Agreement, Check, Repeated, Row

REPEATS = (0.015, 5.0)
"""The share that fresh processes may differ by, and the us from which that is asked."""

WRONG_PAIRS = 0.05
"""Of pairs of one and the same function at most this share may be told apart."""

FEWEST_PAIRS = 60
"""Pairs of one and the same function from which on that share is judged: of 60, 3 may be wrong."""

FOUND_PAIRS = 0.80
"""Of pairs that differ at least this share must be told apart, and none the wrong way."""

_ON_CPU = "on cpu the other work of the machine decides how far times spread, so no limit is set"


def judge_pairs(rows: Sequence[Row], *, gpu: bool) -> list[Check]:
    """Pairs of the same function, and pairs with a true difference."""
    same = [row for row in rows if row["kind"] == "same"]
    more = [row for row in rows if row["kind"] == "more"]
    return [_same(same), _more(more, gpu=gpu)]


def _same(rows: Sequence[Row]) -> Check:
    pairs = sum(row["pairs"] for row in rows)
    if 0 < pairs < FEWEST_PAIRS:
        outcome: dict[str, Any] = unmeasured(
            f"{pairs} pairs are too few to judge {WRONG_PAIRS:.0%}, {FEWEST_PAIRS} are asked for"
        )
    elif pairs:
        wrong = sum(row["faster"] + row["slower"] for row in rows)
        fine = wrong <= WRONG_PAIRS * pairs
        outcome = {
            "seen": f"{wrong} of {pairs} ({wrong / pairs:.2%})",
            "verdict": Agreement.agrees if fine else Agreement.differs,
        }
    else:
        outcome = unmeasured("no pairs were measured")
    return Check(
        name="the same twice",
        compared="a function against itself: called faster or slower",
        limit=f"at most {WRONG_PAIRS:.0%}",
        **outcome,
    )


def _more(rows: Sequence[Row], *, gpu: bool) -> Check:
    pairs = sum(row["pairs"] for row in rows)
    if pairs:
        found, turned = (sum(row[key] for row in rows) for key in ("found", "reversed"))
        seen = f"{found} of {pairs} ({found / pairs:.1%}), {turned} the wrong way"
        fine = found >= FOUND_PAIRS * pairs and not turned
        outcome: dict[str, Any] = {
            "seen": seen,
            "verdict": Agreement.agrees if fine else Agreement.differs,
        }
        if not gpu:
            outcome["verdict"] = Agreement.not_measured
            outcome["reason"] = _ON_CPU
    else:
        outcome = unmeasured("no pairs were measured")
    return Check(
        name="a true difference",
        compared="2 % more elements: found, and never the wrong way",
        limit=f"at least {FOUND_PAIRS:.0%}, 0 reversed",
        **outcome,
    )


def judge_repeats(found: Sequence[Repeated]) -> list[Check]:
    """Our own time over fresh processes; the other instruments' spreads are said beside it."""
    share, least = REPEATS
    checks = []
    for each in found:
        if each.key not in ("period_us", "wall_us"):
            continue
        if each.spread is None:
            outcome: dict[str, Any] = unmeasured("fewer than two processes")
        else:
            outcome = {
                "seen": f"{min(each.us):.4g} to {max(each.us):.4g} us ({each.spread:.2%})",
                "verdict": Agreement.agrees if each.spread <= share else Agreement.differs,
            }
            if min(each.us) < least:
                outcome["verdict"] = Agreement.not_measured
                outcome["reason"] = f"below {least:g} us it is not asked"
            if each.key == "wall_us":
                outcome["verdict"] = Agreement.not_measured
                outcome["reason"] = _ON_CPU
        checks.append(
            Check(
                name="repeats",
                compared=f"{each.key} of {len(each.us)} processes, largest against smallest",
                limit=f"within {share:.3g} from {least:g} us up",
                subject=f"{each.cell} {each.implementation}",
                **outcome,
            )
        )
    return checks
