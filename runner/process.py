"""The worker as a process: started with a clean environment, heard over its socket, watched by pid.

Its death is seen by its pid, not by the socket alone: a child that a kernel forked may hold the
socket open for ever.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .channel import Channel, Listener
from .errors import WorkerError

LOG_LIMIT = 16 << 20
"""Bytes of a worker's output that are kept; the rest is read and dropped."""

FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT}
"""Signals that somebody else sent: they say nothing of an implementation."""

_TAIL = 4096

_START_LIMIT_S = 120.0

_STOP_S = 2.0
"""How long a worker that was asked to stop may take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """A tool that a worker runs under: the words before the worker's own command, how long the
    tool may take to write its report after the worker has ended, and what of the environment it
    may see: a report may hold all of it."""

    words: tuple[str, ...]
    patience_s: float
    seen: Callable[[Mapping[str, str]], dict[str, str]]


class WorkerProcess:
    """Starts the worker and waits for its call. Raises WorkerError where none comes."""

    def __init__(
        self, log: Path, environment: dict[str, str], *, around: Around | None = None
    ) -> None:
        self.log = log
        self._patience_s = around.patience_s if around is not None else _STOP_S
        words = around.words if around is not None else ()
        if around is not None:
            environment = around.seen(environment)
        log.parent.mkdir(parents=True, exist_ok=True)
        with Listener() as listener:
            self._process = subprocess.Popen(
                [*words, sys.executable, "-m", "kernel_lab.runner.worker.main", listener.path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            self._pidfd = os.pidfd_open(self._process.pid)
            assert self._process.stdout is not None
            self._reader = threading.Thread(
                target=_copy, args=(self._process.stdout, log), daemon=True
            )
            self._reader.start()
            try:
                self.channel: Channel = self._called(listener)
            except BaseException:  # an interrupt as well: nobody else knows of the process yet
                self.end()
                raise

    def _called(self, listener: Listener) -> Channel:
        ready, _, _ = select.select([listener, self._pidfd], [], [], _START_LIMIT_S)
        if listener in ready:
            return listener.accept()
        code = self._process.poll()
        self._kill()
        raise WorkerError(
            f"the worker did not call (exit code {code}): {self.last_line()}; see {self.log}",
            killed=code is not None and -code in FROM_OUTSIDE,
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float) -> bool:
        """Waits until there is something to hear or the process has ended."""
        ready, _, _ = select.select([self.channel, self._pidfd], [], [], seconds)
        return bool(ready)

    def heard(self) -> bool:
        """Whether the line has something to read (or has closed)."""
        if self.channel.waiting:
            return True
        ready, _, _ = select.select([self.channel], [], [], 0)
        return bool(ready)

    def exit_code(self, patience_s: float) -> int | None:
        """The exit code, negative for a signal; None where it lives on."""
        try:
            return self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            return None

    def last_line(self) -> str:
        """The last line that the worker printed: often the cause of its end."""
        self._reader.join(timeout=1.0)
        if not self.log.exists():
            return ""
        with self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - 4096))
            lines = stream.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def end(self) -> None:
        """Ends the process and its descendants: asked first, then by signal."""
        try:
            if hasattr(self, "channel"):
                self._ask_to_stop()
        finally:  # an interrupt that comes while it is asked leaves nothing behind either
            self._kill()

    def _ask_to_stop(self) -> None:
        if self.alive:
            try:
                self.channel.send({"do": "stop"})
                self._process.wait(timeout=self._patience_s)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.channel.close()

    def _kill(self) -> None:
        if self._pidfd < 0:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                break
            deadline = time.monotonic() + 1.0
            while self.alive and time.monotonic() < deadline:
                time.sleep(0.02)
        self._process.wait()
        os.close(self._pidfd)
        self._pidfd = -1


def _copy(source: IO[bytes], log: Path) -> None:
    """Keeps the first LOG_LIMIT bytes and the last few lines, where the cause of an end stands;
    reads on in between, so that the writer never blocks."""
    kept, tail = 0, b""
    with source, log.open("wb") as target:
        while part := os.read(source.fileno(), 1 << 16):
            if kept < LOG_LIMIT:
                target.write(part[: LOG_LIMIT - kept])
                target.flush()
                tail = part[LOG_LIMIT - kept :]
            else:
                tail = (tail + part)[-_TAIL:]
            kept += len(part)
        if kept > LOG_LIMIT:
            dropped = kept - LOG_LIMIT - len(tail)
            target.write(f"\n[{dropped} bytes more were printed and dropped]\n".encode() + tail)
