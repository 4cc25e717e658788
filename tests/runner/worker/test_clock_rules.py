"""What the clock may do during a block: cases as NVML would tell them."""

import pytest
from kernel_lab.runner.records import Block, DeviceState
from kernel_lab.runner.worker.clock_rules import clock_mhz, fault, labels, power_limited

USUAL = [1980] * 6


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (DeviceState(sm_mhz=1980), ""),
        (DeviceState(sm_mhz=1950), ""),
        (DeviceState(sm_mhz=1188), "SM clock 1188 MHz, usually 1980"),
        (DeviceState(sm_mhz=2045), "SM clock 2045 MHz, usually 1980"),
        # at the power limit a clock is what the work leaves
        (DeviceState(sm_mhz=1500, throttle=("power_cap",)), ""),
        (DeviceState(sm_mhz=1980, throttle=("thermal_slowdown",)), "thermal_slowdown at 1980 MHz"),
        (DeviceState(sm_mhz=990, throttle=("power_cap", "power_brake")), "power_brake at 990 MHz"),
        (DeviceState(sm_mhz=1980, throttle=("idle",)), ""),
        (DeviceState(sm_mhz=345, throttle=("idle",)), "SM clock 345 MHz, usually 1980"),
        (None, ""),
    ],
)
def test_a_block_at_another_clock_is_no_sample(state, said):
    """T11: a clock read as 60 % of the usual is flagged, with both clocks."""
    assert fault(state, USUAL) == said


def test_without_earlier_blocks_no_clock_is_unusual():
    assert fault(DeviceState(sm_mhz=345), [1980] * 4) == ""


def block(*, mhz=1980, throttle=(), fault=""):
    after = DeviceState(sm_mhz=mhz, throttle=throttle)
    return Block(
        round=0, position=0, state="cold", calls=1, samples_us=(1.0,), after=after, fault=fault
    )


def test_most_blocks_at_the_limit_make_a_power_limited_record():
    limited, free = block(throttle=("power_cap",)), block()
    assert power_limited([limited, limited, free]) is True
    assert power_limited([limited, free]) is False
    assert power_limited(
        [Block(round=0, position=0, state="warm", calls=1, samples_us=(1.0,))]
    ) is (None)


def test_labelled_blocks_are_said_and_many_of_them_decide():
    good, bad = block(), block(fault="SM clock 1188 MHz, usually 1980")
    assert labels([good] * 10) == ("", False)
    assert labels([good] * 19 + [bad]) == (
        "1 of 20 blocks off: SM clock 1188 MHz, usually 1980",
        False,
    )
    assert labels([good] * 8 + [bad] * 2)[1]


def test_clocks_are_those_that_were_read():
    assert clock_mhz([block(mhz=1700), block(mhz=None), block(mhz=1800)]) == [1700, 1800]
