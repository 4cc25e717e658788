"""y = 1.5 x by Triton kernels that tune themselves: one as it should, one in place."""

import time

import torch
import triton
import triton.language as tl


def make_inputs(draw, *, N, **_):
    return {"x": draw(N)}


def reference(x):
    return x * 1.5


def cost(*, itemsize, output_itemsize, N, **_):
    """One read and one write an element."""
    moved = {"bytes_read": N * itemsize, "bytes_written": N * output_itemsize}
    return {"one": [{"name": "scale", "kind": "pointwise", "flops": N, **moved}]}


def eager(x):
    return x * 1.5


def _do_bench(call, quantiles):
    call()
    started = time.perf_counter()
    found = triton.testing.do_bench(call, warmup=2, rep=5, quantiles=quantiles)
    _kernel.benched_s = benched_s() + time.perf_counter() - started
    return found


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block}, num_warps=warps)
        for block in (128, 256, 512, 1024, 2048)
        for warps in (1, 2, 4, 8)
    ],
    key=["n"],
    do_bench=_do_bench,
)
@triton.jit
def _kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n)
    tl.store(y_ptr + places, x * 1.5, mask=places < n)


def benched_s():
    """Seconds of timing candidates so far in this process."""
    return getattr(_kernel, "benched_s", 0.0)


def _call(x, y):
    n = x.numel()
    _kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    return y


def twenty(x):
    """Twenty candidates at the first call of a length."""
    return _call(x, torch.empty_like(x))


def in_place(x):
    """Tuning alone runs it on its own output many times over."""
    return _call(x, x)


twenty.tuning = lambda: str(getattr(_kernel, "best_config", ""))
twenty.tuning_s = benched_s
