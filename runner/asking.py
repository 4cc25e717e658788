"""A short program of Python asked in a process of its own: begun at once, heard later, and ended
with all that it started on every way out, by SIGKILL of whoever asked too.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

# Linux sends SIGKILL to the program when its parent ends, before it does what may hang
_ENDS_WITH_ITS_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
"""


class UnansweredError(Exception):
    """The program gave no answer. The text is the reason."""


class Asked:
    """One program. Its answer is the last line of its output that is a JSON object with `key`:
    a sitecustomize, or a library, may print before it and after."""

    def __init__(
        self, program: str, *, key: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._key = key
        self.complaint = ""
        """The last line of its standard error, once it was heard."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"{_ENDS_WITH_ITS_PARENT}\n{program}", str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=dict(os.environ if environment is None else environment),
            cwd="/",
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def answer(self, limit_s: float) -> dict[str, Any]:
        """Waits for the answer, at most so long from now. Raises UnansweredError with the reason;
        an interrupt passes through at once, and ends the program."""
        try:
            printed, complaints = self._process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise UnansweredError(f"no answer within {limit_s:g} s") from None
        finally:
            self.end()
        self.complaint = _last_line(complaints)
        code = self._process.returncode
        if code:
            how = f"it ended with exit code {code}" if code > 0 else f"it died by signal {-code}"
            raise UnansweredError(self.complaint or how)
        for line in reversed(printed.splitlines()):
            with suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and self._key in found:
                    return found
        last = _last_line(printed)
        raise UnansweredError("it printed no answer" + (f", and last: {last}" if last else ""))

    def end(self) -> None:
        """Ends the program, if it has not ended, and whatever it started. Waits a second at most:
        a process that is inside a driver call ends when that returns."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""
