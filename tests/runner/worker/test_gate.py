"""The gate passes right answers, and says of each wrong one what is wrong with it."""

import dataclasses
import math

import pytest
import torch
from kernel_lab.runner.records import Cell, Status, Workload
from kernel_lab.runner.schema import Device
from kernel_lab.runner.worker.gate import Gate, WrongAnswer
from kernel_lab.runner.worker.inputs import clone, restride


def eager(x):
    return x * 2


def gate(lab, **implementations):
    return Gate(lab.made(eager=eager, **implementations), lab.cell, seed=1)


def refused(gate, call):
    with pytest.raises(WrongAnswer) as raised:
        gate.check(call)
    return raised.value


def test_a_right_answer_passes_on_two_sets_of_inputs(lab):
    found = gate(lab).check(eager)
    assert found.checks == 2
    assert found.max_error <= found.max_tolerance
    assert found.yardstick == "eager"
    assert (found.nonfinite, found.nonfinite_reference) == (0, 0)


def test_the_tolerance_is_a_multiple_of_the_yardsticks_own_error(lab):
    def rough(x):
        y = x * 2
        y[5] *= 1 + 1e-3
        return y

    context = lab.context(lab.experiment({"eager": rough}, kernel={"error_multiple": 3.0}))
    found = Gate(context, lab.cell, seed=1).check(lambda x: x * 2 * (1 + 1e-6))
    assert found.max_tolerance == pytest.approx(3 * found.yardstick_max_error)
    assert found.yardstick_max_error > 1e-4


def test_a_sum_may_be_taken_in_any_order(lab):
    """The square root of its length in ulp, even where the yardstick itself errs less."""
    lab.define("make_inputs", lambda draw, *, N, **_: {"x": draw(64, N)})
    lab.define("reference", lambda x: x.sum(-1))

    def one_after_another(x):
        y = torch.zeros(len(x))
        for k in range(x.shape[1]):
            y += x[:, k]
        return y

    def made(**kernel):
        experiment = lab.experiment({"eager": lambda x: x.sum(-1)}, kernel=kernel)
        cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": 1 << 12}, dtype="fp32"))
        return Gate(lab.context(experiment), cell, seed=1)

    summed = made(sum_length="N")
    assert summed.check(one_after_another).max_tolerance == 2.0**6 * 2.0**-23
    assert "largest error" in refused(made(), one_after_another).reason
    assert refused(summed, lambda x: x.bfloat16().float().sum(-1)).status is Status.wrong_values


def test_an_exact_yardstick_leaves_two_units_in_the_last_place(lab):
    assert gate(lab).check(eager).max_tolerance == 2 * 2.0**-23


def test_a_tolerance_lets_no_more_than_itself_pass(lab):
    made = gate(lab)
    wrong = refused(made, lambda x: x * 2 * (1 + 3e-6))
    assert wrong.status is Status.wrong_values
    assert "largest error" in wrong.reason
    assert wrong.correctness.max_error > wrong.correctness.max_tolerance


def test_many_small_errors_fail_by_their_rms(lab):
    # one element of the yardstick errs much, so that the largest error allows much
    def one_off(x):
        y = x * 2
        y[7] *= 1.001
        return y

    context = lab.made(eager=one_off)
    wrong = refused(Gate(context, lab.cell, seed=1), lambda x: x * 2 + 5e-4)
    assert wrong.status is Status.wrong_values
    assert "rms error" in wrong.reason


def test_misplaced_nonfinite_values_fail_with_their_counts(lab):
    def one_nan(x):
        y = x * 2
        y[3] = math.nan
        return y

    wrong = refused(gate(lab), one_nan)
    assert wrong.status is Status.wrong_values
    assert "1 non-finite" in wrong.reason
    assert "(1 in the output, 0 there)" in wrong.reason


def test_nan_where_the_reference_has_it_is_right(lab):
    lab.define("reference", lambda x: x.sqrt())
    found = Gate(lab.made(eager=torch.sqrt), lab.cell, seed=1).check(torch.sqrt)
    assert found.nonfinite == found.nonfinite_reference > 0


