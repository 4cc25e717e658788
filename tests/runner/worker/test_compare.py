"""Errors against values worked out by hand; rows are the last dimension."""

import math

import pytest
import torch
from kernel_lab.runner.worker import compare
from kernel_lab.runner.worker.compare import combine, errors_of, ulp

NAN, INF = math.nan, math.inf


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_one_row_by_hand():
    # rms of [3, 4, 0, 0] is 2.5: scales 5.5, 6.5, 2.5, 2.5
    found = errors_of(f64(3.55, 4, 0, -0.5), f64(3, 4, 0, 0))
    assert found.max_error == pytest.approx(0.2)
    assert found.rms_error == pytest.approx(math.sqrt((0.1**2 + 0.2**2) / 4))
    assert found.worst_index == (3,)
    assert (found.misplaced, found.nonfinite, found.nonfinite_reference) == (0, 0, 0)
    assert found.count == 4


def test_each_row_has_its_own_scale():
    truth = f64(*[1000] * 8, *[1] * 8).reshape(2, 8)
    output = truth.clone()
    output[1, 0] += 0.5
    found = errors_of(output, truth)
    assert found.max_error == pytest.approx(0.25)
    assert found.worst_index == (1, 0)


def test_a_tensor_of_no_dimension():
    found = errors_of(torch.tensor(3.0), torch.tensor(2.0, dtype=torch.float64))
    assert found.max_error == pytest.approx(0.25)
    assert found.worst_index == ()


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (2, 0, 3)])
def test_an_empty_tensor_has_no_error(shape):
    found = errors_of(torch.empty(shape), torch.empty(shape, dtype=torch.float64))
    assert (found.max_error, found.rms_error, found.misplaced, found.count) == (0, 0, 0, 0)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\) against \(3, 2\)"):
        errors_of(torch.zeros(2, 3), torch.zeros(3, 2))


def test_a_row_of_zeros_counts_differences_whole():
    truth = torch.zeros(2, 8, dtype=torch.float64)
    truth[0] = 1
    output = truth.clone()
    output[1, 2] = 1e-6
    found = errors_of(output, truth)
    assert found.max_error == pytest.approx(1e-6)
    assert found.worst_index == (1, 2)


def test_zeros_are_no_answer_to_small_values():
    """C03: a softmax over 262144 columns: all values are below the usual absolute tolerance."""
    truth = torch.softmax(torch.randn(1, 262144, dtype=torch.float64), dim=-1)
    found = errors_of(torch.zeros(1, 262144), truth)
    assert found.max_error > 0.3
    assert found.rms_error > 0.1


@pytest.mark.parametrize(
    ("output", "truth", "misplaced"),
    [
        ((NAN, 1.0), (NAN, 1.0), 0),
        ((INF, 1.0), (INF, 1.0), 0),
        ((-INF, 1.0), (-INF, 1.0), 0),
        ((NAN, 1.0), (2.0, 1.0), 1),
        ((2.0, 1.0), (NAN, 1.0), 1),
        ((INF, 1.0), (-INF, 1.0), 1),
        ((INF, 1.0), (NAN, 1.0), 1),
        ((NAN, 1.0), (INF, 1.0), 1),
        ((1.0, INF), (INF, 1.0), 2),
        ((NAN, NAN), (1.0, 2.0), 2),
    ],
)
def test_nonfinite_values_have_their_places(output, truth, misplaced):
    found = errors_of(f64(*output), f64(*truth))
    assert found.misplaced == misplaced
    assert found.nonfinite == sum(not math.isfinite(v) for v in output)
    assert found.nonfinite_reference == sum(not math.isfinite(v) for v in truth)
    assert math.isfinite(found.max_error)
    assert math.isfinite(found.rms_error)


def test_all_nan_against_all_nan_shows_its_counts():
    """C01: a match, and nothing but NaN: the counts are what the gate refuses it by."""
    found = errors_of(f64(NAN, NAN, NAN), f64(NAN, NAN, NAN))
    assert (found.nonfinite, found.nonfinite_reference, found.misplaced) == (3, 3, 0)


def test_nonfinite_values_do_not_hide_the_others():
    truth = f64(INF, 3.0, NAN, 4.0)
    output = f64(INF, 3.0, NAN, 8.0)
    found = errors_of(output, truth)
    # rms of the row: the two non-finite values stand for 0, so 2.5
    assert found.max_error == pytest.approx(4 / 6.5)
    assert found.worst_index == (3,)
    assert found.misplaced == 0


def test_infinities_beside_each_other_hide_no_difference():
    # a truth beyond the output's range rounds to infinity: that is another value
    assert errors_of(torch.tensor([INF, 1.0]), f64(1e300, 1.0)).misplaced == 1


