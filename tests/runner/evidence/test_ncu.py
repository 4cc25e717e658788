"""Counters of calls out of ncu's CSV: whose they are, one call's sums, and what may be missing."""

import json

import pytest
from kernel_lab.runner.evidence.ncu import ACHIEVED, DRAM_READ, DRAM_WRITTEN, L2, NcuPass
from kernel_lab.runner.nsight.tools import find
from kernel_lab.runner.records import Evidence

TABLE = [
    {"index": 1, "cell": "c1", "implementation": "eager", "phase": ""},
    {"index": 3, "cell": "c1", "implementation": "eager", "phase": "trace"},
    {"index": 5, "cell": "c1", "implementation": "fused", "phase": "trace"},
]

HEADS = [
    "ID",
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Kernel Name",
    "gpu__time_duration.sum",
    DRAM_READ,
    DRAM_WRITTEN,
    L2,
    ACHIEVED,
    "launch__registers_per_thread",
    "launch__waves_per_multiprocessor",
]
UNITS = ["", "", "", "ns", "byte", "byte", "byte", "%", "register/thread", ""]


def line(*values):
    return ",".join('"' + str(v).replace('"', '""') + '"' for v in values) + "\n"


def page(*launches):
    """As ncu 2025.3 prints it: its own lines, a header, units, a line a launch."""
    text = "==PROF== Connected to process 7\n" + line(*HEADS) + line(*UNITS)
    for number, (payload, name, *values) in enumerate(launches):
        ranges = (
            f'7  "kernel-lab:job=j;kernel=k:Int64:0:RGB:0xff:REGISTERED:job=j;kernel=k"  '
            f'"kernel-lab:cell=0000;impl=x:Int64:1:RGB:0xff:REGISTERED:cell=0000;impl=x"  '
            f'"kernel-lab:trace:Int64:{payload}:RGB:0xff:REGISTERED:trace" '
        )
        text += line(number, ranges, name, *values)
    return text


MUL = "void at::vectorized_elementwise_kernel<4, at::MulFunctor>"
FUSED = "triton_poi_fused_mul_0"


def call(payload, scale=1):
    """One call of two kernels: 1 and 3 us."""
    return [
        (payload, MUL, f"{1000 * scale:,}", "4,000", "2,000", "9,000", "40", "32", "2"),
        (payload, FUSED, f"{3000 * scale:,}", "1,000", "500", "1,000", "80", "40", "1"),
    ]


def said(name, calls=3, **more):
    return Evidence(tool="ncu", cell_id="c1", implementation=name, calls=calls, **more)


@pytest.fixture
def made(fake, tmp_path):
    fake("ncu", "")
    return NcuPass(tool=find("ncu"), folder=tmp_path / "traces")


def test_the_median_call_is_summed_and_weighted_by_duration(made):
    made.around(1)
    made.report(1).write_text(page(*call(3), *call(3, 2), *call(3, 5)))
    (eager,) = made.evidence(1, TABLE, [said("eager")])
    assert (eager.reason, eager.launch_count) == ("", 2)
    assert [launch.family for launch in eager.launches] == ["aten", "inductor"]
    assert [launch.registers for launch in eager.launches] == [32, 40]
    assert eager.metrics["duration_us"] == 8.0
    assert eager.metrics["dram_bytes_read"] == 5000
    assert eager.metrics["dram_bytes_written"] == 2500
    assert eager.metrics["l2_bytes"] == 10000
    assert eager.metrics["achieved_occupancy_pct"] == pytest.approx(70.0)  # (40 + 3 * 80) / 4
    assert (eager.metrics["registers"], eager.metrics["waves"]) == (40, 2)
    assert "theoretical_occupancy_pct" not in eager.metrics
    # ncu runs kernels one at a time: nothing of it is a time to publish
    assert (eager.busy_us, eager.span_us) == (None, None)
    assert eager.report == "traces/ncu-01.csv"
    assert "--nvtx-include kernel-lab@trace/" in eager.command
    rows = json.loads((made.folder / "ncu-01.json").read_text())
    assert [row["name"] for row in rows[:2]] == [MUL, FUSED]


def test_launches_that_do_not_divide_by_the_calls_are_no_evidence(made):
    made.around(1)
    made.report(1).write_text(page(*call(3), *call(3), call(3)[0]))
    (eager,) = made.evidence(1, TABLE, [said("eager")])
    assert eager.reason == "no evidence: 5 launches do not divide by 3 calls"
    assert (eager.launch_count, eager.metrics) == (None, {})


def test_one_implementation_of_many_that_launched_nothing_is_seen_as_that(made):
    made.around(1)
    made.report(1).write_text(page(*call(3), *call(3), *call(3)))
    found = {e.implementation: e for e in made.evidence(1, TABLE, [said("eager"), said("fused")])}
    assert found["eager"].launch_count == 2
    assert found["fused"].launch_count == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM", "counters to the administrator only"),
        ("==PROF== Connected\n==WARNING== No kernels were profiled.\n", "no kernel was launched"),
        ("", "measured no kernel"),
    ],
)
def test_what_ncu_could_not_do_is_the_reason_and_no_failure(made, text, reason):
    made.around(1)
    made.report(1).write_text(text)
    (eager,) = made.evidence(1, TABLE, [said("eager")])
    assert reason in eager.reason
    assert eager.launch_count is None


def test_a_worker_that_crashed_keeps_its_own_reason(made):
    made.around(1)
    made.report(1).write_text(page(*call(3), *call(3), *call(3)))
    (eager,) = made.evidence(1, TABLE, [said("eager", reason="no evidence: SIGSEGV")])
    assert eager.reason == "no evidence: SIGSEGV"
