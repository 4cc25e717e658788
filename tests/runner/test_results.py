"""What follows from a record: the numbers that every sink shows."""

import csv
import dataclasses
import io
import math

import pytest
from kernel_lab.runner import results
from kernel_lab.runner.records import Interval, Status


def lines(text):
    return list(csv.DictReader(io.StringIO(text)))


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


def test_csv_has_one_line_a_record_with_numbers_apart_and_blanks(gemm):
    table = lines(results.results_csv(gemm))
    assert len(table) == len(gemm.records)
    assert [line["M"] for line in table[::4]] == ["512", "1024", "4096"]
    for line in table:
        timed = line["status"] in ("ok", "noisy")
        assert bool(line["latency_us"]) == timed
        for column in ("latency_us", "latency_low_us", "gbps", "tflops", "launches"):
            assert line[column] == "" if not timed else math.isfinite(float(line[column]))
        if not timed:
            assert line["reason"]


def test_csv_reloads_with_the_same_counts_a_status(gemm, chain):
    for job in (gemm, chain):
        table = lines(results.results_csv(job))
        for status in Status:
            wanted = sum(record.status == status for record in job.records)
            assert sum(line["status"] == status for line in table) == wanted


def test_value_that_is_not_finite_is_blank(gemm):
    record = next(record for record in gemm.records if record.correctness)
    broken = dataclasses.replace(record.correctness, max_error=math.nan)
    record = dataclasses.replace(record, correctness=broken)
    (line,) = lines(results.results_csv(dataclasses.replace(gemm, records=(record,))))
    assert line["max_error"] == ""


def test_every_raw_sample_is_kept(gemm):
    table = lines(results.samples_csv(gemm))
    kept = [r.timing.blocks for r in gemm.records if r.timing]
    assert len(table) == sum(len(b.samples_us) for blocks in kept for b in blocks)
    assert {line["state"] for line in table} == {"cold"}
    assert all(float(line["sample_us"]) > 0 for line in table)


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


def test_speedup_of_zero_does_not_zero_the_mean(gemm):
    first, *others = (c for c in gemm.judgement.comparisons if c.implementation == "triton")
    zero = dataclasses.replace(first, speedup=Interval(median=0.0, low=0.0, high=0.0))
    judgement = dataclasses.replace(gemm.judgement, comparisons=(zero, *others))
    mean, count, _ = results.speedup_geomean(
        dataclasses.replace(gemm, judgement=judgement), "triton"
    )
    assert (mean, count) == (pytest.approx(1 / 0.75), 2)
