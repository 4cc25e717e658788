"""Which GPU this machine has, and whether it is the experiment's target. NVML only, never CUDA.

Asked before any job starts: a target that is not here ends the command with both named.
"""

import dataclasses
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .asking import Asked, UnansweredError
from .errors import TargetError
from .schema import Device, Experiment, Target

_DRIVER = Path("/dev/nvidiactl")

USABLE_LIMIT_S = 60.0
"""Importing torch and its first look at CUDA take seconds; a driver that hangs takes for ever."""

_PROGRAM = """
import json, torch
print(json.dumps({"usable": torch.cuda.is_available(), "version": torch.__version__}))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A GPU that the driver shows to this user."""

    index: int
    name: str
    uuid: str
    capability: str
    memory_bytes: int


def gpus() -> list[Gpu]:
    """The GPUs of this machine, as CUDA_VISIBLE_DEVICES leaves them; none without a driver."""
    found = _installed()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    chosen: list[Gpu] = []
    for part in (part.strip() for part in visible.split(",")):
        gpu = next((g for g in found if part == str(g.index) or _names(part, g)), None)
        if gpu is None:  # CUDA, too, ends its list at the first that it does not know
            break
        chosen.append(gpu)
    return chosen


def crowded(threads: int) -> str:
    """What more threads than this process may use CPUs for mean to its times; empty: there are no
    more."""
    cpus = len(os.sched_getaffinity(0))
    if threads <= cpus:
        return ""
    return (
        f"settings.threads={threads}: more threads than the {cpus} CPUs that this process may use, "
        "so that they wait for each other and times are theirs"
    )


def _names(text: str, gpu: Gpu) -> bool:
    """Whether the text is the GPU's UUID or the beginning of it."""
    return text.startswith("GPU-") and gpu.uuid.startswith(text)


def _installed() -> list[Gpu]:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return []
    found = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        found.append(
            Gpu(
                index=index,
                name=str(pynvml.nvmlDeviceGetName(handle)),
                uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
                capability=f"{major}.{minor}",
                memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
            )
        )
    return found


def choose(found: Sequence[Gpu], device: str) -> Gpu:
    """The GPU that `device` names by index or UUID. Raises TargetError with the choices."""
    named = [g for place, g in enumerate(found) if device == str(place) or _names(device, g)]
    if len(named) == 1:
        return named[0]
    choices = ", ".join(f"{place} ({gpu.uuid})" for place, gpu in enumerate(found))
    problem = f"{len(named)} GPUs begin so" if named else "no such GPU"
    raise TargetError(f"device={device}: {problem}. Choices: {choices}.")


DEFAULT_DEVICE = Experiment.device
"""What the grammar says where nobody names a device."""


def settle(
    target: Target, known: Sequence[Target], found: Sequence[Gpu], device: str
) -> tuple[Target, Gpu | None]:
    """The target with its kind decided, and the GPU that it runs on (None on cpu).

    `auto` becomes the known target of the local GPU by product name, else one made of what the
    driver says, without peaks; with no GPU it becomes `cpu`. Raises TargetError where another GPU
    than the target's is here, or none, and for `auto` where a driver is here that shows none.
    """
    if target.kind is Device.cpu:
        if device != DEFAULT_DEVICE:
            raise TargetError(f"device={device}: names a GPU, and target={target.name} is none.")
        return target, None
    if target.kind is None:
        if not found:
            if _DRIVER.exists() and "CUDA_VISIBLE_DEVICES" not in os.environ:
                raise TargetError(
                    f"target={target.name}: NVIDIA's driver is here ({_DRIVER}) and names no GPU. "
                    "Mend the driver, or ask for the CPU: target=cpu"
                )
            if device != DEFAULT_DEVICE:
                raise TargetError(f"device={device}: no NVIDIA GPU on this machine. Leave it out.")
            return next(t for t in known if t.kind is Device.cpu), None
        gpu = choose(found, device)
        return _known(gpu, known), gpu
    if not found:
        raise TargetError(
            f"target={target.name}: no NVIDIA GPU on this machine. Run with target=cpu or "
            f"target=auto, or predict with: klab plan ... target={target.name}"
        )
    gpu = choose(found, device)
    if gpu.name != target.product:
        raise TargetError(
            f"target={target.name} is a {target.product}, and device {device} of this machine is "
            f"a {gpu.name}. Run with target=auto, or predict with: "
            f"klab plan ... target={target.name}"
        )
    return target, gpu


def _known(gpu: Gpu, known: Sequence[Target]) -> Target:
    for target in known:
        if target.kind is Device.cuda and target.product == gpu.name:
            return target
    return dataclasses.replace(
        Target(name=slug(gpu.name)),
        kind=Device.cuda,
        product=gpu.name,
        capability=gpu.capability,
        memory_gb=round(gpu.memory_bytes / 1e9, 1),
        source="this machine's driver; no datasheet known, so no roofline",
    )


def slug(name: str) -> str:
    """A GPU's name as a word: `NVIDIA H100 PCIe` is `h100_pcie`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower().removeprefix("nvidia ")).strip("_")


class Probe:
    """Whether torch can use a GPU that the driver shows: asked in a process of its own, from now
    on, and heard when it is confirmed. `end` it where nobody will."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        visible = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu.uuid}
        self._asked = Asked(_PROGRAM, key="usable", environment=visible)

    def confirm(self) -> None:
        """Waits for the answer, for USABLE_LIMIT_S at most. Raises TargetError where it is no."""
        try:
            found = self._asked.answer(USABLE_LIMIT_S)
        except UnansweredError as error:
            reason = str(error)
        else:
            if found["usable"]:
                return
            reason = self._asked.complaint or f"torch {found['version']} finds no CUDA device"
        raise TargetError(
            f"a {self._gpu.name} is here and torch cannot use it ({reason}). "
            "Mend the driver or the torch build, or ask for the CPU: target=cpu"
        )

    def end(self) -> None:
        self._asked.end()


def require_usable(gpu: Gpu) -> None:
    """Raises TargetError where the driver shows a GPU that torch cannot use. A short process."""
    Probe(gpu).confirm()
