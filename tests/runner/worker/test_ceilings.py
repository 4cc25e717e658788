"""The roofs of a job, and times beyond them."""

import pytest
import torch
from kernel_lab.runner.records import Cell, Cost, Interval, Record, Stage, Status, Timing, Workload
from kernel_lab.runner.schema import Protocol
from kernel_lab.runner.worker.ceilings import measure, too_fast, within_the_roof
from kernel_lab.runner.worker.device_state import DeviceMonitor

L2 = 60 << 20

ROOFS = {
    "copy_gbps": {"median": 4270.0, "low": 4260.0, "high": 4280.0},
    "read_gbps": {"median": 4390.0, "low": 4380.0, "high": 4400.0},
}


@pytest.mark.gpu
def test_the_ceilings_are_below_the_datasheet_and_above_half_of_it():
    found = measure(
        Protocol(name="test", warmup_ms=5.0),
        device=torch.device("cuda"),
        cache_bytes=L2,
        free_memory=40 << 30,
        monitor=DeviceMonitor(""),
    )
    for key in ("copy_gbps", "read_gbps"):
        rate = found[key]
        assert rate["low"] <= rate["median"] <= rate["high"]
        if "H200" in torch.cuda.get_device_properties(0).name:
            assert 0.5 * 4800 < rate["median"] < 4800


def test_a_ceiling_that_does_not_fit_is_none():
    assert (
        measure(
            Protocol(name="test"),
            device=torch.device("cpu"),
            cache_bytes=0,
            free_memory=1 << 30,
            monitor=DeviceMonitor(""),
        )
        is None
    )


def record(gbps, *, state="cold", status=Status.ok, written=0):
    """Reads 1 GB at this rate, its interval 1 % wide on each side."""
    us = 1e9 / gbps / 1e3
    stage = Stage(name="s", kind="pointwise", flops=0, bytes_read=10**9, bytes_written=written)
    return Record(
        job="j",
        experiment="e",
        cell=Cell(index=0, kernel="k", workload=Workload(axes={"N": 1}, dtype="fp32")),
        implementation="eager",
        status=status,
        cost=Cost(stages=(stage,)),
        timing=Timing(
            timer="t",
            headline="period_us",
            state=state,
            latency_us=Interval(median=us, low=us / 1.01, high=us * 1.01),
            rounds_us=(us,) * 20,
            calls=1,
            cache="",
        ),
    )


@pytest.mark.parametrize(
    ("gbps", "datasheet", "beyond"),
    [
        (4400.0, 4800.0, False),
        (4600.0, 4800.0, False),  # within the margin: a better kernel than the library's
        (4660.0, 4800.0, False),  # its interval reaches into it
        (4700.0, 4800.0, True),
        (9600.0, 4800.0, True),
        (4500.0, 4400.0, True),  # no margin beyond the datasheet
        (4700.0, None, True),
    ],
)
def test_reading_faster_than_memory_gives_is_not_cold(gbps, datasheet, beyond):
    found = within_the_roof(record(gbps), ROOFS, datasheet)
    assert (found.status is Status.invalid) == beyond
    if beyond:
        assert "The cache held inputs" in found.reason
        assert "measured 4400 GB/s in this job" in found.reason


def test_written_bytes_warm_times_and_unknown_roofs_are_let_be():
    assert too_fast(record(4000.0, written=10**9), ROOFS, 4800.0) == ""
    assert too_fast(record(9600.0, state="warm"), ROOFS, 4800.0) == ""
    assert too_fast(record(9600.0), None, 4800.0) == ""


def test_what_is_no_time_already_stays_as_it_is():
    assert within_the_roof(record(9600.0, status=Status.invalid), ROOFS, 4800.0).reason == ""
