"""A matrix product with its epilogue: C = act(A @ B + bias).

A is (M, K), B is (K, N) as the formula has it (a weight stored as (N, K) is layout `transposed`),
bias is (N,), C is (M, N). Accumulation is in fp32, or as the library does it.

act: none; relu max(x, 0); silu x / (1 + exp(-x)); gelu_erf x/2 (1 + erf(x / sqrt 2));
gelu_tanh x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
"""

import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

try:
    import triton
    import triton.language as tl
except ImportError:  # no wheel for this platform: the Triton path alone goes without
    triton = None

_POINTWISE_FLOPS = {"none": 0, "relu": 1, "silu": 4, "gelu_erf": 5, "gelu_tanh": 9}


def make_inputs(
    draw: Callable[..., Tensor], *, M: int, N: int, K: int, bias: bool, **_: Any
) -> dict[str, Tensor | None]:
    """a: (M, K), b: (K, N), bias: (N,) or None.

    b is scaled by 1 / sqrt(K), so that sums over K stay of order one and the activation is
    exercised where it bends.
    """
    return {
        "a": draw(M, K),
        "b": draw(K, N, scale=max(K, 1) ** -0.5),
        "bias": draw(N) if bias else None,
    }


def _activate(x: Tensor, act: str) -> Tensor:
    if act == "none":
        return x
    if act == "relu":
        return functional.relu(x)
    if act == "silu":
        return functional.silu(x)
    if act == "gelu_erf":
        return functional.gelu(x)
    if act == "gelu_tanh":
        return functional.gelu(x, approximate="tanh")
    raise ValueError(f"act={act}: unknown")


def reference(a: Tensor, b: Tensor, bias: Tensor | None, *, act: str) -> Tensor:
    """The formula in the precision of the inputs: (M, N)."""
    c = a @ b
    if bias is not None:
        c = c + bias
    return _activate(c, act)


def cost(
    *,
    itemsize: int,
    output_itemsize: int,
    M: int,
    N: int,
    K: int,
    act: str = "none",
    bias: bool = True,
    **_: Any,
) -> dict[str, list[dict[str, Any]]]:
    """FLOPs: 2 M N K for the product, M N for the bias, and for each element of the activation
    relu 1, silu 4, gelu_erf 5, gelu_tanh 9 (an exp, erf or tanh counts as one). Bytes: each stage
    reads A, B and the bias once, and its result passes through memory once a read and once a
    write; an intermediate is stored as the output is.

    `unfused`: product, bias and activation are stages of their own, 5 passes over the result.
    `bias_fused`: two stages, 3 passes; a path that instead keeps the product apart and joins bias
    and activation moves the same bytes. `fused`: one stage, 1 pass. Without bias or activation
    the stage is not there.
    """
    result = M * N * output_itemsize
    operands = (M * K + K * N) * itemsize
    vector = N * itemsize if bias else 0
    bias_flops = M * N if bias else 0
    act_flops = M * N * _POINTWISE_FLOPS[act]

    def matmul(name: str, flops: int, read: int) -> dict[str, Any]:
        return {
            "name": name,
            "kind": "matmul",
            "flops": 2 * M * N * K + flops,
            "bytes_read": operands + read,
            "bytes_written": result,
        }

    def pointwise(name: str, flops: int, read: int) -> dict[str, Any]:
        return {
            "name": name,
            "kind": "pointwise",
            "flops": flops,
            "bytes_read": result + read,
            "bytes_written": result,
        }

    bias_stage = [pointwise("bias", bias_flops, vector)] if bias else []
    act_stage = [pointwise(act, act_flops, 0)] if act != "none" else []
    with_bias = "gemm_bias" if bias else "gemm"
    with_act = with_bias if act == "none" else f"{with_bias}_{act}"
    return {
        "unfused": [matmul("gemm", 0, 0), *bias_stage, *act_stage],
        "bias_fused": [matmul(with_bias, bias_flops, vector), *act_stage],
        "fused": [matmul(with_act, bias_flops + act_flops, vector)],
    }


