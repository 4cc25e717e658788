"""What two records must share: the precision in a cell, everything but the code between runs."""

from dataclasses import replace

import pytest
from kernel_lab.runner.judge.claims import judge_claim
from kernel_lab.runner.judge.conditions import differing
from kernel_lab.runner.judge.verdicts import compare
from kernel_lab.runner.records import Cell, ClaimVerdict, Correctness, Verdict, Workload


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
