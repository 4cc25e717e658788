"""Medians with intervals, paired ratios and verdicts: pure arithmetic on round values.

Rounds are the unit: the samples inside a block share a clock, a temperature and a cache, and are
not independent.
"""

import math
import statistics
from collections.abc import Sequence

from scipy.special import bdtr, stdtrit

from .records import Interval, Verdict


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The median with a distribution-free interval from order statistics.

    Bounds are the k-th smallest and k-th largest value with the largest k whose binomial
    coverage 1 - 2 * P(X < k), X ~ B(n, 1/2), is at least `confidence`; with too few values for
    any such k they are the extremes. Raises ValueError on an empty sequence.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    count = len(ordered)
    rank = 0
    while rank + 1 <= count // 2 and 1 - 2 * bdtr(rank, count, 0.5) >= confidence:
        rank += 1
    k = max(rank - 1, 0)
    return Interval(median=statistics.median(ordered), low=ordered[k], high=ordered[count - 1 - k])


def paired_ratio(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = 0.95
) -> Interval:
    """The ratio of two implementations over rounds in which both ran, with a t interval.

    The mean of the log-ratios and its Student interval, taken back by exp: what both share in a
    round (clock, temperature, other work on the machine) cancels. `median` of the result is that
    geometric mean. Raises ValueError where the lengths differ or fewer than two rounds are there.
    """
    if len(numerator) != len(denominator):
        raise ValueError(f"{len(numerator)} rounds against {len(denominator)}: not paired")
    if len(numerator) < 2:
        raise ValueError("a ratio with an interval needs at least two rounds")
    logs = [math.log(a / b) for a, b in zip(numerator, denominator, strict=True)]
    mean = statistics.fmean(logs)
    half = half_width(logs, confidence)
    return Interval(median=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def half_width(values: Sequence[float], confidence: float = 0.95) -> float:
    """Half the width of the Student interval of the mean."""
    count = len(values)
    quantile = float(stdtrit(count - 1, 0.5 + confidence / 2))
    return quantile * statistics.stdev(values) / math.sqrt(count)


def verdict(speedup: Interval, band: float) -> Verdict:
    """What an interval of baseline / implementation says, with the indifference band `band`."""
    if speedup.low > 1 + band:
        return Verdict.faster
    if speedup.high < 1 / (1 + band):
        return Verdict.slower
    if speedup.low >= 1 / (1 + band) and speedup.high <= 1 + band:
        return Verdict.equal
    return Verdict.undecided


def detectable(speedup: Interval, band: float) -> float:
    """The smallest speed-up that an interval as wide as this one would have called `faster`."""
    half = math.log(speedup.high / speedup.low) / 2
    return (1 + band) * math.exp(half)


def geometric_mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return math.exp(statistics.fmean([math.log(v) for v in values])) if values else None
