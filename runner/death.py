"""How a worker ended in the middle of a cell, what that says of the one it was at, and the
records that are written in a worker's stead.
"""

import signal
from dataclasses import dataclass

from .inline import InlineWorker
from .process import FROM_OUTSIDE, WorkerProcess
from .records import Cell, Evidence, Record, Skip, Status
from .schema import Experiment


@dataclass(frozen=True, kw_only=True, slots=True)
class Death:
    """The implementation that was announced, the step, and the status it gets."""

    implementation: str
    phase: str
    status: Status
    reason: str
    outside: bool = False
    trace: str = ""

    def record(self, job: str, experiment: Experiment, cell: Cell, name: str) -> Record:
        """The record of an implementation that it cost."""
        about = "" if self.implementation in (name, "") else f"while at {self.implementation}: "
        return Record(
            job=job,
            experiment=experiment.experiment_name,
            cell=cell,
            implementation=name,
            status=self.status,
            reason=about + self.reason,
            phase=self.phase,
            target=experiment.target.name,
            traceback=self.trace,
        )


def forgotten(name: str) -> Death:
    """A worker that lived, and said nothing of an implementation."""
    reason = "the worker sent no record of it"
    return Death(implementation=name, phase="", status=Status.lost, reason=reason)


def no_evidence(cell: Cell, name: str, why: str, tool: str) -> Evidence:
    """What stands in place of a trace that failed."""
    reason = f"no evidence: {why}"
    return Evidence(tool=tool, cell_id=cell.id, implementation=name, reason=reason)


def skipped(job: str, experiment: Experiment, cell: Cell, skip: Skip) -> Record:
    """The record of an implementation that the plan left out."""
    return Record(
        job=job,
        experiment=experiment.experiment_name,
        cell=cell,
        implementation=skip.implementation,
        status=skip.status,
        reason=skip.reason,
        phase="plan",
        target=experiment.target.name,
    )


def died(worker: WorkerProcess | InlineWorker, announced: str, phase: str) -> Death:
    """Reads the exit code and the last words of a worker that is gone."""
    code = worker.exit_code(patience_s=5.0)
    last = worker.last_line()
    words = f": {last}" if last else ""
    if code is not None and code < 0:
        outside = -code in FROM_OUTSIDE
        return Death(
            implementation=announced,
            phase=phase,
            status=Status.lost if outside else Status.crashed,
            reason=f"the worker was ended by {_name(-code)}{words}",
            outside=outside,
        )
    how = "closed its line" if code is None else f"exited with code {code}"
    return Death(
        implementation=announced,
        phase=phase,
        status=Status.crashed,
        reason=f"the worker {how}{words}",
    )


def _name(number: int) -> str:
    """`SIGSEGV`; `signal 37` for one without a name, as most real-time signals are."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
