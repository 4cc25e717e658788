"""The device clock: what it decides, everywhere; what it measures, on a GPU. No absolute times."""

import pytest
import torch
from kernel_lab.runner.schema import Protocol
from kernel_lab.runner.worker.device_clock import DeviceClock
from kernel_lab.runner.worker.device_state import DeviceMonitor
from kernel_lab.runner.worker.rotation import MAX_CALLS
from kernel_lab.runner.worker.untimed import NoSlope, OutsideWork, outside


def clock(calls, inputs, *, device="cpu", cache_bytes=0, free=1 << 30, **protocol):
    values = {"samples": 1, "sample_us": 300.0, "warmup_ms": 5.0, **protocol}
    return DeviceClock(
        calls,
        inputs,
        Protocol(name="test", **values),
        device=torch.device(device),
        cache_bytes=cache_bytes,
        free_memory=free,
        monitor=DeviceMonitor(""),
    )


def test_small_inputs_rotate_through_three_times_the_cache():
    # 4 kB inputs, 100 kB cache: 75 copies hold 3x, and one is in use
    made = clock({}, (torch.ones(1024),), cache_bytes=102400)
    assert "rotate through 76 copies" in made.cache
    assert made.states == ("cold", "warm")


def test_inputs_too_small_to_rotate_are_used_once_and_the_cache_is_filled_by_reading():
    """T05: the size comes from the device's L2, and both are in the record."""
    made = clock({}, (torch.ones(4),), cache_bytes=102400)
    assert f"{MAX_CALLS} copies used once a run" in made.cache
    assert "L2 filled by reading" in made.cache


def test_memory_that_forbids_copies_is_said():
    made = clock({}, (torch.ones(1024),), cache_bytes=102400, free=8192)
    assert "1 copies used once" in made.cache
    assert "reading" in made.cache


def test_warm_can_be_left_out():
    assert clock({}, (torch.ones(4),), warm=False).states == ("cold",)


L2 = 60 << 20


def measured(calls, inputs, states=("cold",), rounds=9, **protocol):
    """Median period in us of each call in each state, the rounds interleaved; and all blocks."""
    made = clock(calls, inputs, device="cuda", cache_bytes=L2, free=40 << 30, **protocol)
    for name in calls:
        made.prepare(name)
    blocks = {(n, s): [] for n in calls for s in states}
    for k in range(rounds):
        for name in calls:
            for state in states:
                blocks[name, state].append(made.block(name, state, k, 0))
    medians = {
        key: sorted(b.samples_us[0] for b in found)[rounds // 2] for key, found in blocks.items()
    }
    return medians, [block for found in blocks.values() for block in found], made


@pytest.mark.gpu
def test_a_chain_of_two_kernels_costs_twice_one():
    x = torch.randn(64 << 20, device="cuda")
    medians, blocks, _ = measured({"one": lambda x: x * 2, "two": lambda x: x * 2 * 3}, (x,))
    assert 1.9 <= medians["two", "cold"] / medians["one", "cold"] <= 2.1
    assert all(block.held for block in blocks)


@pytest.mark.gpu
def test_small_kernels_are_held_and_cost_twice_one_too():
    """T09: far below what the host takes to launch: the queue is held, or this is host time."""
    x = torch.randn(1 << 10, device="cuda")
    medians, blocks, made = measured({"one": lambda x: x * 2, "two": lambda x: x * 2 * 3}, (x,))
    assert 1.7 <= medians["two", "cold"] / medians["one", "cold"] <= 2.3
    assert all(block.held for block in blocks)
    assert medians["one", "cold"] < made.host_us("one")


@pytest.mark.gpu
def test_cold_is_slower_than_warm_where_the_cache_holds_the_input():
    if torch.cuda.get_device_properties(0).L2_cache_size < 40 << 20:
        pytest.skip("needs a GPU whose L2 holds 16 MB with room to spare")
    x = torch.randn(4 << 20, device="cuda")
    medians, _, _ = measured({"sum": lambda x: x.sum()}, (x,), states=("cold", "warm"))
    assert medians["sum", "cold"] > 1.1 * medians["sum", "warm"]


@pytest.mark.gpu
def test_warm_up_and_calls_are_recorded():
    x = torch.randn(1 << 20, device="cuda")
    _, blocks, made = measured({"one": lambda x: x * 2}, (x,), rounds=1)
    count, seconds = made.warmup["one"]
    assert count >= 2 * made.per_sample["one"]
    assert seconds >= 5e-3
    assert blocks[0].calls == made.per_sample["one"] <= MAX_CALLS // 2


def test_without_nvml_the_monitor_says_why_and_reads_nothing():
    monitor = DeviceMonitor("GPU-00000000-0000-0000-0000-000000000000")
    assert monitor.read() is None
    assert monitor.reason


@pytest.mark.parametrize(
    ("tails", "within", "found"),
    [
        ([1400.0, 1380.0, 1390.0], [6.0, 8.0], True),
        ([6.0, 7.0, 900.0], [6.0, 8.0], False),  # the host was interrupted once
        ([900.0, 950.0, 7.0], [6.0, 8.0], False),
        ([80.0] * 5, [40.0] * 5, False),  # a slow host
        ([38.7] * 5, [11.0] * 5, False),  # as seen on an H200 after a copy of 1 GiB
        ([72.0] * 5, [11.0] * 5, True),
    ],
)
def test_work_that_outlasts_the_last_event_is_outside_the_stream(tails, within, found):
    """T01: event time against the host's around a device-wide synchronise."""
    assert ("work outside the timed stream" in outside(tails, within)) == found


def test_released_copies_are_the_first_and_the_last():
    made = clock({}, (torch.ones(1024),), cache_bytes=102400)
    assert len(made.release()) == 2
    assert len(clock({}, (torch.ones(1024),)).release()) == 1


@pytest.mark.gpu
def test_a_kernel_on_a_stream_of_its_own_has_no_time():
    """T01: a large product on a new stream, returned without joining."""
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def hides(x):
        with torch.cuda.stream(torch.cuda.Stream()):
            return x @ x

    made = clock({"hides": hides}, (x,), device="cuda", cache_bytes=L2, free=8 << 30)
    with pytest.raises(OutsideWork, match="work outside the timed stream"):
        made.prepare("hides")
    torch.cuda.synchronize()


@pytest.mark.gpu
def test_a_kernel_on_another_stream_that_is_joined_is_timed_as_on_the_timed_one():
    """T01: covered, so never near zero."""
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    side = torch.cuda.Stream()

    def joined(x):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x @ x
        torch.cuda.current_stream().wait_stream(side)
        y.record_stream(torch.cuda.current_stream())
        return y

    medians, _, _ = measured({"plain": lambda x: x @ x, "joined": joined}, (x,))
    assert medians["joined", "cold"] > 0.8 * medians["plain", "cold"]


@pytest.mark.gpu
def test_a_call_that_waits_for_the_device_has_no_time_and_is_not_held_ever_longer():
    x = torch.randn(1 << 16, device="cuda")

    def waits(x):
        y = x * 2
        torch.cuda.synchronize()
        return y

    made = clock({"waits": waits}, (x,), device="cuda", cache_bytes=L2, free=8 << 30)
    with pytest.raises(NoSlope, match="host-limited"):
        made.prepare("waits")
