"""One cell from loading to records, on the CPU: what becomes of each implementation."""

import dataclasses
import math
import time

import pytest
import torch
from kernel_lab.runner.records import Cell, Status, Workload
from kernel_lab.runner.schema import Compile, Language, Mode
from kernel_lab.runner.worker.cell import CellRun
from kernel_lab.runner.worker.device_state import DeviceMonitor
from kernel_lab.runner.worker.hiding import PAIRS


def eager(x):
    return x * 2


def records(context, cell, names=None):
    names = list(names or context.experiment.kernel.implementations)
    found = CellRun(context, cell, names, DeviceMonitor("")).run()
    assert [record.implementation for record in found] == names
    return {record.implementation: record for record in found}


def test_right_ones_are_timed_side_by_side_and_checked_again(lab):
    context = lab.made(eager=eager, other=lambda x: x + x)
    found = records(context, lab.cell)
    for record in found.values():
        assert record.status is Status.ok
        assert len(record.timing.rounds_us) == 4
        assert len(record.timing.blocks) == 4
        assert record.timing.headline == "wall_us"
        assert record.timing.timer == "host perf_counter_ns"
        assert record.timing.state == "warm"
        assert record.timing.threads == torch.get_num_threads()
        assert record.timing.latency_us.low <= record.timing.latency_us.median
        assert record.timing.clock_spread is None
        assert record.recheck.checks == 2
        assert record.cost.stages[0].name == "double"
        assert record.job == "j1"
        assert context.ranges.table[record.range_id]["phase"] == "measure"
        assert context.ranges.table[record.range_id]["implementation"] == record.implementation
    places = {(block.round, block.position) for r in found.values() for block in r.timing.blocks}
    assert places == {(k, p) for k in range(4) for p in range(2)}


def test_each_step_is_announced_before_it_is_taken(lab):
    context = lab.made(eager=eager)
    records(context, lab.cell)
    assert list(dict.fromkeys(lab.announced)) == [
        ("yardstick eager", "reference"),
        ("eager", "load"),
        ("eager", "compile"),
        ("eager", "check"),
        ("eager", "warmup"),
        ("eager", "time"),
        ("yardstick eager", "recheck"),
        ("eager", "recheck"),
    ]


def test_a_wrong_one_costs_only_itself(lab):
    def raises(x):
        raise RuntimeError("this one raises")

    found = records(
        lab.made(eager=eager, zeros=torch.zeros_like, raises=raises, other=lambda x: x + x),
        lab.cell,
    )
    assert found["eager"].status is found["other"].status is Status.ok
    assert found["zeros"].status is Status.wrong_values
    assert found["zeros"].timing is None
    assert found["zeros"].correctness.max_error > 0.1
    assert found["raises"].status is Status.crashed
    assert "this one raises" in found["raises"].reason
    assert "Traceback" in found["raises"].traceback
    assert found["raises"].phase == "compile"


def test_one_that_fails_while_timed_is_taken_out_and_the_rest_are_timed(lab):
    calls = []

    def fails_later(x):
        calls.append(1)
        if len(calls) > 8:
            raise RuntimeError("only a few times")
        return x * 2

    found = records(lab.made(eager=eager, fails_later=fails_later), lab.cell)
    assert found["eager"].status is Status.ok
    assert len(found["eager"].timing.rounds_us) == 4
    assert found["fails_later"].status is Status.crashed
    assert found["fails_later"].phase == "time"
    assert found["fails_later"].timing is None


def test_one_that_goes_wrong_after_timing_loses_its_time(lab):
    calls = []

    def tires(x):
        calls.append(1)
        return x * 2 if len(calls) < 12 else x * 3

    found = records(lab.made(eager=eager, tires=tires), lab.cell)
    assert found["tires"].status is Status.wrong_values
    assert found["tires"].phase == "recheck"
    assert "after timing" in found["tires"].reason
    assert found["tires"].timing is None
    assert found["tires"].correctness is not None
    assert found["tires"].recheck.max_error > 0.1


@pytest.mark.parametrize("late", [RuntimeError("no more"), torch.OutOfMemoryError("no room")])
def test_a_check_after_timing_that_cannot_be_made_is_said(lab, late):
    calls = []

    def reference(x):
        calls.append(1)
        if len(calls) > 3:
            raise late
        return x * 2

    lab.define("reference", reference)
    found = records(lab.made(eager=eager, zeros=torch.zeros_like), lab.cell)
    assert found["eager"].status is Status.invalid
    assert "no check" in found["eager"].reason
    assert str(late) in found["eager"].reason
    assert found["zeros"].status is Status.wrong_values


def test_a_yardstick_that_raises_leaves_every_record_with_the_reason(lab):
    def broken(x):
        raise RuntimeError("no such thing")

    found = records(lab.made(eager=broken, other=eager), lab.cell)
    for record in found.values():
        assert record.status is Status.crashed
        assert "yardstick eager" in record.reason
        assert "no such thing" in record.reason
        assert record.phase == "reference"


