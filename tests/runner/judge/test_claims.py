import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.judge.claims import check_claim, judge_claim
from kernel_lab.runner.records import ClaimVerdict, Status
from kernel_lab.runner.schema import Claim

SUPPORTED, REFUTED = ClaimVerdict.supported, ClaimVerdict.refuted
UNDECIDED, NOT_MEASURED = ClaimVerdict.undecided, ClaimVerdict.not_measured


def judged(made, records, **expect):
    found = judge_claim(records, made.experiment(**expect))
    return found.verdict, [f.verdict for f in found.findings], [f.seen for f in found.findings]


def pair(made, *, n=1, eager=10.0, fused=5.0, launches=(2, 1), noise=0.001, **fused_values):
    return [
        made.record("eager", n=n, latency=eager, stages=2, launches=launches[0], noise=noise),
        made.record(
            "fused", n=n, latency=fused, stages=1, launches=launches[1], noise=noise, **fused_values
        ),
    ]


@pytest.mark.parametrize(
    ("band", "verdict"),
    [
        (">= 1.05", SUPPORTED),
        ("1.94..2.06", SUPPORTED),
        (">= 2.5", REFUTED),
        ("< 1", REFUTED),
        (">= 2.0", UNDECIDED),
    ],
)
def test_a_speedup_is_held_against_its_band_with_its_interval(made, band, verdict):
    whole, each, seen = judged(made, pair(made, noise=0.01), speedup=band)
    assert whole is verdict
    assert each == [verdict]
    assert seen[0].startswith(("1.9", "2.0"))
    assert "[" in seen[0]


def test_one_cell_that_refutes_refutes_the_claim(made):
    records = pair(made, n=1) + pair(made, n=2, fused=12.0) + pair(made, n=3)
    whole, each, _ = judged(made, records, speedup=">= 1.05")
    assert each == [SUPPORTED, REFUTED, SUPPORTED]
    assert whole is REFUTED


def test_what_was_not_measured_leaves_the_claim_to_the_rest(made):
    records = [*pair(made, n=1), made.record("eager", n=2, latency=10.0)]
    records.append(made.record("fused", n=2, status=Status.unsupported, reason="only N < 2"))
    whole, each, seen = judged(made, records, speedup=">= 1.05")
    assert each == [SUPPORTED, NOT_MEASURED]
    assert seen[1] == "only N < 2"
    assert whole is SUPPORTED


def test_undecided_beside_supported_is_undecided(made):
    records = pair(made, n=1) + pair(made, n=2, fused=9.5, noise=0.3)
    assert judged(made, records, speedup=">= 1.05")[0] is UNDECIDED


def test_nothing_measured_at_all_is_not_measured(made):
    assert judged(made, [], speedup=">= 1.05", stages={"fused": 1})[0] is NOT_MEASURED


def test_an_invalid_time_is_no_time(made):
    records = pair(made, status=Status.invalid, reason="host-limited")
    whole, _, seen = judged(made, records, speedup=">= 1.05")
    assert whole is NOT_MEASURED
    assert seen == ["host-limited"]


@pytest.mark.parametrize("noisy", ["eager", "fused"])
def test_a_noisy_time_decides_nothing(made, noisy):
    records = [
        made.record(
            name, latency=latency, launches=1, status=Status.noisy if name == noisy else None
        )
        for name, latency in (("eager", 10.0), ("fused", 5.0))
    ]
    assert judged(made, records, speedup=">= 1.05")[0] is UNDECIDED


def test_rounds_that_do_not_pair_are_not_measured(made):
    records = [
        made.record("eager", latency=10.0, rounds=20),
        made.record("fused", latency=5.0, rounds=30),
    ]
    assert judged(made, records, speedup=">= 1.05")[0] is NOT_MEASURED


def test_bytes_saved_come_from_the_costs(made):
    whole, each, seen = judged(made, pair(made), bytes_saved=">= 0.5")
    assert (each, seen) == ([SUPPORTED], ["0.500"])
    assert whole is NOT_MEASURED  # a prediction alone is no evidence
    assert judged(made, pair(made), bytes_saved=">= 0.51")[0] is REFUTED
    both = judged(made, pair(made), bytes_saved=">= 0.5", stages={"fused": 1})
    assert both[0] is SUPPORTED


def test_bytes_of_nothing_are_not_measured(made):
    records = [made.record("eager", stages=0), made.record("fused", stages=0)]
    assert judged(made, records, bytes_saved=">= 0.5")[0] is NOT_MEASURED


