"""What torch says of this machine, asked in a process of its own: this one never imports it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LIMIT_S = 120.0

_PROGRAM = """
import json
found = {}
try:
    import torch
    found["version"] = torch.__version__
    found["cuda"] = torch.version.cuda
    found["usable"] = torch.cuda.is_available()
    if found["usable"]:
        torch.ones(8, device="cuda").sum().item()
        found["names"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
except BaseException as error:
    found["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
print(json.dumps(found))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchState:
    """`version` is None where torch cannot be imported, `cuda` where it is a CPU build."""

    version: str | None = None
    cuda: str | None = None
    usable: bool = False
    names: list[str] = field(default_factory=list)
    error: str = ""


def torch_state() -> TorchState:
    """Imports torch in a short process and, where it can, adds numbers on its GPU."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            env=dict(os.environ),
            cwd=Path("/"),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TorchState(error=f"`import torch` and one sum took over {_LIMIT_S:.0f} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return TorchState(error=last[0])
    values: dict[str, Any] = json.loads(lines[-1])
    return TorchState(**values)
