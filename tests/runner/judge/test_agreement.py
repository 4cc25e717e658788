"""Each rule of agreement seen to hold, to bite, and to say why it could not be asked."""

import pytest
from kernel_lab.runner.judge import agreement
from kernel_lab.runner.judge.agreement import gap_us, judge_ladder, notes
from kernel_lab.runner.judge.instruments import Agreement, Measured, Traced, interval, repeated


def row(name="folded", *, cell="N1024-fp32", launches=1, reasons=None, **times):
    return Measured.of(
        {
            "cell": cell,
            "cell_id": f"c-{cell}",
            "implementation": name,
            "launches": launches,
            "reasons": reasons or {},
            **times,
        }
    )


def outside(tool, busy, name="folded", *, cell="N1024-fp32", **rest):
    values = {"cell_id": f"c-{cell}", "implementation": name, "tool": tool, "busy_us": busy}
    return Traced.of({**values, **rest})


def found(checks, name):
    (check,) = [check for check in checks if check.name == name]
    return check


def verdict(name, *traced, **times):
    return found(judge_ladder([row(**times)], traced), name).verdict


def around(us):
    return {"median": us, "low": us * 0.99, "high": us * 1.01}


def test_times_come_as_intervals_or_numbers_and_a_missing_one_stays_missing():
    made = row(period_us=around(10.0), host_us=7.0, stamp_us=None)
    assert made.us("period_us") == 10.0
    assert made.us("host_us") == 7.0
    assert made.us("stamp_us") is None
    assert interval(None) is None


@pytest.mark.parametrize(
    ("period", "stamp", "outcome"),
    [
        (100.0, 101.9, "agrees"),
        (100.0, 98.1, "agrees"),
        (100.0, 102.5, "differs"),
        (100.0, 97.5, "differs"),
        (5.0, 5.0, "agrees"),
        (4.9, 9.0, "not_measured"),
        (9.0, 4.9, "not_measured"),
    ],
)
def test_a_period_and_the_slope_between_stamps(period, stamp, outcome):
    assert verdict("period vs stamp", stamp_events_us=period, stamp_us=stamp) == outcome


def test_what_is_too_short_is_shown_all_the_same():
    check = found(judge_ladder([row(stamp_events_us=2.0, stamp_us=4.0)]), "period vs stamp")
    assert "2 us against 4 us (-50.00%)" in check.seen
    assert "below 5 us" in check.reason


def test_a_missing_time_is_not_measured_with_the_rows_own_reason():
    (missing,) = [
        c
        for c in judge_ladder([row(stamp_events_us=9.0, reasons={"stamp_us": "no compiler"})])
        if c.name == "period vs stamp"
    ]
    assert missing.verdict is Agreement.not_measured
    assert missing.reason == "stamp_us: no compiler"
    neither = found(judge_ladder([row()]), "period vs stamp")
    assert neither.reason == "stamp_events_us: absent; stamp_us: absent"


@pytest.mark.parametrize(
    ("busy", "theirs", "outcome"),
    [
        (100.0, 101.9, "agrees"),
        (100.0, 102.5, "differs"),
        (2.1, 2.1, "agrees"),
        (2.1, 2.2, "differs"),
        (1.9, 2.6, "not_measured"),
    ],
)
def test_busy_against_nsys(busy, theirs, outcome):
    assert verdict("busy vs nsys", outside("nsys", theirs), busy_us=busy) == outcome


@pytest.mark.parametrize(
    ("busy", "theirs", "outcome"),
    [
        (100.0, 104.9, "agrees"),
        (100.0, 106.0, "differs"),
        (100.0, 94.0, "differs"),
        (19.0, 30.0, "not_measured"),
    ],
)
def test_busy_against_ncu(busy, theirs, outcome):
    assert verdict("busy vs ncu", outside("ncu", around(theirs)), busy_us=busy) == outcome


def test_a_tool_is_held_against_its_own_subject_only():
    traced = [
        outside("nsys", 50.0, "eager"),
        outside("nsys", 60.0, cell="N9-fp32"),
        outside("ncu", 70.0),
    ]
    checks = judge_ladder([row(busy_us=100.0)], traced)
    assert found(checks, "busy vs nsys").verdict is Agreement.not_measured
    assert found(checks, "busy vs nsys").reason == "nsys saw nothing of it"
    assert found(checks, "busy vs ncu").verdict is Agreement.differs


def test_a_tool_that_was_not_there_says_why():
    traced = [outside("nsys", None, reason="nsys is not installed")]
    check = found(judge_ladder([row(busy_us=100.0)], traced), "busy vs nsys")
    assert check.verdict is Agreement.not_measured
    assert check.reason == "nsys is not installed"


@pytest.mark.parametrize(
    ("period", "busy", "outcome"),
    [(10.0, 9.0, "agrees"), (10.0, 10.1, "agrees"), (10.0, 10.4, "differs"), (1.0, 1.1, "differs")],
)
def test_a_period_holds_the_whole_work(period, busy, outcome):
    assert verdict("period holds busy", period_us=period, busy_us=busy) == outcome


