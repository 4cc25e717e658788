"""What torch says of this machine, asked in a process of its own: this one never imports it."""

from dataclasses import dataclass, field, fields

from ..asking import Asked, UnansweredError

_LIMIT_S = 120.0

_PROGRAM = """
import json
found = {"usable": False}
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
        found = Asked(_PROGRAM, key="usable").answer(_LIMIT_S)
    except UnansweredError as error:
        return TorchState(error=str(error))
    known = {each.name for each in fields(TorchState)}
    return TorchState(**{name: value for name, value in found.items() if name in known})
