"""Joules from the ticks of the energy counter; the stretch itself, on a GPU."""

import pytest
import torch
from kernel_lab.runner.records import Sustained
from kernel_lab.runner.worker.device_state import DeviceMonitor
from kernel_lab.runner.worker.rotation import Rotation
from kernel_lab.runner.worker.sustained import joules_and_watts, sustain


def test_power_is_taken_from_the_first_tick_to_the_last():
    # 70 J in 0.1 s are 700 W; a call of 200 us takes 0.14 J
    ticks = [(1.0, 5_000), (1.04, 33_000), (1.1, 75_000)]
    joules, watts = joules_and_watts(ticks, 200.0)
    assert watts == pytest.approx(700.0)
    assert joules == pytest.approx(0.14)


def test_too_few_ticks_give_no_energy_rather_than_a_wrong_one():
    assert joules_and_watts([(1.0, 5_000), (1.1, 75_000)], 200.0) == (None, None)
    assert joules_and_watts([], 200.0) == (None, None)


def kept_at_it(call, inputs, *, device, period_us, host_us, cache_bytes):
    return sustain(
        call,
        Rotation(inputs, device=device, cache_bytes=cache_bytes, free_memory=1 << 33),
        slots=4,
        period_us=period_us,
        host_us=host_us,
        milliseconds=200.0,
        monitor=DeviceMonitor(""),
        device=device,
    )


def test_calls_that_the_host_cannot_feed_have_no_sustained_time():
    said = kept_at_it(
        lambda x: x,
        (torch.ones(1024),),
        device=torch.device("cpu"),
        period_us=5.0,
        host_us=20.0,
        cache_bytes=4096,
    )
    assert said == "no sustained time: the host takes 20 us a call of 5 us"


def test_inputs_that_do_not_rotate_have_no_sustained_time():
    said = kept_at_it(
        lambda x: x,
        (torch.ones(4),),
        device=torch.device("cpu"),
        period_us=500.0,
        host_us=20.0,
        cache_bytes=1 << 20,
    )
    assert "would not stay cold" in said


@pytest.mark.gpu
def test_a_long_stretch_has_the_time_of_its_calls():
    x = torch.randn(64 << 20, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for event in (begin, end):
        for _ in range(50):
            y = x * 2
        event.record()
    torch.cuda.synchronize()
    del y
    period = begin.elapsed_time(end) * 1e3 / 50
    found = kept_at_it(
        lambda x: x * 2,
        (x,),
        device=torch.device("cuda", 0),
        period_us=period,
        host_us=10.0,
        cache_bytes=60 << 20,
    )
    assert isinstance(found, Sustained)
    assert 0.8 <= found.period_us / period <= 1.25
    assert found.seconds >= 0.15
