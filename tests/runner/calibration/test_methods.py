"""Each instrument on kernels of known cost. No absolute times: instruments against each other."""

import time
from types import SimpleNamespace

import pytest
import torch
from kernel_lab.runner.calibration import cold, methods
from kernel_lab.runner.calibration.bench import Bench, device_clock, periods
from kernel_lab.runner.calibration.subjects import Absent
from kernel_lab.runner.schema import Protocol
from kernel_lab.runner.worker.device_state import DeviceMonitor
from kernel_lab.runner.worker.evidence import warm_profiler

pytestmark = pytest.mark.gpu

LONG = 64 << 20
"""Elements of fp32 that take about 100 us to scale on a GPU of some 4 TB/s."""


def once(x):
    return x * 2


def twice(x):
    return x * 2 * 3


def subject(elements):
    def draw(number=0):
        return (torch.randn(elements, device="cuda"),)

    return SimpleNamespace(
        name="it",
        draw=draw,
        monitor=DeviceMonitor(""),
        experiment=SimpleNamespace(protocol=Protocol(name="test", warmup_ms=5.0, min_rounds=9)),
        context=SimpleNamespace(
            device=torch.device("cuda"),
            cache_bytes=torch.cuda.get_device_properties(0).L2_cache_size,
            free_memory=lambda: 8 << 30,
            synchronize=torch.cuda.synchronize,
        ),
    )


def bench(call, elements=LONG):
    """The bench of a call, and our own period of it in us."""
    made = subject(elements)
    clock = device_clock(made, call, warm=False)
    period = periods(clock, made)["cold_us"]["median"]
    calls = clock.per_sample["it"]
    host = clock.host_us("it")
    return Bench(made, call, clock.rotation, period, host, sample_calls=calls), period


def stamp():
    return pytest.importorskip("kernel_lab.kernels.adapters.global_timer").stamp


@pytest.mark.parametrize("call", [once, twice])
def test_stamps_agree_with_the_period_of_a_long_kernel(call):
    made, period = bench(call)
    assert methods.stamp_us(made, stamp())["stamp_us"]["median"] == pytest.approx(period, rel=0.05)


def test_stamps_of_short_calls_are_around_many_of_them():
    made, period = bench(once, 4096)
    found = methods.stamp_us(made, stamp())
    assert found["stamp_calls"] > 10
    assert found["stamp_us"]["median"] == pytest.approx(period, rel=0.25)


def test_a_graph_of_copies_has_the_periods_slope():
    made, period = bench(twice)
    found = methods.graph_us(made, lambda: period)
    assert found["graph_us"]["median"] == pytest.approx(period, rel=0.05)
    assert found["graph_period_us"]["median"] == period
    assert found["nodes"] == 2
    counts, totals = zip(*found["graph_copies"], strict=True)
    assert counts[0] == 1
    assert list(totals) == sorted(totals)
    assert found["graph_slope"][1] == 2 * found["graph_slope"][0]


def test_a_graph_of_short_calls_is_no_slower_than_their_stream():
    made, period = bench(twice, 4096)
    found = methods.graph_us(made, lambda: period)
    assert [count for count, _ in found["graph_copies"]] == list(methods.COPIES)
    assert found["graph_us"]["median"] < 1.1 * period


def test_one_call_between_events_holds_the_work_and_more_where_the_queue_is_empty():
    made, period = bench(once, 4096)
    held = methods.event_us(made)["event_us"]["median"]
    unheld = methods.event_unheld_us(made)["event_unheld_us"]["median"]
    assert period < held < unheld


def test_device_timestamps_are_read_call_by_call():
    made, period = bench(twice)
    warm_profiler()
    found = methods.traced(made)
    assert found["launches"] == 2
    assert found["traced_calls"] == methods.TRACED
    assert found["busy_us"]["median"] <= found["span_us"]["median"]
    assert found["busy_us"]["median"] == pytest.approx(period, rel=0.1)


def test_a_queue_that_fills_too_slowly_is_held_longer_the_next_time():
    made, _ = bench(once, 4096)
    turns = []

    def slow():
        turns.append(1)
        time.sleep(0.02)

    held, took = made.held_once(slow, 1.0)
    assert not held
    assert took > 15_000
    made.held(slow, 1.0)
    assert len(turns) > 2


def test_a_queue_that_is_never_held_gives_no_number():
    made, _ = bench(once, 4096)
    turns = []

    def slower_each_time():
        turns.append(1)
        time.sleep(0.005 * 8 ** (len(turns) - 1))

    with pytest.raises(Absent, match="not held in 4 attempts"):
        made.held(slower_each_time, 1.0)


def test_every_way_to_empty_the_cache_comes_before_the_call_and_not_into_its_window():
    """16 MB fit into L2: warm is the fastest; a flush in the window would cost ten times more."""
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    if l2 < 40 << 20:
        pytest.skip("needs a GPU whose L2 holds 16 MB with room to spare")
    made, _ = bench(torch.sum, 4 << 20)
    (first,) = made.rotation.copies[0]
    scratch = torch.empty(2 * l2 // 4, dtype=torch.int32, device="cuda")
    ways = {
        "rotated_us": (lambda: made.calls(1), lambda: made.calls(1)),
        "warm_us": (lambda: first.sum(), lambda: first.sum()),
        "read_flush_us": (made.read_flush, lambda: first.sum()),
        "write_flush_us": (scratch.zero_, lambda: first.sum()),
    }
    found = {
        key: sorted(cold._one(made, key, *way))[cold.REPEATS // 2] for key, way in ways.items()
    }
    for key in ("rotated_us", "read_flush_us", "write_flush_us"):
        assert found["warm_us"] < found[key] < 5 * found["warm_us"], found


def test_without_a_rotation_there_is_no_rotated_time():
    made, _ = bench(once, 64)
    with pytest.raises(Absent, match="too few copies"):
        cold._one(made, "rotated_us", lambda: None, lambda: None)
