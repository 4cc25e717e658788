"""Calls captured in a CUDA graph: made, counted, replayed, or refused with the reason."""

import contextlib
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .driver import graph_nodes
from .inputs import Inputs, clone, refill, tensors

Call = Callable[..., Any]


WORK = ("kernel", "memcpy")
"""Nodes of which a graph must hold one. A fill alone is no work that anyone times."""


class Uncapturable(Exception):  # noqa: N818 - a reason with a name, not an error of ours
    """Why calls cannot become a graph. `harmed`: this process can capture no more either."""

    def __init__(self, reason: str, *, harmed: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.harmed = harmed


class EmptyGraph(Uncapturable):
    """A graph without a kernel or a copy: what was captured did no work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Memory that graphs share, and the one stream that they are captured on: the allocator gives
    a block of a pool only to the stream that it was freed on."""

    handle: Any
    stream: torch.cuda.Stream

    @classmethod
    def of(cls, device: torch.device) -> "Pool":
        return cls(handle=torch.cuda.graph_pool_handle(), stream=torch.cuda.Stream(device))


@dataclass(slots=True)
class Captured:
    """A graph of some calls, ready to replay. `nodes` counts its nodes by kind; `outputs` are the
    last calls' in memory that each replay writes anew."""

    graph: torch.cuda.CUDAGraph
    nodes: dict[str, int]
    outputs: list[Any]

    def replay(self) -> None:
        """Queues all calls at once on the current stream."""
        self.graph.replay()


def capture(
    call: Call,
    copies: Sequence[Inputs],
    count: int,
    slots: int,
    device: torch.device,
    *,
    pool: "Pool | None" = None,
) -> Captured:
    """A graph of `count` calls that take the copies in turn; the last `slots` outputs stay alive.

    The calls must have run before: what a first call sets up cannot be captured. Graphs with one
    `pool` share memory for outputs, so that a replay of one overwrites those of another. Raises
    Uncapturable where the calls do what a graph cannot hold, EmptyGraph where no kernel comes of
    them, torch.OutOfMemoryError where their outputs do not fit.
    """
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    pool = pool or Pool.of(device)
    ring: list[Any] = [None] * max(1, slots)
    failure: Exception | None = None
    torch.cuda.synchronize(device)
    collecting = gc.isenabled()
    gc.disable()  # a tensor that dies in between would be freed on a stream that is captured
    try:
        with torch.cuda.stream(pool.stream):
            graph.capture_begin(pool=pool.handle)
            try:
                for k in range(count):
                    ring[k % len(ring)] = call(*copies[k % len(copies)])
            except Exception as error:
                failure = error
            finally:
                try:
                    graph.capture_end()
                except Exception as error:
                    failure = failure or error
                    _leave_pool(device, pool.handle)
    finally:
        if collecting:
            gc.enable()
    if failure is not None:
        ring.clear()
        short = isinstance(failure, torch.OutOfMemoryError)
        reason = f"cannot be captured in a CUDA graph: {_first_line(failure)}"
        # its frames hold the copies: a reason is kept, the exception is not
        failure = None
        del graph
        harmed = not _able(device)
        if short and not harmed:
            # no fault of the calls: a capture cannot give back what the allocator keeps
            raise torch.OutOfMemoryError(reason)
        raise Uncapturable(reason, harmed=harmed)
    nodes = dict(graph_nodes(graph.raw_cuda_graph()))
    if not any(nodes.get(kind) for kind in WORK):
        held = ", ".join(f"{n} {kind}" for kind, n in nodes.items()) or "nothing"
        raise EmptyGraph(
            f"the graph of {count} calls holds no {' and no '.join(WORK)}: {held}. Their work was "
            "done before, or on a stream that the capture does not follow"
        )
    graph.instantiate()
    return Captured(graph=graph, nodes=nodes, outputs=ring)


def graphed(call: Call, inputs: Inputs, device: torch.device) -> Call:
    """The call as a graph of one: inputs are copied to where it was captured, it is replayed, and
    its outputs are copied out, so that it answers as the call would. Raises as `capture` does."""
    kept = clone(inputs)
    call(*kept)
    captured = capture(call, [kept], 1, 1, device)

    def replay(*given: Any) -> tuple[Tensor, ...]:
        refill(kept, given)
        captured.replay()
        return tuple(output.clone() for output in tensors(captured.outputs[0]))

    return replay


def _leave_pool(device: torch.device, pool: Any) -> None:
    """Up to torch 2.11 a capture that fails at its end leaves the allocator believing that it goes
    on (pytorch pull request 180395); later ones have left the pool, and say so by an error."""
    leave = getattr(torch._C, "_cuda_endAllocateToPool", None)
    if leave is not None:
        with contextlib.suppress(RuntimeError):
            leave(device.index or 0, pool)


def _able(device: torch.device) -> bool:
    """Whether this process still captures, draws random numbers and gives memory back."""
    try:
        torch.cuda.synchronize(device)
        x = torch.zeros(1024, device=device)
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(device)
        torch.cuda.synchronize(device)
        with torch.cuda.stream(stream):
            graph.capture_begin()
            try:
                y = x * 0 + 1
            finally:
                graph.capture_end()
        graph.replay()
        # a capture that ends well also frees the generator, which the failed one left captured
        x.normal_()
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        return bool((y == 1).all()) and bool(x.any())
    except Exception:
        return False


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
