"""Real kernel names, as torch.profiler and nsys print them, and whose they are."""

import pytest
from kernel_lab.runner.worker.dispatch import classify

NAMES = [
    # cuBLAS, by generation
    ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "cublas", "matmul"),
    ("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NNT", "cublas", "matmul"),
    ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT", "cublas", "matmul"),
    ("nvjet_sm100_tst_64x16_64x16_2x4_2cta_h_bz_splitK_TNT", "cublas", "matmul"),
    ("nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN", "cublas", "matmul"),
    ("nvjet_hsh_256x128_64x4_2x1_v_bz_TNN", "cublas", "matmul"),
    (
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_"
        "execute_segment_k_off_kernel__5x_cublas",
        "cublas",
        "matmul",
    ),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8", "cublas", "matmul"),
    ("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn", "cublas", "matmul"),
    ("ampere_sgemm_128x64_tn", "cublas", "matmul"),
    ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "cublas", "matmul"),
    ("turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_tn", "cublas", "matmul"),
    ("maxwell_sgemm_128x64_nn", "cublas", "matmul"),
    (
        "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, "
        "128, 16, 4, 4, false, false>(cublasGemvParamsEx<int>)",
        "cublas",
        "matmul",
    ),
    (
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, "
        "__nv_bfloat16, __nv_bfloat16, float, false, true, true, false, 7>",
        "cublas",
        "matmul",
    ),
    (
        "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true>(cublasGemmSmallN)",
        "cublas",
        "matmul",
    ),
    (
        "void gemmk1_kernel<int, float, 256, 5, false, false>(cublasGemmk1Params)",
        "cublas",
        "matmul",
    ),
    ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor>>", "cublas", "matmul"),
    ("void splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>", "cublas", "matmul"),
    (
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, true>",
        "cublas",
        "matmul",
    ),
    ("void cublasLt::epilogue::impl::globalKernel<8, 32, float, float>", "cublaslt", "matmul"),
    # CUTLASS
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x4_tn>",
        "cutlass",
        "matmul",
    ),
    (
        "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::"
        "MmaPipelined<cutlass::gemm::GemmShape<128, 128, 8>>>>",
        "cutlass",
        "matmul",
    ),
    ("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1", "cutlass", "matmul"),
    ("cutlass3x_sm90_tensorop_h64x128x16gemm_f16_f16_f16_void_f16", "cutlass", "matmul"),
    (
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>>>",
        "cutlass",
        "matmul",
    ),
    # attention
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_"
        "cga1x1x1_kernel0_0",
        "cudnn",
        "attention",
    ),
    ("cudnn_generated_oss_sdpa_sm100_flash_fprop_f16_knob_7_128x128x64", "cudnn", "attention"),
    (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false>>",
        "flash_attention",
        "attention",
    ),
    (
        "void pytorch_flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>>",
        "flash_attention",
        "attention",
    ),
    (
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 128, 4>>",
        "flash_attention",
        "attention",
    ),
    (
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::"
        "CollectiveMainloopFwdSm90<2>>>>",
        "flash_attention",
        "attention",
    ),
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention)", "cutlass", "attention"),
    # cuDNN, no attention
    ("cudnn_generated_fort_native_sm80_convFwd_pointwise_pointwise", "cudnn", "convolution"),
    (
        "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
        "cudnn",
        "convolution",
    ),
    ("void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false>", "cudnn", "unknown"),
    # Inductor
    ("triton_poi_fused_mul_0", "inductor", "pointwise"),
    ("triton_poi_fused_add_gelu_0", "inductor", "pointwise"),
    ("triton_poi_fused_add_mm_relu_1", "inductor", "pointwise"),
    ("triton_red_fused__softmax_0", "inductor", "reduction"),
    (
        "triton_per_fused_add_embedding_iota_mul_rsqrt_sub_var_mean_1",
        "inductor",
        "reduction",
    ),
    ("triton_tem_fused_addmm_gelu_0", "inductor", "matmul"),
    ("triton_red_fused_mm_0", "inductor", "matmul"),
    ("triton_tem_fused_flex_attention_0", "inductor", "attention"),
    # torch's own
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, "
        "float, at::native::binary_internal::MulFunctor<float>>, std::array<char*, 2ul>>(int)",
        "aten",
        "pointwise",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<(int)8, at::native::GeluCUDAKernelImpl("
        "at::TensorIteratorBase &, at::native::GeluType)::[lambda() (instance 2)]>",
        "aten",
        "pointwise",
    ),
    (
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native"
        "::CUDAFunctor_add<c10::BFloat16>>>",
        "aten",
        "pointwise",
    ),
    ("vectorized_elementwise_kernel", "aten", "pointwise"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
        "std::array<char*, 1ul>>(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
        "aten",
        "memset",
    ),
    (
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
        "at::TensorIteratorBase&)::{lambda()#3}>",
        "aten",
        "copy",
    ),
    (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::"
        "(anonymous namespace)::OpaqueType<2u>, unsigned int, 2, 64, 64>",
        "aten",
        "copy",
    ),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::"
        "func_wrapper_t<float, at::native::sum_functor<float>>>>",
        "aten",
        "reduction",
    ),
    (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
        "aten",
        "reduction",
    ),
    (
        "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>",
        "aten",
        "reduction",
    ),
    (
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>",
        "aten",
        "reduction",
    ),
    ("void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float>", "aten", "reduction"),
    # the rest
    ("void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<int>", "cub", "reduction"),
    ("void cub::DeviceReduceKernel<cub::DeviceReducePolicy<float, int>>", "cub", "reduction"),
    ("void cub::CUB_200200_700_NS::DeviceScanKernel<int>", "cub", "reduction"),
    (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "nccl",
        "communication",
    ),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "nccl", "communication"),
    ("Memset (Device)", "memset", "memset"),
    ("Memcpy DtoD (Device -> Device)", "memcpy", "copy"),
    ("Memcpy HtoD (Pageable -> Device)", "memcpy", "copy"),
]

UNKNOWN = [
    "mul6",
    "_gemm_bias_act_kernel",
    "gemm_kernel",
    "chain_f32",
    "_rms_norm_kernel",
    "fused_softmax_kernel",
    "_flash_fwd_kernel",
    "_my_elementwise_kernel",
    "_gemv_kernel",
    "scale_copy_kernel",
    "triton_gemm_kernel_0d1d2d",
    "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)",
    "void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>",
]
"""Kernels that people write: their names say what they are for, not whose they are."""


@pytest.mark.parametrize(("name", "family", "kind"), NAMES)
def test_a_real_name_has_its_family_and_kind(name, family, kind):
    assert classify(name) == (family, kind)


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_name_that_no_library_owns_stays_unknown(name):
    assert classify(name) == ("unknown", "unknown")
