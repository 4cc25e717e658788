"""The stamp of the GPU's own clock: native code everywhere, ordered and in ns on a GPU."""

import pytest
import torch

pytest.importorskip("cuda.core", reason="the stamp is compiled through cuda.core")

from kernel_lab.kernels.adapters import cuda_core, global_timer


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_it_compiles_to_native_code_without_a_gpu(arch):
    compiled = cuda_core.compile_cubin(global_timer.SOURCE, arch=arch)
    assert b"stamp" in bytes(compiled.code)


@pytest.mark.gpu
def test_stamps_stand_in_the_order_of_the_stream_and_count_nanoseconds():
    slots = torch.zeros(3, dtype=torch.int64, device="cuda")
    global_timer.stamp(slots, 2)  # compiled and loaded
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    global_timer.stamp(slots, 0)
    torch.cuda._sleep(10_000_000)
    global_timer.stamp(slots, 1)
    end.record()
    torch.cuda.synchronize()
    first, last, before = slots.tolist()
    assert 0 < before < first < last
    assert (last - first) / 1e6 == pytest.approx(begin.elapsed_time(end), rel=0.05)
