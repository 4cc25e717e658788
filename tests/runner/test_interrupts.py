"""Ctrl-C, SIGTERM, SIGHUP and SIGKILL: what is written stays whole, and nothing is left running."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_lab.runner.interrupts import Interrupts, Terminated

LAB = Path(__file__).resolve().parents[1] / "lab"
WORDS = ["--config-dir", str(LAB), "kernel=probe", "dtype=fp32", "target=cpu"]
FAST = ["protocol.max_rounds=20", "protocol.sample_us=10", "protocol.warmup_ms=1"]


@pytest.fixture(autouse=True)
def heeded():
    """Signals as a terminal leaves them: whoever started the tests may have them ignored."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number):
    signal.raise_signal(number)  # to this very thread: others may take a while to pass it on


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGINT, KeyboardInterrupt),
        (signal.SIGTERM, Terminated),
        (signal.SIGHUP, Terminated),
    ],
)
def test_a_signal_is_raised_where_that_is_allowed(number, kind):
    with Interrupts() as interrupts:
        with pytest.raises(kind), interrupts.allowed():
            send(number)
        assert type(interrupts.received) is kind


def test_elsewhere_it_waits_for_the_next_place_that_allows_it():
    reached = False
    with Interrupts() as interrupts:
        send(signal.SIGTERM)
        reached = True
        with pytest.raises(Terminated), interrupts.allowed():
            pytest.fail("what waited is raised before anything is done")
    assert reached


def test_the_second_signal_finds_the_command_ending_and_waits():
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            send(signal.SIGINT)
        send(signal.SIGTERM)
        assert type(interrupts.received) is KeyboardInterrupt


def test_one_that_comes_long_after_the_first_is_raised_anywhere(monkeypatch):
    with Interrupts():
        send(signal.SIGINT)
        now = time.monotonic()
        monkeypatch.setattr("kernel_lab.runner.interrupts.time.monotonic", lambda: now + 11)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_what_the_process_was_started_to_ignore_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts, interrupts.allowed():
            send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_handlers_go_when_it_ends():
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Interrupts():
        pass
    assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


FILING = """
import os, signal, sys
from kernel_lab.runner.tracking.filing import Filing
file = Filing.file
def interrupted(self, job):
    os.kill(os.getpid(), signal.SIGTERM)
    file(self, job)
Filing.file = interrupted
from kernel_lab.runner.cli import main
raise SystemExit(main())
"""


def test_a_signal_while_a_job_is_filed_leaves_no_open_run_and_starts_no_further_job(tmp_path):
    words = [*WORDS, *FAST, "implementations=[right]", "shapes.product.N=[8],[16]", "mode=check"]
    done = subprocess.run(
        [sys.executable, "-c", FILING, "run", "-m", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "KLAB_OUTPUTS": str(tmp_path)},
    )
    assert done.returncode == 143, done.stderr[-2000:]
    folders = list(tmp_path.glob("sweeps/*/*/job.json"))
    assert len(folders) == 1
    job = json.loads(folders[0].read_text())
    assert (job["status"], bool(job["ended"])) == ("finished", True)
    assert json.loads((folders[0].parent / "filed.json").read_text())["complete"]


def workers(pid):
    """The workers among a process' children; git is another."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(c) for c in found if "worker.main" in Path(f"/proc/{c}/cmdline").read_text()]
    except OSError:
        return []


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
    return value


@pytest.mark.parametrize(
    ("number", "code", "status"),
    [
        (signal.SIGINT, 130, "killed"),
        (signal.SIGTERM, 143, "killed"),
        (signal.SIGKILL, -9, "running"),
    ],
)
def test_a_command_that_is_ended_leaves_no_worker_behind_even_one_that_hangs(
    tmp_path, number, code, status
):
    marker = tmp_path / "marker"
    words = [*WORDS, *FAST, "implementations=[right,hangs]", "tracking=none"]
    plain = FILING[FILING.index("from kernel_lab.runner.cli") :]
    klab = subprocess.Popen(
        [sys.executable, "-c", plain, "run", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "KLAB_OUTPUTS": str(tmp_path), "KLAB_TEST_MARKER": str(marker)},
    )
    try:
        until(marker.exists)
        (worker,) = workers(klab.pid)
        klab.send_signal(number)
        assert klab.wait(timeout=30) == code
        until(lambda: not alive(worker), 10)
    finally:
        klab.kill()
        klab.wait()
    (job,) = tmp_path.glob("runs/*/job.json")
    assert json.loads(job.read_text())["status"] == status


@pytest.mark.parametrize("delay_s", [0.0, 0.5])
def test_a_worker_that_is_killed_as_it_starts_is_started_again(tmp_path, delay_s):
    words = [*WORDS, *FAST, "implementations=[right]", "mode=check", "tracking=none"]
    klab = subprocess.Popen(
        [sys.executable, "-c", FILING[FILING.index("from kernel_lab.runner.cli") :], "run", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "KLAB_OUTPUTS": str(tmp_path)},
    )
    try:
        (worker,) = until(lambda: workers(klab.pid))
        time.sleep(delay_s)
        os.kill(worker, signal.SIGKILL)
        assert klab.wait(timeout=60) == 0
    finally:
        klab.kill()
        klab.wait()
    (job,) = tmp_path.glob("runs/*/job.json")
    assert json.loads(job.read_text())["status"] == "finished"
    assert len(list(job.parent.glob("logs/worker-*.log"))) == 2


PROBING = """
import os, pathlib
from kernel_lab.runner import preparing
from kernel_lab.runner.device import Gpu
preparing.gpus = lambda: [
    Gpu(index=0, name="NVIDIA H200", uuid="GPU-1", capability="9.0", memory_bytes=1 << 37)
]
confirm = preparing.Preparer.confirm
def told(self):
    pathlib.Path(os.environ["KLAB_TEST_MARKER"]).touch()
    confirm(self)
preparing.Preparer.confirm = told
from kernel_lab.runner.cli import main
raise SystemExit(main())
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_command_that_waits_for_torch_ends_at_once_and_leaves_nothing(tmp_path, number, code):
    """A driver that hangs would hold it for ever."""
    (tmp_path / "torch.py").write_text(
        "import os, pathlib, time\n"
        "pathlib.Path(os.environ['KLAB_TEST_PROBE']).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    marker, probe = tmp_path / "marker", tmp_path / "probe"
    words = ["--config-dir", str(LAB), "kernel=probe", "dtype=fp32", "tracking=none"]
    klab = subprocess.Popen(
        [sys.executable, "-c", PROBING, "run", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "KLAB_OUTPUTS": str(tmp_path / "outputs"),
            "KLAB_TEST_MARKER": str(marker),
            "KLAB_TEST_PROBE": str(probe),
            "PYTHONPATH": str(tmp_path),
        },
    )
    try:
        pid = int(until(lambda: marker.exists() and probe.exists() and probe.read_text()))
        time.sleep(0.2)
        klab.send_signal(number)
        assert klab.wait(timeout=10) == code
        until(lambda: not alive(pid), 5)
        if code > 0:
            assert "interrupted" in klab.stderr.read()
    finally:
        klab.kill()
        klab.wait()
        klab.stderr.close()
    assert not list(tmp_path.glob("outputs/runs/*"))
