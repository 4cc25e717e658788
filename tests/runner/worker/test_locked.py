"""Whether a locked clock held, by readings made by hand."""

import pytest
from kernel_lab.runner.records import Block, DeviceState
from kernel_lab.runner.worker.locked import off_lock


def block(*mhz, throttle=("applications_clocks",)):
    states = [None if m is None else DeviceState(sm_mhz=m, throttle=tuple(throttle)) for m in mhz]
    return Block(
        round=0,
        position=0,
        state="cold",
        calls=1,
        samples_us=(1.0,),
        before=states[0],
        after=states[-1],
    )


def test_where_the_clock_is_only_observed_nothing_is_held_against_it():
    assert off_lock("observe", [block(300, 1980), block(None)]) == ""
    assert off_lock("observe", []) == ""


@pytest.mark.parametrize("mhz", [1485, 1500, 1515])
def test_within_one_percent_the_clock_held(mhz):
    assert off_lock("lock:1500", [block(mhz, 1500), block(1500, mhz)]) == ""


@pytest.mark.parametrize("mhz", [1484, 1516])
@pytest.mark.parametrize("place", [0, 1])
def test_beyond_it_both_clocks_are_named(mhz, place):
    readings = [1500, 1500]
    readings[place] = mhz
    text = off_lock("lock:1500", [block(1500, 1500), block(*readings), block(1500, 1500)])
    assert f"was {mhz} MHz" in text
    assert "locks it at 1500 MHz" in text
    assert "in 1 of 3 blocks" in text
    assert "held back" not in text


def test_the_worst_reading_and_what_held_the_gpu_back_are_named():
    blocks = [
        block(1500, 1410, throttle=["applications_clocks", "power_cap"]),
        block(1300, 1450, throttle=["thermal_slowdown"]),
    ]
    text = off_lock("lock:1500", blocks)
    assert "was 1300 MHz" in text
    assert "in 2 of 2 blocks" in text
    assert "held back by power_cap, thermal_slowdown: lock a lower clock" in text


def test_an_idle_clock_says_nothing_of_the_calls():
    idle = block(345, 345, throttle=["idle"])
    assert off_lock("lock:1500", [idle, block(1500, 1500)]) == ""
    assert off_lock("lock:1500", [block(1500, 1500, throttle=["idle"])]) == ""


@pytest.mark.parametrize("blocks", [[], [block(None)], [block(345, throttle=["idle"])]])
def test_a_lock_that_no_reading_confirms_is_denied(blocks):
    text = off_lock("lock:1500", blocks)
    assert "1500 MHz" in text
    assert f"no reading in {len(blocks)} blocks" in text


def test_a_reading_without_a_clock_is_none():
    bare = Block(
        round=0, position=0, state="cold", calls=1, samples_us=(1.0,),
        before=DeviceState(watts=1.0), after=DeviceState(sm_mhz=1500),
    )  # fmt: skip
    assert off_lock("lock:1500", [bare]) == ""
