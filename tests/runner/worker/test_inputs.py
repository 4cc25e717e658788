import ctypes
import platform

import pytest
import torch
from kernel_lab.runner.worker.inputs import (
    Draw,
    clone,
    copies_needed,
    make,
    nbytes,
    poisoned,
    refill,
    restride,
    tensors,
    vary,
)

CPU = torch.device("cpu")


def draw(dtype=torch.float32, distribution="normal", seed=0):
    return Draw(dtype, CPU, distribution, seed)


def test_a_seed_gives_the_same_values_and_another_seed_others():
    assert torch.equal(draw()(3, 4), draw()(3, 4))
    assert not torch.equal(draw()(3, 4), draw(seed=1)(3, 4))
    made = draw()
    assert not torch.equal(made(50), made(50))


def test_normal_and_uniform_have_their_scale():
    values = draw()(20000, scale=3.0)
    assert abs(float(values.mean())) < 0.1
    assert float(values.std()) == pytest.approx(3.0, rel=0.05)
    flat = draw(distribution="uniform")(20000, scale=3.0)
    assert float(flat.min()) >= -3
    assert float(flat.max()) <= 3
    assert float(flat.std()) == pytest.approx(3 / 3**0.5, rel=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_a_draw_has_its_dtype(dtype):
    values = draw(dtype)(64)
    assert values.dtype is dtype
    assert float(values.float().std()) > 0.5
    assert draw()(4, dtype=dtype).dtype is dtype


def test_integers_lie_in_their_range():
    values = draw().integers(2, 5, 500)
    assert values.dtype is torch.int64
    assert set(values.tolist()) == {2, 3, 4}


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        ("contiguous", (12, 4, 1)),
        ("transposed", (12, 1, 3)),
        ("padded", (204, 68, 1)),
        ("strided", (24, 8, 2)),
    ],
)
def test_a_layout_keeps_values_and_gives_its_strides(layout, strides):
    values = torch.randn(2, 3, 4)
    made = restride(values, layout)
    assert torch.equal(made, values)
    assert made.stride() == strides


@pytest.mark.parametrize(
    ("layout", "stride"), [("contiguous", 1), ("transposed", 1), ("padded", 1), ("strided", 2)]
)
def test_vectors_know_only_strided(layout, stride):
    values = torch.randn(5)
    made = restride(values, layout)
    assert torch.equal(made, values)
    assert made.stride() == (stride,)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "padded", "strided"])
@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (4, 0), (1, 1)])
def test_small_and_empty_shapes_take_every_layout(layout, shape):
    made = restride(torch.ones(shape), layout)
    assert made.shape == shape
    assert torch.equal(made, torch.ones(shape))


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match="layout diagonal"):
        restride(torch.ones(2, 2), "diagonal")


def test_make_keeps_the_order_and_what_is_absent():
    def make_inputs(draw, *, M, N, **_):
        return {"b": draw(M, N), "bias": None, "a": draw(N)}

    made = make(make_inputs, draw(), {"M": 3, "N": 4, "layout": "transposed"}, "transposed")
    b, bias, a = made.values()
    assert (b.shape, b.stride()) == ((3, 4), (1, 3))
    assert bias is None
    assert a.shape == (4,)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 4),
        torch.randn(4, 3).mT,
        restride(torch.randn(3, 4), "padded"),
        restride(torch.randn(3, 4), "strided"),
        torch.randn(3, 1).expand(3, 5),
        torch.randn(()),
        torch.empty(0, 4),
        torch.randn(2, 3, 4).permute(2, 0, 1),
        torch.randint(0, 9, (3, 3)),
    ],
    ids=lambda t: f"{tuple(t.shape)}-{t.stride()}",
)
def test_a_clone_has_the_values_and_strides_in_memory_of_its_own(tensor):
    (copy,) = clone((tensor,))
    assert copy.stride() == tensor.stride() or tensor.numel() == 0
    assert copy.shape == tensor.shape
    assert copy.dtype is tensor.dtype
    assert torch.equal(copy, tensor)
    if tensor.numel():
        assert copy.data_ptr() != tensor.data_ptr()


def test_a_clone_of_a_view_is_no_larger_than_what_it_spans():
    base = torch.randn(1000)
    (copy,) = clone((base[500:510],))
    assert copy.untyped_storage().nbytes() == 40
    assert torch.equal(copy, base[500:510])


def test_refill_writes_into_the_same_memory():
    old = (restride(torch.zeros(3, 4), "padded"), None)
    address = old[0].data_ptr()
    new = (torch.randn(3, 4), None)
    refill(old, new)
    assert old[0].data_ptr() == address
    assert torch.equal(old[0], new[0])
    with pytest.raises(ValueError, match="shorter"):
        refill(old, (new[0],))


def test_refill_writes_an_expanded_tensor():
    old, new = torch.zeros(3, 1).expand(3, 5), torch.randn(3, 1).expand(3, 5)
    refill((old,), (new,))
    assert torch.equal(old, new)
    assert old.stride() == (1, 0)


