"""A command under Nsight Compute: counters of every kernel launched in a range, read from its CSV.

Clocks and caches are left as they are, which resembles a plain run. Kernels run one at a time all
the same: a command that holds the stream while it launches would wait for ever.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..limited import run_limited
from .tools import NsightError, Tool, allowed

DURATION = "gpu__time_duration.sum"
"""The time of one kernel on the device."""

_MICROSECONDS = {
    "ns": 1e-3,
    "nsecond": 1e-3,
    "us": 1.0,
    "usecond": 1.0,
    "ms": 1e3,
    "msecond": 1e3,
    "s": 1e6,
    "second": 1e6,
}

_FAULTS = {
    "ERR_NVGPUCTRPERM": (
        "the driver gives GPU counters to the administrator only (ERR_NVGPUCTRPERM): load it with "
        "NVreg_RestrictProfilingToAdminUsers=0"
    ),
    "failed to connect to the CUDA driver": "ncu finds no CUDA driver",
    "No kernels were profiled": "no kernel was launched in the range",
}
"""What ncu prints where it cannot measure, and what it means."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One kernel launch: its metrics in ncu's units, and the text of its open NVTX ranges."""

    name: str
    metrics: dict[str, float]
    units: dict[str, str]
    nvtx: str = ""

    def us(self, metric: str = DURATION) -> float:
        """A time in us. Raises NsightError where the launch has no such metric or unit."""
        unit = self.units.get(metric, "")
        if metric not in self.metrics or unit not in _MICROSECONDS:
            raise NsightError(f"ncu gave no {metric} in a unit of time ({unit or 'none'})")
        return self.metrics[metric] * _MICROSECONDS[unit]


def profile_words(
    tool: Tool, csv_file: Path, include: str, metrics: Sequence[str], words: Sequence[str]
) -> list[str]:
    """The command line; `include` is `DOMAIN@RANGE/`, the slash for push/pop ranges."""
    return [
        *(str(tool.path), "--nvtx", "--nvtx-include", include),
        *("--clock-control", "none", "--cache-control", "none", "--replay-mode", "kernel"),
        *("--metrics", ",".join(metrics)),
        *("--csv", "--page", "raw", "--print-units", "base", "--log-file", str(csv_file)),
        *words,
    ]


def profile(
    tool: Tool,
    words: Sequence[str],
    *,
    csv_file: Path,
    include: str,
    environment: Mapping[str, str],
    limit_s: float,
    metrics: Sequence[str] = (DURATION,),
) -> list[Launch]:
    """Every launch in the ranges, in the order of launching; the CSV file is kept.

    Raises NsightError where counters are refused, no driver or no such kernel is there, or the
    command failed.
    """
    csv_file.unlink(missing_ok=True)
    done = run_limited(
        profile_words(tool, csv_file, include, metrics, words),
        environment=allowed(environment),
        log=csv_file.with_suffix(".ncu.log"),
        limit_s=limit_s,
    )
    text = csv_file.read_text(errors="replace") if csv_file.exists() else ""
    return read(text, done.log.read_text(errors="replace"), done.reason, done.log.name)


def read(text: str, printed: str = "", failed: str = "", log: str = "") -> list[Launch]:
    """The launches of a raw CSV page; `printed` is what else ncu said, `failed` how it ended.

    Raises NsightError with the meaning of what ncu could not do, or where it measured nothing.
    """
    for sign, meaning in _FAULTS.items():
        if sign in text + printed:
            raise NsightError(meaning)
    where = f"; see {log}" if log else ""
    if failed:
        raise NsightError(f"the command under ncu failed: {failed}{where}")
    found = parse(text)
    if not found:
        raise NsightError(f"ncu ended well and measured no kernel{where}")
    return found


def parse(text: str) -> list[Launch]:
    """The launches of a raw CSV page: a header, a line of units, a line a launch.

    Lines that begin with `==` are ncu's own. Raises NsightError where it is no such page: it ends
    after its header, columns or units are missing, or it is no CSV.
    """
    lines = [
        line
        for line in text.splitlines(keepends=True)
        if line.strip() and not line.startswith("==")
    ]
    while lines and '"Kernel Name"' not in lines[0]:  # the program's own output
        del lines[0]
    if not lines:
        return []
    heads, units, rows = _table(lines)
    metrics = {place: head for place, head in enumerate(heads) if "__" in head}
    kernel = heads.index("Kernel Name")
    ranges = [place for place, head in enumerate(heads) if "Range" in head]
    launches = []
    for row in rows:
        if len(row) != len(heads):
            continue  # cut short, or a line that the program printed
        values = {head: _number(row[place]) for place, head in metrics.items()}
        launches.append(
            Launch(
                name=row[kernel],
                metrics={head: value for head, value in values.items() if value is not None},
                units={head: units[place] for place, head in metrics.items()},
                nvtx=" ".join(row[place] for place in ranges if row[place]),
            )
        )
    return launches


def _table(lines: Sequence[str]) -> tuple[list[str], list[str], list[list[str]]]:
    """Header, units and rows. Raises NsightError where they are not there."""
    try:
        heads, *rest = csv.reader(lines)
    except csv.Error as error:
        raise NsightError(f"what ncu wrote is no CSV that can be read: {error}") from error
    if "Kernel Name" not in heads:
        raise NsightError(f"the header of ncu's CSV has no column Kernel Name: {lines[0][:80]!r}")
    if not rest:
        raise NsightError("ncu's CSV ends after its header: it holds no units and no launch")
    units, *rows = rest
    if len(units) != len(heads):
        raise NsightError(
            f"ncu's line of units holds {len(units)} fields, its header {len(heads)}: "
            "no metric has a unit"
        )
    return heads, units, rows


def _number(text: str) -> float | None:
    """`1,234.5` as a number; None for `n/a`, `nan` and the like."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def split(launches: Sequence[Launch], calls: int) -> list[list[Launch]]:
    """The launches of one subject call by call, in their order: each call launches as many.

    Raises NsightError where they do not divide by the calls.
    """
    if calls < 1 or len(launches) % calls:
        raise NsightError(f"{len(launches)} launches do not divide by {calls} calls")
    count = len(launches) // calls
    return [list(launches[k * count : (k + 1) * count]) for k in range(calls)]