def test_a_truth_of_nan_leaves_every_record_invalid(lab):
    lab.define("reference", lambda x: x * math.nan)
    found = records(lab.made(eager=lambda x: x * math.nan), lab.cell)
    assert found["eager"].status is Status.invalid
    assert "no finite value" in found["eager"].reason


def test_an_empty_cell_is_checked_for_shape_and_has_no_time(lab):
    """C15: no throughput and no speed-up can come of it."""
    cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": 0}, dtype="fp32"))
    found = records(lab.made(eager=eager, wrong=lambda x: torch.ones(1)), cell)
    assert found["eager"].status is Status.empty
    assert found["eager"].timing is None
    assert found["wrong"].status is Status.wrong_shape


def test_mode_check_ends_before_timing(lab):
    experiment = lab.experiment({"eager": eager})
    experiment.mode = Mode.check
    found = records(lab.context(experiment), lab.cell)
    assert found["eager"].status is Status.checked
    assert found["eager"].correctness.checks == 2
    assert "warmup" not in {phase for _, phase in lab.announced}


def test_triton_under_its_interpreter_is_checked_and_never_timed(lab):
    context = lab.context(lab.experiment({"eager": eager}, language=Language.triton))
    found = records(context, lab.cell)
    assert found["eager"].status is Status.checked
    assert "interpreter" in found["eager"].reason
    assert found["eager"].timing is None


def test_a_yardstick_need_not_be_among_those_asked_for(lab):
    found = records(lab.made(eager=eager, other=lambda x: x + x), lab.cell, ["other"])
    assert found["other"].status is Status.ok
    assert found["other"].correctness.yardstick == "eager"


def test_the_time_to_the_first_answer_is_a_compile_time_only_where_something_compiles(lab):
    assert records(lab.made(eager=eager), lab.cell)["eager"].compile_s is None
    context = lab.context(lab.experiment({"eager": eager}, language=Language.cuda))
    record = records(context, lab.cell)["eager"]
    assert record.compile_s == record.first_call_s > 0


def test_seeds_differ_between_the_check_the_timing_and_the_recheck(lab):
    seen = set()

    def call(x):
        seen.add(float(x[0]))
        return x * 2

    records(lab.made(eager=call), lab.cell)
    # two for the check, one for the timing, one a pair of calls after it, two for the recheck
    assert len(seen) == 5 + PAIRS


@pytest.mark.slow
def test_recompiling_while_timed_makes_the_row_invalid(lab):
    state = {"calls": 0}

    def call(x):
        return x * 2

    experiment = lab.experiment({"eager": eager, "compiled": call})
    experiment.kernel.implementations["compiled"].compile = Compile.default
    context = lab.context(experiment)

    def announce(name, phase):
        # what a guard failure does: the compiled code is thrown away in the rounds
        if (name, phase) == ("compiled", "time"):
            state["calls"] += 1
            if state["calls"] == 2:
                torch._dynamo.reset()

    found = records(dataclasses.replace(context, announce=announce), lab.cell)
    assert found["eager"].status is Status.ok
    if found["compiled"].status is Status.unavailable:
        pytest.skip(found["compiled"].reason)
    assert found["compiled"].status is Status.invalid
    assert "during timing" in found["compiled"].reason


@pytest.mark.slow
def test_a_compiled_arm_under_a_switch_that_turns_compiling_off_is_invalid(lab):
    """D11: falling back to eager is detected and named."""
    experiment = lab.experiment({"eager": eager, "compiled": lambda x: x * 2})
    experiment.kernel.implementations["compiled"].compile = Compile.default
    with torch._dynamo.config.patch(disable=True):
        found = records(lab.context(experiment), lab.cell)
    assert found["eager"].status is Status.ok
    if found["compiled"].status is Status.unavailable:
        pytest.skip(found["compiled"].reason)
    assert found["compiled"].status is Status.invalid
    assert "ran uncompiled" in found["compiled"].reason
    assert found["compiled"].timing is None


@pytest.mark.parametrize("warmup_ms", [0.0, 1.0])
def test_what_the_first_call_does_once_is_never_in_a_sample(lab, warmup_ms):
    """T07: compiling and tuning end before the first sample, whatever the warm-up."""
    slept = []

    def compiles(x):
        if not slept:
            slept.append(time.sleep(0.3))
        return x * 2

    compiles.tuning = lambda: "BLOCK=128"
    compiles.tuning_s = lambda: 5.0 + 0.125 * len(slept)  # 5 s for earlier shapes
    experiment = lab.experiment({"eager": eager, "compiles": compiles}, language=Language.cuda)
    experiment.protocol.warmup_ms = warmup_ms
    record = records(lab.context(experiment), lab.cell)["compiles"]
    assert record.first_call_s >= 0.3
    assert record.tuning_s == pytest.approx(0.125)
    assert record.compile_s == pytest.approx(record.first_call_s - 0.125)
    assert record.tuning == "BLOCK=128"
    assert max(record.timing.rounds_us) * record.timing.calls < 0.3e6
