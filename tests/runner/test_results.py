"""What follows from a record: the numbers that every sink shows."""

import dataclasses

import pytest
from kernel_lab.runner import results
from kernel_lab.runner.records import (
    ClaimResult,
    ClaimVerdict,
    Finding,
    Interval,
    Status,
)


def test_rates_are_decimal_and_from_the_path_of_the_implementation(gemm):
    row = next(row for row in results.rows(gemm) if row.record.implementation == "eager")
    cost, latency = row.record.cost, row.latency.median
    assert row.gbps == pytest.approx(cost.bytes / (latency * 1e-6) / 1e9)
    assert row.tflops == pytest.approx(cost.flops / (latency * 1e-6) / 1e12)
    assert row.share_of_floor == pytest.approx(cost.floor_us / latency)


def test_record_without_a_time_has_no_rates(gemm):
    for row in results.rows(gemm):
        if row.record.implementation == "cublaslt":
            assert (row.latency, row.gbps, row.tflops, row.share_of_floor) == (None,) * 4


def test_implementations_keep_the_order_of_the_question(gemm):
    assert results.implementations(gemm) == ("eager", "compile", "cublaslt", "triton")


def test_a_baseline_that_the_question_does_not_name_comes_first(gemm):
    config = {**gemm.config, "implementations": ["triton"], "kernel": {"baseline": "eager"}}
    job = dataclasses.replace(gemm, config=config)
    assert results.implementations(job)[:2] == ("eager", "triton")


def test_size_is_flop_when_computing_and_bytes_of_the_fused_path_else(gemm, chain):
    assert results.sizes(gemm).unit == "FLOP"
    size = results.sizes(chain)
    assert size.unit == "bytes"
    largest = results.cells(chain)[-1]
    assert size.by_cell[largest.id] == 8 * 16777216
    assert results.cells(chain)[0].id not in size.by_cell


def test_geometric_mean_is_over_cells_valid_in_both_arms(gemm):
    mean, count, total = results.speedup_geomean(gemm, "triton")
    assert (mean, count, total) == (pytest.approx(1 / 0.75), 3, 3)
    wrong = tuple(
        dataclasses.replace(record, status=Status.invalid)
        if record.implementation == "triton" and record.cell.index == 0
        else record
        for record in gemm.records
    )
    _, count, total = results.speedup_geomean(dataclasses.replace(gemm, records=wrong), "triton")
    assert (count, total) == (2, 3)


@pytest.mark.parametrize("who", ["triton", "eager"])
def test_a_noisy_time_is_no_part_of_the_mean_and_is_counted(gemm, who):
    noisy = tuple(
        dataclasses.replace(record, status=Status.noisy)
        if record.implementation == who and record.cell.index == 0
        else record
        for record in gemm.records
    )
    assert results.noisy_cells(gemm, "triton") == 0
    job = dataclasses.replace(gemm, records=noisy)
    assert results.speedup_geomean(job, "triton")[1:] == (2, 3)
    assert results.noisy_cells(job, "triton") == 1


def test_speedup_of_zero_does_not_zero_the_mean(gemm):
    first, *others = (c for c in gemm.judgement.comparisons if c.implementation == "triton")
    zero = dataclasses.replace(first, speedup=Interval(median=0.0, low=0.0, high=0.0))
    judgement = dataclasses.replace(gemm.judgement, comparisons=(zero, *others))
    mean, count, _ = results.speedup_geomean(
        dataclasses.replace(gemm, judgement=judgement), "triton"
    )
    assert (mean, count) == (pytest.approx(1 / 0.75), 2)


def test_expectations_that_came_out_alike_in_many_cells_stand_together(gemm):
    labels = [cell.workload.label for cell in results.cells(gemm)]
    good, bad = ClaimVerdict.supported, ClaimVerdict.refuted
    found = tuple(
        Finding(expectation="speed-up >= 2", verdict=verdict, seen=seen, cell=label)
        for label, verdict, seen in zip(labels, (good, bad, good), "abc", strict=True)
    )
    own = Finding(expectation="stages: 1", verdict=good, seen="1")
    claim = ClaimResult(verdict=bad, findings=(*found, own))
    judgement = dataclasses.replace(gemm.judgement, claim=claim)
    together = results.expected(dataclasses.replace(gemm, judgement=judgement))
    assert [(e.expectation, e.verdict, e.cells, e.seen) for e in together] == [
        ("speed-up >= 2", good, (labels[0], labels[2]), ("a", "c")),
        ("speed-up >= 2", bad, (labels[1],), ("b",)),
        ("stages: 1", good, (), ("1",)),
    ]


def test_device_is_the_gpu_or_the_processor(gemm, chain):
    assert results.device(gemm) == "NVIDIA H200"
    assert results.device(chain) == "Ryzen, 8 threads"
