"""A GPU's SM clock held at one value while the timing workers of a job run.

The supervisor's side: it starts the guardian (`clock_guard`), which locks the clock and gives it
back when this process says so or ends, by SIGKILL too. Whatever stands in the way is an error
before the first worker starts; nothing goes on at another clock than the one asked for.
"""

import json
import os
import select
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from .clocks import OBSERVE, locked_mhz
from .device import Gpu
from .errors import ConfigError, KlabError
from .schema import Experiment, Mode

PATIENCE_S = 30.0
"""A driver that is not in persistence mode takes seconds to wake."""

END_S = 5.0
"""How long the guardian has to end, once it is told and once more after SIGTERM."""

FOLDERS = (Path("/dev/shm"), Path("/tmp"))
"""Where the file lies that keeps two jobs from one GPU: the first that can be written. Never
TMPDIR, which a batch system sets anew for each job: all jobs of a machine must meet at one file."""


def lock_file(uuid: str) -> Path:
    """The file of a GPU, the same for every job of this machine (of this container, where it has
    its own /dev/shm: two of them do not see each other's locks)."""
    good = (f for f in FOLDERS if f.is_dir() and os.access(f, os.W_OK | os.X_OK))
    return next(good, FOLDERS[-1]) / f"klab-clock-{uuid}.lock"


def clock_rule(experiment: Experiment, gpu: Gpu | None) -> AbstractContextManager[object]:
    """What the timing workers of an experiment run within: its clock rule.

    Nothing where the clock is only observed, and where nothing is timed. Entering it raises
    ConfigError where the clock cannot be locked.
    """
    mhz = locked_mhz(experiment.protocol.clocks)
    if mhz is None or gpu is None or experiment.mode is not Mode.run:
        return nullcontext()
    return ClockLock(gpu, mhz)


def require_lockable(gpu: Gpu, mhz: int) -> None:
    """Locks the clock and gives it back: NVML has no other way to ask whether it may be locked.

    Raises ConfigError where it may not.
    """
    with ClockLock(gpu, mhz):
        pass


class ClockLock:
    """Locks the SM clock of a GPU at `mhz`. Use as a context; not twice at a time.

    Entering raises ConfigError where the driver does not permit it, the GPU has no such clock, or
    another job holds it. Leaving raises KlabError where the clock could not be given back.
    """

    def __init__(self, gpu: Gpu, mhz: int) -> None:
        self._gpu = gpu
        self._mhz = mhz
        self._guard: Guard | None = None

    def __enter__(self) -> "ClockLock":
        self._guard = Guard(self._gpu.uuid, str(self._mhz))
        try:
            answer = self._guard.hear(PATIENCE_S)
        except BaseException:  # an interrupt while it is waited for leaves no lock behind
            self._guard.end()
            raise
        if "locked" not in answer:
            self._guard.end()
            raise ConfigError(self._refusal(answer))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        assert self._guard is not None
        answer = self._guard.end()
        if not answer and not self._guard.ended:
            # it is stopped, or waits for the driver, and holds the file still: a second one would
            # be told `held`, and that would be us
            answer = {"reason": f"its guardian, process {self._guard.pid}, does not end"}
        elif not answer:
            # the guardian was killed and left the clock locked; where another job has locked it
            # since, that one gives it back
            second = Guard(self._gpu.uuid, "reset")
            answer = second.hear(PATIENCE_S)
            second.end()
        if "reset" in answer or answer.get("refused") == "held":
            return
        reason = answer.get("failed") or answer.get("reason") or "no answer"
        message = (
            f"protocol.clocks=lock:{self._mhz}: the SM clock of {self._gpu.uuid} could not be "
            f"given back ({reason}). Do it by hand: nvidia-smi -i {self._gpu.uuid} -rgc"
        )
        if error is None:
            raise KlabError(message)
        error.add_note(message)

    def _refusal(self, answer: dict[str, Any]) -> str:
        gpu, mhz, reason = (
            self._gpu,
            self._mhz,
            answer.get("reason") or "its guardian gave no answer",
        )
        steps = {
            "permission": f"the driver does not let this user lock clocks ({reason}). Run as root, "
            f"or let an administrator lock it (nvidia-smi -i {gpu.uuid} -lgc {mhz}) and say "
            f"protocol.clocks={OBSERVE}.",
            "held": f"another job holds it (process {reason}). Wait for its end, or take another "
            "GPU (device=).",
            "clock": f"{reason}. Choices: a clock that it has, or protocol.clocks={OBSERVE}.",
            "file": f"the file that keeps other jobs from it cannot be used ({reason}). Let every "
            f"user write {lock_file(gpu.uuid)}, or say protocol.clocks={OBSERVE}.",
        }
        other = f"it cannot be locked ({reason}). Say protocol.clocks={OBSERVE}."
        said = steps.get(str(answer.get("refused")), other)
        return f"protocol.clocks=lock:{mhz}: the SM clock of {gpu.name} {gpu.uuid}: {said}"


class Guard:
    """The guardian's process, in a session of its own so that no signal to ours reaches it."""

    def __init__(self, uuid: str, asked: str) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kernel_lab.runner.clock_guard"),
                *(uuid, asked, str(os.getpid()), str(lock_file(uuid))),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._heard = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def hear(self, seconds: float) -> dict[str, Any]:
        """The next thing that it says; empty where it says nothing more, or not in time."""
        assert self._process.stdout is not None
        line = self._process.stdout.fileno()
        until = time.monotonic() + seconds
        while b"\n" not in self._heard:
            ready, _, _ = select.select([line], [], [], max(0.0, until - time.monotonic()))
            part = os.read(line, 4096) if ready else b""
            if not part:
                return {}
            self._heard += part
        text, self._heard = self._heard.split(b"\n", 1)
        return json.loads(text)

    def end(self) -> dict[str, Any]:
        """Has it give the clock back and end; the last thing that it said. One that cannot end
        is left: once it runs on, it gives the clock back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        answer = self.hear(PATIENCE_S)
        for ask in (lambda: None, self._process.terminate):
            ask()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=END_S)
                break
        self._process.stdout.close()
        return answer
