"""Where a finding stands below the findings folder, and which one it would replace.

    <findings>/<gpu>/<experiment>[-SHAPES][-DTYPE][-DISTRIBUTION][-SUBMIT][-OTHERS][-MHZ].json

The `gpu` folder is the target's name without the form factor (`h200_sxm` -> `h200`), or `cpu`.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from ..clocks import OBSERVE, locked_mhz
from ..records import Job
from .text import short_commit

_SAME_QUESTION = (
    "experiment", "kernel", "shapes", "dtype", "distribution", "submit", "target", "protocol",
    "trace", "tracking", "mode", "worker", "device", "strict", "question", "max_failures", "hydra",
)  # fmt: skip
"""Overrides that ask no other question, or that stand in the name by themselves: how often and
where is asked is told by the finding. Details of a kernel (`kernel.baseline=...`) do ask one."""


def place(job: Job) -> Path:
    """`h200/NAME.json`. Runs of one experiment that an override made another question (other
    shapes, dtype, inputs, implementations, settings, a locked clock ...) have names of their own.
    """
    name = job.experiment if job.experiment != "adhoc" else f"adhoc-{job.kernel}"
    overrides = [override.lstrip("+~") for override in job.overrides]
    config = job.config
    for group in ("shapes", "dtype"):
        if any(override.startswith(f"{group}=") for override in overrides):
            name += f"-{(config.get(group) or {}).get('name') or 'own'}"
        details = sorted(o for o in overrides if o.startswith((f"{group}.", f"{group}@")))
        name += _hashed(details)
    for key in ("distribution", "submit"):
        values = [o.partition("=")[2] for o in overrides if o.startswith(f"{key}=")]
        name += f"-{values[-1]}" if values else ""
    name += _hashed(sorted(o for o in overrides if _asks_otherwise(o)))
    mhz = locked_mhz((config.get("protocol") or {}).get("clocks", OBSERVE))
    if mhz is not None:
        name += f"-{mhz}mhz"
    return Path(gpu_folder(job)) / f"{_file_name(name)}.json"


def _asks_otherwise(override: str) -> bool:
    key = override.partition("=")[0]
    return re.split("[.@]", key)[0] not in _SAME_QUESTION or key.startswith("kernel.")


def _hashed(details: Sequence[str]) -> str:
    if not details:
        return ""
    return f"-{hashlib.sha256(';'.join(details).encode()).hexdigest()[:6]}"


def gpu_folder(job: Job) -> str:
    """The target's name without its form factor."""
    target = next((record.target for record in job.records if record.target), "")
    target = target or str((job.config.get("target") or {}).get("name") or "")
    if target in ("", "auto"):
        product = (job.environment.get("gpu") or {}).get("name")
        target = product.removeprefix("NVIDIA ") if product else "cpu"
    return _file_name(target.lower().removesuffix("_sxm"))


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text)


def replaced(path: Path) -> str:
    """Which finding stands there already: its date, job and commit; empty where none does."""
    try:
        before = json.loads(path.read_text())
    except FileNotFoundError:
        return ""
    except ValueError:
        return "a file that is not JSON"
    parts = [before.get("date"), f"job {before['job']}" if before.get("job") else ""]
    return "the one of " + ", ".join(filter(None, [*parts, short_commit(before.get("commit"))]))
