"""The CSV files: one line a record or sample, numbers that load as numbers."""

import csv
import dataclasses
import io
import math

from kernel_lab.runner.records import Status
from kernel_lab.runner.report.columns import results_csv, samples_csv


def lines(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_one_line_a_record_with_numbers_apart_and_blanks(gemm):
    table = lines(results_csv(gemm))
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
        table = lines(results_csv(job))
        for status in Status:
            wanted = sum(record.status == status for record in job.records)
            assert sum(line["status"] == status for line in table) == wanted


def test_value_that_is_not_finite_is_blank(gemm):
    record = next(record for record in gemm.records if record.correctness)
    broken = dataclasses.replace(record.correctness, max_error=math.nan)
    record = dataclasses.replace(record, correctness=broken)
    (line,) = lines(results_csv(dataclasses.replace(gemm, records=(record,))))
    assert line["max_error"] == ""


def test_every_raw_sample_is_kept(gemm):
    table = lines(samples_csv(gemm))
    kept = [r.timing.blocks for r in gemm.records if r.timing]
    assert len(table) == sum(len(b.samples_us) for blocks in kept for b in blocks)
    assert {line["state"] for line in table} == {"cold"}
    assert all(float(line["sample_us"]) > 0 for line in table)
