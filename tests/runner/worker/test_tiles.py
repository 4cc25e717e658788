"""Names as libraries give them, and what they tell. All were seen on GPUs."""

import pytest
from kernel_lab.runner.worker.tiles import Choice, choice

NAMES = [
    (
        "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NNT",
        Choice(tile="128x64x64", stages=8, cluster="1x2", tensor_cores=True),
    ),
    (
        "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_splitK_NNT",
        Choice(tile="64x8x64", stages=16, cluster="2x1", split_k=True, tensor_cores=True),
    ),
    (
        "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT",
        Choice(tile="320x128x64", stages=3, cluster="1x2", tensor_cores=True),
    ),
    (
        "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT",
        Choice(tile="256x128x64", stages=4, cluster="1x2", tensor_cores=True),
    ),
    (
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
        Choice(tile="128x128x32", stages=5, tensor_cores=True),
    ),
    (
        "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x32_stage5_warpsize2x2x1_"
        "tensor16x8x16_kernel",
        Choice(tile="128x64x32", stages=5, tensor_cores=True),
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_tn_align8>",
        Choice(tile="256x128x32", stages=3, tensor_cores=True),
    ),
    (
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(Params)",
        Choice(tile="128x32x8", stages=5, tensor_cores=False),
    ),
    ("ampere_sgemm_128x64_nn", Choice(tile="128x64", tensor_cores=False)),
    (
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>",
        Choice(split_k=True),
    ),
    ("void gemv2T_kernel_val<int, int, float, float>", Choice(tensor_cores=False)),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor>", Choice()),
    ("triton_poi_fused_mul_0", Choice()),
]


@pytest.mark.parametrize(("name", "told"), NAMES, ids=[name[:24] for name, _ in NAMES])
def test_what_a_name_tells(name, told):
    assert choice(name) == told


def test_the_choice_in_words():
    assert choice(NAMES[1][0]).text == "64x8x64 cluster 2x1 split-K"
    assert choice("ampere_sgemm_128x64_nn").text == "128x64 no tensor cores"
    assert choice("triton_poi_fused_mul_0").text == ""
