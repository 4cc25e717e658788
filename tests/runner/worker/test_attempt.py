import dataclasses

import pytest
from kernel_lab.runner.records import Block, DeviceState, Status, Timing
from kernel_lab.runner.schema import Compile, Distribution, Implementation, Language
from kernel_lab.runner.worker.attempt import Attempt, Built
from kernel_lab.runner.worker.rounds import Sampled


class Clock:
    timer = "a clock"
    headline = "period_us"
    states = ("cold", "warm")
    cache = "cold: somehow"

    def __init__(self):
        self.per_sample = {"eager": 7}
        self.warmup = {"eager": (30, 0.25)}
        self.settled = {"eager": True}

    def host_us(self, name):
        return 4.5

    def disturbed(self, name, latency_us):
        return ""

    def nodes(self, name):
        return {}


def sampled(*, held=(True,) * 20, mhz=(1980,) * 20, cold=tuple(10.0 + k for k in range(20))):
    made = Sampled()
    for k in range(20):
        for state, value in (("cold", cold[k]), ("warm", 5.0)):
            made.blocks.append(
                Block(
                    round=k,
                    position=0,
                    state=state,
                    calls=7,
                    samples_us=(value, value),
                    held=held[k],
                    after=DeviceState(sm_mhz=mhz[k]),
                )
            )
    return made


def settled(lab, blocks, *, recompiled=0, compile_=Compile.none):
    context = lab.context(lab.experiment({"eager": lambda x: x * 2}, compile=compile_))
    attempt = Attempt(name="eager")
    attempt.settle(context, Clock(), blocks, "after 20 rounds", Built(graphs=recompiled))
    return attempt, context


def test_the_headline_is_the_first_state_and_warm_stands_beside(lab):
    attempt, context = settled(lab, sampled())
    timing = attempt.timing
    assert attempt.status is Status.ok
    assert timing.state == "cold"
    assert timing.rounds_us == tuple(10.0 + k for k in range(20))
    assert timing.latency_us.median == 19.5
    assert (timing.latency_us.low, timing.latency_us.high) == (15.0, 24.0)
    assert timing.warm_us.median == 5.0
    assert timing.warm_rounds_us == (5.0,) * 20
    assert (timing.calls, timing.warmup_calls, timing.warmup_s) == (7, 30, 0.25)
    assert (timing.host_us, timing.stopped, timing.notes) == (4.5, "after 20 rounds", ())
    assert timing.clock_spread == 0
    record = attempt.record(context, lab.cell)
    assert record.timing == timing
    assert record.status is Status.ok


def test_the_spread_of_the_clock_is_recorded(lab):
    """T11: blocks at other SM clocks."""
    attempt, _ = settled(lab, sampled(mhz=(1980,) * 19 + (990,)))
    assert attempt.timing.clock_spread == pytest.approx(0.5)


def test_a_few_blocks_that_were_not_held_are_a_note(lab):
    attempt, _ = settled(lab, sampled(held=(False,) * 3 + (True,) * 17))
    assert attempt.status is Status.ok
    assert attempt.timing.notes == ("queue not held in 6 of 40 blocks",)


def test_mostly_not_held_is_host_time_and_invalid(lab):
    attempt, context = settled(lab, sampled(held=(False,) * 11 + (True,) * 9))
    assert attempt.status is Status.invalid
    assert "host-limited" in attempt.reason
    assert attempt.record(context, lab.cell).timing is not None


def test_compiling_during_timing_is_invalid_for_what_compiles_only(lab):
    assert settled(lab, sampled(), recompiled=2)[0].status is Status.ok
    attempt, _ = settled(lab, sampled(), recompiled=2, compile_=Compile.default)
    assert attempt.status is Status.invalid
    assert "2 times during timing" in attempt.reason


def test_failing_takes_the_time_away_unless_the_status_may_carry_one(lab):
    attempt, context = settled(lab, sampled())
    timing = attempt.timing
    attempt.fail(Status.invalid, "x", "time")
    assert attempt.timing == timing
    attempt.fail(Status.wrong_values, "y", "recheck")
    assert attempt.timing is None
    record = attempt.record(context, lab.cell)
    assert (record.status, record.reason, record.phase) == (Status.wrong_values, "y", "recheck")


def test_a_record_refuses_a_time_beside_a_wrong_answer(lab):
    attempt, context = settled(lab, sampled())
    record = attempt.record(context, lab.cell)
    assert isinstance(record.timing, Timing)
    with pytest.raises(ValueError, match="wrong_values cannot carry a time"):
        dataclasses.replace(record, status=Status.wrong_values)
    with pytest.raises(ValueError, match="ok must carry a time"):
        dataclasses.replace(record, timing=None)


def test_two_modes_are_said_and_nothing_is_trimmed(lab):
    cold = (10.0, 11.0, 10.05, 11.05) * 5
    attempt, _ = settled(lab, sampled(cold=cold))
    assert attempt.status is Status.ok
    assert attempt.timing.rounds_us == cold
    assert attempt.timing.notes == ("two modes: 50% of rounds near 10.02 us, rest 11.02 us",)
    assert settled(lab, sampled(cold=(10.0, 10.02) * 10))[0].timing.notes == ()


@pytest.mark.parametrize(
    ("distribution", "says"),
    [("normal", None), ("zeros", "constant inputs"), ("outliers", "distribution=outliers")],
)
def test_a_time_on_unusual_inputs_says_so(lab, distribution, says):
    """T13: the inputs' values change the time, through power."""
    experiment = lab.experiment({"eager": lambda x: x * 2})
    experiment.distribution = Distribution(distribution)
    attempt = Attempt(name="eager")
    attempt.settle(lab.context(experiment), Clock(), sampled(), "after 20 rounds", Built())
    assert attempt.status is Status.ok
    assert [says in note for note in attempt.timing.notes] == ([True] if says else [])


@pytest.mark.parametrize(
    ("built", "values", "said"),
    [
        (Built(kernels=2), {"language": Language.triton}, "Triton compiled 2 kernels"),
        (Built(kernels=2), {"language": Language.torch}, ""),
        (Built(graphs=1, kernels=1), {"compile": Compile.default}, "torch.compile ran 1 times"),
        (Built(), {"language": Language.triton, "compile": Compile.default}, ""),
        (Built(kernels=-5), {"language": Language.triton}, ""),  # somebody cleared the cache
    ],
)
def test_compiling_while_timed_is_charged_to_who_compiles_that_way(built, values, said):
    """T07, D11."""
    found = built.of(Implementation(target="a.b", cost="c", **values))
    assert found.startswith(said)
    assert bool(found) == bool(said)
