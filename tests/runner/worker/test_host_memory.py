import resource

import torch
from kernel_lab.runner.worker.host_memory import keep_freed, perturb


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_freed_memory_is_kept_so_that_large_outputs_cost_no_page_faults():
    assert keep_freed() == "freed memory kept (glibc mallopt)"
    size = 64 << 20
    for _ in range(3):
        torch.empty(size, dtype=torch.uint8).fill_(1)
    before = faults()
    for _ in range(5):
        torch.empty(size, dtype=torch.uint8).fill_(1)
    assert faults() - before < size // 4096


def test_perturbed_memory_holds_no_old_values():
    try:
        assert perturb(0x80)
        assert (torch.empty(4096, dtype=torch.uint8) == 0x7F).all()
    finally:
        perturb(0)
