"""Strips of a call: one an implementation, bars where kernels ran, none where nobody saw when."""

import dataclasses

import pytest
from kernel_lab.runner.records import Evidence, Launch
from kernel_lab.runner.report.timeline import write_timelines


@pytest.fixture
def drawn(drawing):
    return lambda job: drawing(write_timelines, job)


def launch(name, start, long, kind="pointwise", family="aten"):
    return Launch(name=name, kind=kind, family=family, duration_us=long, start_us=start)


def seen(*launches, tool="nsys", busy=1.0):
    return Evidence(
        tool=tool,
        cell_id="c",
        implementation="x",
        launches=launches,
        launch_count=len(launches),
        busy_us=busy,
    )


def with_evidence(job, found):
    """The job with this evidence by implementation, and no other."""
    records = tuple(
        dataclasses.replace(
            r, evidence=(found[r.implementation],) if r.implementation in found else ()
        )
        for r in job.records
    )
    return dataclasses.replace(job, records=records)


def test_a_strip_an_implementation_with_a_bar_a_kernel(gemm, drawn):
    found = {
        "eager": seen(
            launch("nvjet_tst", 0.0, 60.0, "matmul", "cublas"),
            launch("void at::native::vectorized_elementwise_kernel<4>", 61.5, 20.0),
        ),
        "triton": seen(launch("_gemm_kernel", 0.0, 55.0, "unknown", "triton")),
    }
    pictures = drawn(with_evidence(gemm, found))
    axes = next(iter(pictures.values()))
    assert [t.get_text() for t in axes.get_yticklabels()] == ["eager", "triton"]
    bars = [(b.get_x(), b.get_width()) for c in axes.containers for b in c]
    assert bars == [(0.0, 60.0), (61.5, 20.0), (0.0, 55.0)]
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["matmul", "pointwise", "triton"]
    texts = [t.get_text() for t in axes.texts]
    assert {"nvjet_tst", "vectorized_elementwi..", "81.5 us", "55 us"} <= set(texts)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top


def test_a_tool_that_runs_kernels_one_at_a_time_draws_no_timeline(gemm, drawn):
    alone = seen(launch("k", 0.0, 5.0), tool="ncu", busy=None)
    assert drawn(with_evidence(gemm, {"eager": alone})) == {}


def test_without_a_trace_there_is_no_picture(gemm, drawn):
    assert drawn(with_evidence(gemm, {})) == {}
