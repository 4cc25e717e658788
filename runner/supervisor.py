"""Sends cells to a worker process and takes what comes back, whatever happens to the worker.

The worker announces each implementation before each step. When it dies or hangs, the announced
one gets the status with its cause, and the cell runs again without it in a fresh worker. A death
by a signal from outside says nothing of an implementation: it is retried once.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from .death import Death, died, forgotten, no_evidence, skipped
from .inline import InlineWorker
from .process import Around, WorkerProcess
from .records import Cell, Evidence, PlannedCell, Record, Status
from .schema import Experiment
from .spent import Stopwatch, added, part_of
from .starting import Workers

_cell = TypeAdapter(Cell)
_record = TypeAdapter(Record)
_evidence = TypeAdapter(Evidence)


@dataclasses.dataclass(slots=True)
class Progress:
    """What the supervisor tells as it goes; every field may be replaced."""

    step: Callable[[Cell, str, str], None] = lambda cell, implementation, phase: None
    round: Callable[[Cell, int], None] = lambda cell, round_: None
    death: Callable[[Cell, Death], None] = lambda cell, death: None


class Supervisor:
    """Runs the cells of one job. Use as a context: leaving it ends the worker."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        job: str,
        logs: Path,
        start: dict[str, Any],
        environment: dict[str, str],
        inline: bool = False,
        logs_as: str = "worker",
        around: Callable[[int], Around] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._experiment = experiment
        self._job = job
        self._progress = progress or Progress()
        self._workers = Workers(
            logs=logs,
            logs_as=logs_as,
            start=start,
            environment=environment,
            inline=inline,
            around=around,
        )
        self._seconds: dict[str, float] = {}
        self.ranges: list[dict[str, Any]] = []

    @property
    def seconds(self) -> dict[str, float]:
        """Where the time with workers went, by part."""
        return added(self._seconds, self._workers.seconds)

    @property
    def worker_environment(self) -> dict[str, Any]:
        """What the first worker said of its surroundings; empty before it did."""
        return self._workers.environment

    def __enter__(self) -> "Supervisor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the worker and all that it started."""
        self._workers.close()

    def prepare(self) -> None:
        """Has a worker import ahead of its first cell; `prepared` waits for it. See Workers."""
        self._workers.prepare()

    def prepared(self) -> None:
        self._workers.prepared()

    def measure(
        self, planned: PlannedCell, sampling: dict[str, float] | None = None
    ) -> list[Record]:
        """Records of every implementation of a cell, in the plan's order. `sampling` holds what
        differs from the protocol this time, and the number of the process."""
        cell = planned.cell
        pending = list(planned.implementations)
        records: dict[str, Record] = {}
        attempts, retried = 1, False
        while pending:
            outcome = self._ask(cell, "cell", pending, "records", sampling=sampling or {})
            if isinstance(outcome, Death):
                self._progress.death(cell, outcome)
                attempts += 1
                if outcome.outside and not retried:
                    retried = True
                    continue
                blamed = [n for n in pending if n == outcome.implementation] or list(pending)
                for name in blamed:
                    records[name] = self._dead(cell, name, outcome, attempts - 1)
                    pending.remove(name)
                continue
            self.ranges = outcome["ranges"]
            for values in outcome["records"]:
                record = dataclasses.replace(
                    _record.validate_python(values), attempts=attempts, log=self._workers.log_name()
                )
                records[record.implementation] = record
            for name in (name for name in pending if name not in records):
                records[name] = self._dead(cell, name, forgotten(name), attempts)
            break
        skips = [skipped(self._job, self._experiment, cell, skip) for skip in planned.skips]
        return [records[name] for name in planned.implementations] + skips

    @property
    def number(self) -> int:
        """Which of its workers is the last, from 1."""
        return self._workers.number

    def trace(self, cell: Cell, names: Sequence[str], tool: str = "torch") -> list[Evidence]:
        """Evidence of implementations of a cell; one whose trace failed says why. Under a tool
        around the worker it says no more than which calls were made."""
        pending = list(names)
        found: list[Evidence] = []
        while pending:
            outcome = self._ask(cell, "trace", pending, "traced", found, tool=tool)
            if not isinstance(outcome, Death):
                self.ranges = outcome["ranges"]
            seen = {e.implementation for e in found if e.cell_id == cell.id}
            pending = [name for name in pending if name not in seen]
            if pending:
                name, why = pending[0], "the worker sent none"
                if isinstance(outcome, Death):
                    name = outcome.implementation if outcome.implementation in pending else name
                    why = outcome.reason
                found.append(no_evidence(cell, name, why, tool))
                pending.remove(name)
        return found

    def _ask(
        self,
        cell: Cell,
        do: str,
        names: list[str],
        answer: str,
        found: list[Evidence] | None = None,
        **more: Any,
    ) -> dict[str, Any] | Death:
        """Sends one request and waits for its answer, a death, or the end of patience. The
        seconds are the worker's own where it lived to tell them."""
        worker = self._workers.ready()
        heard = Stopwatch()
        message = {"do": do, "cell": _cell.dump_python(cell, mode="json"), **more}
        message["implementations"] = names
        outcome = self._answer(worker, heard, cell, message, answer, found)
        told = outcome.pop("seconds", None) if isinstance(outcome, dict) else None
        self._seconds = added(self._seconds, told or heard.take())
        if isinstance(outcome, Death):
            self.close()
        return outcome

    def _answer(
        self,
        worker: WorkerProcess | InlineWorker,
        heard: Stopwatch,
        cell: Cell,
        message: dict[str, Any],
        answer: str,
        found: list[Evidence] | None,
    ) -> dict[str, Any] | Death:
        protocol = self._experiment.protocol
        announced, phase = "", "start"
        now = time.monotonic()
        cell_end, step_end = now + protocol.cell_limit_s, now + protocol.step_limit_s
        try:
            worker.channel.send(message)
        except OSError:
            return died(worker, announced, phase)
        while True:
            patience = min(cell_end, step_end) - time.monotonic()
            if patience <= 0:
                limit = "cell_limit_s" if cell_end <= step_end else "step_limit_s"
                seconds = getattr(protocol, limit)
                return Death(
                    implementation=announced,
                    phase=phase,
                    status=Status.timed_out,
                    reason=f"still in {phase} after protocol.{limit}={seconds:g} s",
                )
            if not worker.channel.waiting and not worker.wait(patience):
                continue
            said = worker.channel.receive() if worker.heard() else None
            if said is None:
                return died(worker, announced, phase)
            match said["say"]:
                case "step":
                    announced, phase = said["implementation"], said["phase"]
                    heard.enter(part_of(phase))
                    step_end = time.monotonic() + protocol.step_limit_s
                    self._progress.step(cell, announced, phase)
                case "round":
                    self._progress.round(cell, said["round"])
                case "evidence" if found is not None:
                    found.append(_evidence.validate_python(said["evidence"]))
                case "dying":
                    return Death(
                        implementation=said["implementation"],
                        phase=phase,
                        status=Status(said["status"]),
                        reason=said["reason"],
                        trace=said["traceback"],
                    )
                case said_ if said_ == answer:
                    return said

    def _dead(self, cell: Cell, name: str, death: Death, attempts: int) -> Record:
        record = death.record(self._job, self._experiment, cell, name)
        return dataclasses.replace(record, attempts=attempts, log=self._workers.log_name())


def import_together(*supervisors: Supervisor) -> None:
    """Has a worker of each import, all at once, and comes back when all are done: before anything
    is timed, the copy ceiling too. Whoever is asked for a cell later sleeps until then."""
    for supervisor in supervisors:
        supervisor.prepare()
    for supervisor in supervisors:
        supervisor.prepared()
