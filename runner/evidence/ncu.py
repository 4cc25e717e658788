"""The pass under Nsight Compute: counters of every kernel of a call, summed to one call.

Kernels run one at a time, so that nothing here is a time to publish. Clocks and caches are left as
they are; calls rotate through cold inputs as the timed ones do.
"""

import json
import re
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..nsight import ncu
from ..nsight.ncu import Launch as Counted
from ..nsight.tools import NsightError, Tool, allowed
from ..process import Around
from ..records import Evidence, Launch
from ..worker.dispatch import classify
from ..worker.ranges import DOMAIN
from .nsys import PHASE, Who

PATIENCE_S = 120.0
"""How long ncu may take to end after the worker has."""

DRAM_READ = "dram__bytes_read.sum"
DRAM_WRITTEN = "dram__bytes_write.sum"
L2 = "lts__t_bytes.sum"
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
DRAM_SHARE = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
REGISTERS = "launch__registers_per_thread"
WAVES = "launch__waves_per_multiprocessor"

METRICS = (
    *(ncu.DURATION, DRAM_READ, DRAM_WRITTEN, L2),
    *(ACHIEVED, THEORETICAL, DRAM_SHARE, REGISTERS, WAVES),
)

_SUMS = {"dram_bytes_read": DRAM_READ, "dram_bytes_written": DRAM_WRITTEN, "l2_bytes": L2}
_SHARES = {
    "achieved_occupancy_pct": ACHIEVED,
    "theoretical_occupancy_pct": THEORETICAL,
    "dram_throughput_pct": DRAM_SHARE,
}

_PAYLOAD = re.compile(rf'"{DOMAIN}:{PHASE}:Int64:(\d+):')


@dataclass(frozen=True, kw_only=True, slots=True)
class NcuPass:
    """Nsight Compute around the workers of one pass; `folder` keeps its tables."""

    tool: Tool
    folder: Path
    name: str = "ncu"

    def report(self, number: int) -> Path:
        """The table of the pass's n-th worker, as ncu prints it."""
        return self.folder / f"ncu-{number:02d}.csv"

    def around(self, number: int) -> Around:
        """What the n-th worker runs under."""
        self.folder.mkdir(parents=True, exist_ok=True)
        include = f"{DOMAIN}@{PHASE}/"
        words = ncu.profile_words(self.tool, self.report(number), include, METRICS, ())
        return Around(words=tuple(words), patience_s=PATIENCE_S, seen=allowed)

    def evidence(
        self, number: int, table: Sequence[dict[str, Any]], said: Sequence[Evidence]
    ) -> list[Evidence]:
        """What the n-th worker's table holds of the calls that the worker said it made; evidence
        that cannot be had says why. The launches stand in a JSON file beside the table."""
        report = self.report(number)
        command = shlex.join(self.around(number).words)
        said = [replace(e, version=self.tool.version or "", command=command) for e in said]
        try:
            text = report.read_text(errors="replace") if report.is_file() else ""
            launches = by_subject(ncu.read(text), table)
        except NsightError as error:
            return [replace(e, reason=e.reason or f"no evidence: {error}") for e in said]
        rows = [
            {"cell_id": who[0], "implementation": who[1], "name": each.name, **each.metrics}
            for who, of in launches.items()
            for each in of
        ]
        report.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
        place = f"{self.folder.name}/{report.name}"
        return [
            _seen(replace(e, report=place), launches.get((e.cell_id, e.implementation), []))
            for e in said
        ]


def by_subject(
    launches: Sequence[Counted], table: Sequence[dict[str, Any]]
) -> dict[Who, list[Counted]]:
    """Launches by whose they are, in their order: by the payload of the innermost open range.

    Raises NsightError where ncu told the range of none: by their order alone nobody is named.
    """
    meaning = {entry["index"]: (entry["cell"], entry["implementation"]) for entry in table}
    found: dict[Who, list[Counted]] = {}
    for each in launches:
        match = _PAYLOAD.search(each.nvtx)
        if match is not None and (who := meaning.get(int(match.group(1)))) is not None:
            found.setdefault(who, []).append(each)
    if launches and not found:
        raise NsightError("ncu tells of no launch in which range it was made")
    return found


def _seen(said: Evidence, launches: Sequence[Counted]) -> Evidence:
    if said.reason:
        return said
    if not launches:
        return replace(said, launch_count=0, reason="ncu saw no kernel in any of the calls")
    try:
        per_call = ncu.split(launches, said.calls or 0)
    except NsightError as error:
        return replace(said, reason=f"no evidence: {error}")
    chosen = sorted(per_call, key=_duration)[len(per_call) // 2]
    return replace(
        said,
        launches=tuple(_launch(each) for each in chosen),
        launch_count=len(chosen),
        metrics=metrics(chosen),
    )


def metrics(launches: Sequence[Counted]) -> dict[str, float]:
    """One call: durations and bytes are summed; shares are means weighted by duration; registers
    and waves are the largest. What ncu did not give is not there."""
    weights = [max(each.us(), 1e-9) for each in launches]
    found: dict[str, float] = {"duration_us": sum(weights)}
    for name, key in _SUMS.items():
        values = [each.metrics.get(key) for each in launches]
        if None not in values:
            found[name] = sum(v for v in values if v is not None)
    for name, key in _SHARES.items():
        values = [each.metrics.get(key) for each in launches]
        if None not in values:
            shares = [v for v in values if v is not None]
            found[name] = statistics.fmean(shares, weights)
    for name, key in (("registers", REGISTERS), ("waves", WAVES)):
        values = [each.metrics[key] for each in launches if key in each.metrics]
        if values:
            found[name] = max(values)
    return found


def _duration(launches: Sequence[Counted]) -> float:
    return sum(each.us() for each in launches)


def _launch(each: Counted) -> Launch:
    family, kind = classify(each.name)
    registers: Mapping[str, float] = each.metrics
    return Launch(
        name=each.name,
        kind=kind,
        family=family,
        duration_us=each.us(),
        start_us=0.0,
        registers=int(registers[REGISTERS]) if REGISTERS in registers else None,
    )
