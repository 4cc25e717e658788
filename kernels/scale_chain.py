"""Scale a vector by several factors: y[i] = x[i] * f1 * f2 * ... * fk.

The smallest question about fusion: each factor alone is one pass over memory, all of them together
are still one pass. Factors cycle through 2, 3, 1/2, 1/3, so that a long chain stays finite.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # no wheel for this platform: the Triton path alone goes without
    triton = None

_CYCLE = (2.0, 3.0, 1.0 / 2.0, 1.0 / 3.0)


def factor_values(factors: int) -> tuple[float, ...]:
    """The first `factors` values of the cycle."""
    return tuple(_CYCLE[i % len(_CYCLE)] for i in range(factors))


def make_inputs(draw: Callable[..., Tensor], *, N: int, **_: Any) -> dict[str, Tensor | None]:
    """x: (N,)."""
    return {"x": draw(N)}


def reference(x: Tensor, *, factors: int) -> Tensor:
    """The chain in the precision of x: (N,) -> (N,)."""
    for value in factor_values(factors):
        x = x * value
    return x


def cost(
    *, itemsize: int, output_itemsize: int, N: int, factors: int, **_: Any
) -> dict[str, list[dict[str, Any]]]:
    """FLOPs: one multiplication an element and a factor, whatever the path folds. Bytes: x is read
    once and y written once a stage; an intermediate is stored as the output is.

    `unfused` has one stage a factor, `fused` one in all.
    """
    unfused = [
        {
            "name": f"scale_{i}",
            "kind": "pointwise",
            "flops": N,
            "bytes_read": N * (itemsize if i == 0 else output_itemsize),
            "bytes_written": N * output_itemsize,
        }
        for i in range(factors)
    ]
    fused = {
        "name": "scale_all",
        "kind": "pointwise",
        "flops": factors * N,
        "bytes_read": N * itemsize,
        "bytes_written": N * output_itemsize,
    }
    return {"unfused": unfused, "fused": [fused]}


def eager(x: Tensor, *, factors: int) -> Tensor:
    """One kernel a factor; each intermediate is written and read back."""
    for value in factor_values(factors):
        x = x * value
    return x


def folded(x: Tensor, *, factors: int) -> Tensor:
    """The factors are multiplied on the host first: one kernel without a compiler."""
    return x * math.prod(factor_values(factors))


if triton is not None:

    @triton.jit
    def _chain(y, FACTORS: tl.constexpr):
        for i in tl.static_range(len(FACTORS)):
            y = y * FACTORS[i]
        return y

    @triton.jit
    def _scale_chain_kernel(
        x_ptr,
        y_ptr,
        n_elements,
        x_stride,
        FACTORS: tl.constexpr,
        BLOCK_SIZE: tl.constexpr,
    ):
        # int64 before any arithmetic: 32 bits wrap beyond 2^31 elements
        start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
        offsets = start + tl.arange(0, BLOCK_SIZE)
        # Whole blocks go without a mask: with one, a length that 16 does not divide would cut
        # every access of 16 bytes into single elements.
        if start + BLOCK_SIZE <= n_elements:
            y = _chain(tl.load(x_ptr + offsets * x_stride).to(tl.float32), FACTORS)
            tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty))
        else:
            mask = offsets < n_elements
            y = _chain(tl.load(x_ptr + offsets * x_stride, mask=mask).to(tl.float32), FACTORS)
            tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def triton_fused(x: Tensor, *, factors: int) -> Tensor:
    """One Triton kernel; the factors are applied one after another in fp32 registers.

    Each of 128 threads makes one access of 16 bytes; on an H200 that reached a copy's bandwidth,
    and four accesses a thread did not.
    Raises NotImplementedError without triton.
    """
    if triton is None:
        raise NotImplementedError("triton is not installed")
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_elements = x.numel()
    if n_elements == 0:
        return y
    # the interpreter pays by the block, not by the element
    block_size = 2048 // x.element_size() if x.is_cuda else 65536
    _scale_chain_kernel[(triton.cdiv(n_elements, block_size),)](
        x,
        y,
        n_elements,
        x.stride(0),
        FACTORS=factor_values(factors),
        BLOCK_SIZE=block_size,
        num_warps=4,
    )
    return y