@pytest.mark.parametrize("chunk", [1, 2, 7, 8, 16, 50])
@pytest.mark.parametrize("shape", [(5, 8), (40,), (2, 3, 7), (13, 1), (1, 17)])
def test_chunks_change_nothing(monkeypatch, chunk, shape):
    generator = torch.Generator().manual_seed(3)
    truth = torch.randn(shape, dtype=torch.float64, generator=generator)
    output = truth + 1e-3 * torch.randn(shape, dtype=torch.float64, generator=generator)
    truth.view(-1)[3] = NAN
    output.view(-1)[3] = NAN
    output.view(-1)[-1] += 1
    output.view(-1)[5] = INF
    whole = errors_of(output, truth)
    monkeypatch.setattr(compare, "_CHUNK", chunk)
    parts = errors_of(output, truth)
    assert parts.max_error == pytest.approx(whole.max_error)
    assert parts.rms_error == pytest.approx(whole.rms_error)
    assert parts.worst_index == whole.worst_index
    assert whole.worst_index == tuple(n - 1 for n in shape)
    for name in ("nonfinite", "nonfinite_reference", "misplaced", "count"):
        assert getattr(parts, name) == getattr(whole, name)


def test_an_error_without_bounds_is_still_a_number():
    # memory that was never written may hold anything, and a record must be JSON
    found = errors_of(f64(1e308, -1e308), f64(1e-300, 1e-300))
    assert math.isfinite(found.max_error)
    assert math.isfinite(found.rms_error)
    assert found.max_error > 1e50


def test_strides_change_nothing():
    truth = torch.randn(6, 9, dtype=torch.float64)
    output = (truth + 0.01).mT.contiguous().mT
    strided, plain = errors_of(output, truth), errors_of(output.contiguous(), truth)
    assert strided.max_error == pytest.approx(plain.max_error)
    assert strided.rms_error == pytest.approx(plain.rms_error)
    assert strided.worst_index == plain.worst_index


def test_integers_and_booleans_compare_exactly():
    truth = torch.tensor([1, 2, 3])
    assert errors_of(truth.clone(), truth).max_error == 0
    assert errors_of(torch.tensor([1, 2, 4]), truth).max_error > 0.1
    flags = torch.tensor([True, False])
    assert errors_of(flags, flags).max_error == 0
    assert errors_of(~flags, flags).max_error > 0.5


def test_combine_takes_the_worst_of_both():
    good = errors_of(f64(1.0, 2.0), f64(1.0, 2.0))
    bad = errors_of(f64(1.0, 5.0, NAN), f64(1.0, 2.0, 2.0))
    both = combine([good, bad])
    assert both.max_error == bad.max_error
    assert both.rms_error == bad.rms_error
    assert both.worst_index == (1,)
    assert both.misplaced == 1
    assert both.count == 5


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [
        (torch.float64, 2.0**-52),
        (torch.float32, 2.0**-23),
        (torch.float16, 2.0**-10),
        (torch.bfloat16, 2.0**-7),
    ],
)
def test_a_unit_in_the_last_place(dtype, eps):
    assert ulp(dtype) == eps


def test_fused_rounding_is_not_held_against_it():
    """C17: three chained bf16 operations; the fused one skips two roundings and errs less."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 256, generator=generator).bfloat16()
    truth = torch.nn.functional.gelu(x.double() * 1.7 + 0.3).pow(2)
    eager = torch.nn.functional.gelu(x * 1.7 + 0.3).pow(2)
    fused = torch.nn.functional.gelu(x.float() * 1.7 + 0.3).pow(2).bfloat16()
    assert (eager != fused).float().mean() > 0.01
    assert errors_of(fused, truth).max_error <= errors_of(eager, truth).max_error
    assert errors_of(fused, truth).rms_error <= errors_of(eager, truth).rms_error


@pytest.mark.gpu
def test_the_tail_beyond_32_bits_is_compared_and_its_index_named():
    """C11: a bf16 copy of 2^31 + 4096 elements by a kernel whose offsets wrap misses the tail."""
    n = 2**31 + 4096
    if torch.cuda.mem_get_info()[0] < 40 << 30:
        pytest.skip("needs 40 GB of free GPU memory")
    x = torch.ones(n, dtype=torch.bfloat16, device="cuda")
    output = x.clone()
    output[2**31 + 17 :] = 0
    found = errors_of(output, x.double())
    assert found.max_error > 0.1
    assert found.worst_index == (2**31 + 17,)
    assert errors_of(x, x.double()).max_error == 0


def test_rows_of_one_element_are_held_against_the_scale_of_the_whole_output():
    """One that cancels to nearly 0 has no scale of its own; a wide row has."""
    truth = torch.tensor([[3.0], [-4.0], [1e-4]], dtype=torch.float64)
    output = truth + torch.tensor([[0.0], [0.0], [1e-3]])
    assert errors_of(output, truth).max_error == pytest.approx(1e-3 / (1e-4 + (25 / 3) ** 0.5))
    wide = torch.full((2, 8), 2.0, dtype=torch.float64)
    wide[1] = 1e-4
    assert errors_of(wide + 1e-4, wide).max_error == pytest.approx(0.5)