def test_tensors_of_an_output():
    one, two = torch.ones(1), torch.ones(2)
    assert tensors(one) == (one,)
    assert tensors([one, two]) == (one, two)
    assert len(tensors((one, None, 3))) == 1
    assert tensors(None) == ()


def test_nbytes_counts_elements():
    assert nbytes((torch.ones(3, 4), None, torch.ones(5, dtype=torch.bfloat16))) == 58
    assert nbytes((restride(torch.ones(3, 4), "padded"),)) == 48


@pytest.mark.parametrize(
    ("size", "cache", "calls", "limit", "copies"),
    [
        (10, 100, 256, 10**9, 31),  # 30 copies hold 3x the cache, and one is in use
        (100, 100, 256, 10**9, 4),
        (1000, 100, 256, 10**9, 2),  # even the largest does not meet itself in the next call
        (1, 100, 256, 10**9, 256),  # never more than calls
        (10, 100, 256, 95, 9),  # nor than fit
        (1000, 100, 256, 10, 1),  # but one at least
        (0, 100, 256, 10**9, 1),
        (10, 0, 256, 10**9, 1),
    ],
)
def test_copies_needed(size, cache, calls, limit, copies):
    assert copies_needed(size, cache, calls, limit) == copies


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt(M_PERTURB) is glibc's")
@pytest.mark.parametrize("count", [1000, 5000, 300_000])
def test_fresh_memory_holds_no_old_result(count):
    right = torch.full((count,), 3.0)
    size = right.nbytes
    for _ in range(4):
        del right
        right = torch.full((count,), 3.0)
    del right
    with poisoned(CPU, (size,)) as able:
        assert able
        for _ in range(4):
            fresh = torch.empty(count)
            assert not bool((fresh == 3.0).any())
            assert float((fresh.abs() > 1e30).float().mean()) > 0.9


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt(M_PERTURB) is glibc's")
def test_large_memory_is_poisoned_too():
    # beyond the threshold above which malloc asks the system for zeroed pages
    with poisoned(CPU, (80_000_000,)):
        fresh = torch.empty(20_000_000)
        assert float((fresh.abs() > 1e30).float().mean()) > 0.99


def test_poison_ends_with_its_context():
    with poisoned(CPU, ()):
        pass
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    block = libc.malloc(64)
    ctypes.memset(block, 1, 64)
    libc.free(block)
    block = libc.malloc(64)
    held = ctypes.string_at(block + 16, 48)  # the allocator's own links lie before
    libc.free(block)
    assert held == b"\x01" * 48


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_integers_are_small_whole_numbers_in_every_dtype(dtype):
    values = draw(dtype, "integers")(5000, scale=0.01).float()
    assert set(values.tolist()) == set(range(-8, 9))


def test_zeros_are_zero_and_a_seed_is_no_matter():
    assert not draw(distribution="zeros")(3, 5, scale=4.0).any()


def test_outliers_lie_in_one_channel_of_a_thousand_of_the_first_tensor():
    made = draw(distribution="outliers")
    activation, weight = made(256, 2000), made(2000, 64)
    spread = activation.std(dim=0)
    large = spread > 10
    assert 1 <= int(large.sum()) <= 2
    assert 15 < float(spread[large].min()) <= float(spread[large].max()) < 125
    assert float(spread[~large].max()) < 1.5
    assert float(weight.std(dim=0).max()) < 1.5
    assert torch.equal(activation, draw(distribution="outliers")(256, 2000))
    other = draw(distribution="outliers", seed=1)(256, 2000)
    assert not torch.equal(large, other.std(dim=0) > 10)


@pytest.mark.parametrize("shape", [(), (0,), (4, 0), (1,), (3, 2)])
def test_outliers_take_every_shape(shape):
    values = draw(distribution="outliers")(*shape)
    assert values.shape == shape
    if values.numel() and shape:
        assert float(values.abs().max()) > 1


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float16])
def test_outliers_stay_within_the_dtype(dtype):
    values = draw(dtype, "outliers")(4096, 8, scale=1e3 if dtype is torch.float16 else 10.0)
    assert torch.isfinite(values.float()).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_varied_values_come_once_keep_their_signs_and_leave_indices(dtype):
    x, indices = draw(dtype)(64).float().abs().to(dtype), torch.arange(5)
    scalar = torch.ones(())
    expanded = draw()(4, 1).expand(4, 3)
    seen = {tuple(x.float().tolist())}
    at = x.data_ptr()
    for _ in range(40):
        vary((x, indices, None, scalar, expanded))
        seen.add(tuple(x.float().tolist()))
    assert len(seen) == 41
    assert x.data_ptr() == at
    assert (x.float() >= 0).all()
    assert torch.isfinite(x.float()).all()
    assert torch.equal(indices, torch.arange(5))
    assert expanded.stride() == (1, 0)
    assert float(scalar) > 1.5


def test_refilled_memory_has_no_new_version():
    """T15: a cache keyed on address and version must not see the change."""
    x = torch.ones(4)
    version = x._version
    refill((x,), (torch.zeros(4),))
    assert x._version == version
    assert not x.any()
