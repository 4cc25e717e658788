import math
import random

import pytest
from kernel_lab.runner.records import Interval, Verdict
from kernel_lab.runner.statistics import (
    detectable,
    median_interval,
    paired_ratio,
    process_ratio,
    steady,
    trend,
    two_modes,
    verdict,
)


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


def in_processes(draw, truth, *, processes, between, within=0.01, rounds=20):
    """Rounds of two implementations whose ratio each process shifts by a draw of its own."""
    made = []
    for _ in range(processes):
        shift = draw.gauss(math.log(truth), between)
        a = [math.exp(shift + draw.gauss(0, within)) for _ in range(rounds)]
        made.append((a, [math.exp(draw.gauss(0, within)) for _ in range(rounds)]))
    return made


def test_what_a_process_draws_once_is_covered_over_processes_and_not_over_rounds():
    draw, truth, runs = random.Random(11), 1.02, 600
    by_process = by_round = 0
    for _ in range(runs):
        made = in_processes(draw, truth, processes=5, between=0.01)
        ratio = process_ratio(made)
        by_process += ratio.low <= truth <= ratio.high
        pooled = paired_ratio([v for a, _ in made for v in a], [v for _, b in made for v in b])
        by_round += pooled.low <= truth <= pooled.high
    assert 0.93 <= by_process / runs <= 0.97
    assert by_round / runs < 0.7


def test_every_process_counts_alike_however_many_rounds_it_took():
    few, many = ([2.0] * 2, [1.0] * 2), ([8.0] * 50, [1.0] * 50)
    assert process_ratio([few, many]).median == pytest.approx(4.0)


def test_one_process_or_rounds_that_do_not_pair_give_no_interval_over_processes():
    with pytest.raises(ValueError, match="two processes"):
        process_ratio([([1.0, 2.0], [1.0, 2.0])])
    with pytest.raises(ValueError, match="zip"):
        process_ratio([([1.0, 2.0], [1.0]), ([1.0], [1.0])])


@pytest.mark.parametrize("rounds", [20, 40, 60, 200])
@pytest.mark.parametrize("noise", [0.002, 0.02, 0.2])
def test_lognormal_noise_is_flagged_as_two_modes_in_at_most_5_percent(rounds, noise):
    draw = random.Random(rounds)
    flagged = sum(
        two_modes([50 * math.exp(draw.gauss(0, noise)) for _ in range(rounds)]) is not None
        for _ in range(600)
    )
    assert flagged <= 0.05 * 600


def test_two_modes_8_percent_apart_are_found_in_at_least_80_percent():
    draw, found = random.Random(2), 0
    for _ in range(400):
        values = [(50 if k % 2 else 54) * math.exp(draw.gauss(0, 0.02)) for k in range(40)]
        modes = two_modes(values)
        if modes is not None:
            found += 1
            assert modes[0] == pytest.approx(50, rel=0.03)
            assert modes[1] == pytest.approx(54, rel=0.03)
            assert 0.2 <= modes[2] <= 0.8
    assert found >= 0.8 * 400


def test_rare_slow_rounds_and_a_constant_are_no_second_mode():
    draw = random.Random(4)
    values = [50 * math.exp(draw.gauss(0, 0.005)) for _ in range(40)]
    assert two_modes([*values[:38], 80.0, 90.0]) is None
    assert two_modes([50.0] * 40) is None
    assert two_modes([50.0, 50.1] * 20) is None
    assert two_modes([50.0] * 10 + [60.0] * 9) is None
    assert two_modes([50.0] * 10 + [60.0] * 10) == pytest.approx((50.0, 60.0, 0.5))


def test_a_steady_rise_is_a_trend_and_its_size_is_told():
    assert trend([100 + k for k in range(16)]) == pytest.approx(113 / 102 - 1)
    assert trend([100 - k for k in range(16)]) < 0


def test_noise_and_tiny_changes_are_no_trend():
    draw = random.Random(5)
    found = [trend([draw.gauss(100, 3) for _ in range(16)]) for _ in range(400)]
    assert sum(value != 0 for value in found) <= 0.07 * 400
    assert trend([100 + 0.01 * k for k in range(16)]) == 0.0
    assert trend([1.0, 2.0, 3.0]) == 0.0


def test_too_few_values_are_neither_steady_nor_not():
    assert steady([1.0] * 7) is None
    assert steady([100.0] * 16) is True
    assert steady([100 + k for k in range(16)]) is False
