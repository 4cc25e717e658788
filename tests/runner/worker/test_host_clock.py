"""The host clock on calls that count themselves: no test looks at how long anything took."""

import gc
import time

import pytest
from kernel_lab.runner.schema import Protocol
from kernel_lab.runner.worker.host_clock import HostClock


class Call:
    """Takes `seconds` by a clock of the test's own."""

    def __init__(self, monkeypatch, seconds):
        self.count = 0
        self.collecting = []
        self._seconds = seconds
        self._now = 1000.0
        monkeypatch.setattr(time, "perf_counter", lambda: self._now)
        monkeypatch.setattr(time, "perf_counter_ns", lambda: round(self._now * 1e9))

    def __call__(self, *inputs):
        self.count += 1
        self.collecting.append(gc.isenabled())
        self._now += self._seconds(self.count) if callable(self._seconds) else self._seconds
        return inputs


def clock(call, **protocol):
    values = {"sample_us": 300.0, "warmup_ms": 5.0, "samples": 3, **protocol}
    return HostClock({"a": call}, (), Protocol(name="test", **values))


def test_warm_up_lasts_as_long_as_asked_and_is_recorded(monkeypatch):
    call = Call(monkeypatch, 1e-3)
    made = clock(call)
    made.prepare("a")
    count, seconds = made.warmup["a"]
    assert count == call.count
    assert seconds == pytest.approx(count * 1e-3)
    assert 5e-3 <= seconds <= 7e-3


def test_slow_calls_are_still_called_three_times(monkeypatch):
    call = Call(monkeypatch, 10.0)
    made = clock(call)
    made.prepare("a")
    assert call.count == 3
    assert made.per_sample["a"] == 1


def test_one_interrupted_call_does_not_make_samples_short(monkeypatch):
    call = Call(monkeypatch, 20e-6)

    def interrupted(*inputs):
        call._now += 1e-3 if call.count == 199 else 0
        return call(*inputs)

    made = clock(interrupted)
    made.prepare("a")
    assert made.warmup["a"][0] > 190
    assert made.per_sample["a"] == 15


def test_a_sample_is_the_mean_of_enough_calls(monkeypatch):
    call = Call(monkeypatch, 20e-6)
    made = clock(call)
    made.prepare("a")
    assert made.per_sample["a"] == 15  # 300 us of 20 us calls
    call.count = 0
    block = made.block("a", "warm", 4, 1)
    assert call.count == 1 + 3 * 15  # one to bring the inputs back into the caches
    assert block.samples_us == pytest.approx((20.0, 20.0, 20.0))
    assert (block.round, block.position, block.state, block.calls) == (4, 1, "warm", 15)
    assert block.held is None


def test_the_collector_rests_during_samples_only(monkeypatch):
    call = Call(monkeypatch, 1e-3)
    made = clock(call)
    made.prepare("a")
    call.collecting.clear()
    assert gc.isenabled()
    made.block("a", "warm", 0, 0)
    assert not any(call.collecting)
    assert gc.isenabled()


def test_the_collector_comes_back_after_a_failure(monkeypatch):
    call = Call(monkeypatch, 1e-3)
    made = clock(call)
    made.prepare("a")

    def fails(*inputs):
        raise RuntimeError("in the block")

    made._calls = {"a": fails}
    with pytest.raises(RuntimeError, match="in the block"):
        made.block("a", "warm", 0, 0)
    assert gc.isenabled()


def test_calls_below_the_clocks_tick_do_not_divide_by_zero(monkeypatch):
    call = Call(monkeypatch, 0.0)
    made = clock(call, warmup_ms=0.0)
    made.prepare("a")
    assert made.per_sample["a"] >= 1
    assert made.block("a", "warm", 0, 0).samples_us[0] >= 0


def test_rounds_far_above_the_fastest_call_are_called_disturbed(monkeypatch):
    call = Call(monkeypatch, 1e-5)
    made = clock(call)
    made.prepare("a")
    assert made.disturbed("a", 12.0) == ""
    assert "8.0 times the fastest (10 us)" in made.disturbed("a", 80.0)
    assert "settings.threads=1" in made.disturbed("a", 80.0)


def test_a_fast_sample_after_a_slow_warm_up_counts_as_the_fastest(monkeypatch):
    call = Call(monkeypatch, 1e-3)
    made = clock(call)
    made.prepare("a")
    call._seconds = 1e-5
    made.block("a", "warm", 0, 0)
    assert made.disturbed("a", 1000.0)


def test_warm_up_goes_on_while_the_calls_still_get_faster(monkeypatch):
    call = Call(monkeypatch, lambda count: 1e-3 * (3 - 2 * min(count, 20) / 20))
    made = clock(call, warmup_ms=20.0)
    made.prepare("a")
    assert made.settled["a"]
    assert made.warmup["a"][0] >= 20 + 8  # most of the window lies beyond the fall


def test_a_warm_up_that_never_settles_ends_and_says_so(monkeypatch):
    made = clock(Call(monkeypatch, lambda count: 1e-4 * 1.005**count))
    made.prepare("a")
    assert not made.settled["a"]
