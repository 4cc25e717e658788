"""The finding of a `klab doctor --measure`: `<findings>/<gpu>/doctor.json`, strict JSON."""

import json
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..judge.instruments import SECTIONS
from .findings import save, strict

FILE = "doctor.json"

Values = dict[str, Any]

_KEPT = {
    "gpu": ("name", "capability", "driver", "cuda_runtime", "sms", "l2_bytes", "memory_bytes"),
    "host": ("processor",),
    "software": ("python", "torch", "triton"),
}
"""What a reader must know to compare; none of the host's names and paths."""


def is_doctor(values: Values) -> bool:
    """Whether a finding is of instruments, not of an experiment's records."""
    return "checks" in values


def unasked(values: Values) -> list[str]:
    """The sections that were not measured."""
    return [name for name in SECTIONS if name not in values["rows"]]


def read(folder: Path) -> Values:
    """What `klab doctor --measure` left in a folder. Raises ConfigError where it is not whole."""
    path = folder / FILE
    try:
        values: Values = json.loads(path.read_text())
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    broken = [name for name, section in values["sections"].items() if section["reason"]]
    if broken:
        raise ConfigError(f"{path}: {', '.join(broken)} did not end well: no whole answer")
    if lacking := unasked(values):
        raise ConfigError(f"{path}: without {', '.join(lacking)}: a finding is of all sections")
    return values


def write_finding(folder: Path, findings: Path) -> Path:
    """Writes the finding of a doctor's folder, in place of an earlier one. Its path."""
    values = read(folder)
    return save(finding(values), findings / place(values))


def place(values: Values) -> Path:
    """Where the finding of a doctor stands below the findings folder."""
    return Path(values["target"].removesuffix("_sxm")) / FILE


def finding(values: Values) -> Values:
    """Rows, checks, and what they stand on; no host names and no paths."""
    environment = values["environment"]
    kept = {
        part: {key: found[key] for key in keys if found.get(key) is not None}
        for part, keys in _KEPT.items()
        if (found := environment.get(part))
    }
    taken = ("command", "kind", "target", "settings", "rows", "notes", "checks", "commit")
    return strict(
        {
            "date": values["date"][:10],
            **{key: values[key] for key in taken},
            "environment": kept,
        }
    )