def eager(a: Tensor, b: Tensor, bias: Tensor | None, *, act: str) -> Tensor:
    """Product, bias and activation one after another; each intermediate is materialised.

    `torch.mm` and an addition, not `addmm`: the library would fuse the bias.
    """
    c = torch.mm(a, b)
    if bias is not None:
        c = c + bias
    return _activate(c, act)


def addmm(a: Tensor, b: Tensor, bias: Tensor | None, *, act: str) -> Tensor:
    """The bias goes into the library's product; the activation is a kernel of its own."""
    c = torch.mm(a, b) if bias is None else torch.addmm(bias, a, b)
    return _activate(c, act)


def cublaslt(a: Tensor, b: Tensor, bias: Tensor | None, *, act: str) -> Tensor:
    """Bias and activation in cuBLASLt's epilogue, as torch reaches it.

    torch takes that path for a bias vector and none, relu or gelu_tanh, in fp32, fp16 and bf16,
    where M, N and K all exceed 1 (aten/native/cuda/Blas.cpp, isInputCompliesAddmmCudaLt). Where
    cuBLASLt itself finds no algorithm torch falls back to a product and separate kernels without
    a word: only a trace tells. Its gelu_tanh takes an approximate tanh, 8e-6 off: nothing beside
    tf32 or 16 bits, kept out in full fp32 by the YAML. Raises NotImplementedError outside of these.
    """
    if not a.is_cuda:
        raise NotImplementedError("cuBLASLt runs on NVIDIA GPUs")
    if os.environ.get("DISABLE_ADDMM_CUDA_LT") == "1":
        raise NotImplementedError("DISABLE_ADDMM_CUDA_LT=1 keeps torch from cuBLASLt")
    if bias is None:
        raise NotImplementedError("without a bias torch does not reach cuBLASLt's epilogue")
    if act not in ("none", "relu", "gelu_tanh"):
        raise NotImplementedError(f"act={act}: cuBLASLt has no such epilogue in torch")
    (m, k), n = a.shape, b.shape[1]
    if 1 in (m, n) or k <= 1:
        raise NotImplementedError("torch does not use cuBLASLt where M, N or K is 1 or K is 0")
    if act == "none":
        return torch.addmm(bias, a, b)
    return torch._addmm_activation(bias, a, b, use_gelu=act == "gelu_tanh")


