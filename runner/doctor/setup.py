"""`klab doctor`: is everything here that a run needs? Asks, and changes nothing."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..device import Gpu, settle
from ..errors import KlabError
from ..nsight.tools import NsightError, find, older
from ..outputs import outputs
from ..schema import Device, Target
from .driver import DriverState
from .probe import TorchState

PYTHONS = ((3, 11), (3, 14))
"""From the first, below the second."""

_ROOM_GB = 5.0


class State(StrEnum):
    """`missing`: something optional is not here. `broken`: `klab run` needs it."""

    ok = "ok"
    missing = "missing"
    warning = "warning"
    broken = "broken"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One thing looked at, and what to do about it."""

    state: State
    what: str
    text: str
    next_step: str = ""


def ok(what: str, text: str) -> Line:
    return Line(state=State.ok, what=what, text=text)


def set_up(
    torch: TorchState,
    driver: DriverState,
    target: Target,
    known: Sequence[Target],
    found: list[Gpu],
) -> Iterator[Line]:
    """Every line of the check, in the order in which a person would mend things."""
    yield _python()
    yield _torch(torch)
    yield _triton()
    yield from _gpu(torch, driver, target, known, found)
    yield _compiler()
    yield _nvtx()
    yield _tool("nsys", "Nsight Systems", bool(found))
    yield _tool("ncu", "Nsight Compute", bool(found))
    yield _outputs()
    yield _room()


def _python() -> Line:
    low, high = PYTHONS
    text = f"{platform.python_version()} at {sys.executable}"
    if low <= sys.version_info[:2] < high:
        return ok("python", text)
    step = f"use Python {low[0]}.{low[1]} or later, below {high[0]}.{high[1]}"
    return Line(state=State.broken, what="python", text=text, next_step=step)


def _torch(torch: TorchState) -> Line:
    if torch.version is None:
        step = "pip install -c constraints.txt -e '.[dev]'"
        return Line(state=State.broken, what="torch", text=torch.error, next_step=step)
    build = f"built for CUDA {torch.cuda}" if torch.cuda else "a build without CUDA"
    return ok("torch", f"{torch.version}, {build}")


def _triton() -> Line:
    number = _installed("triton")
    if number:
        return ok("triton", number)
    step = "pip install triton; without it Triton implementations are `unavailable`"
    return Line(state=State.missing, what="triton", text="not installed", next_step=step)


def _gpu(
    torch: TorchState,
    driver: DriverState,
    target: Target,
    known: Sequence[Target],
    found: list[Gpu],
) -> Iterator[Line]:
    """The driver, the GPU against the known targets, and what NVML lets a run read."""
    try:
        settled, gpu = settle(target, known, found, "0")
    except KlabError as error:
        yield Line(state=State.broken, what="target", text=str(error))
        return
    if gpu is None:
        text = "this machine's CPU" if found or target.kind is Device.cpu else "no NVIDIA GPU here"
        yield ok("target", f"{settled.name}: {text}; times are wall_us")
        return
    yield ok("driver", f"{driver.version or 'version unknown'}, NVML answers")
    where = f"{gpu.name} (sm {gpu.capability}) is target {settled.name}"
    if settled.source and settled in known:
        yield ok("target", where)
    else:
        step = "no datasheet of it is known, so no roofline: add conf/target/NAME.yaml"
        yield Line(state=State.warning, what="target", text=where, next_step=step)
    yield _usable(torch, gpu)
    yield _energy(driver)
    yield ok("clocks", driver.clocks)


def _usable(torch: TorchState, gpu: Gpu) -> Line:
    if torch.usable and not torch.error:
        return ok("cuda", f"torch computes on {torch.names[0] if torch.names else gpu.name}")
    text = torch.error or f"torch {torch.version} finds no CUDA device"
    step = "install a torch build for this driver (see pytorch.org), or ask for target=cpu"
    return Line(state=State.broken, what="cuda", text=text, next_step=step)


def _energy(driver: DriverState) -> Line:
    if not driver.energy:
        return ok("energy", "NVML counts millijoules")
    return Line(
        state=State.missing,
        what="energy",
        text=f"NVML has no energy counter here: {driver.energy}",
        next_step="nothing to do: records hold no energy",
    )


def _compiler() -> Line:
    named = os.environ.get("CXX")
    found = next((c for c in ([named] if named else ["g++", "clang++"]) if shutil.which(c)), None)
    if found:
        return ok("compiler", f"{shutil.which(found)}, for torch.compile on a CPU and for Triton")
    step = "install g++ or set CXX; without it `compile` on a CPU is `unavailable`"
    text = f"CXX={named} is not there" if named else "no g++ or clang++ on PATH"
    return Line(state=State.missing, what="compiler", text=text, next_step=step)


def _nvtx() -> Line:
    number = _installed("nvtx")
    if number is None:
        step = "pip install nvtx; without it traces have no ranges to join"
        return Line(state=State.missing, what="nvtx", text="not installed", next_step=step)
    try:
        nsys = find("nsys").version
    except NsightError:
        return ok("nvtx", number)
    if older(nsys, 2024, 1) and _numbers(number) >= (0, 2, 12):
        text = f"{number} records nothing under nsys {nsys}, without a word"
        step = "use nsys 2024.1 or later"
        return Line(state=State.warning, what="nvtx", text=text, next_step=step)
    return ok("nvtx", number)


def _tool(name: str, title: str, wanted: bool) -> Line:
    try:
        tool = find(name)
    except NsightError as error:
        text = str(error) if wanted else "not needed without an NVIDIA GPU"
        return Line(state=State.missing, what=name, text=text)
    text = f"{title} {tool.version or 'of unknown version'} at {tool.path}"
    if name == "ncu":
        text += f"; counters: {_counters()}"
    return ok(name, text)


def _counters() -> str:
    """Whether the driver gives counters to anyone, as far as it says so before one is read."""
    try:
        text = Path("/proc/driver/nvidia/params").read_text()
    except OSError:
        return "permission unknown until used"
    if "RmProfilingAdminOnly: 1" in text and os.geteuid() != 0:
        return "the driver gives them to the administrator only"
    return "not refused by the driver's settings, known when used"


def _outputs() -> Line:
    from ..tracking.store import locate

    place = outputs()
    try:
        with tempfile.TemporaryDirectory(prefix=".klab-", dir=_existing(place)):
            pass
    except OSError as error:
        step = "set KLAB_OUTPUTS to a folder that can be written"
        return Line(state=State.broken, what="outputs", text=str(error), next_step=step)
    return ok("outputs", f"{place} can be written; MLflow: {locate(place).uri}")


def _existing(place: Path) -> Path:
    """The folder itself, or the nearest above it that is there."""
    return next(folder for folder in (place, *place.parents) if folder.exists())


def _room() -> Line:
    free = shutil.disk_usage(_existing(outputs())).free / 1e9
    if free >= _ROOM_GB:
        return ok("disk", f"{free:.0f} GB free for outputs")
    step = "reports and caches may fill it: make room, or set KLAB_OUTPUTS"
    return Line(state=State.warning, what="disk", text=f"{free:.1f} GB free", next_step=step)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