def test_a_reference_of_nothing_but_nan_is_no_test(lab):
    """C01: the logarithm of negative numbers."""
    lab.define("reference", lambda x: (-x.abs()).log())
    with pytest.raises(WrongAnswer) as raised:
        Gate(lab.made(eager=lambda x: (-x.abs()).log()), lab.cell, seed=1)
    assert raised.value.status is Status.invalid
    assert "no finite value" in raised.value.reason
    assert "(64 of 64 not finite, 64 in the output of eager)" in raised.value.reason


def test_one_output_of_nothing_but_nan_is_enough(lab):
    lab.define("reference", lambda x: (x * 2, (-x.abs()).log()))
    with pytest.raises(WrongAnswer, match="no finite value"):
        Gate(lab.made(eager=lambda x: (x * 2, (-x.abs()).log())), lab.cell, seed=1)


@pytest.mark.parametrize("bad", [lambda x: x * 2.1, lambda x: x * math.inf])
def test_a_yardstick_far_from_the_truth_is_no_yardstick(lab, bad):
    with pytest.raises(WrongAnswer) as raised:
        Gate(lab.made(eager=bad), lab.cell, seed=1)
    assert raised.value.status is Status.invalid
    assert "yardstick eager" in raised.value.reason


@pytest.mark.parametrize("bad", [lambda x: (x * 2, x), lambda x: (x * 2)[:-1], lambda x: None])
def test_a_yardstick_of_another_form_is_said_to_be_one(lab, bad):
    with pytest.raises(WrongAnswer) as raised:
        Gate(lab.made(eager=bad), lab.cell, seed=1)
    assert raised.value.status is Status.invalid
    assert "yardstick eager" in raised.value.reason


@pytest.mark.parametrize(
    ("call", "status", "says"),
    [
        (lambda x: (x * 2)[:-1], Status.wrong_shape, "(63,) instead of (64,)"),
        (lambda x: (x * 2)[None], Status.wrong_shape, "(1, 64)"),
        (lambda x: (x * 2, x), Status.wrong_shape, "2 output tensors instead of 1"),
        (lambda x: None, Status.wrong_shape, "0 output tensors"),
        (lambda x: (x * 2).double(), Status.wrong_dtype, "torch.float64 instead of torch.float32"),
        (lambda x: x.mul_(2), Status.wrong_values, "input 0 was changed"),
        (lambda x: torch.zeros_like(x), Status.wrong_values, "largest error"),
    ],
)
def test_what_is_wrong_is_named(lab, call, status, says):
    wrong = refused(gate(lab), call)
    assert wrong.status is status
    assert says in wrong.reason


def test_an_input_that_holds_nan_and_is_left_alone_is_unchanged(lab):
    def make_inputs(draw, *, N, **_):
        x = draw(N)
        x[0] = math.nan
        return {"x": x}

    lab.define("make_inputs", make_inputs)
    assert gate(lab).check(eager).nonfinite == 2


def test_a_changed_sign_of_zero_is_a_change(lab):
    lab.define("make_inputs", lambda draw, *, N, **_: {"x": torch.zeros(N), "y": draw(N)})
    lab.define("reference", lambda x, y: y * 2)

    def flips(x, y):
        x.neg_()
        return y * 2

    context = lab.made(eager=lambda x, y: y * 2)
    assert "input 0" in refused(Gate(context, lab.cell, seed=1), flips).reason


def test_an_output_that_the_next_call_overwrites_is_no_output(lab):
    buffer = torch.empty(64)

    def into_buffer(x):
        return torch.mul(x, 2, out=buffer)

    wrong = refused(gate(lab), into_buffer)
    assert wrong.status is Status.invalid
    assert "overwrote" in wrong.reason
    assert wrong.correctness.max_error == 0