if triton is not None:

    @triton.jit
    def _logistic(x, z, ACCURATE: tl.constexpr):
        # x / (1 + exp(-z)). tl.exp is ex2.approx of z log2(e), whose rounding grows to |z| half
        # ulps of fp32, and tl.sigmoid's division is approximate: nothing in a 16-bit result.
        if ACCURATE:
            # exp(t) = 2^n exp(r) with |r| <= ln(2) / 2; ln(2) in two parts (Cody and Waite), the
            # first of 9 bits, so that n times it is exact. 2^(+-144) is infinity or 0 in fp32.
            t = tl.minimum(tl.maximum(-z, -100.0), 100.0)
            n = tl.floor(t * 1.4426950408889634 + 0.5)
            r = (t - n * 0.693359375) + n * 2.12194440e-4
            x = tl.div_rn(x, 1.0 + tl.exp(r) * tl.exp2(n))
        else:
            x = x * tl.sigmoid(z)
        return x

    @triton.jit
    def _epilogue(x, ACT: tl.constexpr, ACCURATE: tl.constexpr):
        # NaN stays NaN in each, as in torch
        if ACT == "relu":
            x = tl.where(x < 0.0, 0.0, x)
        elif ACT == "silu":
            x = _logistic(x, x, ACCURATE)
        elif ACT == "gelu_erf":
            x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
        elif ACT == "gelu_tanh":
            # (1 + tanh u) / 2 = sigmoid(2 u), and 2 sqrt(2/pi) = 1.5957691216057308
            x = _logistic(x, 1.5957691216057308 * (x + 0.044715 * x * x * x), ACCURATE)
        return x

    @triton.jit
    def _gemm_kernel(
        a_ptr,
        b_ptr,
        bias_ptr,
        c_ptr,
        M,
        N,
        K,
        a_row_stride,
        a_col_stride,
        b_row_stride,
        b_col_stride,
        bias_stride,
        ACT: tl.constexpr,
        HAS_BIAS: tl.constexpr,
        INPUT_PRECISION: tl.constexpr,
        EVEN_K: tl.constexpr,
        BLOCK_M: tl.constexpr,
        BLOCK_N: tl.constexpr,
        BLOCK_K: tl.constexpr,
        GROUP_M: tl.constexpr,
    ):
        # Blocks run down groups of GROUP_M rows of tiles, so that those in flight together share
        # their parts of A and B in L2.
        pid = tl.program_id(0)
        tiles_n = tl.cdiv(N, BLOCK_N)
        tiles_m = tl.cdiv(M, BLOCK_M)
        group_size = GROUP_M * tiles_n
        first_m = (pid // group_size) * GROUP_M
        rows_in_group = min(tiles_m - first_m, GROUP_M)
        tile_m = first_m + (pid % group_size) % rows_in_group
        tile_n = (pid % group_size) // rows_in_group

        # Rows and columns beyond the edge wrap around: they read something valid that is never
        # stored, which spares the inner loop two masks. Offsets are int64: M K may exceed 2^31.
        rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        ks = tl.arange(0, BLOCK_K)
        a_rows = (rows % M).to(tl.int64)
        b_columns = (columns % N).to(tl.int64)
        a_ptrs = a_ptr + a_rows[:, None] * a_row_stride + ks[None, :] * a_col_stride
        b_ptrs = b_ptr + ks[:, None] * b_row_stride + b_columns[None, :] * b_col_stride

        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            if EVEN_K:
                a = tl.load(a_ptrs)
                b = tl.load(b_ptrs)
            else:
                left = K - k * BLOCK_K
                a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)
                b = tl.load(b_ptrs, mask=ks[:, None] < left, other=0.0)
            accumulator = tl.dot(a, b, accumulator, input_precision=INPUT_PRECISION)
            a_ptrs += BLOCK_K * a_col_stride
            b_ptrs += BLOCK_K * b_row_stride

        if HAS_BIAS:
            bias = tl.load(bias_ptr + columns * bias_stride, mask=columns < N, other=0.0)
            accumulator += bias.to(tl.float32)[None, :]
        accurate: tl.constexpr = c_ptr.dtype.element_ty == tl.float32
        c = _epilogue(accumulator, ACT, accurate).to(c_ptr.dtype.element_ty)
        c_ptrs = c_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
        tl.store(c_ptrs, c, mask=(rows[:, None] < M) & (columns[None, :] < N))

    def _config(m: int, n: int, k: int, *, warps: int, stages: int) -> "triton.Config":
        tiles = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}
        return triton.Config(tiles, num_warps=warps, num_stages=stages)

    def candidates(
        M: int, itemsize: int, tensor_cores: bool, shared_bytes: int
    ) -> list["triton.Config"]:
        """The tiles to try, smallest last: by the rows, the storage, and a block's shared memory.

        Up to 64 rows the product is bound by reading B: narrow tiles keep every SM at it.
        """
        if not tensor_cores:
            if M <= 64:
                tiles = [(32, 64, 32, 4, 3), (16, 64, 32, 4, 4), (16, 32, 64, 4, 3)]
            else:
                tiles = [(128, 128, 16, 8, 3), (128, 64, 16, 8, 3), (64, 64, 32, 4, 3)]
        elif M <= 64:
            rows = max(16, triton.next_power_of_2(M))
            tiles = [
                (rows, 128, 128, 8, 4),
                (rows, 128, 64, 4, 5),
                (rows, 64, 256, 4, 4),
                (rows, 64, 128, 4, 5),
                (rows, 64, 64, 4, 6),
                (rows, 32, 256, 4, 4),
                (rows, 32, 128, 4, 5),
            ]
        else:
            tiles = [
                (128, 256, 64, 8, 3),
                (128, 256, 64, 8, 4),
                (256, 128, 64, 8, 3),
                (128, 128, 64, 8, 3),
                (128, 128, 64, 4, 4),
                (64, 256, 64, 4, 4),
                (64, 128, 64, 4, 4),
                (128, 64, 64, 4, 4),
                (64, 64, 64, 4, 5),
            ]
        if tensor_cores and itemsize == 4:
            tiles = [(m, n, k // 2, w, s) for m, n, k, w, s in tiles]
        fitting = [t for t in tiles if t[4] * (t[0] + t[1]) * t[2] * itemsize <= shared_bytes]
        # a small tile fits everywhere; a device that none fits says so itself
        return [_config(m, n, k, warps=w, stages=s) for m, n, k, w, s in fitting or tiles[-1:]]

    def _prune(configs: Any, named: dict[str, Any], **kwargs: Any) -> list["triton.Config"]:
        a = named["a_ptr"]
        utils = triton.runtime.driver.active.utils  # pyrefly: ignore[missing-attribute]
        shared_bytes = utils.get_device_properties(a.get_device())["max_shared_mem"]
        tensor_cores = a.dtype != torch.float32 or kwargs["INPUT_PRECISION"] == "tf32"
        found = candidates(named["M"], a.element_size(), tensor_cores, shared_bytes)
        # below a few million operations every tile takes as long as its launch
        return found if named["M"] * named["N"] * named["K"] > 2**20 else found[-1:]

    def _do_bench(call: Callable[[], Any], quantiles: Any) -> Any:
        call()  # the first call of a candidate compiles it, which is no tuning
        started = time.perf_counter()
        found = triton.testing.do_bench(call, warmup=10, rep=50, quantiles=quantiles)
        spent = _tuning_s() + time.perf_counter() - started
        _tuned_kernel.benched_s = spent  # pyrefly: ignore[missing-attribute]
        return found

    _with_even_k = triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})(
        _gemm_kernel
    )
    # The choice is made at the first call of a shape, which is before any sample is taken. The
    # list here is only a start: `_prune` returns the candidates of the workload.
    _tuned_kernel = triton.autotune(
        configs=[
            _config(64, 64, 32, warps=4, stages=3),
            _config(128, 128, 32, warps=8, stages=3),
        ],
        key=[
            "M",
            "N",
            "K",
            "a_row_stride",
            "a_col_stride",
            "b_row_stride",
            "b_col_stride",
            "INPUT_PRECISION",
        ],
        prune_configs_by={"early_config_prune": _prune},
        do_bench=_do_bench,
    )(_with_even_k)


