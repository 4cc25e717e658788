"""What two records must share: the precision in a cell, everything but the code between runs."""

from dataclasses import replace

import pytest
from kernel_lab.runner.judge.claims import judge_claim
from kernel_lab.runner.judge.conditions import apart, differing, other_clock
from kernel_lab.runner.judge.verdicts import compare
from kernel_lab.runner.records import Cell, ClaimVerdict, Correctness, Job, Verdict, Workload


def erring(record, rms):
    correctness = Correctness(
        max_error=4 * rms,
        rms_error=rms,
        max_tolerance=1.0,
        rms_tolerance=1.0,
        yardstick="eager",
        yardstick_max_error=4 * rms,
        yardstick_rms_error=rms,
    )
    return replace(record, correctness=correctness)


@pytest.mark.parametrize(
    ("rms", "tf32", "plain"),
    [
        ((2e-4, 4e-4), True, True),  # one rounds its operands, the other cuts them off
        ((2e-7, 2e-4), True, False),
        ((2e-4, 2e-7), True, False),
        ((2e-9, 2e-7), True, True),  # both in full fp32: the library left tf32 aside
        ((0.0, 0.0), True, True),
        ((2e-7, 2e-4), False, True),  # the gate's to refuse
    ],
)
def test_a_speed_up_for_another_precision_is_no_plain_one(made, rms, tf32, plain):
    """C05: one arm in tf32, the other in full fp32."""
    asked = made.experiment(speedup=">= 1.5")
    asked.dtype.tf32 = tf32
    records = [
        erring(made.record(name, latency=latency), error)
        for name, latency, error in zip(("eager", "fused"), (20.0, 5.0), rms, strict=True)
    ]
    records[1] = replace(records[1], implementation="fused")
    records[0] = replace(records[0], implementation="eager")
    asked.claim.unfused, asked.claim.fused = "eager", "fused"
    (found,) = compare(records, asked)
    claimed = judge_claim(records, asked)
    assert (found.verdict is Verdict.faster) == plain
    assert ("another precision" in found.note) != plain
    assert (claimed.verdict is ClaimVerdict.supported) == plain
    assert ("another precision" in claimed.findings[0].seen) != plain
    assert found.speedup.median > 3


def test_runs_on_other_values_are_named_by_what_they_differ_in(made):
    """T13: a product on zeros against the same on normal values."""
    one = made.record("eager", latency=20.0)
    assert differing(one, replace(one, implementation="other", job="k")) == ()
    workload = replace(one.cell.workload, distribution="zeros", seed=3)
    other = replace(one, cell=replace(one.cell, workload=workload))
    assert differing(one, other) == ("distribution: normal against zeros", "seed: 0 against 3")


def test_another_clock_cache_or_timer_is_named_too(made):
    one = made.record("eager", latency=20.0)
    other = replace(one, timing=replace(one.timing, state="warm", clocks="lock:1200"))
    assert differing(one, other) == (
        "state: cold against warm",
        "clocks: observe against lock:1200",
    )
    cell = Cell(index=1, kernel="k", workload=Workload(axes={"N": 2, "M": 3}, dtype="fp16"))
    assert differing(one, replace(one, cell=cell)) == (
        "N: 1 against 2",
        "M: None against 3",
        "dtype: bf16 against fp16",
    )


def at(record, mhz):
    return replace(record, timing=replace(record.timing, sm_mhz=mhz))


def test_a_ratio_of_times_at_other_clocks_names_them(made):
    """T11: the same product at the full clock and at 60 % of it."""
    base, other = made.record("eager", latency=20.0), made.record("fused", latency=10.0)
    (found,) = compare([at(base, 1980.0), at(other, 1188.0)], made.experiment())
    assert found.note == "SM clock: 1980 against 1188 MHz"
    (found,) = compare([at(base, 1980.0), at(other, 1950.0)], made.experiment())
    assert found.note == ""
    assert other_clock(base, at(other, 1188.0)) == ""
    assert differing(at(base, 1980.0), at(base, 1188.0)) == ("SM clock: 1980 against 1188 MHz",)


def job(number, *records):
    return Job(
        id=f"s-{number}",
        folder="",
        signature="",
        experiment="e",
        kernel="k",
        question="",
        command="",
        started="",
        records=records,
    )


def test_jobs_side_by_side_name_their_other_conditions_once(made):
    """T13: what a question varies is its own affair; values, clocks and caches are said."""
    one = made.record("eager", latency=20.0)
    workload = replace(one.cell.workload, distribution="zeros", dtype="fp16", seed=3)
    other = at(replace(one, cell=replace(one.cell, workload=workload)), 1188.0)
    found = apart([job(0, at(one, 1980.0)), job(1, other), job(2, other)])
    assert found == ("distribution: normal against zeros", "SM clock: 1980 against 1188 MHz")
    assert apart([job(0, one), job(1, one)]) == ()
    assert apart([]) == ()
