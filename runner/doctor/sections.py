"""The sections of `klab doctor --measure`: each measured in a fresh process, heard by its files."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..limited import run_limited
from ..question import vocabulary
from ..schema import Device, Experiment

Row = dict[str, Any]
Progress = Callable[[str, int], object]
"""Told of a section's name and how many of its subjects are measured."""

LIMIT_S = {"ladder": 1800.0, "calls": 900.0, "cold": 900.0, "pairs": 1800.0, "repeat": 600.0}
"""Seconds after which a section's process is ended; what it had measured is kept."""

_MODULE = "kernel_lab.runner.calibration.main"

NUMBERS = {"pairs": 200, "repeats": 10}
"""How many pairs and how many fresh processes, where nobody says."""

PLACE = ("target", "device")
"""Settings that say where, as `klab run` has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """`conf/doctor.yaml`: foreign instruments, and the experiments of which a section measures the
    cells."""

    paths: dict[str, str]
    experiments: dict[str, list[str]]


def words() -> Words:
    """What is measured, as conf/ says it."""
    return Words(**vocabulary.load_yaml((vocabulary.ROOT / "conf" / "doctor.yaml").read_text()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """What came of one: its rows, and why it is no more; `ranges` is there for `calls` only."""

    name: str
    rows: list[Row] = field(default_factory=list)
    ranges: list[Row] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where measuring happens: the folder for its files, the device, the process's environment.

    `paths`: instruments of others, by dotted path; only the measuring process imports them.
    """

    folder: Path
    kind: Device
    environment: Mapping[str, str]
    paths: Mapping[str, str]
    python_path: tuple[str, ...] = ()

    def words(
        self, name: str, section: str, experiments: Sequence[Experiment], options: dict[str, Any]
    ) -> list[str]:
        """Writes the request `NAME.request.json`; the command that answers it."""
        request, result = self.file(name, "request.json"), self.file(name, "result.json")
        dump = TypeAdapter(list[Experiment]).dump_python
        values = {
            "section": section,
            "kind": self.kind.value,
            "experiments": dump(list(experiments), mode="json"),
            "python_path": list(self.python_path),
            "options": {"paths": dict(self.paths), **options},
        }
        result.unlink(missing_ok=True)
        request.write_text(json.dumps(values, indent=1) + "\n")
        return [sys.executable, "-m", _MODULE, str(request), str(result)]

    def file(self, name: str, suffix: str) -> Path:
        return self.folder / f"{name}.{suffix}"

    def result(self, name: str, reason: str = "") -> Section:
        """What the process left. A result that is not whole has a reason, given or its own."""
        try:
            values = json.loads(self.file(name, "result.json").read_text())
        except FileNotFoundError:
            return Section(name=name, reason=reason or "it left no result")
        if not values.get("done") and not reason:
            reason = "it ended before it was done"
        if error := (values.get("error") or "").strip():
            reason = f"{error.splitlines()[-1].strip()[:300]}; see {name}.result.json"
        return Section(
            name=name,
            rows=values.get("rows") or [],
            ranges=values.get("ranges") or [],
            environment=values.get("environment") or {},
            seconds=values.get("seconds") or 0.0,
            reason=reason,
        )


def measure_section(
    place: Place,
    name: str,
    section: str,
    experiments: Sequence[Experiment],
    options: dict[str, Any],
    progress: Progress,
) -> Section:
    """Runs one section's process to its end or its limit. Interrupts pass through."""
    command = place.words(name, section, experiments, options)
    result = place.file(name, "result.json")
    done = run_limited(
        command,
        environment=place.environment,
        log=place.file(name, "log"),
        limit_s=LIMIT_S[section],
        tick=lambda: progress(name, _rows(result)),
    )
    reason = f"{done.reason}; see {done.log.name}" if done.reason else ""
    return place.result(name, reason)


def _rows(result: Path) -> int:
    with suppress(OSError, ValueError):
        return len(json.loads(result.read_text())["rows"])
    return 0


def gathered(runs: Sequence[Section]) -> Section:
    """The repeats as one section: every row of every process."""
    reasons = [f"{run.name}: {run.reason}" for run in runs if run.reason]
    return Section(
        name="repeats",
        rows=[row for run in runs for row in run.rows],
        environment=next((run.environment for run in runs if run.environment), {}),
        seconds=sum(run.seconds for run in runs),
        reason="; ".join(reasons[:2]) + (f"; {len(reasons) - 2} more" if len(reasons) > 2 else ""),
    )


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment; output comes at once, so that the log holds a death's cause."""
    return {**base, "PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1")}
