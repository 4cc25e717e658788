import dataclasses

import pytest
from kernel_lab.runner.judge.usable import usable
from kernel_lab.runner.judge.verdicts import compare, judge
from kernel_lab.runner.records import Status, Verdict


def verdicts(made, *records):
    return {(c.cell_id, c.implementation): c for c in compare(list(records), made.experiment())}


@pytest.mark.parametrize(
    ("latency", "noise", "verdict"),
    [
        (5.0, 0.001, Verdict.faster),
        (9.8, 0.0005, Verdict.faster),
        (20.0, 0.001, Verdict.slower),
        (10.03, 0.0005, Verdict.equal),
        (10.0, 0.2, Verdict.undecided),
        (9.9, 0.005, Verdict.undecided),
    ],
)
def test_a_verdict_comes_from_the_paired_interval(made, latency, noise, verdict):
    base = made.record("eager", latency=10.0, noise=noise)
    other = made.record("fused", latency=latency, noise=noise, seed=1)
    (found,) = compare([base, other], made.experiment())
    assert found.verdict is verdict
    assert found.against == "eager"
    assert found.rounds == 20
    assert found.state == "cold"
    assert found.speedup.low <= found.speedup.median <= found.speedup.high
    assert found.speedup.median == pytest.approx(10.0 / latency, rel=0.1)
    assert found.detectable > 1.01


def test_each_cell_has_its_own_baseline(made):
    found = verdicts(
        made,
        made.record("eager", n=1, latency=10.0),
        made.record("fused", n=1, latency=5.0),
        made.record("eager", n=2, latency=10.0),
        made.record("fused", n=2, latency=20.0),
        made.record("fused", n=3, latency=1.0),
    )
    assert {key[0]: c.verdict for key, c in found.items()} == {
        made.cell(1).id: Verdict.faster,
        made.cell(2).id: Verdict.slower,
    }


@pytest.mark.parametrize(
    "status", [Status.invalid, Status.wrong_values, Status.crashed, Status.unsupported]
)
@pytest.mark.parametrize("which", ["eager", "fused"])
def test_what_has_no_valid_time_is_in_no_comparison(made, status, which):
    records = []
    for name in ("eager", "fused"):
        bad = name == which
        latency = 10.0 if not bad or status is Status.invalid else None
        records.append(made.record(name, latency=latency, status=status if bad else None))
    assert compare(records, made.experiment()) == []


def test_noisy_times_are_shown_and_decide_nothing(made):
    (found,) = compare(
        [
            made.record("eager", latency=10.0),
            made.record("fused", latency=5.0, status=Status.noisy),
        ],
        made.experiment(),
    )
    assert found.verdict is Verdict.undecided
    assert found.speedup.median == pytest.approx(2.0, rel=0.01)


def test_a_noisy_baseline_decides_nothing_either(made):
    (found,) = compare(
        [
            made.record("eager", latency=10.0, status=Status.noisy),
            made.record("fused", latency=5.0),
        ],
        made.experiment(),
    )
    assert found.verdict is Verdict.undecided


def test_rounds_that_do_not_pair_are_no_comparison(made):
    # the baseline was timed anew without the other, after that one had failed and come back
    found = compare(
        [
            made.record("eager", latency=10.0, rounds=20),
            made.record("fused", latency=5.0, rounds=30),
        ],
        made.experiment(),
    )
    assert found == []


def test_a_single_round_has_no_interval_and_no_verdict(made):
    pair = [
        made.record("eager", latency=10.0, rounds=1),
        made.record("fused", latency=5.0, rounds=1),
    ]
    assert compare(pair, made.experiment()) == []


