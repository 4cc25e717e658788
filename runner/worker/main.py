"""The worker: a command that holds torch and the GPU, and does what the supervisor says.

`python -m kernel_lab.runner.worker.main SOCKET`. It never touches Hydra or MLflow. Nothing that a
kernel prints reaches the supervisor: the two talk over a socket of their own.
"""

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter

from ..channel import connect
from ..records import Cell, Evidence, Record
from ..schema import Device, Experiment
from ..spent import Stopwatch, part_of

Say = Callable[[dict[str, Any]], None]


class Worker:
    """One job in one process. `handle` does one message and says what comes of it."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._session: Any = None
        self._job_range: Any = None
        self._spent = Stopwatch()

    def handle(self, message: dict[str, Any]) -> bool:
        """Does what one message asks; False when it was told to stop, or can do no more."""
        match message["do"]:
            case "prepare":
                return self._prepare(message)
            case "start":
                return self._start(message)
            case "cell":
                return self._cell(message)
            case "trace":
                return self._trace(message)
            case "stop":
                self._stop()
                return False
            case other:
                raise ValueError(f"a message that the worker does not know: {other}")

    def _prepare(self, message: dict[str, Any]) -> bool:
        """Imports all that a session needs and opens nothing: the next message may come after
        minutes in which another worker times, and until then this process only waits for it."""
        self._surroundings(message)
        from . import session  # noqa: F401 - for the next message

        self._say({"say": "prepared"})
        return True

    def _surroundings(self, message: dict[str, Any]) -> Device:
        kind = Device(message["kind"])
        # before anything imports triton: it looks at the variable when kernels are decorated
        if kind is Device.cpu:
            os.environ["TRITON_INTERPRET"] = "1"
        else:
            os.environ.pop("TRITON_INTERPRET", None)
        for folder in message["python_path"]:
            if folder not in sys.path:
                sys.path.append(folder)
        return kind

    def _start(self, message: dict[str, Any]) -> bool:
        kind = self._surroundings(message)
        experiment = TypeAdapter(Experiment).validate_python(message["experiment"])
        try:
            from .session import Session

            self._session = Session(experiment, kind, message["job"], self._announce)
            if message.get("ceilings"):
                self._session.measure_ceilings()
            else:
                self._session.know_ceilings(message.get("known_ceilings"))
        except Exception as error:
            self._say({"say": "fatal", "reason": str(error), "traceback": traceback.format_exc()})
            return False
        self._job_range = self._session.context.ranges.job()
        self._job_range.__enter__()
        self._say(
            {
                "say": "ready",
                "environment": self._session.environment(),
                "pid": os.getpid(),
            }
        )
        return True

    def _announce(self, implementation: str, phase: str) -> None:
        self._spent.enter(part_of(phase))
        self._say({"say": "step", "implementation": implementation, "phase": phase})

    def _cell(self, message: dict[str, Any]) -> bool:
        from .failure import Poisoned

        cell = TypeAdapter(Cell).validate_python(message["cell"])
        self._spent.take()
        try:
            records = self._session.measure(
                cell,
                message["implementations"],
                lambda r: self._say({"say": "round", "round": r}),
                message.get("sampling", {}),
            )
        except Poisoned as poison:
            self._say(
                {
                    "say": "dying",
                    "implementation": poison.implementation,
                    "status": poison.status,
                    "reason": poison.reason,
                    "traceback": poison.trace,
                    "seconds": self._spent.take(),
                }
            )
            return False
        adapter = TypeAdapter(Record)
        self._say(
            {
                "say": "records",
                "records": [adapter.dump_python(r, mode="json") for r in records],
                "ranges": self._session.context.ranges.table,
                "seconds": self._spent.take(),
            }
        )
        return True

    def _trace(self, message: dict[str, Any]) -> bool:
        cell = TypeAdapter(Cell).validate_python(message["cell"])
        adapter = TypeAdapter(Evidence)
        self._spent.take()
        for name in message["implementations"]:
            evidence, usable = self._session.trace(cell, name, message["tool"])
            self._say({"say": "evidence", "evidence": adapter.dump_python(evidence, mode="json")})
            if not usable:
                return False
        ranges = self._session.context.ranges.table
        self._say({"say": "traced", "ranges": ranges, "seconds": self._spent.take()})
        return True

    def _stop(self) -> None:
        if self._job_range is not None:
            self._job_range.__exit__(None, None, None)
            self._job_range = None


def _end_with_the_parent() -> None:
    """A supervisor that is killed cannot end its worker; Linux can, also where a kernel hangs."""
    with contextlib.suppress(OSError, AttributeError):
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def main() -> int:
    _end_with_the_parent()
    channel = connect(sys.argv[1])
    worker = Worker(channel.send)
    while (message := channel.receive()) is not None:
        if not worker.handle(message):
            break
    channel.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