def test_one_that_adds_to_a_hidden_buffer_is_found_by_its_second_call(lab):
    """C07: values pile up from call to call."""
    buffer = torch.zeros(64)

    def accumulates(x):
        buffer.add_(x * 2)
        return buffer.clone()

    wrong = refused(gate(lab), accumulates)
    assert wrong.status is Status.wrong_values
    assert "second call on the same inputs" in wrong.reason


def test_an_in_place_kernel_is_judged_on_a_fresh_copy_after_one_call(lab):
    """C07: x = 1.5 x in bf16, called 2000 times: the change is named, no value has overflowed."""
    lab.define("reference", lambda x: x * 1.5)
    context = lab.context(lab.experiment({"eager": lambda x: x * 1.5}, storage="bfloat16"))
    made = Gate(context, lab.cell, seed=1)
    for _ in range(2000):
        wrong = refused(made, lambda x: x.mul_(1.5))
        assert wrong.status is Status.wrong_values
        assert "input 0 was changed" in wrong.reason
    assert torch.isfinite(made.first_inputs[0]).all()
    found = made.check(lambda x: x * 1.5)
    assert found.max_error <= found.yardstick_max_error


@pytest.mark.parametrize(
    "view", [lambda x: x.view(-1), lambda x: x.as_strided((64,), (1,)), lambda x: x]
)
def test_an_output_in_the_memory_of_an_input_is_no_work(lab, view):
    lab.define("reference", lambda x: x * 1)
    wrong = refused(Gate(lab.made(eager=lambda x: x * 1), lab.cell, seed=1), view)
    assert wrong.status is Status.invalid
    assert "memory of input 0" in wrong.reason


def test_an_operation_that_is_a_view_for_the_yardstick_may_be_one(lab):
    lab.define("reference", lambda x: x.flip(0).flip(0))
    made = Gate(lab.made(eager=lambda x: x.view(64)), lab.cell, seed=1)
    assert made.check(lambda x: x).checks == 2


def remembering(key):
    kept = {}

    def call(x):
        found = key(x)
        if found not in kept:
            kept[found] = x * 2
        return kept[found]

    return call


@pytest.mark.parametrize(
    "key",
    [
        lambda x: x.shape,
        lambda x: x.data_ptr(),
        lambda x: id(x),
        lambda x: (x.data_ptr(), x._version),
    ],
    ids=["shape", "address", "identity", "address and version"],
)
def test_a_remembered_result_is_stale(lab, key):
    """T15: keyed on identity, address or shape."""
    assert refused(gate(lab), remembering(key)).status is Status.wrong_values


def test_one_more_call_on_each_copy_is_held_against_their_own_truth(lab):
    context = lab.made(eager=eager)
    inputs = Gate.draw(context, lab.cell, 7)
    made = Gate(context, lab.cell, inputs=inputs)
    assert made.again(eager, [inputs, clone(inputs)]).checks == 2
    calls = []

    def skips(x):
        calls.append(1)
        return x * 2 if len(calls) == 1 else torch.empty_like(x)

    with pytest.raises(WrongAnswer):
        made.again(skips, [inputs, clone(inputs)])


def test_several_outputs_are_each_held_against_theirs(lab):
    lab.define("reference", lambda x: (x * 2, x + 1))

    def both(x):
        return x * 2, x + 1

    made = Gate(lab.made(eager=both), lab.cell, seed=1)
    assert made.check(both).checks == 2
    assert refused(made, lambda x: (x * 2, x)).status is Status.wrong_values


def test_integer_outputs_keep_the_references_dtype(lab):
    lab.define("reference", lambda x: (x * 2).argsort())

    def order(x):
        return (x * 2).argsort()

    made = Gate(lab.made(eager=order), lab.cell, seed=1)
    assert made.check(order).max_error == 0
    assert refused(made, lambda x: order(x).int()).status is Status.wrong_dtype


