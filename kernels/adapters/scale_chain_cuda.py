"""`scale_chain` as the textbook CUDA C++ kernel: one thread an element, a bounds check."""

import functools

import torch
from torch import Tensor

from ..scale_chain import factor_values
from . import cuda_core

_THREADS = 256

# Conversions by PTX instruction, so that no toolkit headers are needed where only the run-time
# compiler is installed. The bits of a bf16 are the upper half of an fp32.
_TYPES = {
    torch.float32: """
typedef float T;
__device__ float load(T value) { return value; }
__device__ T store(float value) { return value; }
""",
    torch.float16: """
typedef unsigned short T;
__device__ float load(T bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
__device__ T store(float value) {
    T bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
""",
    torch.bfloat16: """
typedef unsigned short T;
__device__ float load(T bits) { return __uint_as_float((unsigned int)bits << 16); }
__device__ T store(float value) {
    T bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
""",
}

_KERNEL = """
extern "C" __global__ void scale_chain(const T* x, T* y, long long n) {
    // 64 bits before the product: 32 wrap beyond 2^31 elements
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = store(load(x[i])CHAIN);
    }
}
"""


@functools.cache
def source(dtype: torch.dtype, factors: int) -> str:
    """The CUDA C++ text for a storage type and a chain, computed in fp32.

    Raises NotImplementedError for another storage type.
    """
    if dtype not in _TYPES:
        raise NotImplementedError(f"{dtype}: the CUDA C++ kernel stores fp32, fp16 or bf16")
    # Python's shortest text of the double, rounded to fp32 by the compiler as torch rounds it
    chain = "".join(f" * (float){value!r}" for value in factor_values(factors))
    return _TYPES[dtype] + _KERNEL.replace("CHAIN", chain)


def cuda(x: Tensor, *, factors: int) -> Tensor:
    """x: (N,), contiguous, on a CUDA device -> (N,).

    Raises NotImplementedError for a strided x or a storage type without a kernel.
    """
    if not x.is_contiguous():
        raise NotImplementedError("the textbook kernel reads contiguous memory")
    y = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements == 0:
        return y
    device = x.get_device()
    cuda_core.launch_1d(
        cuda_core.load(source(x.dtype, factors), "scale_chain", device),
        x.data_ptr(),
        y.data_ptr(),
        n_elements,
        grid=-(-n_elements // _THREADS),
        block=_THREADS,
        device=device,
    )
    return y
