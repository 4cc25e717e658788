"""What hides from a timed call: remembering by content, work that stops once it is timed."""

import pytest
import torch
from kernel_lab.runner.records import Cell, Status, Workload
from kernel_lab.runner.worker.cell import CellRun
from kernel_lab.runner.worker.device_state import DeviceMonitor
from kernel_lab.runner.worker.hiding import remembers


@pytest.mark.parametrize(
    ("fresh", "again", "found"),
    [
        ([900.0, 1000.0, 5000.0], [12.0, 11.0, 300.0], True),
        ([100.0] * 3, [100.0] * 3, False),
        ([190.0] * 3, [100.0] * 3, False),
        ([900.0, 101.0], [100.0, 100.0], False),  # one call was interrupted
        ([19.0] * 3, [2.0] * 3, False),  # the host's caches
        ([5000.0] * 3, [2000.0] * 3, True),
    ],
)
def test_new_values_that_take_much_longer_mean_that_old_ones_are_remembered(fresh, again, found):
    """T15: a fingerprint of the values is looked up instead of the work."""
    assert ("remembers" in remembers(fresh, again)) == found


SIZE = 192


@pytest.fixture
def product(lab):
    """y = x x x x, so that the work is long beside a fingerprint of x."""

    def power(x):
        for _ in range(3):
            x = x @ x / 8
        return x

    lab.define("make_inputs", lambda draw, *, N, **_: {"x": draw(N, N, scale=N**-0.5)})
    lab.define("reference", power)
    lab.cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": SIZE}, dtype="fp32"))
    return power


def run(lab, **implementations):
    context = lab.made(**implementations)
    found = CellRun(context, lab.cell, list(implementations), DeviceMonitor("")).run()
    return {record.implementation: record for record in found}


def remembering(work, key):
    kept = {}

    def call(x):
        found = key(x)
        if found not in kept:
            kept[found] = work(x)
        return kept[found].clone()

    return call


@pytest.mark.parametrize(
    "key",
    [lambda x: x.flatten()[:3].sum().item(), lambda x: x.sum().item()],
    ids=["a few values", "all values"],
)
def test_a_result_remembered_by_its_values_is_no_time(lab, product, key):
    """T15: right on every input, and yet the timed calls did no work."""
    found = run(lab, eager=product, remembers=remembering(product, key))
    assert found["eager"].status in (Status.ok, Status.noisy), found["eager"].reason
    assert found["remembers"].status is Status.invalid
    assert "remembers results by content" in found["remembers"].reason


def test_a_call_that_does_nothing_once_it_is_timed_is_found_right_after_the_rounds(lab):
    """T15: outputs of timed calls are checked again."""
    calls = []

    def tires(x):
        calls.append(1)
        return x * 2 if len(calls) < 12 else torch.empty_like(x).fill_(1)

    found = run(lab, eager=lambda x: x * 2, tires=tires)
    assert found["eager"].status in (Status.ok, Status.noisy), found["eager"].reason
    assert found["tires"].status is Status.wrong_values
    assert found["tires"].timing is None


def test_work_that_is_left_out_while_the_inputs_are_those_timed_is_found(lab):
    """T15: right before and after on other inputs, wrong on the timed ones."""
    seen = {}

    def knows_when(x):
        first = float(x[0])
        seen[first] = seen.get(first, 0) + 1
        return x * 2 if seen[first] < 9 else torch.zeros_like(x)

    found = run(lab, eager=lambda x: x * 2, knows_when=knows_when)
    record = found["knows_when"]
    assert record.status is Status.wrong_values
    assert "timed inputs" in record.reason
    assert record.recheck.max_error > 0.1
