"""Cells, skips with reasons, and what they must cost."""

import sys

import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.question.compose import compose
from kernel_lab.runner.question.costs import cost_of
from kernel_lab.runner.question.plan import plan
from kernel_lab.runner.records import Status

ONE = ["kernel=tiny", "shapes.product.M=[8]", "shapes.product.N=[32]", "dtype=fp32"]


@pytest.fixture
def planned(outside):
    def _planned(*overrides, kind="cuda"):
        return plan(compose([*ONE, *overrides], [outside]), kind)

    return _planned


@pytest.fixture
def importable(outside, monkeypatch):
    monkeypatch.syspath_prepend(str(outside))
    yield outside
    sys.modules.pop("tiny_kernel", None)


def reasons(done):
    return {skip.implementation: skip.reason for skip in done.cells[0].skips}


def test_all_run_on_a_gpu_in_the_yaml_s_order(planned):
    done = planned()
    assert done.cells[0].implementations == (
        "eager",
        "fused",
        "tiled",
        "native",
        "library",
        "guest",
    )
    assert done.cells[0].skips == ()


def test_the_experiment_s_order_and_the_baseline(planned):
    done = planned("implementations=[tiled,fused]")
    assert done.cells[0].implementations == ("eager", "tiled", "fused")
    assert done.notes == ("eager added: it is the baseline that speed-up is against",)
    assert planned("implementations=[fused,eager]").cells[0].implementations == ("fused", "eager")
    assert planned("implementations=[fused,eager]").notes == ()


def test_a_claim_about_somebody_who_does_not_run_is_said(planned):
    done = planned("implementations=[eager]", "claim.fused=fused")
    assert done.notes == ("claim.fused=fused is not among the implementations of this run",)


@pytest.mark.parametrize(
    ("overrides", "kind", "name", "reason"),
    [
        (["dtype=fp8"], "cuda", "fused", "dtype fp8: it supports fp32, fp16, bf16"),
        (["dtype=tf32"], "cuda", "fused", "dtype tf32: it supports fp32, fp16, bf16"),
        (["shapes.product.act=[off]"], "cuda", "fused", "it needs act in ['none', 'gelu']"),
        (
            ["shapes.product.layout=[transposed]"],
            "cuda",
            "tiled",
            "layout transposed: it supports contiguous",
        ),
        ([], "cpu", "native", "device cpu: CUDA C++ needs an NVIDIA GPU"),
        ([], "cpu", "library", "device cpu: it supports cuda"),
        (["dtype=bf16"], "cpu", "tiled", "dtype bf16 on cpu: Triton's interpreter multiplies"),
    ],
)
def test_skips(planned, overrides, kind, name, reason):
    done = planned(*overrides, kind=kind)
    assert name not in done.cells[0].implementations
    assert reasons(done)[name].startswith(reason)
    assert all(skip.status is Status.unsupported for skip in done.cells[0].skips)


def test_triton_runs_on_cpu_in_fp32(planned):
    assert "tiled" in planned(kind="cpu").cells[0].implementations


def test_layout_leaves_the_axes(planned):
    workload = planned("shapes.product.layout=[transposed]").cells[0].cell.workload
    assert workload.layout == "transposed"
    assert "layout" not in workload.axes


def test_one_cell_by_its_id(planned):
    every = planned("shapes.product.M=[1,2,3]")
    second = every.cells[1].cell
    done = planned("shapes.product.M=[1,2,3]", f"cell={second.id}")
    assert [p.cell for p in done.cells] == [second]
    assert done.cells[0].cell.index == 1
    with pytest.raises(ConfigError, match=rf"cell=c00000000: no cell .*{second.id} \(M2-N32"):
        planned("shapes.product.M=[1,2,3]", "cell=c00000000")


def test_an_id_does_not_depend_on_the_set_it_is_in(planned):
    assert planned().cells[0].cell.id == planned("shapes.product.M=[1,8]").cells[1].cell.id


def test_the_name_of_a_model_s_workload_is_no_part_of_the_id(outside):
    shapes = ["kernel=tiny", "shapes=small_model", "shapes.workloads=[up]", "shapes.tokens=[4]"]
    by_model = plan(compose(shapes, [outside]), "cuda").cells[0].cell
    given = ["kernel=tiny", "shapes.cases=[{M: 4, N: 256, act: gelu}]"]
    by_hand = plan(compose(given, [outside]), "cuda").cells[0].cell
    assert (by_model.workload.name, by_hand.workload.name) == ("up", "")
    assert by_model.id == by_hand.id


def test_excluded_and_duplicates_are_told(planned):
    done = planned("shapes.product.M=[1,1,2]", "shapes.exclude=['M == 2']")
    assert len(done.cells) == 1
    assert done.duplicates == 1
    assert [(e.workload.axes["M"], e.condition) for e in done.excluded] == [(2, "M == 2")]


def test_costs_and_floor(importable):
    experiment = compose([*ONE, "target=h100_sxm"], [importable])
    cell = plan(experiment, "cuda").cells[0].cell
    cost = cost_of(experiment, cell, "eager")
    assert cost.bytes == 2 * 2 * 8 * 32 * 4
    assert cost.bytes_read == cost.bytes // 2
    assert cost.bound == "memory"
    assert cost.floor_us == pytest.approx(cost.bytes / 3350e3)
    assert cost.ridge == pytest.approx(67e3 / 3350)
    assert cost.convention.startswith("One read and one write")
    assert len(cost_of(experiment, cell, "fused").stages) == 1


@pytest.mark.parametrize(("target", "dtype"), [("cpu", "fp32"), ("a100_80_sxm", "fp8")])
def test_no_datasheet_no_floor(importable, target, dtype):
    experiment = compose([*ONE, f"target={target}", f"dtype={dtype}"], [importable])
    cost = cost_of(experiment, plan(experiment, "cuda").cells[0].cell, "eager")
    assert (cost.floor_us, cost.bound, cost.ridge) == (None, None, None)
    assert cost.bytes > 0


def test_an_empty_workload_costs_nothing(importable):
    experiment = compose([*ONE, "shapes.product.M=[0]", "target=h100_sxm"], [importable])
    cost = cost_of(experiment, plan(experiment, "cuda").cells[0].cell, "eager")
    assert (cost.floor_us, cost.bound, cost.intensity) == (0, None, None)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("kernel.module=no_such_module", r"kernel\.module=no_such_module: No module named"),
        ("kernel.module=json", r"kernel\.module=json: module 'json' has no attribute 'cost'"),
        (
            "kernel.implementations.fused.cost=fusd",
            r"kernel\.implementations\.fused\.cost=fusd: unknown.*Did you mean fused\?",
        ),
    ],
)
def test_cost_refusals(importable, override, message):
    experiment = compose([*ONE, override], [importable])
    cell = plan(experiment, "cuda").cells[0].cell
    with pytest.raises(ConfigError, match=message):
        cost_of(experiment, cell, "fused")
