"""The guardian of a locked SM clock: a process of its own, so that it outlives whoever asked.

    python -m kernel_lab.runner.clock_guard UUID MHZ PARENT FILE     lock, wait, give back
    python -m kernel_lab.runner.clock_guard UUID reset PARENT FILE   give back and end

It locks the GPU through NVML, says so in a line of JSON on its output, and gives the clock back
when its input closes or holds a byte, when the process PARENT ends in whatever way, or when it is
asked to end by a signal. FILE is locked for as long, so that a second job on the GPU is refused
and the end of one cannot end the lock of another. NVML does not tell whether somebody locked the
clock before: what it gives back to is no lock. A guardian that is itself killed by SIGKILL, as
all processes of a container are when it is removed, leaves the clock locked: the next job that
locks the GPU gives it back at its end, and so does `nvidia-smi -rgc`.
"""

import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .clocks import TOLERANCE

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)

_TRIES = 20
_PAUSE_S = 0.1
"""Giving back is tried so often, with so long a pause: a driver may be busy for a moment."""


class RefusedError(Exception):
    """The clock was not locked: `kind` (held, file, driver, permission, clock, parent) and why."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class SmClock:
    """The SM clock of one GPU, through NVML. Raises RefusedError where there is no such GPU."""

    def __init__(self, uuid: str) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
            self._handle: Any = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except Exception as error:
            raise RefusedError("driver", f"no NVML: {error}") from error
        self._nvml: Any = pynvml

    def lock(self, mhz: int) -> None:
        """Holds the clock at `mhz`. Raises RefusedError where the GPU has none near it, or the
        driver says no."""
        known = self._supported()
        near = min(known, key=lambda clock: abs(clock - mhz), default=mhz)
        if abs(near - mhz) > TOLERANCE * mhz:
            raise RefusedError(
                "clock",
                f"none of its SM clocks ({min(known)} to {max(known)} MHz) is within "
                f"{TOLERANCE:.0%} of {mhz} MHz; the nearest is {near} MHz",
            )
        try:
            self._nvml.nvmlDeviceSetGpuLockedClocks(self._handle, mhz, mhz)
        except self._nvml.NVMLError as error:
            no = getattr(error, "value", None) == self._nvml.NVML_ERROR_NO_PERMISSION
            raise RefusedError("permission" if no else "driver", str(error)) from error

    def give_back(self) -> str:
        """Ends the lock. Why that failed, after several tries; empty where it did not."""
        reason = ""
        for _ in range(_TRIES):
            try:
                self._nvml.nvmlDeviceResetGpuLockedClocks(self._handle)
                return ""
            except self._nvml.NVMLError as error:
                reason = str(error)
            time.sleep(_PAUSE_S)
        return reason

    def _supported(self) -> list[int]:
        """The SM clocks in MHz that go with the fastest memory clock; none: the driver does not
        tell."""
        nvml, handle = self._nvml, self._handle
        with suppress(nvml.NVMLError):
            fastest = max(nvml.nvmlDeviceGetSupportedMemoryClocks(handle))
            return [int(c) for c in nvml.nvmlDeviceGetSupportedGraphicsClocks(handle, fastest)]
        return []


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 where the clock was locked (or to be given back) and is free again."""
    uuid, asked, parent, path = arguments
    wake = _heed_signals()
    try:
        watch = _watch(int(parent))
        _hold(path, parent)
        clock = SmClock(uuid)
        if asked != "reset":
            clock.lock(int(asked))
    except RefusedError as refused:
        _say(refused=refused.kind, reason=str(refused))
        return 1
    if asked != "reset":
        _say(locked=int(asked))
        select.select([sys.stdin.fileno(), watch, wake], [], [])
    reason = clock.give_back()
    _say(**({"failed": reason} if reason else {"reset": True}))
    return 1 if reason else 0


def _heed_signals() -> int:
    """From here on a signal does nothing but make the returned descriptor readable: none can come
    between locking and giving back."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in _ENDING:
        signal.signal(number, lambda number, frame: None)
    return read


def _watch(parent: int) -> int:
    """A descriptor that is readable once the parent has ended. Raises RefusedError if it has."""
    try:
        watch = os.pidfd_open(parent)
    except OSError as error:
        raise RefusedError("parent", f"process {parent}: {error}") from error
    if os.getppid() != parent:
        raise RefusedError("parent", f"process {parent} has ended")
    return watch


def _hold(path: str, parent: str) -> None:
    """Locks the file until this process ends, and writes the parent's id into it.

    Raises RefusedError where another holds it. Whoever comes may lock it, also another user's file.
    """
    # a file that is there is opened without O_CREAT: in a sticky folder the kernel refuses that
    # for a file of another user, even to root
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            file = os.open(path, flags)
        except FileNotFoundError:
            file = os.open(path, flags | os.O_CREAT, 0o666)
            os.fchmod(file, 0o666)
    except OSError as error:
        raise RefusedError("file", str(error)) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(file, 20, 0)
        raise RefusedError("held", holder.decode() if holder.isdigit() else "unknown") from error
    os.ftruncate(file, 0)
    os.pwrite(file, parent.encode(), 0)


def _say(**message: object) -> None:
    with suppress(OSError):  # nobody may be there to hear it
        os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