def test_stages_are_what_the_cost_declares_and_the_trace_does_not_deny(made):
    whole, each, seen = judged(made, pair(made), stages={"fused": 1, "eager": 2})
    assert (whole, each, seen) == (SUPPORTED, [SUPPORTED] * 2, ["1", "2"])
    assert judged(made, pair(made), stages={"eager": 3})[0] is REFUTED


def test_launches_may_be_more_than_stages(made):
    records = pair(made, launches=(4, 2))
    assert judged(made, records, stages={"fused": 1, "eager": 2})[0] is SUPPORTED
    assert judged(made, records, launches={"eager": "2..4", "fused": "<= 2"})[0] is SUPPORTED
    assert judged(made, records, launches={"fused": 1})[0] is REFUTED


def test_an_unfused_arm_that_was_fused_refutes_its_stages(made):
    # D07: eager declares two stages, the trace saw one kernel; the job made the record invalid
    records = [
        made.record(
            "eager",
            latency=10.0,
            stages=2,
            launches=1,
            status=Status.invalid,
            reason="declares 2 stages, the trace saw 1 kernels: triton_poi_fused_mul_silu_0",
        ),
        made.record("fused", latency=5.0, stages=1, launches=1),
    ]
    whole, each, seen = judged(made, records, speedup=">= 1.05", stages={"fused": 1, "eager": 2})
    assert whole is REFUTED
    assert each == [NOT_MEASURED, SUPPORTED, REFUTED]
    assert seen[2] == "declares 2 stages, the trace saw 1 kernels: k0"


def test_a_record_that_is_invalid_for_another_reason_refutes_no_stages(made):
    records = [
        made.record(
            "eager",
            latency=1.0,
            stages=2,
            launches=2,
            status=Status.invalid,
            reason="host-limited: x",
        )
    ]
    assert judged(made, records, stages={"eager": 2})[0] is SUPPORTED


def test_without_a_trace_counts_are_not_measured(made):
    records = [made.record("eager", latency=10.0, stages=2)]
    whole, _, seen = judged(made, records, stages={"eager": 2}, launches={"eager": 2})
    assert whole is NOT_MEASURED
    assert seen == ["no trace of this cell"] * 2


def test_no_evidence_is_not_no_kernels(made):
    records = [made.record("eager", latency=10.0, stages=2, launches=0)]
    assert judged(made, records, launches={"eager": 2})[0] is REFUTED
    assert judged(made, records, stages={"eager": 2})[0] is not SUPPORTED


def test_an_implementation_without_records_is_not_measured(made):
    whole, _, seen = judged(made, pair(made), stages={"triton": 1})
    assert whole is NOT_MEASURED
    assert seen == ["no record"]


def test_each_finding_names_its_cell_and_expectation(made):
    found = judge_claim(pair(made, n=7), made.experiment(speedup=">= 1.05", stages={"fused": 1}))
    assert [(f.cell, f.expectation) for f in found.findings] == [
        ("N7-bf16", "fused against eager: speed-up >= 1.05"),
        ("N7-bf16", "fused: stages 1"),
    ]


def test_no_expectation_is_no_claim(made):
    assert judge_claim(pair(made), made.experiment()) is None


@pytest.mark.parametrize(
    ("expect", "key"),
    [
        ({"sppedup": ">= 1"}, "sppedup"),
        ({"speedup": "fast"}, "claim.expect.speedup"),
        ({"stages": {"triton": "one"}}, "claim.expect.stages.triton"),
        ({"stages": 3}, "claim.expect.stages"),
        ({"launches": [1, 2]}, "claim.expect.launches"),
        ({"bytes_saved": {"triton": 1}}, "claim.expect.bytes_saved"),
    ],
)
def test_an_expectation_that_cannot_be_read_is_refused_by_name(expect, key):
    with pytest.raises(ConfigError, match=key):
        check_claim(Claim(fused="a", unfused="b", expect=expect))


@pytest.mark.parametrize("missing", ["fused", "unfused"])
@pytest.mark.parametrize("key", ["speedup", "bytes_saved"])
def test_a_ratio_needs_to_be_told_of_what(missing, key):
    claim = Claim(**{"fused": "a", "unfused": "b", missing: ""}, expect={key: ">= 0.1"})
    with pytest.raises(ConfigError, match=rf"claim\.{missing}"):
        check_claim(claim)


def test_a_claim_that_can_be_read_is_let_through():
    check_claim(
        Claim(
            fused="a",
            unfused="b",
            expect={
                "speedup": ">= 1.05",
                "stages": {"a": 1, "b": "2..3"},
                "launches": {"a": "<= 2"},
                "bytes_saved": ">= 0.15",
            },
        )
    )
