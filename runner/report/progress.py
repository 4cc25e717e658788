"""What a person sees while a job works: a line a finished cell, and what is being done now."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.status import Status as Spinner

from ..records import FAILED, Cell, Job, PlannedCell, Record, Status
from ..supervisor import Death, Progress
from .text import counted, number


class Reporter:
    """Prints the progress of one job. On a terminal the current step stands in a live line."""

    def __init__(self, console: Console, job: Job, cells: int, *, quiet: bool = False) -> None:
        self._console = console
        self._cells = cells
        protocol = job.config.get("protocol") or {}
        mode = job.config.get("mode", "run")
        self._processes = int(protocol.get("processes", 1)) if mode == "run" else 1
        self._done = 0
        self._started = time.monotonic()
        self._quiet = quiet
        self._spinner: Spinner | None = None
        self._shown = ("", "")
        if not quiet:
            held = counted(cells // self._processes, "cell")
            if self._processes > 1:
                held += f", {self._processes} processes"
            console.print(
                f"{job.id}: {job.experiment}, {held}, in {job.folder}",
                highlight=False,
                soft_wrap=True,
                markup=False,
            )
            if console.is_terminal:
                self._spinner = console.status("starting the worker")
                self._spinner.start()

    @property
    def progress(self) -> Progress:
        """The hooks that a supervisor calls."""
        return Progress(step=self._step, round=self._round, death=self._death)

    def cell_done(self, planned: PlannedCell, records: Sequence[Record], again: bool) -> None:
        """One line for a finished cell: its implementations with latency or status. A cell that
        was measured `again` from what was left of the budget is none of those to come."""
        self._done += not again
        if self._quiet:
            return
        entries = "  ".join(_entry(record) for record in records)
        left = "" if again else self._left()
        place = "again" if again else f"{self._done}/{self._cells}"
        process = max((record.process for record in records), default=0)
        if process:
            place = f"process {process}/{self._processes}, {place}"
        self._console.print(
            f"[{place}] {planned.cell.workload.label}: {entries}{left}",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )

        for record in records:
            if record.status in FAILED and record.phase != "plan":
                self._console.print(
                    f"  {record.implementation} {record.status} in {record.phase}: {record.reason}",
                    highlight=False,
                    soft_wrap=True,
                    markup=False,
                )

    def close(self) -> None:
        """Removes the live line."""
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def _left(self) -> str:
        remaining = self._cells - self._done
        if not remaining:
            return ""
        seconds = (time.monotonic() - self._started) / self._done * remaining
        return f"  (about {seconds:.0f} s left)" if seconds >= 1 else ""

    def _step(self, cell: Cell, implementation: str, phase: str) -> None:
        self._shown = (implementation, phase)
        self._show(cell, "")

    def _round(self, cell: Cell, round_: int) -> None:
        self._show(cell, f", round {round_ + 1}")

    def _show(self, cell: Cell, more: str) -> None:
        if self._spinner is not None:
            implementation, phase = self._shown
            self._spinner.update(
                f"[{self._done + 1}/{self._cells}] {cell.workload.label}: "
                f"{phase} {implementation}{more}"
            )

    def _death(self, cell: Cell, death: Death) -> None:
        if not self._quiet:
            self._console.print(
                f"  {cell.workload.label}: worker lost at {death.implementation} in "
                f"{death.phase}: {death.reason}",
                highlight=False,
                soft_wrap=True,
                markup=False,
            )


def _entry(record: Record) -> str:
    if record.timing is not None and record.status is Status.ok:
        return f"{record.implementation} {number(record.timing.latency_us.median)} us"
    return f"{record.implementation} {record.status}"
