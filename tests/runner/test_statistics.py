import math
import random

import pytest
from kernel_lab.runner.records import Interval, Verdict
from kernel_lab.runner.statistics import detectable, median_interval, paired_ratio, verdict


def test_median_interval_of_twenty_is_the_sixth_from_each_end():
    # the textbook value: n = 20 gives ranks 6 and 15 (coverage 95.9 %)
    interval = median_interval([float(v) for v in range(1, 21)])
    assert interval == Interval(median=10.5, low=6.0, high=15.0)


def test_median_interval_of_few_values_is_their_range():
    assert median_interval([3.0, 1.0, 2.0]) == Interval(median=2.0, low=1.0, high=3.0)


def test_median_interval_covers_the_median_of_a_skewed_distribution():
    draw = random.Random(7)
    truth = math.exp(0.0)
    covered = 0
    for _ in range(1000):
        interval = median_interval([draw.lognormvariate(0, 0.5) for _ in range(20)])
        covered += interval.low <= truth <= interval.high
    assert covered >= 930


def test_paired_ratio_cancels_what_a_round_shares():
    draw = random.Random(1)
    drift = [math.exp(draw.gauss(0, 0.3)) for _ in range(20)]
    slow = [2.0 * d * math.exp(draw.gauss(0, 0.002)) for d in drift]
    fast = [1.0 * d * math.exp(draw.gauss(0, 0.002)) for d in drift]
    ratio = paired_ratio(slow, fast)
    assert ratio.low <= 2.0 <= ratio.high
    assert ratio.high / ratio.low < 1.01


def test_paired_ratio_interval_covers_the_truth_nominally():
    draw = random.Random(3)
    covered = 0
    for _ in range(1000):
        a = [math.exp(draw.gauss(0.02, 0.03)) for _ in range(20)]
        b = [math.exp(draw.gauss(0.0, 0.03)) for _ in range(20)]
        ratio = paired_ratio(a, b)
        covered += ratio.low <= math.exp(0.02) <= ratio.high
    assert 930 <= covered <= 970


def test_paired_ratio_refuses_unpaired_rounds():
    with pytest.raises(ValueError, match="not paired"):
        paired_ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.02, 1.05, Verdict.faster),
        (0.90, 0.95, Verdict.slower),
        (0.995, 1.005, Verdict.equal),
        (0.98, 1.03, Verdict.undecided),
        (1.005, 1.03, Verdict.undecided),
    ],
)
def test_verdict_with_a_band_of_one_percent(low, high, expected):
    assert verdict(Interval(median=math.sqrt(low * high), low=low, high=high), 0.01) is expected


def test_detectable_grows_with_the_interval():
    narrow = detectable(Interval(median=1, low=0.999, high=1.001), 0.01)
    wide = detectable(Interval(median=1, low=0.95, high=1.05), 0.01)
    assert 1.01 < narrow < 1.012
    assert wide > 1.05
