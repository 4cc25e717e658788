"""Kernel names, classified: whose kernel it is, and what kind of pass it makes.

The first pattern that matches decides. A name that no pattern knows is `unknown`, never guessed:
words such as `softmax` or `gemv` alone say what a kernel is for, not whose it is.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from ..records import Launch
from ..schema import Language

_TABLE: tuple[tuple[str, str, str], ...] = (
    (r"^(Memset|memset)", "memset", "memset"),
    (r"^(Memcpy|memcpy)", "memcpy", "copy"),
    (r"^(void )?nccl", "nccl", "communication"),
    (r"splitKreduce", "cublas", "matmul"),
    (r"^nvjet_|_nvjet_", "cublas", "matmul"),
    (r"cublasLt", "cublaslt", "matmul"),
    (r"xmma_(fprop|dgrad|wgrad)|cudnn.*conv", "cudnn", "convolution"),
    (r"cudnn.*(sdpa|flash)", "cudnn", "attention"),
    (r"cudnn", "cudnn", "unknown"),
    (
        r"^(maxwell|volta|turing|ampere|sm\d+)_.*gemm|\bgemv(2[NT]|x|NSP)|\bgemmSN_|\bgemmk1_"
        r"|cublas|\bdot_kernel<",
        "cublas",
        "matmul",
    ),
    (r"fmha_cutlass", "cutlass", "attention"),
    (r"^(void )?flash_(fwd|bwd)_|flash::|FlashAttn(Fwd|Bwd)", "flash_attention", "attention"),
    (r"cutlass.*(gemm|wgmma|conv)|cutlass::Kernel|cutlass__", "cutlass", "matmul"),
    (r"^triton_poi_fused", "inductor", "pointwise"),
    (r"^triton_tem_.*attention", "inductor", "attention"),
    # a reduction whose origin is a matrix product is that product: M = 1 is lowered so
    (r"^triton_(tem_|mm)|^triton_(red|per)_fused_(.*_)?mm_", "inductor", "matmul"),
    (r"^triton_(red|per)_fused", "inductor", "reduction"),
    (r"\bcub::", "cub", "reduction"),
    (r"FillFunctor", "aten", "memset"),
    (r"\bat::(native::)?.*(CatArrayBatchedCopy|copy_kernel)", "aten", "copy"),
    (
        r"\bat::(native::)?.*(reduce_kernel|softmax|layer_norm|rms_norm|cunn_|Moments)|softmax_warp_",
        "aten",
        "reduction",
    ),
    # ncu leaves the inner namespace out: at::vectorized_elementwise_kernel<...
    (
        r"at::native|\bat::(vectorized_|unrolled_)?elementwise_kernel<"
        r"|^(vectorized_|unrolled_)?elementwise_kernel$",
        "aten",
        "pointwise",
    ),
)
_PATTERNS = tuple((re.compile(p, re.IGNORECASE), family, kind) for p, family, kind in _TABLE)


def classify(name: str) -> tuple[str, str]:
    """(family, kind) of a kernel by its name; (`unknown`, `unknown`) where no pattern matches."""
    for pattern, family, kind in _PATTERNS:
        if pattern.search(name):
            return family, kind
    return "unknown", "unknown"


def own(launches: Sequence[Launch], language: Language) -> list[Launch]:
    """A name that no table knows, in a path written in Triton or CUDA here, is that path's own."""
    if language is Language.torch:
        return list(launches)
    return [
        replace(launch, family=str(language)) if launch.family == "unknown" else launch
        for launch in launches
    ]