@pytest.mark.parametrize("layout", ["transposed", "padded", "strided"])
def test_a_layout_reaches_the_implementation(lab, layout):
    """C13: the check runs on the strides asked for."""
    lab.define("make_inputs", lambda draw, *, M, **_: {"x": draw(M, 5)})
    strides = []

    def call(x):
        strides.append(x.stride())
        return x * 2

    cell = Cell(index=0, kernel="k", workload=Workload(axes={"M": 3}, dtype="fp32", layout=layout))
    Gate(lab.made(eager=eager), cell, seed=1).check(call)
    assert set(strides) == {restride(torch.ones(3, 5), layout).stride()}


def test_expanded_inputs_are_checked_as_they_are(lab):
    """C13: stride 0."""
    lab.define("make_inputs", lambda draw, *, N, **_: {"x": draw(N, 1).expand(N, 4)})
    strides = []

    def call(x):
        strides.append(x.stride())
        return x * 2

    gate(lab).check(call)
    assert set(strides) == {(1, 0)}


def test_an_empty_output_is_told(lab):
    """C15: an empty problem is checked for its shape."""
    cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": 0}, dtype="fp32"))
    made = Gate(lab.made(eager=eager), cell, seed=1)
    assert made.empty
    assert made.check(eager).max_error == 0
    assert refused(made, lambda x: torch.ones(1)).status is Status.wrong_shape


def test_the_reference_gets_its_arguments_in_fp64(lab):
    seen = []

    def reference(x, *, N):
        seen.append((x.dtype, N))
        return x * N

    lab.define("reference", reference)
    context = lab.context(
        lab.experiment({"eager": lambda x, *, N: x * N}, kernel={"arguments": ["N"]})
    )
    Gate(context, lab.cell, seed=1)
    assert set(seen) == {(torch.float64, 64)}


@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_fused_rounding_passes_in_low_precision(lab, storage):
    """C17: eager rounds after each operation, the fused path once."""
    lab.define("reference", lambda x: torch.nn.functional.gelu(x * 1.7 + 0.3) * 3)
    context = lab.context(
        lab.experiment(
            {"eager": lambda x: torch.nn.functional.gelu(x * 1.7 + 0.3) * 3}, storage=storage
        )
    )

    def fused(x):
        return (torch.nn.functional.gelu(x.float() * 1.7 + 0.3) * 3).to(x.dtype)

    cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": 4096}, dtype="x"))
    found = Gate(context, cell, seed=1).check(fused)
    assert found.max_error <= found.yardstick_max_error


def test_constant_inputs_are_for_timing_and_never_for_the_check(lab):
    """T13: on zeros, an implementation that always answers zero would be right."""
    workload = Workload(axes={"N": 64}, dtype="fp32", distribution="zeros")
    cell = Cell(index=0, kernel="k", workload=workload)
    context = lab.made(eager=eager)
    made = Gate(context, cell, seed=1)
    assert refused(made, torch.zeros_like).status is Status.wrong_values
    assert not Gate.draw(context, cell, 1)[0].any()


@pytest.mark.parametrize("distribution", ["uniform", "integers", "outliers"])
def test_every_distribution_that_varies_is_checked_as_it_is(lab, distribution):
    workload = Workload(axes={"N": 64}, dtype="fp32", distribution=distribution)
    made = Gate(lab.made(eager=eager), Cell(index=0, kernel="k", workload=workload), seed=1)
    assert made.check(eager).checks == 2
    whole = torch.equal(made.first_inputs[0], made.first_inputs[0].round())
    assert whole == (distribution == "integers")


@pytest.mark.parametrize("layout", ["transposed", "strided"])
def test_a_kernel_that_takes_every_input_for_dense_is_wrong_on_views(lab, layout):
    """C13: it reads the memory in order, whatever the strides."""
    lab.define("make_inputs", lambda draw, *, M, **_: {"x": draw(M, 5)})

    def dense(x):
        return x.as_strided((7, 5), (5, 1)) * 2

    def made(layout):
        workload = Workload(axes={"M": 7}, dtype="fp32", layout=layout)
        cell = Cell(index=0, kernel="k", workload=workload)
        return Gate(lab.made(eager=eager), cell, seed=1)

    assert made("contiguous").check(dense).checks == 2
    assert refused(made(layout), dense).status is Status.wrong_values


