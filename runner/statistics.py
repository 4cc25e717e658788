"""Medians with intervals, paired ratios and verdicts: pure arithmetic on round values.

Rounds are the unit: the samples inside a block share a clock, a temperature and a cache, and are
not independent. Where a job repeats in fresh processes the process is the unit: what a process
draws once (addresses, a compiled choice, a clock) is shared by all of its rounds.
"""

import math
import statistics
from collections.abc import Sequence
from itertools import accumulate

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


def range_coverage(count: int) -> float:
    """How surely the range of so many values holds the median: 1 - 2 / 2^n, at five 93.75 %."""
    return 1 - 2 * 0.5**count


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


def process_ratio(
    processes: Sequence[tuple[Sequence[float], Sequence[float]]], confidence: float = 0.95
) -> Interval:
    """The ratio of two implementations over processes, each given as (numerator, denominator)
    rounds: a t interval of the processes' mean log-ratios, taken back by exp.

    Every process counts alike, however many rounds it took. Raises ValueError where the rounds of
    a process do not pair or there are fewer than two processes.
    """
    if len(processes) < 2:
        raise ValueError("a ratio with an interval needs at least two processes")
    means = [
        statistics.fmean([math.log(a / b) for a, b in zip(one, other, strict=True)])
        for one, other in processes
    ]
    mean, half = statistics.fmean(means), half_width(means, confidence)
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


FEWEST = 8
"""Values from which on a trend can be told from chance."""


def steady(values: Sequence[float]) -> bool | None:
    """Whether values show no trend; None where they are too few to tell."""
    return None if len(values) < FEWEST else not trend(values)


def trend(values: Sequence[float], least: float = 0.005) -> float:
    """How much positive values rise (or fall, below 0) over their course, as a share; 0 where
    that is no trend.

    A trend is a Mann-Kendall statistic beyond its 95 % bound, with the medians of the first and
    the last third at least `least` apart. Fewer than eight values show none.
    """
    count = len(values)
    if count < FEWEST:
        return 0.0
    ordered = list(values)
    signs = sum(
        (ordered[j] > ordered[i]) - (ordered[j] < ordered[i])
        for i in range(count)
        for j in range(i + 1, count)
    )
    third = count // 3
    change = statistics.median(ordered[-third:]) / statistics.median(ordered[:third]) - 1
    bound = 1.96 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return change if abs(signs) > bound and abs(change) >= least else 0.0


def two_modes(values: Sequence[float]) -> tuple[float, float, float] | None:
    """The two values around which positive samples stand, and the share at the lower one; None
    where one will do, or with fewer than 20 samples.

    The logs are cut in two where the sum of squares within the parts is smallest. It is a share
    of 1 - 2/pi of the whole for normal noise, and less by chance with few samples: below
    1 - 2/pi - 0.74 / sqrt(n), which simulated lognormal noise passes in at most 3 %, with no more
    than 15 % of the samples in the middle third between the parts' means, there are two modes. A
    part holds at least 15 % of the samples: rare slow ones are no mode. A drift over many times
    the noise fills the middle at large n, and at small n may pass for two modes. Less than 1 %
    apart they are left alone: clocks tick, and small times come in few values.
    """
    count = len(values)
    if count < 20:
        return None
    logs = sorted(math.log(v) for v in values)
    middle = statistics.fmean(logs)
    centred = [v - middle for v in logs]
    squares = math.fsum(v * v for v in centred)
    if max(values) < 1.01 * min(values):
        return None
    sums = list(accumulate(centred))
    least = math.ceil(0.15 * count)
    # the sum of the centred values is 0: what a cut after k takes off the squares is this
    explained, cut = max(
        (sums[k - 1] ** 2 * count / (k * (count - k)), k) for k in range(least, count - least + 1)
    )
    if 1 - explained / squares > 1 - 2 / math.pi - 0.74 / math.sqrt(count):
        return None
    low, high = statistics.fmean(logs[:cut]), statistics.fmean(logs[cut:])
    third = (high - low) / 3
    between = sum(low + third < v < high - third for v in logs)
    if high - low < math.log(1.01) or between > 0.15 * count:
        return None
    return math.exp(low), math.exp(high), cut / count
