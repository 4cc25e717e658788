"""The table that a person reads, on a terminal and in a log."""

import dataclasses
import io
import re

import pytest
from kernel_lab.runner.records import Interval, JobStatus, Status
from kernel_lab.runner.report import record
from kernel_lab.runner.report.footnotes import footnotes
from kernel_lab.runner.report.table import as_text, render
from kernel_lab.runner.report.text import number, speedup
from rich.console import Console


@pytest.mark.parametrize("which", ["gemm", "chain"])
def test_results_fit_a_hundred_columns(which, request):
    text = as_text(request.getfixturevalue(which))
    assert max(len(line) for line in text.split("\n") if "outputs/" not in line) <= 100


def test_wide_numbers_fit_too(gemm):
    def widened(record):
        cost = dataclasses.replace(record.cost, bound="memory")
        timing = record.timing
        if timing:
            far = Interval(median=1234567.0, low=1234000.0, high=1235000.0)
            timing = dataclasses.replace(timing, latency_us=far)
        return dataclasses.replace(record, cost=cost, timing=timing)

    text = as_text(dataclasses.replace(gemm, records=tuple(map(widened, gemm.records))))
    assert "1234567 [1234000, 1235000]" in text
    assert max(len(line) for line in text.split("\n") if "outputs/" not in line) <= 100


def test_pipe_and_terminal_hold_the_same_characters(gemm):
    piped = as_text(gemm)
    assert "\x1b" not in piped
    assert piped.isascii()
    stream = io.StringIO()
    render(gemm, Console(file=stream, force_terminal=True, width=100, color_system="truecolor"))
    coloured = stream.getvalue()
    assert "\x1b" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == piped


def test_line_of_a_timed_record(gemm):
    line = next(
        line for line in as_text(gemm).split("\n") if line.startswith("  triton ") and "[" in line
    )
    name, median, *rest = line.split()
    assert name == "triton"
    assert float(median) > 0
    assert "faster" in rest
    assert rest[-1] == "1"
    assert line.count("TFLOP/s") == 1
    assert "%" in line


def test_cells_have_a_heading_with_label_and_id(gemm):
    text = as_text(gemm)
    for cell in {r.cell.id: r.cell for r in gemm.records}.values():
        assert f"{cell.workload.label}  {cell.id}" in text


def test_failed_records_show_status_reason_and_how_to_repeat_them(gemm):
    text = as_text(gemm)
    for item in gemm.records:
        if item.status not in ("ok",):
            assert f"{item.status.value}: {item.reason}" in text
            assert item.repro in text


def test_absent_number_is_a_dash_and_never_zero(chain):
    text = as_text(chain)
    line = next(line for line in text.split("\n") if line.startswith("  eager") and "[" in line)
    assert "  -  " in line
    assert "launches" not in text
    for line in text.split("\n"):
        assert " 0 " not in line
    assert "of floor" not in text


def test_claim_and_each_expectation_are_said(gemm):
    text = as_text(gemm)
    assert gemm.question in text
    assert "claim: supported" in text
    assert "speedup >= 1.05: supported, lowest 1.33 [1.32, 1.34]" in text
    assert "not_measured" in text


def test_same_failure_in_many_cells_is_one_entry(gemm):
    alike = tuple(
        dataclasses.replace(r, reason="not on this GPU", status=Status.unavailable)
        if r.implementation == "cublaslt"
        else r
        for r in gemm.records
    )
    text = as_text(dataclasses.replace(gemm, records=alike)).split("Not ok")[1]
    assert text.count("not on this GPU") == 1
    assert "and 2 more" in text


def test_footnotes_say_timer_state_clock_and_power(gemm):
    text = as_text(gemm)
    assert "latency: period_us, cold, inputs and outputs rotate" in text
    assert "timer cupti" in text
    assert "over a copy in this job, 4301 [4290, 4312] GB/s" in text
    assert "1965 MHz" in text
    assert "W (medians over blocks)" in text


def test_job_that_was_killed_says_so(gemm):
    killed = dataclasses.replace(gemm, status=JobStatus.killed, status_reason="interrupted")
    assert "job killed: interrupted" in as_text(killed)


