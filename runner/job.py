"""One job from plan to verdicts: the order of passes, and what is written when.

Timing first, cell by cell, each flushed to `records.jsonl` before the next starts; then the
evidence passes, each in a worker of its own, so that no profiler is ever near a published time;
then the verdicts. Sinks (table, plots, MLflow) are made from the folder afterwards.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from pydantic import TypeAdapter

from .clock_lock import clock_rule
from .device import Gpu, crowded
from .environment import worker_environment
from .evidence.gather import PROFILER, evidence_of
from .folder import JobFolder, finished, read_job
from .interrupts import Interrupts
from .judge.stages import mismatch
from .judge.verdicts import judge
from .passes import Passes
from .process import Around
from .provenance import code_state, signature, source_hash
from .question.plan import Plan
from .records import (
    FAILED,
    Evidence,
    Job,
    JobStatus,
    PlannedCell,
    Record,
    Status,
)
from .repro import repro
from .schema import Device, Experiment, Mode, WorkerMode
from .spent import added, whole
from .supervisor import Progress, Supervisor, import_together
from .traced import tools, traceable

CellDone = Callable[[PlannedCell, Sequence[Record], bool], None]
"""Told of a cell's records; the flag: it was measured before in this process."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One job as the command line asks for it."""

    id: str
    experiment: Experiment
    gpu: Gpu | None
    plan: Plan
    overrides: tuple[str, ...]
    command: str
    config_dirs: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()
    sweep_id: str | None = None


def describe(request: Request, folder: str) -> Job:
    """The job as it starts: status running, no records yet."""
    config = TypeAdapter(Experiment).dump_python(request.experiment, mode="json")
    source = source_hash(request.experiment.kernel.module, request.python_path)
    return Job(
        id=request.id,
        folder=folder,
        signature=signature(config, source, request.gpu.name if request.gpu else "cpu"),
        experiment=request.experiment.experiment_name,
        kernel=request.experiment.kernel.name,
        question=request.experiment.question,
        command=request.command,
        started=_now(),
        sweep_id=request.sweep_id,
        overrides=request.overrides,
        config=config,
        environment={"code": {**code_state(), "kernel_source": source}},
    )


