"""The worker of a supervisor, one at a time: started when it is needed or ahead of that, started
anew where it is gone, and ended.
"""

import contextlib
import enum
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from .death import died
from .errors import WorkerError
from .inline import InlineWorker
from .process import Around, WorkerProcess
from .spent import added

IMPORT_LIMIT_S = 120.0
"""A worker that imports for longer than this is given up."""

OPEN_LIMIT_S = 300.0
"""A worker that takes longer to open its device, its imports included where they are not done, is
ended: a driver that hangs would hold the job for ever. Seconds are usual, a minute is slow."""


class _State(enum.Enum):
    """How far the worker is; `open`: it holds its device."""

    importing = 1
    imported = 2
    open = 3


class Workers:
    """Starts and ends the workers of one supervisor; the seconds that this took stand apart."""

    def __init__(
        self,
        *,
        logs: Path,
        logs_as: str,
        start: dict[str, Any],
        environment: dict[str, str],
        inline: bool,
        around: Callable[[int], Around] | None = None,
    ) -> None:
        self._logs = logs
        self._logs_as = logs_as
        self._start = start
        self._environment = environment
        self._inline = inline
        self._around = around
        self._start_worker = InlineWorker if inline else WorkerProcess
        self._worker: WorkerProcess | InlineWorker | None = None
        self._state = _State.importing
        self._count = 0
        self.seconds: dict[str, float] = {}
        self.environment: dict[str, Any] = {}
        """The snapshot that the first worker sent."""

    @property
    def number(self) -> int:
        """Which worker it is, from 1; 0 before the first."""
        return self._count

    def log_name(self) -> str:
        return f"logs/{self._logs_as}-{self._count:02d}.log"

    def prepare(self) -> None:
        """Starts a worker that imports and then sleeps on its socket, and does not wait for it.

        It opens no device, so nothing of it is seen on one. A worker that fails here is dropped:
        the one that is started when it is needed says what is wrong. An inline worker imports in
        this process, which has nothing to do beside it: for it nothing is done.
        """
        if self._inline:
            return
        with self._booked("start workers"), contextlib.suppress(WorkerError, OSError):
            self._begin().channel.send({**self._start, "do": "prepare"})

    def prepared(self) -> None:
        """Waits until what `prepare` started has imported. From here on it takes no CPU time: its
        one running thread is blocked in a read, and no thread spins, since importing starts no
        parallel region (so no wait policy of OpenMP matters) and no compiler. A worker that
        ended or is not done within IMPORT_LIMIT_S is dropped."""
        if self._worker is None or self._state is not _State.importing:
            return
        with self._booked("start workers"):
            said = None
            if self._worker.wait(IMPORT_LIMIT_S) and self._worker.heard():
                said = self._worker.channel.receive()
        self._state = _State.imported
        if said is None:
            self.close()

    def ready(self) -> WorkerProcess | InlineWorker:
        """The worker with its device open; a fresh one where the last is gone, or was killed as
        it started. Raises WorkerError."""
        if self._worker is not None and self._worker.alive and self._state is _State.open:
            return self._worker
        try:
            return self._opened()
        except WorkerError as error:
            if not error.killed:
                raise
            return self._opened()

    def close(self) -> None:
        """Ends the worker and all that it started."""
        if self._worker is not None:
            with self._booked("end workers"):
                self._worker.end()
            self._worker = None

    def _opened(self) -> WorkerProcess | InlineWorker:
        self.prepared()
        worker = self._worker
        if worker is None or not worker.alive or self._state is not _State.imported:
            self.close()
            worker = None
        with self._booked("start workers"):
            worker = worker or self._begin()
            self._state = _State.open
            with contextlib.suppress(OSError):  # it is gone already: then it says nothing either
                worker.channel.send(self._start)
            late = not worker.channel.waiting and not worker.wait(OPEN_LIMIT_S)
            said = worker.channel.receive() if not late and worker.heard() else None
        if late:
            self.close()
            raise WorkerError(
                f"the worker did not open its device within {OPEN_LIMIT_S:g} s and was ended; see "
                f"{worker.log}. Does nvidia-smi answer? With target=cpu no driver is asked."
            )
        if said is None or said["say"] == "fatal":
            death = died(worker, "", "start")
            reason = said["reason"] if said else f"{death.reason}; see {worker.log}"
            self.close()
            raise WorkerError(f"the worker could not start: {reason}", killed=death.outside)
        if not self.environment:
            self.environment = said["environment"]
            # measured once a job, not once a worker: the others are told
            self._start["ceilings"] = False
            self._start["known_ceilings"] = self.environment.get("ceilings")
        return worker

    def _begin(self) -> WorkerProcess | InlineWorker:
        self._count += 1
        self._state = _State.importing
        log = self._logs.parent / self.log_name()
        if self._around is None or self._inline:
            self._worker = self._start_worker(log, self._environment)
        else:
            around = self._around(self._count)
            self._worker = WorkerProcess(log, self._environment, around=around)
        return self._worker

    @contextlib.contextmanager
    def _booked(self, part: str) -> Generator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds = added(self.seconds, {part: time.perf_counter() - began})
