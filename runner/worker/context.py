"""What every step of the worker needs: the experiment, the device, and a way to say where it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..question.expressions import evaluate
from ..records import Cell
from ..schema import Device, Experiment
from .compare import least_tolerance, ulp
from .ranges import Ranges

Announce = Callable[[str, str], None]
"""Called with (implementation, phase) before each step, so that a death has a name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """One job in one worker process."""

    job: str
    experiment: Experiment
    kind: Device
    device: torch.device
    ranges: Ranges
    announce: Announce
    cache_bytes: int
    """The last-level cache that a cold call must not find its inputs in; 0 on cpu."""
    process: int = 1
    """Which of the job's fresh processes this is: each takes the rounds in an order of its own."""
    profiled: str = ""
    """The variable that tells of a profiler around this process; empty without one."""

    @property
    def storage(self) -> torch.dtype:
        return getattr(torch, self.experiment.dtype.storage)

    @property
    def output(self) -> torch.dtype:
        return getattr(torch, self.experiment.dtype.output)

    @property
    def ulp(self) -> float:
        """The relative spacing that two right answers may differ by: of the output dtype, or of a
        product in tf32: hardware may cut each of the two operands off after ten bits, each by up
        to 2^-10."""
        if self.experiment.dtype.tf32:
            return 2.0**-9
        return ulp(self.output)

    def least_tolerance(self, cell: Cell) -> float:
        """The error that every implementation is allowed, whatever the yardstick's own."""
        kernel, workload = self.experiment.kernel, cell.workload
        values = {"dtype": workload.dtype, "layout": workload.layout, **workload.axes}
        length = kernel.sum_length
        terms = float(evaluate(length, values, "kernel.sum_length")) if length else 0.0
        accumulate = getattr(torch, self.experiment.dtype.accumulate)
        return least_tolerance(self.ulp, accumulate, terms)

    @property
    def interpreted(self) -> bool:
        """Triton kernels run under their interpreter here: values only, no times."""
        return self.kind is Device.cpu

    def arguments(self, cell: Cell) -> dict[str, Any]:
        """The axes that are passed by name to the reference and the implementations."""
        return {name: cell.workload.axes[name] for name in self.experiment.kernel.arguments}

    def synchronize(self) -> None:
        """Waits for the device; a sticky error surfaces here."""
        if self.kind is Device.cuda:
            torch.cuda.synchronize(self.device)

    def free_memory(self) -> int:
        """Bytes that copies may take: half of what is free on the GPU, 1 GiB on cpu."""
        if self.kind is Device.cuda:
            free, _ = torch.cuda.mem_get_info(self.device)
            reserved = torch.cuda.memory_reserved(self.device)
            allocated = torch.cuda.memory_allocated(self.device)
            return (free + reserved - allocated) // 2
        return 1 << 30
