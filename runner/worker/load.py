"""A dotted path in YAML becomes a callable: the only door to the kernels.

A library that is absent makes an implementation `unavailable` with the reason; anything else that
goes wrong while loading is the implementation's own fault.
"""

import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

from ..records import Status
from ..schema import Compile, Device, Experiment, Implementation


class CannotLoad(Exception):  # noqa: N818 - a reason with a status, not an error of ours
    """Why an implementation cannot be called here."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def resolve(path: str) -> Any:
    """The object at a dotted path. Raises ImportError or AttributeError as Python does."""
    module, _, name = path.rpartition(".")
    if not module:
        raise ImportError(f"{path}: no module in the path")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        # `package.module.Class.method`: the module ends earlier than the last dot
        if error.name != module or "." not in module:
            raise
        return getattr(resolve(module), name)


def load(implementation: Implementation) -> Callable[..., Any]:
    """The function that an implementation's YAML names, not yet compiled.

    Raises CannotLoad: `unavailable` where a required library is missing or refuses to import,
    `crashed` where the path itself is wrong.
    """
    for name in implementation.requires:
        require(name)
    try:
        function = resolve(implementation.target)
    except ImportError as error:
        raise CannotLoad(Status.unavailable, f"{implementation.target}: {error}") from error
    except AttributeError as error:
        raise CannotLoad(Status.crashed, f"{implementation.target}: {error}") from error
    if not callable(function):
        raise CannotLoad(Status.crashed, f"{implementation.target} is not callable")
    return function


def require(name: str) -> None:
    """Raises CannotLoad(unavailable) unless the import name is there."""
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError) as error:
        raise CannotLoad(Status.unavailable, f"{name} cannot be imported: {error}") from error
    if not found:
        raise CannotLoad(Status.unavailable, f"the package {name} is not installed")


def bind(
    experiment: Experiment, name: str, arguments: dict[str, Any], device: Device
) -> Callable[..., Any]:
    """An implementation as it will be called: with its arguments, and compiled where asked.

    Raises CannotLoad as `load` does.
    """
    implementation = experiment.kernel.implementations[name]
    function = load(implementation)
    keywords = {**arguments, **implementation.kwargs}

    if implementation.compile is Compile.none:

        def call(*inputs: Any) -> Any:
            return function(*inputs, **keywords)

        return call

    if device is Device.cpu:
        require_host_compiler()
    import torch

    # the keywords go inside: dynamo then sees constants, and guards on nothing but the tensors
    def body(*inputs: Any) -> Any:
        return function(*inputs, **keywords)

    # dynamo counts recompilations a code object: one of its own, or the ninth compiled
    # implementation of a cell would hit the limit that the first eight used up
    body.__code__ = body.__code__.replace()
    mode = "max-autotune-no-cudagraphs" if implementation.compile is Compile.max_autotune else None
    return torch.compile(body, fullgraph=True, dynamic=False, mode=mode)


def graphs_compiled() -> int:
    """How many graphs torch.compile has made in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")  # its import takes seconds: not for a count
    return dynamo.counters["stats"]["unique_graphs"] if dynamo is not None else 0


def kernels_built() -> int:
    """How many kernels Triton's cache on disk holds: one more is one that was just compiled.

    Only of the folder that the supervisor gave this GPU: nobody else compiles into that one while
    this process times. In a folder of the user's own others may; 0 for it."""
    folder = os.environ.get("KLAB_TRITON_CACHE", "")
    if folder != os.environ.get("TRITON_CACHE_DIR"):
        return 0
    try:
        with os.scandir(folder) as entries:
            return sum(1 for _ in entries)
    except OSError:
        return 0


def forget_compiled() -> None:
    """Resets torch.compile, so that what one cell compiled is no part of the next."""
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()


def require_compiled(before: int) -> None:
    """Raises CannotLoad(invalid) unless a graph was compiled since `graphs_compiled` gave this.

    For the first call of a compiled arm: a switch such as TORCH_COMPILE_DISABLE, or a frame that
    dynamo skips, lets it run as eager without a word in some versions of torch.
    """
    if graphs_compiled() == before:
        raise CannotLoad(
            Status.invalid,
            "ran uncompiled: torch.compile made no graph in the first call "
            "(TORCH_COMPILE_DISABLE, TORCHDYNAMO_DISABLE, or a function that dynamo skips)",
        )


def require_host_compiler() -> None:
    """Raises CannotLoad(unavailable) where Inductor would find no C++ compiler."""
    import torch._inductor.config as inductor

    named = inductor.cpp.cxx
    candidates = named if isinstance(named, list | tuple) else [named]
    names = [c for c in candidates if isinstance(c, str)] or ["g++"]
    if not any(shutil.which(name) for name in names):
        raise CannotLoad(
            Status.unavailable,
            f"torch.compile needs a C++ compiler on cpu; none of {', '.join(names)} was found",
        )


def tuning_of(implementation: Implementation) -> str:
    """What the implementation's own `tuning` attribute tells of its choice; else empty."""
    tuning = getattr(load(implementation), "tuning", None)
    return str(tuning()) if callable(tuning) else ""


def tuning_seconds(implementation: Implementation) -> float | None:
    """Seconds that the implementation says it has spent on trying candidates in this process, all
    its calls together: its own `tuning_s` attribute. None where it tells nothing."""
    told = getattr(load(implementation), "tuning_s", None)
    return float(told()) if callable(told) else None


def kernel_functions(experiment: Experiment) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The kernel's `make_inputs` and `reference`."""
    module = importlib.import_module(experiment.kernel.module)
    return module.make_inputs, module.reference
