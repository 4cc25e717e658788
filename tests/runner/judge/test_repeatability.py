"""Pairs and repeats: each limit from both sides."""

import pytest
from kernel_lab.runner.judge.instruments import Agreement, Repeated
from kernel_lab.runner.judge.repeatability import judge_pairs, judge_repeats


def same(pairs, faster=0, slower=0):
    return {"kind": "same", "case": "x", "pairs": pairs, "faster": faster, "slower": slower}


def more(pairs, found, turned=0):
    return {"kind": "more", "case": "x", "pairs": pairs, "found": found, "reversed": turned}


def of_same(*rows):
    return judge_pairs(rows, gpu=True)[0]


def of_more(*rows, gpu=True):
    return judge_pairs(rows, gpu=gpu)[1]


@pytest.mark.parametrize(
    ("faster", "slower", "outcome"),
    [(0, 0, "agrees"), (5, 5, "agrees"), (6, 5, "differs"), (0, 11, "differs"), (11, 0, "differs")],
)
def test_a_function_against_itself_is_told_apart_in_one_of_twenty_at_most(faster, slower, outcome):
    assert of_same(same(100), same(100, faster, slower)).verdict == outcome


@pytest.mark.parametrize(
    ("found", "turned", "outcome"),
    [(100, 0, "agrees"), (80, 0, "agrees"), (79, 0, "differs"), (99, 1, "differs")],
)
def test_a_true_difference_is_found_and_never_turned_round(found, turned, outcome):
    assert of_more(more(100, found, turned)).verdict == outcome


def test_on_a_cpu_a_difference_is_said_and_not_judged():
    check = of_more(more(10, 1), gpu=False)
    assert check.verdict is Agreement.not_measured
    assert check.seen.startswith("1 of 10 (10.0%)")
    assert "cpu" in check.reason


@pytest.mark.parametrize(("pairs", "judged"), [(4, False), (59, False), (60, True)])
def test_few_pairs_of_the_same_judge_nothing(pairs, judged):
    check = of_same(same(pairs - 2), same(2, 1))
    assert (check.verdict is Agreement.agrees) is judged
    if not judged:
        assert check.verdict is Agreement.not_measured
        assert f"{pairs} pairs are too few to judge 5%" in check.reason


def test_no_pairs_are_not_measured():
    for check in judge_pairs([], gpu=True):
        assert check.verdict is Agreement.not_measured
        assert check.reason == "no pairs were measured"


def test_the_kinds_are_counted_apart():
    check = of_same(same(60), more(10, 0, turned=10))
    assert check.seen == "0 of 60 (0.00%)"


def repeats(*us, key="period_us"):
    return Repeated(cell="N1", cell_id="c1", implementation="folded", key=key, us=us)


@pytest.mark.parametrize(
    ("us", "outcome"),
    [
        ((100.0, 101.4, 100.5), "agrees"),
        ((100.0, 101.6, 100.5), "differs"),
        ((4.0, 9.0), "not_measured"),
        ((100.0,), "not_measured"),
    ],
)
def test_fresh_processes_agree_within_a_share(us, outcome):
    (check,) = judge_repeats([repeats(*us)])
    assert check.verdict == outcome
    assert check.reason or outcome != "not_measured"


def test_other_instruments_are_no_check_of_ours():
    assert judge_repeats([repeats(1.0, 9.0, key="do_bench_us")]) == []


def test_on_a_cpu_repeats_are_said_and_not_judged():
    (check,) = judge_repeats([repeats(100.0, 200.0, key="wall_us")])
    assert check.verdict is Agreement.not_measured
    assert "100.00%" in check.seen