def test_zeros_are_refused_where_every_right_value_is_tiny(lab):
    """C03: no absolute tolerance lets an all-zero softmax of 262144 columns pass."""
    lab.define("reference", lambda x: x.softmax(-1))
    cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": 262144}, dtype="fp32"))
    made = Gate(lab.made(eager=lambda x: x.softmax(-1)), cell, seed=1)
    assert refused(made, torch.zeros_like).status is Status.wrong_values
    mean = refused(made, lambda x: torch.full_like(x, 1 / x.numel()))
    assert mean.status is Status.wrong_values


def ten_bits(x):
    """As tensor cores take fp32 operands in tf32: ten bits of mantissa, rounded to nearest."""
    bits = x.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def test_tf32_is_refused_under_fp32_and_has_a_tolerance_of_its_own(lab):
    """C05: one arm in tf32 beside a full fp32 baseline has no time, so no speed-up either."""
    lab.define("make_inputs", lambda draw, *, N, **_: {"a": draw(N, N), "b": draw(N, N)})
    lab.define("reference", lambda a, b: a @ b)
    experiment = lab.experiment({"eager": lambda a, b: a @ b})

    def rounded(a, b):
        return ten_bits(a) @ ten_bits(b)

    wrong = refused(Gate(lab.context(experiment), lab.cell, seed=1), rounded)
    assert wrong.status is Status.wrong_values
    experiment.dtype.tf32 = True
    found = Gate(lab.context(experiment), lab.cell, seed=1).check(rounded)
    assert found.max_tolerance == 2 * 2.0**-9


@pytest.mark.parametrize("elements", [1 << 14, 1 << 20])
@pytest.mark.parametrize("reference_first", [True, False])
def test_memory_that_nobody_wrote_is_no_answer(lab, elements, reference_first):
    """C09: even where the allocator hands out the freed output of the reference."""
    cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": elements}, dtype="fp32"))
    made = Gate(lab.made(eager=eager), cell, seed=1)

    if reference_first:
        right = made.first_inputs[0] * 2
        del right
    assert refused(made, torch.empty_like).status is Status.wrong_values


def on_gpu(context):
    return dataclasses.replace(context, kind=Device.cuda, device=torch.device("cuda"))


@pytest.mark.gpu
def test_memory_that_nobody_wrote_is_no_answer_on_a_gpu(lab):
    """C09: the caching allocator hands out the block that the yardstick's output was in."""
    cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": 1 << 20}, dtype="fp32"))
    made = Gate(on_gpu(lab.made(eager=eager)), cell, seed=1)
    right = made.first_inputs[0] * 2
    del right
    wrong = refused(made, torch.empty_like)
    assert wrong.status is Status.wrong_values
    assert "non-finite" in wrong.reason
    assert made.check(eager).checks == 2


@pytest.mark.gpu
def test_tf32_is_refused_under_fp32_on_a_gpu(lab):
    """C05: a product that turns tf32 on for itself."""
    lab.define("make_inputs", lambda draw, *, N, **_: {"a": draw(N, N), "b": draw(N, N)})
    lab.define("reference", lambda a, b: a @ b)
    cell = Cell(index=0, kernel="k", workload=Workload(axes={"N": 512}, dtype="fp32"))
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False

    def in_tf32(a, b):
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return a @ b
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    try:
        made = Gate(on_gpu(lab.made(eager=lambda a, b: a @ b)), cell, seed=1)
        assert refused(made, in_tf32).status is Status.wrong_values
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.gpu
@pytest.mark.parametrize("key", [lambda x: x.data_ptr(), lambda x: (x.data_ptr(), x._version)])
def test_a_result_remembered_by_its_address_on_a_gpu_is_stale(lab, key):
    """T15: a dictionary keyed on the data pointer around a right kernel."""
    made = Gate(on_gpu(lab.made(eager=eager)), lab.cell, seed=1)
    assert refused(made, remembering(key)).status is Status.wrong_values
