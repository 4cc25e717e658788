"""Runs of captured calls: one replay between two events, the queue held.

Inputs rotate inside the graph, over as many copies as the rotation has: within one replay no
memory is met again while cached, and L2 is read full before each replay, outside the window.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from .graph import Captured, Pool, capture
from .rotation import Rotation
from .stream_runs import HOLD_MARGIN, cycles

Call = Callable[..., Any]

HOLD_US = 200.0
"""The stream is held at least so long: launching a graph of a few hundred nodes takes less."""


class GraphRuns:
    """The graphs of one cell: for each implementation N and 2N calls, cold and warm."""

    def __init__(self, rotation: Rotation, device: torch.device) -> None:
        self._rotation = rotation
        self._device = device
        self._pool = Pool.of(device)
        self._graphs: dict[tuple[str, int, bool], Captured] = {}
        self._nodes: dict[str, dict[str, float]] = {}
        self._launch_us: dict[tuple[str, int, bool], float] = {}  # host us of the last replay

    def make(self, name: str, call: Call, count: int, slots: int, *, warm: bool) -> None:
        """Captures N and 2N calls, cold, and with `warm` also on one copy over and over.

        Raises Uncapturable or EmptyGraph; the next capture is unharmed, or the error says so.
        """
        for cold in (True, False) if warm else (True,):
            copies = self._rotation.copies if cold else self._rotation.copies[:1]
            for calls in (count, 2 * count):
                captured = capture(
                    call, copies, calls, slots if cold else 1, self._device, pool=self._pool
                )
                captured.outputs.clear()  # only times are wanted: the pool may use it again
                self._graphs[name, calls, cold] = captured
                captured.replay()
        torch.cuda.synchronize(self._device)
        nodes = self._graphs[name, 2 * count, True].nodes
        self._nodes[name] = {kind: n / (2 * count) for kind, n in sorted(nodes.items())}

    def nodes(self, name: str) -> dict[str, float]:
        """Nodes a call, by kind."""
        return self._nodes.get(name, {})

    def run(self, name: str, count: int, *, cold: bool) -> tuple[float, bool]:
        """Device time in us between events around a replay, and whether the queue was held."""
        which = (name, count, cold)
        captured = self._graphs[which]
        hold = max(HOLD_US, HOLD_MARGIN * self._launch_us.get(which, 0.0))
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        if cold:
            self._rotation.before_run()
        torch.cuda.synchronize(self._device)
        torch.cuda._sleep(cycles(hold))
        begin.record()
        started = time.perf_counter()
        captured.replay()
        self._launch_us[which] = (time.perf_counter() - started) * 1e6
        held = not begin.query()
        end.record()
        torch.cuda.synchronize(self._device)
        return begin.elapsed_time(end) * 1e3, held

    def release(self) -> None:
        """Gives the graphs and their memory back."""
        self._graphs.clear()
