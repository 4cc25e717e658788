"""An exception from an implementation becomes a status with its reason. Decided by type, once."""

import re

import torch

from ..printable import printable
from ..records import Status
from .load import CannotLoad

_COMPILERS = ("torch._dynamo", "torch._inductor", "triton.compiler", "triton.runtime.errors")
_MISSING_COMPILER = ("InvalidCxxCompiler", "TritonMissing")
_LIMIT = "FailOnRecompileLimitHit"
_UNCOMPILED = "found no compiled frames"  # torch's message where fullgraph compiled nothing
_NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "Storage size calculation overflowed",  # torch, for more bytes than a 64-bit integer counts
)
_STICKY = re.compile(
    r"illegal memory access|misaligned address|unspecified launch failure|device-side assert"
    r"|illegal instruction|invalid program counter|hardware stack error|CUDA error: uncorrectable",
    re.IGNORECASE,
)


class Poisoned(Exception):  # noqa: N818 - the end of a process, with a name
    """A sticky device error: this process can do no more. Names who caused it."""

    def __init__(self, implementation: str, status: Status, reason: str, trace: str) -> None:
        super().__init__(reason)
        self.implementation = implementation
        self.status = status
        self.reason = reason
        self.trace = trace


def classify(error: BaseException) -> tuple[Status, str]:
    """The status and one-line reason of an exception raised while loading or calling; the reason
    is one that every file takes."""
    status, reason = _classified(error)
    return status, printable(reason)


def _classified(error: BaseException) -> tuple[Status, str]:
    if isinstance(error, CannotLoad):
        return error.status, error.reason
    if isinstance(error, torch.OutOfMemoryError):
        return Status.out_of_memory, _first_lines(error, 2)
    if isinstance(error, MemoryError):
        return Status.out_of_memory, f"host memory: {error}"
    chain = list(_chain(error))
    names = [type(e).__name__ for e in chain]
    if any(name in _MISSING_COMPILER for name in names):
        return Status.unavailable, f"no compiler: {_first_lines(error, 1)}"
    if _LIMIT in names:
        return Status.invalid, (
            "torch.compile hit its recompile limit: beyond it calls run uncompiled. "
            f"{_first_lines(error, 2)}"
        )
    if any(_UNCOMPILED in str(e) for e in chain):
        return Status.invalid, f"ran uncompiled: {_first_lines(error, 3)}"
    if any(isinstance(e, torch.OutOfMemoryError) for e in chain):
        return Status.out_of_memory, _first_lines(error, 2)
    if isinstance(error, NotImplementedError):
        return Status.unsupported, _first_lines(error, 1)
    if any(type(e).__module__.startswith(_COMPILERS) for e in chain) or any(
        "NVRTC" in name for name in names
    ):
        return Status.compile_failed, f"{names[0]}: {_first_lines(error, 3)}"
    if any(text in str(error) for text in _NO_MEMORY):
        return Status.out_of_memory, f"host memory: {_first_lines(error, 1)}"
    return Status.crashed, f"{names[0]}: {_first_lines(error, 2)}"


def is_sticky(error: BaseException) -> bool:
    """Whether the message tells of a CUDA error that poisons the whole process."""
    return any(_STICKY.search(str(e)) for e in _chain(error))


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    return chain


def _first_lines(error: BaseException, count: int) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:count])[:600] or type(error).__name__