def test_a_graph_within_two_percent_agrees_whatever_the_gap():
    checks = judge_ladder([row(graph_period_us=100.0, graph_us=99.0)])
    assert found(checks, "period vs graph").verdict is Agreement.agrees


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ({"graph_period_us": 11.0, "graph_us": 10.0, "launches": 2, "busy_us": 9.0}, "explained"),
        ({"graph_period_us": 14.0, "graph_us": 10.0, "launches": 2, "busy_us": 9.0}, "explained"),
        # more than two us a launch, or the other way
        ({"graph_period_us": 14.2, "graph_us": 10.0, "launches": 2, "busy_us": 9.0}, "differs"),
        ({"graph_period_us": 9.0, "graph_us": 10.0, "launches": 2, "busy_us": 9.0}, "differs"),
        # a graph that is shorter than the work lost some of it
        ({"graph_period_us": 11.0, "graph_us": 10.0, "launches": 2, "busy_us": 10.5}, "differs"),
        # nothing is explained by what nobody saw
        ({"graph_period_us": 11.0, "graph_us": 10.0, "launches": None, "busy_us": 9.0}, "differs"),
        ({"graph_period_us": 11.0, "graph_us": 10.0, "launches": 2}, "differs"),
    ],
)
def test_gaps_explain_a_graph_that_holds_the_work_and_is_shorter_than_the_stream(values, outcome):
    assert verdict("period vs graph", **values) == outcome


def test_what_explains_is_said():
    each = row(graph_period_us=11.0, graph_us=10.0, launches=2, busy_us=9.0)
    check = found(judge_ladder([each]), "period vs graph")
    assert check.reason == (
        "2 launches, each 0.50 us further apart in a stream than in a graph; busy is 9 us"
    )


def test_the_gap_is_of_the_smallest_subject_of_one_kernel_that_has_both_times():
    ladder = [
        row(launches=2, period_us=1.0, graph_us=0.1),
        row(launches=1, period_us=1.5),
        row(launches=1, period_us=3.0, graph_us=2.0),
        row(launches=1, period_us=2.0, graph_us=1.8),
    ]
    assert gap_us(ladder) == pytest.approx(0.2)
    assert gap_us(ladder[:2]) is None


def test_twice_the_launches_of_a_cell_are_said_beside_each_other():
    ladder = [
        row(launches=1, period_us=10.0),
        row("eager", launches=2, period_us=20.2),
        row("other", launches=3, period_us=31.0),
        row("eager", cell="N9-fp32", launches=2, period_us=99.0),
    ]
    said = notes(ladder)
    assert said == ["N1024-fp32: eager (2 launches) takes 2.020 times folded (1)"]
    assert "longer than its graph node" in notes([row(period_us=2.0, graph_us=1.5)])[0]


def test_every_check_says_what_it_compares_and_its_limit():
    for check in judge_ladder([row(period_us=9.0, busy_us=8.0)]):
        assert check.name
        assert " against " in check.compared
        assert check.limit
        assert check.subject == "N1024-fp32 folded"
        assert check.reason or check.verdict is not Agreement.not_measured


def test_repeats_are_gathered_by_subject_and_instrument():
    rows = [
        {"cell": "a", "cell_id": "c1", "implementation": "x", "period_us": us, "timer_us": None}
        for us in (10.0, 10.1, 10.05)
    ]
    (one,) = repeated([*rows, {"cell": "a", "cell_id": "c1", "implementation": "x"}])
    assert (one.key, one.us) == ("period_us", (10.0, 10.1, 10.05))
    assert one.spread == pytest.approx(0.01)


def test_the_limits_are_shares_and_microseconds():
    assert agreement.BUSY_NSYS == (0.02, 2.0)
    assert agreement.BUSY_NCU == (0.05, 20.0)
    assert agreement.PERIOD_STAMP == agreement.PERIOD_GRAPH == (0.02, 5.0)


def test_what_ncu_adds_to_the_smallest_kernel_explains_as_much_a_launch():
    small = row(cell="N1-fp32", busy_us=1.0)
    traced = [outside("ncu", 2.0, cell="N1-fp32"), outside("ncu", 25.7)]
    checks = judge_ladder([small, row(busy_us=24.3)], traced)
    check = next(c for c in checks if c.name == "busy vs ncu" and c.subject.startswith("N1024"))
    assert check.verdict is Agreement.explained
    assert check.reason == (
        "ncu adds 1.00 us to the smallest kernel; less that for 1 launches it is 24.7 us"
    )
    traced[1] = outside("ncu", 27.0)
    checks = judge_ladder([small, row(busy_us=24.3)], traced)
    check = next(c for c in checks if c.name == "busy vs ncu" and c.subject.startswith("N1024"))
    assert check.verdict is Agreement.differs