@pytest.mark.parametrize("host", [{"eager": 4.0, "fused": 40.0}, {"eager": 40.0, "fused": 40.0}])
def test_launch_bound_times_have_no_winner(made, host):
    """T09: the ratio of device times is shown, and is not what a stream of such calls takes."""
    pair = [
        made.record("eager", latency=30.0, host_us=host["eager"]),
        made.record("fused", latency=10.0, host_us=host["fused"]),
    ]
    (found,) = compare(pair, made.experiment())
    assert found.verdict is Verdict.undecided
    assert found.speedup.median == pytest.approx(3.0, rel=0.01)
    assert found.note.startswith("launch-bound (")
    assert "fused" in found.note
    assert ("eager" in found.note) == (host["eager"] > 30.0)
    assert "submit=graph" in found.note


def test_in_a_graph_and_where_the_host_is_faster_the_device_decides(made):
    """T09."""
    for extra in ({"host_us": 40.0, "headline": "graph_us"}, {"host_us": 4.0}):
        pair = [
            made.record("eager", latency=30.0, **extra),
            made.record("fused", latency=10.0, **extra),
        ]
        (found,) = compare(pair, made.experiment())
        assert (found.verdict, found.note) == (Verdict.faster, "")


@pytest.mark.parametrize(
    ("status", "is_usable"),
    [(Status.ok, True), (Status.noisy, True), (Status.invalid, False)],
)
def test_what_is_usable(made, status, is_usable):
    assert usable(made.record("x", latency=1.0, status=status)) is is_usable
    assert not usable(made.record("x"))


def over_processes(made, name, latencies, *, rounds=20, noise=0.0005):
    """A record whose processes each have their own time."""
    one = made.record(name, latency=latencies[0])
    each = [made.record(name, latency=us, noise=noise, rounds=rounds).timing for us in latencies]
    numbers = tuple(p for p, us in enumerate(latencies, 1) for _ in range(rounds))
    values = tuple(us for timing in each for us in timing.rounds_us)
    timing = dataclasses.replace(one.timing, rounds_us=values, process_of_round=numbers)
    return dataclasses.replace(one, timing=timing)


def test_over_processes_the_process_is_the_unit(made):
    base = over_processes(made, "eager", [10.0] * 5)
    # 3 % in the mean, but no two processes agree: as rounds they would be told apart
    other = over_processes(made, "fused", [9.3, 10.1, 9.5, 10.0, 9.6])
    (found,) = compare([base, other], made.experiment())
    assert (found.verdict, found.processes, found.rounds) == (Verdict.undecided, 5, 100)
    single = [
        dataclasses.replace(r, timing=dataclasses.replace(r.timing, process_of_round=()))
        for r in (base, other)
    ]
    (as_rounds,) = compare(single, made.experiment())
    assert (as_rounds.verdict, as_rounds.processes) == (Verdict.faster, 1)
    agreed = over_processes(made, "fused", [9.5, 9.51, 9.49, 9.5, 9.52])
    assert compare([base, agreed], made.experiment())[0].verdict is Verdict.faster


def test_a_process_that_lost_one_of_a_pair_is_left_out_of_it(made):
    base = over_processes(made, "eager", [10.0] * 3)
    other = over_processes(made, "fused", [5.0, 5.0])
    (found,) = compare([base, other], made.experiment())
    assert (found.processes, found.rounds, found.note) == (2, 40, "")
    alone = over_processes(made, "fused", [5.0])
    (found,) = compare([base, alone], made.experiment())
    assert (found.processes, found.rounds) == (1, 20)
    assert "one process" in found.note


def test_a_job_without_records_or_a_claim_has_nothing_to_say(made):
    found = judge([], made.experiment())
    assert found.comparisons == ()
    assert found.claim is None


def test_times_under_two_clock_rules_are_not_compared(made):
    base, other = made.record("eager", latency=10.0), made.record("fused", latency=5.0)
    assert len(compare([base, other], made.experiment())) == 1
    timing = dataclasses.replace(other.timing, clocks="lock:1500")
    other = dataclasses.replace(other, timing=timing)
    assert compare([base, other], made.experiment()) == []