class JobRun:
    """Takes one job through its passes. `run` always leaves a folder that sinks can read."""

    def __init__(
        self,
        request: Request,
        job: Job,
        folder: JobFolder,
        progress: Progress,
        cell_done: CellDone = lambda cell, records, again: None,
        *,
        interrupts: Interrupts | None = None,
    ) -> None:
        self._request = request
        self._job = job
        self._folder = folder
        self._progress = progress
        self._cell_done = cell_done
        self._interrupts = interrupts or Interrupts()
        self._supervisors: list[Supervisor] = []
        self._tools = tools(request.experiment, gpu=request.gpu is not None)
        self._began = time.perf_counter()

    def run(self) -> Job:
        """The finished job, read back from its folder. Interrupts pass through after the files
        are closed, with the job's status `killed`."""
        self._folder.write_job(self._job)
        self._folder.write_json("config.json", self._job.config)
        status, reason = JobStatus.failed, "the supervisor ended early"
        try:
            with self._interrupts.allowed(), contextlib.ExitStack() as ends:
                records = self._trace(*self._measure(ends))
            wrong = [r for r in records if r.status in FAILED]
            status, reason = JobStatus.finished, ""
            if wrong:
                status = JobStatus.failed
                reason = f"{len(wrong)} of {len(records)} records failed"
        except KeyboardInterrupt:
            status, reason = JobStatus.killed, "interrupted"
            raise
        except BaseException as error:
            reason = str(error) or type(error).__name__
            raise
        finally:
            self._close(status, reason)
        return read_job(self._folder.path)

    def _close(self, status: JobStatus, reason: str) -> None:
        job = read_job(self._folder.path)
        started = time.perf_counter()
        self._folder.write_judgement(judge(job.records, self._request.experiment))
        now = time.perf_counter()
        seconds = {"judge": now - started}
        for supervisor in self._supervisors:
            seconds = added(seconds, supervisor.seconds)
        self._folder.write_job(
            dataclasses.replace(
                finished(job, status=status, reason=reason, ended=_now()),
                seconds=whole(seconds, now - self._began),
            )
        )

    def _supervisor(
        self,
        logs_as: str = "trace",
        around: Callable[[int], Around] | None = None,
    ) -> Supervisor:
        timing = logs_as == "worker"
        request, experiment = self._request, self._request.experiment
        kind = Device.cuda if request.gpu is not None else Device.cpu
        supervisor = Supervisor(
            experiment,
            job=request.id,
            logs=self._folder.path / "logs",
            start={
                "do": "start",
                "experiment": self._job.config,
                "kind": kind,
                "job": request.id,
                "python_path": list(request.python_path),
                "ceilings": timing and experiment.mode is Mode.run,
            },
            environment=worker_environment(experiment, request.gpu),
            inline=experiment.worker is WorkerMode.inline,
            logs_as=logs_as,
            around=around,
            progress=self._progress,
        )
        self._supervisors.append(supervisor)
        return supervisor

    def _measure(self, ends: contextlib.ExitStack) -> tuple[list[Record], Supervisor | None]:
        """The records, and who will take the evidence: its worker imports while the timing worker
        does, sleeps through the timing, and is ended by `ends`. None where no trace is wanted."""
        experiment = self._request.experiment
        rule = clock_rule(experiment, self._request.gpu)
        note = crowded(experiment.settings.threads) if self._request.gpu is None else ""
        with rule, self._supervisor("worker") as supervisor:

            def keep(planned: PlannedCell, records: list[Record], again: bool) -> list[Record]:
                found = [
                    dataclasses.replace(
                        _noted(record, note),
                        repro=repro(record, self._request.overrides, self._request.config_dirs),
                        device=self._request.gpu.name if self._request.gpu else "cpu",
                    )
                    for record in records
                ]
                self._folder.append(found)
                self._folder.write_json("ranges.json", supervisor.ranges)
                self._write_environment(supervisor)
                self._cell_done(planned, found, again)
                return found

            tracing = None
            if PROFILER in self._tools:
                tracing = ends.enter_context(self._supervisor())
                import_together(supervisor, tracing)
            records = Passes(experiment, self._request.plan.cells, supervisor, keep).run()
            self._write_environment(supervisor)
        return records, tracing

    def _write_environment(self, supervisor: Supervisor) -> None:
        if supervisor.worker_environment:
            code = self._job.environment
            self._folder.write_json("environment.json", {**supervisor.worker_environment, **code})

    def _trace(self, records: list[Record], tracing: Supervisor | None) -> list[Record]:
        """Evidence for the cells that `trace` chooses; a record that it denies becomes invalid."""
        settled = {(r.cell.id, r.implementation): r for r in records}
        for evidence in evidence_of(
            self._tools,
            traceable(self._request.experiment, records),
            profiling=tracing,
            start=self._supervisor,
            folder=self._folder.path / "traces",
            kernel=self._request.experiment.kernel,
        ):
            who = evidence.cell_id, evidence.implementation
            settled[who] = self._join(settled[who], evidence)
        return list(settled.values())

    def _join(self, record: Record, evidence: Evidence) -> Record:
        self._folder.append([evidence])
        joined = dataclasses.replace(record, evidence=(*record.evidence, evidence))
        reason = mismatch(joined)
        if evidence.launch_count == 0:
            reason = "the trace saw no device work in a call: nothing was computed in it"
        if reason:
            joined = dataclasses.replace(
                joined, status=Status.invalid, reason=reason, phase="evidence"
            )
            self._folder.append([joined])
        return joined


def _noted(record: Record, note: str) -> Record:
    if not note or record.timing is None:
        return record
    timing = dataclasses.replace(record.timing, notes=(*record.timing.notes, note))
    return dataclasses.replace(record, timing=timing)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
