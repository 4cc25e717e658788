"""A command with a limit: its end, its reason, and that nothing of it stays behind."""

import os
import sys
import time
from pathlib import Path

from kernel_lab.runner.limited import run_limited


def run(tmp_path, program, limit_s=20.0, **more):
    words = [sys.executable, "-S", "-c", program]
    log = tmp_path / "x.log"
    return run_limited(words, environment=dict(os.environ), log=log, limit_s=limit_s, **more)


def test_its_end_and_the_last_line_that_it_printed(tmp_path):
    assert run(tmp_path, "print(1)").reason == ""
    assert run(tmp_path, "print('why'); raise SystemExit(3)").reason == "exit code 3: why"
    killed = run(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert killed.reason == "it died by signal 9"


def test_a_command_that_is_not_there(tmp_path):
    ended = run_limited(["/nowhere/x"], environment={}, log=tmp_path / "x.log", limit_s=1.0)
    assert ended.code == 127
    assert "/nowhere/x" in ended.reason


def test_past_the_limit_its_children_end_too(tmp_path):
    program = (
        "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); "
        "print(p.pid, flush=True); time.sleep(60)"
    )
    ticks = []
    ended = run(tmp_path, program, limit_s=1.0, tick=lambda: ticks.append(1))
    assert ended.code is None
    assert "ended after its limit" in ended.reason
    assert ticks
    child = int((tmp_path / "x.log").read_text())
    deadline = time.monotonic() + 5
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(child)


def _lives(pid):
    """A zombie that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
