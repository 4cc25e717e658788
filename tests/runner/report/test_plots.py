"""What the pictures show: positions, gaps, intervals, names and units."""

import dataclasses
import math

import pytest
from kernel_lab.runner.records import Status, Workload
from kernel_lab.runner.report.plots import write_plots


@pytest.fixture
def drawn(drawing):
    return lambda job: drawing(write_plots, job)


def line_of(axes, label):
    container = next(c for c in axes.containers if c.get_label() == label)
    return container.lines[0]


def with_axes(job, **changes):
    """The job with its cells' axes changed: a value, or a function of the cell's index."""
    records = []
    for record in job.records:
        values = {k: v(record.cell.index) if callable(v) else v for k, v in changes.items()}
        workload = Workload(axes={**record.cell.workload.axes, **values}, dtype="bf16")
        cell = dataclasses.replace(record.cell, workload=workload)
        records.append(dataclasses.replace(record, cell=cell))
    return dataclasses.replace(job, records=tuple(records))


def test_one_line_an_implementation_over_the_axis_that_varies(gemm, drawn):
    axes = drawn(gemm)["latency.png"]
    assert axes.get_xlabel() == "M"
    assert "us" in axes.get_ylabel()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert list(line_of(axes, "triton").get_xdata()) == [512, 1024, 4096]
    for word in ("gemm_bias_act", "bf16", "NVIDIA H200"):
        assert word in axes.get_title()


def test_failed_point_is_a_gap_and_is_marked(gemm, drawn):
    records = tuple(
        dataclasses.replace(r, status=Status.timed_out, timing=None)
        if (r.implementation, r.cell.index) == ("triton", 1)
        else r
        for r in gemm.records
    )
    axes = drawn(dataclasses.replace(gemm, records=records))["latency.png"]
    values = list(line_of(axes, "triton").get_ydata())
    assert math.isnan(values[1])
    assert not math.isnan(values[0])
    assert not math.isnan(values[2])
    marks = next(line for line in axes.lines if line.get_label() == "triton: no time")
    assert list(marks.get_xdata()) == [1024]


def test_implementation_without_any_time_is_still_named(gemm, drawn):
    axes = drawn(gemm)["latency.png"]
    assert "cublaslt: no time" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_several_axes_that_vary_are_all_named_and_size_is_the_position(gemm, drawn):
    job = with_axes(gemm, N=lambda index: (1024, 2048, 4096)[index])
    axes = drawn(job)["latency.png"]
    assert axes.get_xlabel() == "FLOP of the fused path (M, N vary)"
    positions = list(line_of(axes, "triton").get_xdata())
    assert positions == sorted(positions)
    assert positions[0] > 1e9


def test_axes_that_are_no_numbers_have_pictures_of_their_own(gemm, jobs, drawn):
    other = with_axes(gemm, act="relu")
    both = dataclasses.replace(gemm, records=(*gemm.records, *other.records))
    assert set(drawn(both)) == {"latency-act-gelu_tanh.png", "latency-act-relu.png"}


def test_empty_problem_has_no_place_on_a_logarithmic_axis(chain, drawn):
    axes = drawn(chain)["latency.png"]
    assert list(line_of(axes, "eager").get_xdata()) == [65536, 16777216]


def test_single_size_makes_no_picture(jobs, tmp_path, drawn):
    assert drawn(jobs.written(jobs.gemm_job(tmp_path / "one", sizes=(512,)))) == {}
