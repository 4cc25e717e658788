"""scale_chain beyond its values: known costs, access widths, native code, the far end of memory."""

import pytest
import torch
from kernel_lab.kernels import scale_chain


def test_a_long_chain_stays_finite():
    assert scale_chain.factor_values(5) == (2.0, 3.0, 0.5, pytest.approx(1 / 3), 2.0)
    y = scale_chain.eager(torch.ones(3), factors=4000)
    assert torch.allclose(y, torch.ones(3), rtol=1e-3)


def test_fusing_two_halves_the_traffic():
    plans = scale_chain.cost(itemsize=4, output_itemsize=4, N=10**9, factors=2)
    moved = {
        name: sum(s["bytes_read"] + s["bytes_written"] for s in stages)
        for name, stages in plans.items()
    }
    assert moved == {"unfused": 16 * 10**9, "fused": 8 * 10**9}
    assert [len(plans["unfused"]), len(plans["fused"])] == [2, 1]
    assert sum(s["flops"] for s in plans["unfused"]) == sum(s["flops"] for s in plans["fused"])


@pytest.mark.parametrize("storage", ["fp32", "fp16", "bf16"])
def test_triton_moves_16_bytes_an_access_whatever_the_length(storage):
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = scale_chain._scale_chain_kernel
    if not isinstance(kernel, triton.JITFunction):
        pytest.skip("TRITON_INTERPRET is set: nothing is compiled")
    names = kernel.arg_names
    constants = {"x_stride": 1, "FACTORS": (2.0, 3.0), "BLOCK_SIZE": 2048}
    types = {"x_ptr": f"*{storage}", "y_ptr": f"*{storage}", "n_elements": "i32"}
    signature = {name: types.get(name, "constexpr") for name in names}
    signature["FACTORS"] = ("constexpr", "constexpr")
    source = ASTSource(
        kernel,
        signature=signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        # the pointers are aligned; the length is not said to be a multiple of anything
        attrs={(i,): [["tt.divisibility", 16]] for i in (0, 1)},
    )
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    assert "ld.global.v4.b32" in compiled.asm["ptx"]
    assert "st.global.v4.b32" in compiled.asm["ptx"]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_cuda_text_compiles_to_native_code_without_a_driver(dtype, arch):
    pytest.importorskip("cuda.core", reason="needs the extra `cuda`")
    from kernel_lab.kernels.adapters import cuda_core, scale_chain_cuda

    compiled = cuda_core.compile_cubin(scale_chain_cuda.source(dtype, 5), arch=arch)
    assert compiled.code[:4] == b"\x7fELF"
    assert b"scale_chain" in compiled.code


def test_cuda_refuses_what_it_has_no_kernel_for():
    pytest.importorskip("cuda.core", reason="needs the extra `cuda`")
    from kernel_lab.kernels.adapters import scale_chain_cuda

    with pytest.raises(NotImplementedError, match="contiguous"):
        scale_chain_cuda.cuda(torch.ones(8)[::2], factors=2)
    with pytest.raises(NotImplementedError, match="float64"):
        scale_chain_cuda.source(torch.float64, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("path", ["triton", "cuda"])
def test_beyond_2_to_the_31_elements(path):
    n = 2**31 + 4096 + 1
    if torch.cuda.mem_get_info()[0] < 3 * 2 * n:
        pytest.skip("needs 13 GB of free GPU memory")
    if path == "triton":
        function = scale_chain.triton_fused
    else:
        pytest.importorskip("cuda.core", reason="needs the extra `cuda`")
        from kernel_lab.kernels.adapters.scale_chain_cuda import cuda as function
    x = torch.full((n,), 1.0, dtype=torch.float16, device="cuda")
    x[-5000:] = 0.5
    y = function(x, factors=2)
    assert torch.all(y[:5000] == 6.0)
    assert torch.all(y[-5000:] == 3.0)
    assert torch.all(y[2**30 : 2**30 + 5000] == 6.0)