def test_job_without_records_can_be_shown(gemm):
    bare = dataclasses.replace(gemm, records=())
    assert gemm.id in as_text(bare)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.5, "0.5000"), (1.23456, "1.235"), (16791.4, "16791"),
     (9.9999, "10.00"), (202.06, "202.1"), (0.01234567, "0.01235")],
)  # fmt: skip
def test_number(value, text):
    assert number(value) == text


def test_record_in_full(gemm):
    (row,) = record.rows_of(gemm, cell=gemm.records[0].cell.id, implementation="triton")
    text = "\n".join(line.plain for line in record.lines(gemm, row))
    for part in (
        "max error 0.00310 of 0.00780 allowed", "period_us: what a call costs",
        "1 launch a call", "grid 132x1x1, block 256x1x1", "40 registers", "gemm: matmul",
        "triton_kernel_0", row.record.repro,
    ):  # fmt: skip
        assert part in text


def test_a_locked_clock_stands_beside_how_times_were_taken(gemm):
    def locked(item):
        timing = item.timing and dataclasses.replace(item.timing, clocks="lock:1500")
        return dataclasses.replace(item, timing=timing)

    assert "SM clock locked" not in as_text(gemm)
    job = dataclasses.replace(gemm, records=tuple(map(locked, gemm.records)))
    (way,) = (t.plain for t in footnotes(job) if t.plain.startswith("latency: period_us"))
    assert way.endswith("timer cupti, SM clock locked at 1500 MHz")
    (row,) = record.rows_of(job, cell=gemm.records[0].cell.id, implementation="triton")
    shown = [line.plain.split(maxsplit=1) for line in record.lines(job, row)]
    assert ["clocks", "SM clock locked at 1500 MHz"] in shown


def rigorous(job, count=5):
    """The job as if each record's rounds had come out of so many fresh processes."""

    def spread(item):
        if item.timing is None:
            return item
        rounds = len(item.timing.rounds_us)
        numbers = tuple(1 + k * count // rounds for k in range(rounds))
        timing = dataclasses.replace(item.timing, process_of_round=numbers)
        return dataclasses.replace(item, timing=timing)

    compared = tuple(dataclasses.replace(c, processes=count) for c in job.judgement.comparisons)
    judgement = dataclasses.replace(job.judgement, comparisons=compared)
    return dataclasses.replace(job, records=tuple(map(spread, job.records)), judgement=judgement)


def in_full(job):
    (row,) = record.rows_of(job, cell=job.records[0].cell.id, implementation="triton")
    return "\n".join(line.plain for line in record.lines(job, row))


def test_five_processes_are_said_with_the_coverage_that_their_range_has(gemm):
    assert "us, 95 % over rounds" in in_full(gemm)
    text = in_full(rigorous(gemm))
    assert "us, the range over 5 fresh processes' medians, 93.75 %" in text
    assert "5 fresh processes (20 paired rounds) would tell" in text
    table = as_text(rigorous(gemm))
    assert "which is their range and covers with 93.75 %" in table
    assert "latency us [range]" in table


def test_more_processes_have_an_interval_of_the_usual_coverage(gemm):
    job = rigorous(gemm, 10)
    assert "us, 95 % over 10 fresh processes' medians" in in_full(job)
    assert "range" not in as_text(job).replace("ranges.json", "")


def test_noisy_cells_are_left_out_of_the_mean_and_said(gemm):
    assert "triton: 1.33x eager, geometric mean of 3 of 3 cells\n" in as_text(gemm)
    one, *_ = (r for r in gemm.records if r.implementation == "triton")
    noisy = dataclasses.replace(one, status=Status.noisy)
    records = tuple(noisy if item is one else item for item in gemm.records)
    text = as_text(dataclasses.replace(gemm, records=records))
    assert "triton: 1.33x eager, geometric mean of 2 of 3 cells, 1 noisy left out" in text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.3234, 1.3432, "1.33 [1.32, 1.34]"),
        (1.0096, 1.0304, "1.0200 [1.0096, 1.0304]"),  # undecided: not above 1.01
        (1.01004, 1.0304, "1.02022 [1.01004, 1.03040]"),
        (0.9904, 1.0051, "0.9978 [0.9904, 1.005]"),
        (0.9851, 0.9949, "0.990 [0.985, 0.995]"),
    ],
)
def test_a_speedup_has_the_digits_that_its_verdict_needs(low, high, text):
    value = Interval(median=(low + high) / 2, low=low, high=high)
    assert speedup(value, 0.01) == text
