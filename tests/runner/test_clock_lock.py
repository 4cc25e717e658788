"""Locking the SM clock through its guardian, which is a real process; the driver is a stand-in."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from kernel_lab.runner import clock_lock
from kernel_lab.runner.clock_lock import ClockLock, clock_rule
from kernel_lab.runner.device import Gpu
from kernel_lab.runner.errors import ConfigError, KlabError
from kernel_lab.runner.schema import Experiment, Mode, Protocol

GPU = Gpu(index=0, name="NVIDIA H200", uuid="GPU-1234", capability="9.0", memory_bytes=1)
PERMISSION, UNKNOWN = 4, 999

HOLDS = """
import sys, time
from pathlib import Path
from kernel_lab.runner import clock_lock
from kernel_lab.runner.clock_lock import ClockLock
from kernel_lab.runner.device import Gpu
gpu = Gpu(index=0, name="g", uuid="GPU-1234", capability="9.0", memory_bytes=1)
clock_lock.FOLDERS = (Path({folder!r}),)
with ClockLock(gpu, 1500) as lock:
    print(lock._guard._process.pid, flush=True)
    {then}
"""


@pytest.fixture
def holder(nvml, tmp_path):
    """Starts a process that holds the clock; its pid and its guardian's."""
    started = []

    def begin(then="time.sleep(600)"):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS.format(then=then, folder=str(tmp_path))],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        guard = int(process.stdout.readline())
        assert nvml.calls[-1] == "lock 1500"
        return process, guard

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def rule(clocks, mode=Mode.run):
    return Experiment(protocol=Protocol(name="p", clocks=clocks), mode=mode)


def test_the_clock_is_held_within_and_free_after(nvml):
    with ClockLock(GPU, 1500):
        assert nvml.calls == ["lock 1500"]
    assert nvml.calls == ["lock 1500", "reset"]


def test_one_after_the_other(nvml):
    for _ in range(2):
        with ClockLock(GPU, 1500):
            pass
    assert nvml.calls == ["lock 1500", "reset"] * 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_whatever_ends_the_work_ends_the_lock(nvml, error):
    with pytest.raises(error), ClockLock(GPU, 1500):
        raise error
    assert nvml.calls == ["lock 1500", "reset"]


