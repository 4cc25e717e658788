"""The GPU's own clock, %globaltimer, written to memory by a kernel of one thread.

A slope between two stamps needs no event: an instrument of another kind than CUDA's events. The
clock counts ns and may tick in steps of 32 ns to 1 us: stamps belong around many calls.
"""

from torch import Tensor

from . import cuda_core

SOURCE = """
extern "C" __global__ void stamp(unsigned long long* slot) {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns) :: "memory");
    *slot = ns;
}
"""


def stamp(slots: Tensor, index: int) -> None:
    """Queues a kernel that writes the clock, in ns, to `slots[index]`; slots is int64, on a GPU.

    On torch's current stream, so that it runs between what was queued before and after it.
    """
    device = slots.get_device()
    cuda_core.launch_1d(
        cuda_core.load(SOURCE, "stamp", device),
        slots.data_ptr() + index * slots.element_size(),
        grid=1,
        block=1,
        device=device,
    )
