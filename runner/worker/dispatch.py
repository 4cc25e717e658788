"""Kernel names, classified: whose kernel it is, and what kind of pass it makes.

The first pattern that matches decides. A name that no pattern knows is `unknown`, never guessed.
"""

import re

_TABLE: tuple[tuple[str, str, str], ...] = (
    (r"^(Memset|memset)", "memset", "memset"),
    (r"^(Memcpy|memcpy)", "memcpy", "copy"),
    (r"nccl", "nccl", "communication"),
    (r"splitKreduce", "cublas", "matmul"),
    (r"^nvjet|_nvjet_", "cublas", "matmul"),
    (r"cublasLt", "cublaslt", "matmul"),
    (
        r"^(volta|turing|ampere|sm\d+)_.*gemm|gemv|gemmSN|gemmk1|cublas|dot_kernel",
        "cublas",
        "matmul",
    ),
    (r"cudnn.*(fprop|sdpa|flash)|cudnn_generated", "cudnn", "attention"),
    (r"flash_fwd|flash::|fmha|FlashAttn", "flash_attention", "attention"),
    (r"cutlass.*(gemm|Gemm|wgmma|conv)|cutlass::Kernel|cutlass__", "cutlass", "matmul"),
    (r"^triton_(tem|mm)|triton_.*_mm_", "inductor", "matmul"),
    (r"^triton_(poi)", "inductor", "pointwise"),
    (r"^triton_(red|per)", "inductor", "reduction"),
    (r"cub::|DeviceRadixSort|DeviceScan|DeviceReduce", "cub", "reduction"),
    (r"reduce_kernel|softmax|layer_norm|rms_norm|cunn_", "aten", "reduction"),
    (r"CatArrayBatchedCopy|copy_kernel|direct_copy", "aten", "copy"),
    (r"elementwise|at::native", "aten", "pointwise"),
)
_PATTERNS = tuple((re.compile(p, re.IGNORECASE), family, kind) for p, family, kind in _TABLE)


def classify(name: str) -> tuple[str, str]:
    """(family, kind) of a kernel by its name; (`unknown`, `unknown`) where no pattern matches."""
    for pattern, family, kind in _PATTERNS:
        if pattern.search(name):
            return family, kind
    return "unknown", "unknown"
