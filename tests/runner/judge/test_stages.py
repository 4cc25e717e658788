from dataclasses import replace

import pytest
from kernel_lab.runner.judge.stages import mismatch, short, uncovered
from kernel_lab.runner.records import (
    Cell,
    Cost,
    Evidence,
    Interval,
    Launch,
    Record,
    Stage,
    Status,
    Timing,
    Workload,
)

CELL = Cell(index=0, kernel="k", workload=Workload(axes={"M": 4}, dtype="bf16"))
GEMM, BIAS, ACT = ("gemm", "matmul"), ("bias", "pointwise"), ("act", "pointwise")


def launch(kind, name=""):
    return Launch(
        name=name or f"{kind}_kernel", kind=kind, family="x", duration_us=1.0, start_us=0.0
    )


def record(stages, kinds, *, seen=True):
    cost = Cost(
        stages=tuple(
            Stage(name=n, kind=k, flops=1, bytes_read=1, bytes_written=1) for n, k in stages
        )
    )
    evidence = Evidence(
        tool="torch",
        cell_id=CELL.id,
        implementation="a",
        launches=tuple(launch(kind) for kind in kinds),
        launch_count=len(kinds) if seen else None,
        reason="" if seen else "no profiler",
    )
    return Record(
        job="j",
        experiment="e",
        cell=CELL,
        implementation="a",
        status=Status.checked,
        cost=cost,
        evidence=(evidence,),
    )


@pytest.mark.parametrize(
    ("stages", "kinds"),
    [
        ([GEMM, BIAS, ACT], ["matmul", "pointwise", "pointwise"]),
        ([GEMM, BIAS, ACT], ["memset", "matmul", "matmul", "pointwise", "pointwise"]),
        ([GEMM], ["matmul"]),
        ([GEMM], ["unknown"]),
        ([GEMM], ["matmul", "matmul"]),
        ([GEMM], ["memset", "unknown"]),
        ([ACT], ["memset", "pointwise"]),
        ([ACT], ["copy", "pointwise"]),
        ([BIAS, ACT], ["unknown", "pointwise"]),
        ([("norm", "reduction")], ["reduction", "reduction"]),
        ([("move", "copy"), ACT], ["copy", "pointwise"]),
    ],
    ids=str,
)
def test_what_was_declared_ran(stages, kinds):
    assert mismatch(record(stages, kinds)) == ""


@pytest.mark.parametrize(
    ("stages", "kinds", "says"),
    [
        # eager, fused behind its back
        ([GEMM, BIAS, ACT], ["matmul", "pointwise"], "3 stages, the trace saw 2"),
        ([GEMM, BIAS, ACT], ["matmul", "matmul", "pointwise"], "2 pointwise stages"),
        ([BIAS, ACT], ["pointwise"], "2 stages, the trace saw 1"),
        ([BIAS, ACT], ["unknown"], "2 stages, the trace saw 1"),
        # said to be fused, and not
        ([GEMM], ["matmul", "pointwise"], "0 pointwise stages beside the matrix product"),
        ([GEMM], ["unknown", "pointwise"], "0 pointwise stages beside the matrix product"),
        ([ACT], ["pointwise", "pointwise"], "1 stages, the trace saw 2"),
        ([ACT], ["unknown", "unknown"], "1 stages, the trace saw 2"),
        # only moved or cleared memory
        ([GEMM], ["memset"], "the trace saw 0"),
        ([ACT], ["copy"], "the trace saw 0"),
        ([("move", "copy"), ACT], ["pointwise"], "2 stages, the trace saw 1"),
    ],
    ids=str,
)
def test_what_was_declared_did_not_run(stages, kinds, says):
    reason = mismatch(record(stages, kinds))
    assert says in reason
    assert all(f"{kind}_kernel" in reason for kind in kinds)


def test_no_evidence_says_nothing():
    assert mismatch(record([GEMM, ACT], [], seen=False)) == ""


def test_no_launches_say_nothing_about_stages():
    assert mismatch(record([GEMM, ACT], [])) == ""


def test_short_names_drop_templates_and_parameters():
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::Add<float> >(int, Add)"
    assert short(launch("x", name)) == "at::native::vectorized_elementwise_kernel"
    assert short(launch("x", "mul6")) == "mul6"
    # an unnamed namespace and a return type with a template are no end of the name
    anonymous = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*)"
    assert short(launch("x", anonymous)) == "at::native::cunn_SoftMaxForward"
    gemv = "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(int)"
    assert short(launch("x", gemv)) == "internal::gemvx::kernel"


@pytest.mark.parametrize(
    ("moved", "launches", "agrees"),
    [
        (2**31, 2, True),
        (4 * 10**9, 4, True),
        (4 * 10**9, 5, False),
        (2**31, 3, False),
    ],
)
def test_a_pass_over_more_than_32_bit_offsets_may_be_split(moved, launches, agrees):
    whole = record([ACT, ACT], ["pointwise"] * launches)
    stages = tuple(replace(s, bytes_read=moved, bytes_written=moved) for s in whole.cost.stages)
    large = replace(whole, cost=replace(whole.cost, stages=stages))
    assert (mismatch(large) == "") is agrees


@pytest.mark.parametrize(
    ("busy_us", "streams", "period", "found"),
    [
        (172.0, (7, 13), 4.0, True),
        (172.0, (13,), 4.0, True),
        (172.0, (7, 13), 180.0, False),  # joined: covered
        (172.0, (7,), 100.0, False),  # a slower clock in the pass of its own
        (2.0, (7, 13), 1.0, False),
        (None, (7,), 4.0, False),
    ],
)
def test_work_that_no_period_covers_is_outside_the_timed_stream(busy_us, streams, period, found):
    """T01: the trace attributes it to the call, whatever its stream."""
    made = record([ACT], ["pointwise"])
    launches = tuple(replace(launch("pointwise"), stream=stream) for stream in streams)
    evidence = replace(made.evidence[0], busy_us=busy_us, launches=launches)
    timing = Timing(
        timer="t",
        headline="period_us",
        state="cold",
        latency_us=Interval(median=period, low=period, high=period),
        rounds_us=(period,),
        calls=1,
        cache="",
    )
    made = replace(made, status=Status.ok, timing=timing, evidence=(evidence,))
    assert bool(uncovered(made)) == found
    if found:
        assert mismatch(made).startswith("work outside the timed stream")
