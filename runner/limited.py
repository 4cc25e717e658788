"""A command run to its end with a time limit: its own process group, its output in a log file."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_STEP_S = 0.2
_GRACE_S = 3.0
_TAIL_BYTES = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command ended. `code` is negative for a signal, None where the limit ended it."""

    code: int | None
    seconds: float
    log: Path

    @property
    def reason(self) -> str:
        """Why it is no success, with the last line that it printed; empty where it is one."""
        if self.code == 0:
            return ""
        if self.code is None:
            how = f"it was ended after its limit of {self.seconds:.0f} s"
        else:
            how = f"it died by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        last = last_line(self.log)
        return f"{how}: {last}" if last else how


def run_limited(
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    log: Path,
    limit_s: float,
    tick: Callable[[], object] = lambda: None,
) -> Ended:
    """Runs the command; `tick` is called a few times a second. Standard input is empty.

    Past the limit, and at an interrupt, the whole process group is ended. A command that cannot
    be started ends with code 127 and the cause in the log, as a shell would have it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("wb") as stream:
        try:
            process = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            stream.write(f"{words[0]}: {error}\n".encode())
            stream.flush()
            return Ended(code=127, seconds=0.0, log=log)
        code = None
        try:
            while code is None and time.monotonic() - began < limit_s:
                try:
                    code = process.wait(_STEP_S)
                except subprocess.TimeoutExpired:
                    tick()
        finally:  # nothing that it started stays behind
            _end(process)
    return Ended(code=code, seconds=time.monotonic() - began, log=log)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Asks the group to end, then ends it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        deadline = time.monotonic() + _GRACE_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    process.wait()


def last_line(log: Path) -> str:
    """The last line that is not blank; empty where there is none."""
    if not log.exists():
        return ""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = stream.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""
