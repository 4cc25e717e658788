"""`worker=inline`: the worker in this process, for a debugger: nothing isolated, no limits."""

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

from .channel import encoded
from .worker.main import Worker


class _Line:
    """Both ends of the channel at once: what is sent is done, what is said waits, as it would
    have come over a socket."""

    def __init__(self) -> None:
        self._said: deque[dict[str, Any]] = deque()
        self._worker = Worker(lambda message: self._said.append(json.loads(encoded(message))))

    @property
    def waiting(self) -> bool:
        return bool(self._said)

    def send(self, message: dict[str, Any]) -> None:
        self._worker.handle(message)

    def receive(self) -> dict[str, Any] | None:
        return self._said.popleft() if self._said else None


class InlineWorker:
    """Stands where a WorkerProcess would."""

    def __init__(self, log: Path, environment: dict[str, str]) -> None:
        os.environ["CUDA_VISIBLE_DEVICES"] = environment.get("CUDA_VISIBLE_DEVICES", "")
        self.log = log
        self.channel = _Line()
        self.alive = True

    def wait(self, seconds: float) -> bool:
        return True

    def heard(self) -> bool:
        return True

    def exit_code(self, patience_s: float) -> int | None:
        return None

    def last_line(self) -> str:
        return ""

    def end(self) -> None:
        """Closes the job's range; the process is the user's own."""
        if self.alive:
            self.channel.send({"do": "stop"})
        self.alive = False
