"""Cold calls in NVTX ranges for a tool around this process: each in a range of its own, so that the
tool's report tells calls apart. Nothing is timed."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..records import Cell
from ..schema import Device
from .context import Context
from .inputs import Inputs
from .rotation import Rotation
from .stream_runs import cycles

HOST_US = 1000.0
"""Host time for a call to return under a tool: more than without."""


def called(
    context: Context,
    cell: Cell,
    name: str,
    call: Callable[..., Any],
    copies: Sequence[Inputs],
    rotation: Rotation,
    *,
    hold: bool,
) -> bool | None:
    """One call on each copy, in the phase `trace`. With `hold`, whether the queue was held until
    all were in; None without, and on cpu, where there is no queue."""
    gpu = context.kind is Device.cuda
    begin = torch.cuda.Event() if gpu and hold else None
    outputs: list[Any] = []
    if gpu:
        rotation.before_run()
        context.synchronize()
    if begin is not None:
        torch.cuda._sleep(cycles(HOST_US * len(copies)))
        begin.record()
    for inputs in copies:
        with context.ranges.step(cell.index, cell.id, name, "trace"):
            outputs.append(call(*inputs))
    held = not begin.query() if begin is not None else None
    context.synchronize()
    return held
