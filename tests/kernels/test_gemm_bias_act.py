"""gemm_bias_act beyond its values: known costs, what each path refuses, native code for sm_90."""

import pytest
import torch
from kernel_lab.kernels import gemm_bias_act as gemm

H100_SHARED_BYTES = 227 * 1024


def totals(stages):
    return (
        sum(s["flops"] for s in stages),
        sum(s["bytes_read"] + s["bytes_written"] for s in stages),
    )


def test_cost_of_a_square_fp8_product():
    plans = gemm.cost(itemsize=1, output_itemsize=2, M=4096, N=4096, K=4096, act="none", bias=False)
    for stages in plans.values():
        assert len(stages) == 1
        assert totals(stages) == (137_438_953_472, 4 * 4096**2)


def test_cost_of_one_row_is_one_flop_a_byte():
    plans = gemm.cost(itemsize=2, output_itemsize=2, M=1, N=4096, K=4096, act="none", bias=False)
    flops, moved = totals(plans["fused"])
    assert flops == 33_554_432
    assert flops / moved == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("plan", "stages", "passes"), [("unfused", 3, 5), ("bias_fused", 2, 3), ("fused", 1, 1)]
)
def test_passes_over_the_result(plan, stages, passes):
    m, n, k, size = 64, 128, 256, 2
    found = gemm.cost(
        itemsize=size, output_itemsize=size, M=m, N=n, K=k, act="gelu_tanh", bias=True
    )[plan]
    _, moved = totals(found)
    operands = size * (m * k + k * n + n)
    assert len(found) == stages
    assert (moved - operands) / (size * m * n) == passes


def test_every_plan_counts_the_same_operations():
    plans = gemm.cost(itemsize=2, output_itemsize=2, M=3, N=5, K=7, act="silu", bias=True)
    assert {totals(stages)[0] for stages in plans.values()} == {2 * 3 * 5 * 7 + 15 + 4 * 15}


@pytest.mark.parametrize("act", ["relu", "silu", "gelu_erf", "gelu_tanh"])
def test_activations_follow_their_formulas(act):
    x = torch.linspace(-6, 6, 49, dtype=torch.float64)
    formulas = {
        "relu": x.clamp_min(0),
        "silu": x / (1 + torch.exp(-x)),
        "gelu_erf": x / 2 * (1 + torch.erf(x / 2**0.5)),
        "gelu_tanh": x / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))),
    }
    y = gemm.reference(x[:, None], torch.ones(1, 1, dtype=x.dtype), None, act=act)
    torch.testing.assert_close(y[:, 0], formulas[act])


def test_inputs_keep_the_result_of_order_one():
    generator = torch.Generator().manual_seed(0)

    def draw(*shape, scale=1.0):
        return scale * torch.randn(*shape, generator=generator)

    a, b, bias = gemm.make_inputs(draw, M=64, N=64, K=4096, bias=False).values()
    assert bias is None
    assert 0.9 < float((a @ b).std()) < 1.1


def test_cublaslt_refuses_where_torch_would_not_use_it():
    with pytest.raises(NotImplementedError, match="NVIDIA"):
        gemm.cublaslt(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2), act="relu")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("m", "bias", "act", "reason"),
    [(1, True, "relu", "M, N or K"), (4, False, "relu", "bias"), (4, True, "silu", "epilogue")],
)
def test_cublaslt_refuses_on_gpu(m, bias, act, reason):
    a, b = torch.ones(m, 8, device="cuda"), torch.ones(8, 8, device="cuda")
    with pytest.raises(NotImplementedError, match=reason):
        gemm.cublaslt(a, b, torch.ones(8, device="cuda") if bias else None, act=act)


@pytest.mark.gpu
def test_triton_says_its_tiles():
    a, b = torch.ones(256, 128, device="cuda"), torch.ones(128, 256, device="cuda")
    gemm.triton_fused(a, b, None, act="none")
    assert "BLOCK_M=" in gemm.triton_fused.tuning()


@pytest.mark.parametrize("rows", [1, 16, 33, 64, 65, 4096])
@pytest.mark.parametrize(("itemsize", "tensor_cores"), [(2, True), (4, True), (4, False)])
def test_tiles_fit_in_shared_memory(rows, itemsize, tensor_cores):
    pytest.importorskip("triton")
    for shared in (99 * 1024, H100_SHARED_BYTES):
        found = gemm.candidates(rows, itemsize, tensor_cores, shared)
        assert found
        for config in found:
            tile = config.kwargs
            held = (tile["BLOCK_M"] + tile["BLOCK_N"]) * tile["BLOCK_K"] * itemsize
            assert held * config.num_stages <= shared or len(found) == 1


@pytest.mark.parametrize(
    ("storage", "rows", "precision", "instruction"),
    [
        ("bf16", 4096, "ieee", "wgmma.mma_async"),
        ("fp16", 16, "ieee", "mma.sync"),
        ("fp32", 4096, "tf32", "wgmma.mma_async"),
        ("fp32", 4096, "ieee", "fma.rn.f32"),
    ],
)
def test_triton_compiles_for_sm_90(storage, rows, precision, instruction):
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = gemm._gemm_kernel
    if not isinstance(kernel, triton.JITFunction):
        pytest.skip("TRITON_INTERPRET is set: nothing is compiled")
    itemsize = 4 if storage == "fp32" else 2
    tensor_cores = storage != "fp32" or precision == "tf32"
    config = gemm.candidates(rows, itemsize, tensor_cores, H100_SHARED_BYTES)[0]
    constants = {
        "a_col_stride": 1,
        "b_col_stride": 1,
        "bias_stride": 1,
        "ACT": "gelu_tanh",
        "HAS_BIAS": True,
        "INPUT_PRECISION": precision,
        "EVEN_K": True,
        **config.kwargs,
    }
    signature, attributes = {}, {}
    for index, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        else:
            signature[name] = f"*{storage}" if name.endswith("_ptr") else "i32"
            attributes[(index,)] = [["tt.divisibility", 16]]
    source = ASTSource(
        kernel,
        signature=signature,
        constexprs={(kernel.arg_names.index(n),): v for n, v in constants.items()},
        attrs=attributes,
    )
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    assert instruction in compiled.asm["ptx"]
    assert ("tf32" in compiled.asm["ptx"]) == (precision == "tf32")
    # the accurate epilogue costs its instructions in fp32 alone
    assert ("div.rn.f32" in compiled.asm["ptx"]) == (storage == "fp32")
    assert compiled.metadata.shared <= H100_SHARED_BYTES
