"""Nsight Systems and Nsight Compute on this machine: where they are, and how they are started.

Either may be absent; whoever asks says so in the row. No report may hold the user's secrets: nsys
writes the whole environment that it sees into its report, so both are started with an allow-list.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLES = {"nsys": "KLAB_NSYS", "ncu": "KLAB_NCU"}
"""Where the user says which one is meant: the path of the executable."""

_FOLDERS = (
    "/usr/local/cuda/bin",
    "/opt/nvidia/nsight-systems/*/bin",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/cuda*/bin",
    "/usr/local/cuda*/nsight-compute-*",
    # Nsight Compute carries an nsys of its own
    "/opt/nvidia/nsight-compute/*/host/*",
    "/usr/local/cuda*/nsight-compute-*/host/*",
)
"""The usual places after PATH, newest version first."""

_ALLOWED = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CC", "CXX"}
_ALLOWED_PREFIXES = (
    "LC_",
    "CUDA_",
    "CUBLAS",
    "CUDNN",
    "NVIDIA_",
    "TORCH",
    "PYTORCH",
    "TRITON",
    "PYTHON",
    "OMP_",
    "MKL_",
    "KLAB_",
)

_VERSION = re.compile(r"\b(\d{4}\.\d+(?:\.\d+)*)")


class NsightError(Exception):
    """What a tool could not do here. The text is the reason that a row gives for its absence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """One tool that was found; `version` is None where it does not tell one."""

    name: str
    path: Path
    version: str | None


def find(name: str) -> Tool:
    """`nsys` or `ncu` from KLAB_NSYS or KLAB_NCU, PATH, or the usual folders.

    Raises NsightError where it is nowhere, or where the variable names no executable.
    """
    variable = VARIABLES[name]
    given = os.environ.get(variable)
    if given:
        path = Path(given).expanduser()
        if not _executable(path):
            raise NsightError(f"{variable}={given} is no executable file")
        return Tool(name=name, path=path, version=_version(path))
    for path in _candidates(name):
        version = _version(path)
        if version is not None:
            return Tool(name=name, path=path, version=version)
    raise NsightError(
        f"{name} is not on PATH nor in the usual folders; install it, or set {variable} to it"
    )


def _candidates(name: str) -> Iterator[Path]:
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    for pattern in _FOLDERS:
        folders = sorted(Path("/").glob(pattern.lstrip("/")), key=_order, reverse=True)
        yield from (folder / name for folder in folders if _executable(folder / name))


def _order(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(folder)))


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _version(path: Path) -> str | None:
    """What `--version` says; None where it fails, as an executable without its libraries does."""
    try:
        done = subprocess.run(
            [str(path), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            env=allowed(os.environ),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.findall(done.stdout)
    return found[-1] if done.returncode == 0 and found else None


def older(version: str | None, year: int, number: int) -> bool:
    """Whether a version comes before `year.number`; a version that nobody knows does not."""
    if version is None:
        return False
    parts = [int(part) for part in version.split(".")[:2]]
    return tuple(parts) < (year, number)


def allowed(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a program under a tool needs, and no others: no tokens, no keys."""
    return {
        key: value
        for key, value in environment.items()
        if key in _ALLOWED or key.startswith(_ALLOWED_PREFIXES)
    }
