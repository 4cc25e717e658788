"""What a measuring process is asked, and the file in which it answers: rows that are never lost."""

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..records import Interval
from ..schema import Device, Experiment
from ..statistics import median_interval

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One section of a calibration, on one kind of device."""

    section: str
    kind: Device
    experiments: tuple[Experiment, ...]
    python_path: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def paths(self) -> dict[str, str]:
        """The dotted paths of foreign instruments, by name; an absent one is not measured."""
        return self.options.get("paths") or {}

    @property
    def gpu(self) -> bool:
        return self.kind is Device.cuda


def read(path: Path) -> Request:
    """A request from its file. Raises pydantic's ValidationError, KeyError or ValueError."""
    values = json.loads(path.read_text())
    adapter = TypeAdapter(Experiment)
    return Request(
        section=values["section"],
        kind=Device(values["kind"]),
        experiments=tuple(adapter.validate_python(each) for each in values["experiments"]),
        python_path=tuple(values.get("python_path") or ()),
        options=values.get("options") or {},
    )


class Report:
    """The result's file: written anew, in one step, after every row."""

    def __init__(self, path: Path, section: str) -> None:
        self._path = path
        self._started = time.perf_counter()
        self._values: dict[str, Any] = {
            "section": section,
            "environment": {},
            "seconds": 0.0,
            "rows": [],
            "done": False,
        }

    def environment(self, found: dict[str, Any]) -> None:
        """What this process runs on: gpu, host, software."""
        self._values["environment"] = {key: found[key] for key in ("gpu", "host", "software")}
        self._write()

    def add(self, row: Row) -> None:
        """One more row."""
        self._values["rows"].append(row)
        self._write()

    def replace(self, place: int, row: Row) -> None:
        """A row that more has been measured of."""
        self._values["rows"][place] = row
        self._write()

    def put(self, key: str, value: Any) -> None:
        """Something beside the rows."""
        self._values[key] = value
        self._write()

    def finish(self, error: str = "") -> None:
        """The end: `done`, or the error that ended it."""
        self._values["done"] = not error
        if error:
            self._values["error"] = error
        self._write()

    def _write(self) -> None:
        self._values["seconds"] = round(time.perf_counter() - self._started, 3)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self._values, indent=1))
        os.replace(new, self._path)  # noqa: PTH105 - a reader sees the old file or the new one


def spread(interval: Interval) -> dict[str, float]:
    """An interval as it stands in a row."""
    return {
        "median": short(interval.median),
        "low": short(interval.low),
        "high": short(interval.high),
    }


def over(values: list[float]) -> dict[str, float]:
    """The median of values with its interval, as it stands in a row."""
    return spread(median_interval(values))


def short(value: float) -> float:
    """Six digits are more than any clock has."""
    return float(f"{value:.6g}")
