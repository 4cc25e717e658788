"""One line a way in which an implementation ran."""

import dataclasses

from kernel_lab.runner.records import Evidence, Launch
from kernel_lab.runner.report.ran import ran, way


def evidence(*names):
    launches = tuple(
        Launch(name=name, kind="k", family=family, duration_us=1.0, start_us=0.0)
        for name, family in names
    )
    return Evidence(
        tool="torch", cell_id="c", implementation="x", launches=launches, launch_count=len(launches)
    )


MUL = ("void at::native::vectorized_elementwise_kernel<4, F>", "aten")
SMALL = ("nvjet_sm90_tst_64x8_64x16_2x1_v_bz_splitK_NNT", "cublas")
LARGE = ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "cublas")


def test_launches_in_order_and_the_same_counted():
    assert way(evidence(SMALL, MUL, MUL)) == (
        "cublas nvjet 64x8x64 cluster 2x1 split-K + 2x aten vectorized_elementwise_kernel"
    )
    assert way(evidence(("_gemm_kernel", "triton"))) == "triton _gemm_kernel"


def test_a_change_of_the_choice_is_a_line_of_its_own(gemm):
    records, seen = [], 0
    for record in gemm.records:
        if record.implementation == "eager":
            seen += 1
            record = dataclasses.replace(record, evidence=(evidence(SMALL if seen < 3 else LARGE),))
        else:
            record = dataclasses.replace(record, evidence=())
        records.append(record)
    lines = [line.plain for line in ran(dataclasses.replace(gemm, records=tuple(records)))]
    assert lines[0] == "What ran in a call, by the trace"
    own = [line for line in lines if line.startswith("  eager: ")]
    assert len(own) == (2 if seen > 2 else 1)
    assert own[0].startswith("  eager: cublas nvjet 64x8x64 cluster 2x1 split-K  ")
    assert "and 1 more" in own[0]


def test_without_a_trace_there_is_nothing_to_say(chain):
    records = tuple(dataclasses.replace(r, evidence=()) for r in chain.records)
    assert list(ran(dataclasses.replace(chain, records=records))) == []