def _input_precision(a: Tensor) -> str:
    """How fp32 operands enter the product: as the library's own switch says at this moment."""
    tf32 = a.is_cuda and torch.backends.cuda.matmul.fp32_precision == "tf32"
    return "tf32" if tf32 else "ieee"


def triton_fused(a: Tensor, b: Tensor, bias: Tensor | None, *, act: str) -> Tensor:
    """One Triton kernel for everything: bias and activation are applied to the fp32 accumulator.

    Any strides and sizes; K = 0 gives act(bias). On a GPU the tile sizes are tuned at the first
    call of a shape; on the CPU (Triton's interpreter) they are fixed.
    Raises NotImplementedError without triton, or for a storage other than fp32, fp16, bf16.
    """
    if triton is None:
        raise NotImplementedError("triton is not installed")
    if a.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotImplementedError(f"{a.dtype}: the Triton kernel stores fp32, fp16 or bf16")
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c
    arguments = (a, b, bias, c, M, N, K, *a.stride(), *b.stride())
    options = {
        "bias_stride": 1 if bias is None else bias.stride(0),
        "ACT": act,
        "HAS_BIAS": bias is not None,
        "INPUT_PRECISION": _input_precision(a),
    }

    def grid(meta: dict[str, Any]) -> tuple[Any]:
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    if a.is_cuda:
        _tuned_kernel[grid](*arguments, **options)
    else:
        _with_even_k[grid](*arguments, **options, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=8)
    return c


def _tuning() -> str:
    best = getattr(_tuned_kernel, "best_config", None) if triton is not None else None
    if best is None:
        return ""
    tiles = " ".join(f"{key}={value}" for key, value in best.kwargs.items())
    return f"{tiles} num_warps={best.num_warps} num_stages={best.num_stages}"


def _tuning_s() -> float:
    """Seconds of timing candidates so far in this process; compiling them is not in it."""
    return getattr(_tuned_kernel, "benched_s", 0.0) if triton is not None else 0.0


triton_fused.tuning = _tuning  # pyrefly: ignore[missing-attribute]
triton_fused.tuning_s = _tuning_s  # pyrefly: ignore[missing-attribute]
