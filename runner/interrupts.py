"""Ctrl-C, SIGTERM and SIGHUP end a command between its writes: raised while it measures, held
while it files, so that no run stays open and no worker stays behind.
"""

import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

PATIENCE_S = 10.0
"""Ending takes seconds; a signal that comes this long after the first one is raised anywhere."""


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: ends a job as Ctrl-C does."""


class Interrupts:
    """While it lasts, a signal is raised within `allowed()` and held elsewhere.

    Only the first: the rest find the command ending, and wait for it. A signal that the process
    was started to ignore (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self.received: KeyboardInterrupt | None = None
        self._since = 0.0
        self._open = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Interrupts":
        for number in _NUMBERS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # pyrefly: ignore

    def _receive(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received is None:
            self.received = KeyboardInterrupt() if number == signal.SIGINT else Terminated()
            self._since = now
            if self._open:
                raise self.received
        elif now - self._since > PATIENCE_S:
            raise self.received

    @contextmanager
    def allowed(self) -> Generator[None]:
        """Where a signal may end the work at once. Raises KeyboardInterrupt, also for a signal
        that was held before; where nothing was entered, no signal is looked at."""
        self._open = True
        try:
            if self.received is not None:
                raise self.received
            yield
        finally:
            self._open = False
