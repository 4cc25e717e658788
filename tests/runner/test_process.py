"""The worker as a process, with commands that stand for it: each is a real process."""

import os
import signal
import sys
import textwrap
import time

import pytest
from kernel_lab.runner import process
from kernel_lab.runner.errors import WorkerError
from kernel_lab.runner.process import WorkerProcess

CALLS = """
import json, os, socket, sys, time, signal, subprocess
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[-1])
def say(**message):
    line.sendall(json.dumps(message).encode() + b"\\n")
def hear():
    text = b""
    while not text.endswith(b"\\n"):
        part = line.recv(1)
        if not part:
            return None
        text += part
    return json.loads(text)
"""


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts a worker whose program is the text given: it has `say`, `hear` and `line`."""
    started = []

    def begin(program, *, calls=True):
        script = tmp_path / "worker.py"
        script.write_text((CALLS if calls else "") + textwrap.dedent(program))
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -S {script} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(process.sys, "executable", str(python))
        worker = WorkerProcess(tmp_path / "logs/worker.log", {"PATH": os.environ["PATH"]})
        started.append(worker)
        return worker

    yield begin
    for worker in started:
        worker.end()


def gone(pid):
    """Whether a process has ended, within seconds."""
    for _ in range(300):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
            if stat.read().rpartition(")")[2].split()[0] == "Z":
                return True
        time.sleep(0.01)
    return False


def test_a_worker_is_heard_and_told(start):
    worker = start("say(n=1); say(got=hear()); hear()")
    assert worker.channel.receive() == {"n": 1}
    worker.channel.send({"do": "x"})
    assert worker.wait(5)
    assert worker.heard()
    assert worker.channel.receive() == {"got": {"do": "x"}}
    assert worker.alive


def test_waiting_ends_when_nothing_comes(start):
    worker = start("hear()")
    assert not worker.wait(0.05)
    assert not worker.heard()


def test_a_flood_of_output_blocks_nobody_and_the_log_is_capped(start, monkeypatch):
    monkeypatch.setattr(process, "LOG_LIMIT", 100_000)
    worker = start(
        """
        for k in range(300):
            os.write(1, b"x" * 9999 + b"\\n")
        os.write(2, b"the last words\\n")
        say(done=True)
        hear()
        """
    )
    assert worker.wait(20)
    assert worker.channel.receive() == {"done": True}
    worker.end()
    assert worker.last_line() == "the last words"
    text = worker.log.read_text()
    assert len(text) < 105_000
    assert f"{3_000_015 - 100_000 - 4096} bytes more were printed and dropped" in text


def test_nothing_that_is_printed_reaches_the_line(start):
    worker = start("""print('{"say": "records"}', flush=True); say(k=1); hear()""")
    assert worker.channel.receive() == {"k": 1}
    worker.end()
    assert '{"say": "records"}' in worker.log.read_text()


def test_a_worker_that_exits_before_it_calls_is_an_error_with_its_last_words(start):
    with pytest.raises(WorkerError) as raised:
        start("import sys; print('no libcuda.so.1 here'); sys.exit(3)", calls=False)
    assert "no libcuda.so.1 here" in str(raised.value)
    assert "exit code 3" in str(raised.value)
    assert "worker.log" in str(raised.value)


def test_a_worker_that_never_calls_is_given_up_and_ended(start, monkeypatch, tmp_path):
    monkeypatch.setattr(process, "_START_LIMIT_S", 0.5)
    pid = tmp_path / "pid"
    with pytest.raises(WorkerError, match="did not call"):
        start(
            f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)",
            calls=False,
        )
    assert gone(int(pid.read_text()))


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os._exit(7)", 7),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_a_death_is_seen_with_its_code(start, end, code):
    worker = start(f"say(k=1)\nprint('near the end', flush=True)\n{end}")
    assert worker.channel.receive() == {"k": 1}
    assert worker.wait(5)
    assert worker.exit_code(5.0) == code
    assert worker.last_line() == "near the end"
    assert not worker.alive


def test_a_death_is_seen_though_a_child_holds_the_line_open(start):
    worker = start(
        """
        if os.fork() == 0:
            time.sleep(600)
        os._exit(9)
        """
    )
    began = time.monotonic()
    assert worker.wait(10)
    assert not worker.heard()
    assert worker.exit_code(5.0) == 9
    assert time.monotonic() - began < 8


def test_what_was_said_before_a_death_is_still_heard(start):
    worker = start("say(k=1); os._exit(7)")
    worker.exit_code(5.0)
    assert worker.heard()
    assert worker.channel.receive() == {"k": 1}
    assert worker.channel.receive() is None


def test_ending_takes_the_children_along(start):
    worker = start(
        """
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        say(child=child.pid)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1)
        """
    )
    child = worker.channel.receive()["child"]
    worker.end()
    assert gone(child)
    assert not worker.alive


def test_a_stop_is_asked_for_first(start):
    worker = start("message = hear(); print('told to', message['do'], flush=True)")
    worker.end()
    assert worker.exit_code(0) == 0
    assert worker.last_line() == "told to stop"


def test_ending_twice_is_ending_once(start):
    worker = start("hear()")
    worker.end()
    worker.end()


def test_the_worker_sees_the_environment_given_and_no_other(start, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secret")
    worker = start("say(names=sorted(os.environ)); hear()")
    assert "MLFLOW_TRACKING_TOKEN" not in worker.channel.receive()["names"]


def test_a_last_line_is_short_and_survives_bytes_that_are_no_text(start):
    worker = start("os.write(1, b'\\xff' * 5000 + b'\\n\\n'); os._exit(1)")
    worker.exit_code(5.0)
    assert 0 < len(worker.last_line()) <= 300