def test_an_interrupt_while_the_driver_is_waited_for_leaves_no_lock(nvml, monkeypatch):
    hear = clock_lock.Guard.hear

    def interrupted(self, seconds):
        if not nvml.calls:
            assert within(20, lambda: nvml.calls == ["lock 1500"])
            raise KeyboardInterrupt
        return hear(self, seconds)

    monkeypatch.setattr(clock_lock.Guard, "hear", interrupted)
    with pytest.raises(KeyboardInterrupt), ClockLock(GPU, 1500):
        pytest.fail("it was interrupted before")
    assert nvml.calls == ["lock 1500", "reset"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_clock_is_free_soon_after_the_holder_was_killed(nvml, holder, number):
    process, guard = holder()
    process.send_signal(number)
    process.wait()
    assert within(2, lambda: nvml.calls == ["lock 1500", "reset"])
    assert within(2, lambda: gone(guard))
    with ClockLock(GPU, 1500):
        pass


def test_a_child_that_lives_on_with_the_pipe_keeps_no_lock(nvml, holder):
    """A kernel may fork: its copy of the pipe stays open after the holder's end."""
    then = "import os\n    if os.fork() == 0: time.sleep(10); os._exit(0)\n    time.sleep(600)"
    process, _ = holder(then)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    assert within(5, lambda: len(children.read_text().split()) == 2)  # the guardian and the fork
    process.kill()
    process.wait()
    assert within(2, lambda: nvml.calls == ["lock 1500", "reset"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_guardian_that_is_asked_to_end_gives_the_clock_back(nvml, holder, number):
    _, guard = holder()
    os.kill(guard, number)
    assert within(2, lambda: nvml.calls == ["lock 1500", "reset"])


def test_a_signal_to_the_holders_group_does_not_reach_the_guardian(nvml, holder):
    process, guard = holder()
    assert os.getsid(guard) == guard != os.getsid(process.pid)
    assert os.getpgid(guard) == guard


def test_the_clock_of_a_killed_guardian_is_given_back_at_the_end(nvml):
    with ClockLock(GPU, 1500) as lock:
        lock._guard._process.kill()
        lock._guard._process.wait()
        assert nvml.calls == ["lock 1500"]
    assert nvml.calls == ["lock 1500", "reset"]


def test_but_not_where_another_job_has_it_by_then(nvml, holder):
    with ClockLock(GPU, 1485) as lock:
        lock._guard._process.kill()
        lock._guard._process.wait()
        holder()
    assert nvml.calls == ["lock 1485", "lock 1500"]


def test_a_second_job_on_the_gpu_is_refused_and_ends_nothing(nvml, holder):
    process, _ = holder()
    with pytest.raises(ConfigError) as raised, ClockLock(GPU, 1485):
        pytest.fail("it is held")
    text = str(raised.value)
    assert text.startswith("protocol.clocks=lock:1485: ")
    assert f"another job holds it (process {process.pid})" in text
    assert "GPU-1234" in text
    assert nvml.calls == ["lock 1500"]


def test_what_the_driver_does_not_permit_is_an_error_with_the_next_step(nvml):
    nvml.fails("lock", PERMISSION)
    with pytest.raises(ConfigError) as raised, ClockLock(GPU, 1500):
        pytest.fail("it is not permitted")
    text = str(raised.value)
    assert raised.value.exit_code == 2
    for part in ("protocol.clocks=lock:1500", "Insufficient Permissions", "root",
                 "nvidia-smi -i GPU-1234 -lgc 1500", "protocol.clocks=observe"):  # fmt: skip
        assert part in text
    assert nvml.calls == []


@pytest.mark.parametrize("fault", ["lock", "init"])
def test_what_the_driver_cannot_do_is_an_error(nvml, fault):
    nvml.fails(fault, UNKNOWN)
    with pytest.raises(ConfigError, match=r"lock:1500.*Unknown Error.*clocks=observe"):
        ClockLock(GPU, 1500).__enter__()
    assert nvml.calls == []


def test_a_clock_that_the_gpu_has_not_is_refused_with_the_nearest(nvml):
    with pytest.raises(ConfigError, match=r"345 to 1980 MHz.*nearest is 1485 MHz"):
        ClockLock(GPU, 1200).__enter__()
    with ClockLock(GPU, 1492):
        assert nvml.calls == ["lock 1492"]


def test_a_clock_that_cannot_be_given_back_is_said(nvml):
    nvml.fails("reset", UNKNOWN)
    text = r"given back \(Unknown Error\).*-i GPU-1234 -rgc"
    with pytest.raises(KlabError, match=text), ClockLock(GPU, 1500):
        pass
    with pytest.raises(ValueError, match="own") as raised, ClockLock(GPU, 1500):
        raise ValueError("own")
    assert "-rgc" in raised.value.__notes__[0]


def test_a_driver_that_does_not_answer_is_an_error(nvml, monkeypatch):
    monkeypatch.setattr(clock_lock, "PATIENCE_S", 0.0)
    with pytest.raises(ConfigError, match="no answer"):
        ClockLock(GPU, 1500).__enter__()
    assert within(5, lambda: nvml.calls in ([], ["lock 1500", "reset"]))


def test_a_file_that_cannot_be_used_is_an_error(nvml, tmp_path):
    (tmp_path / "klab-clock-GPU-1234.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=rf"cannot be used.*{tmp_path}.*clocks=observe"):
        ClockLock(GPU, 1500).__enter__()
    assert not (tmp_path / "elsewhere").exists()


def test_every_job_of_a_machine_finds_the_same_file(monkeypatch, tmp_path):
    """A batch system gives each job a TMPDIR of its own."""
    found = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / name))
        monkeypatch.setattr(tempfile, "tempdir", None)
        found.add(clock_lock.lock_file("GPU-1234"))
    (file,) = found
    assert file.parent in (Path("/dev/shm"), Path("/tmp"))
    assert file.name == "klab-clock-GPU-1234.lock"


def test_the_file_lies_in_the_first_folder_that_can_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "locked").mkdir(mode=0o500)
    (tmp_path / "good").mkdir()
    folders = [tmp_path / name for name in ("nowhere", "file", "locked", "good")]
    monkeypatch.setattr(clock_lock, "FOLDERS", tuple(folders))
    if os.geteuid():  # root may write anywhere
        assert clock_lock.lock_file("x").parent == folders[-1]
    folders.remove(tmp_path / "locked")
    monkeypatch.setattr(clock_lock, "FOLDERS", tuple(folders))
    assert clock_lock.lock_file("x").parent == folders[-1]
    monkeypatch.setattr(clock_lock, "FOLDERS", tuple(folders[:2]))
    assert clock_lock.lock_file("x").parent == folders[1]  # its error says what is wrong there


def test_a_guardian_of_our_own_that_does_not_end_is_no_other_job(nvml, monkeypatch):
    monkeypatch.setattr(clock_lock, "END_S", 0.2)
    lock = ClockLock(GPU, 1500)
    lock.__enter__()
    guard = lock._guard._process
    os.kill(guard.pid, signal.SIGSTOP)
    monkeypatch.setattr(clock_lock, "PATIENCE_S", 0.2)
    try:
        text = rf"not be given back \(its guardian, process {guard.pid}, .*-i GPU-1234 -rgc"
        with pytest.raises(KlabError, match=text):
            lock.__exit__(None, None, None)
        assert nvml.calls == ["lock 1500"]
    finally:
        os.kill(guard.pid, signal.SIGCONT)
        guard.wait(timeout=20)
    assert nvml.calls == ["lock 1500", "reset"]  # it was asked to end, and does once it may run


def test_anybody_may_lock_the_file_later(nvml, tmp_path):
    before = os.umask(0o077)
    try:
        with ClockLock(GPU, 1500):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "klab-clock-GPU-1234.lock").stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("mode", list(Mode))
def test_only_a_rule_that_locks_a_gpu_that_is_timed_locks_anything(nvml, mode):
    for experiment, gpu in ((rule("observe", mode), GPU), (rule("lock:1500", mode), None)):
        with clock_rule(experiment, gpu):
            assert nvml.calls == []
    with clock_rule(rule("lock:1500", mode), GPU):
        assert nvml.calls == (["lock 1500"] if mode is Mode.run else [])
