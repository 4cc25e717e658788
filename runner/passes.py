"""The cells of a job through its worker processes, each process with its share of the budget.

Every process measures all cells once, one process after the other, so that what a process draws
once is drawn anew for each. With a budget the cells first get the fewest rounds; then the widest
are measured a second time. All that is measured is kept as it comes; of a cell measured twice the
line that counts comes last.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

from .judge.verdicts import compare
from .merging import merged
from .records import FAILED, PlannedCell, Record, Status, Timing
from .schema import Experiment, Mode
from .statistics import half_width
from .supervisor import Supervisor

Keep = Callable[[PlannedCell, list[Record], bool], list[Record]]
"""Writes the records of a cell and gives them back as written; the flag: measured before."""


def processes(experiment: Experiment) -> int:
    """How often each cell is measured: values are checked once."""
    return experiment.protocol.processes if experiment.mode is Mode.run else 1


class Passes:
    """Measures the cells. `run` returns one record an implementation and cell, merged."""

    def __init__(
        self,
        experiment: Experiment,
        cells: Sequence[PlannedCell],
        supervisor: Supervisor,
        keep: Keep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._experiment = experiment
        self._cells = cells
        self._supervisor = supervisor
        self._keep = keep
        self._clock = clock
        self._count = processes(experiment)
        self._budget = experiment.protocol.budget_s if experiment.mode is Mode.run else 0.0
        self._found: dict[tuple[str, str], list[Record]] = {}

    def run(self) -> list[Record]:
        for process in range(1, self._count + 1):
            if process > 1:
                self._supervisor.close()  # the next cell finds none, and starts a fresh one
            self._one(process)
        return [self._merged(of) for of in self._found.values()]

    def _one(self, process: int) -> None:
        """All cells once in this process, and the widest again while the budget lasts."""
        began = self._clock()
        measured: list[tuple[PlannedCell, list[Record]]] = []
        for cell in self._cells:
            planned = cell if process == 1 else self._worth(cell)
            if not planned.implementations and not planned.skips:
                continue
            first = self._experiment.protocol.min_rounds
            limits: dict[str, float] = {"max_rounds": first} if self._budget else {}
            records = self._measure(planned, process, limits)
            if self._budget:
                text = f"the first {first} rounds, under protocol.budget_s={self._budget:g}"
                records = [_stopped(record, text) for record in records]
            measured.append((planned, self._keep(planned, records, False)))
        if self._budget:
            measured = self._again(process, measured, began + self._budget / self._count)
        for _, records in measured:
            for record in records:
                self._found.setdefault((record.cell.id, record.implementation), []).append(record)

    def _worth(self, cell: PlannedCell) -> PlannedCell:
        """Who is measured in a further process: those with a time, and those that were lost."""
        settled = {
            name: self._merged(self._found[cell.cell.id, name]).status
            for name in cell.implementations
        }
        wanted = (Status.ok, Status.noisy, Status.lost)
        names = tuple(name for name in cell.implementations if settled[name] in wanted)
        return dataclasses.replace(cell, implementations=names, skips=())

    def _merged(self, records: list[Record]) -> Record:
        if self._count == 1:
            return records[-1]
        return merged(records, self._experiment.protocol.confidence)

    def _measure(
        self, planned: PlannedCell, process: int, limits: dict[str, float]
    ) -> list[Record]:
        records = self._supervisor.measure(planned, {**limits, "process": process})
        number = process if self._count > 1 else 0
        return [dataclasses.replace(record, process=number) for record in records]

    def _again(
        self, process: int, measured: list[tuple[PlannedCell, list[Record]]], end: float
    ) -> list[tuple[PlannedCell, list[Record]]]:
        """Second measurements, widest first, until `end`; what counts of each cell."""
        protocol = self._experiment.protocol
        widths = {place: width(of, self._experiment) for place, (_, of) in enumerate(measured)}
        counts = list(measured)
        for place in sorted(widths, key=lambda place: -widths[place]):
            left = end - self._clock()
            if left <= 0 or widths[place] <= protocol.precision:
                break
            planned, earlier = measured[place]
            names = tuple(record.implementation for record in earlier if record.timing is not None)
            again = dataclasses.replace(planned, implementations=names, skips=())
            limits = {
                "max_rounds": protocol.max_rounds,
                "cell_budget_s": min(left, protocol.cell_budget_s),
            }
            kept = {record.implementation: record for record in earlier}
            records = [
                dataclasses.replace(
                    _stopped(
                        record,
                        f"second measurement, the first left {widths[place]:.2%} either way",
                        more=True,
                    ),
                    attempts=record.attempts + kept[record.implementation].attempts,
                )
                for record in self._measure(again, process, limits)
            ]
            later = self._keep(again, records, True)
            chosen = better(earlier, later)
            if chosen is not later:
                self._keep(again, chosen, True)  # the later line counts
            kept |= {record.implementation: record for record in chosen}
            counts[place] = (planned, list(kept.values()))
        return counts


def _stopped(record: Record, text: str, *, more: bool = False) -> Record:
    if record.timing is None:
        return record
    stopped = f"{text}: {record.timing.stopped}" if more else text
    return dataclasses.replace(record, timing=dataclasses.replace(record.timing, stopped=stopped))


def width(records: Sequence[Record], experiment: Experiment) -> float:
    """The widest half-width of the cell: of a log-ratio against the baseline, or of the log times
    where nothing pairs; 0 where nothing was timed."""
    ratios = [
        math.log(c.speedup.high / c.speedup.low) / 2 for c in compare(list(records), experiment)
    ]
    if ratios:
        return max(ratios)
    times = [r.timing.rounds_us for r in records if r.timing and len(r.timing.rounds_us) > 1]
    confidence = experiment.protocol.confidence
    return max((half_width([math.log(v) for v in us], confidence) for us in times), default=0.0)


def better(earlier: list[Record], later: list[Record]) -> list[Record]:
    """Which measurement of a cell counts, whole, since its rounds pair within it: the later one
    where something failed in it or it holds more rounds, the earlier one where the later is
    shorter or lost somebody."""
    before = {record.implementation: record for record in earlier}
    if any(r.status in FAILED - {Status.lost, Status.invalid} for r in later):
        return later
    longer = all(
        r.timing is not None and len(r.timing.rounds_us) > _rounds(before[r.implementation].timing)
        for r in later
    )
    if longer:
        return later
    note = "measured a second time, which gave no more rounds"
    if lost := next((r for r in later if r.status is Status.lost), None):
        note = f"measured a second time, which lost {lost.implementation}: {lost.reason}"
    chosen = []
    for record in (before[r.implementation] for r in later):
        assert record.timing is not None
        timing = dataclasses.replace(record.timing, notes=(*record.timing.notes, note))
        chosen.append(dataclasses.replace(record, timing=timing, attempts=record.attempts + 1))
    return chosen


def _rounds(timing: Timing | None) -> int:
    return len(timing.rounds_us) if timing else 0
