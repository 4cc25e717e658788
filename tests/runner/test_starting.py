"""Workers started ahead of their need: real processes of the real worker, and what they leave."""

import os
import signal
import time
from pathlib import Path

import pytest
from kernel_lab.runner.environment import worker_environment
from kernel_lab.runner.errors import WorkerError
from kernel_lab.runner.schema import Device, Experiment
from kernel_lab.runner.starting import Workers

START = {"do": "start", "python_path": [], "job": "j", "ceilings": False, "experiment": {}}


@pytest.fixture
def make(tmp_path):
    made = []

    def begin(kind=Device.cpu, *, inline=False):
        workers = Workers(
            logs=tmp_path / "logs",
            logs_as="trace",
            start={**START, "kind": kind},
            environment=worker_environment(Experiment(), None),
            inline=inline,
        )
        made.append(workers)
        return workers

    yield begin
    for workers in made:
        workers.close()


def pid_of(workers):
    return workers._worker._process.pid


def threads(pid):
    """Of each thread: its state, and how often it was switched to."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        values = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        switches = [v for k, v in values.items() if k.endswith("ctxt_switches")]
        found[task.name] = (values["State"][0], *switches)
    return found


def opened(pid):
    return {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}


def asleep(pid):
    """Whether all threads stayed asleep for a while: none ran, not even to look at a clock."""
    before = threads(pid)
    time.sleep(0.5)
    return before == threads(pid) and {state for state, *_ in before.values()} == {"S"}


def is_still(workers):
    workers.prepare()
    workers.prepared()
    pid = pid_of(workers)
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert "libtorch" in maps  # it has imported
    assert not [name for name in opened(pid) if "nvidia" in name]  # and opened no device
    assert not Path(f"/proc/{pid}/task/{pid}/children").read_text()
    time.sleep(0.5)  # pools of threads that an import made go to sleep
    return any(asleep(pid) for _ in range(3))


def test_a_worker_that_waits_sleeps_and_holds_no_device_until_it_is_ended(make):
    workers = make()
    assert is_still(workers)
    pid = pid_of(workers)
    workers.close()
    assert not Path(f"/proc/{pid}").exists()
    assert set(workers.seconds) == {"start workers", "end workers"}
    workers.close()


@pytest.mark.gpu
def test_a_worker_that_waits_beside_a_gpu_holds_no_device(make):
    assert is_still(make(Device.cuda))


def test_the_worker_that_imported_is_the_one_that_starts(make):
    workers = make()
    workers.prepare()
    assert workers.log_name() == "logs/trace-01.log"
    pid = pid_of(workers)
    workers.ready()  # also where nobody waited for the imports
    assert pid_of(workers) == pid
    assert workers.environment["software"]
    assert workers.ready() is workers.ready()
    assert set(workers.seconds) == {"start workers"}


@pytest.mark.parametrize("waited", [True, False])
def test_one_that_died_while_it_waited_is_replaced(make, waited):
    workers = make()
    workers.prepare()
    if waited:
        workers.prepared()
    pid = pid_of(workers)
    os.kill(pid, signal.SIGKILL)
    workers._worker.exit_code(5.0)
    workers.ready()
    assert pid_of(workers) != pid
    assert workers.log_name() == "logs/trace-02.log"


def test_one_that_cannot_import_is_dropped_and_the_next_one_says_why(make, monkeypatch, tmp_path):
    workers = make()
    workers._environment["PYTHONPATH"] = str(tmp_path)
    (tmp_path / "torch.py").write_text("raise RuntimeError('a broken torch')")
    workers.prepare()
    workers.prepared()
    assert workers._worker is None
    with pytest.raises(Exception, match="a broken torch"):
        workers.ready()


def test_one_that_imports_for_too_long_is_given_up(make, monkeypatch):
    monkeypatch.setattr("kernel_lab.runner.starting.IMPORT_LIMIT_S", 0.0)
    workers = make()
    workers.prepare()
    workers.prepared()
    assert workers._worker is None


def test_an_inline_worker_imports_when_it_is_needed(make):
    workers = make(inline=True)
    workers.prepare()
    workers.prepared()
    assert workers._worker is None
    assert workers.seconds == {}


def test_one_that_hangs_while_it_opens_its_device_is_ended_after_a_limit(make, monkeypatch):
    workers = make()
    workers.prepare()
    workers.prepared()
    pid = pid_of(workers)
    os.kill(pid, signal.SIGSTOP)  # as a driver that does not answer holds it
    monkeypatch.setattr("kernel_lab.runner.starting.OPEN_LIMIT_S", 0.3)
    with pytest.raises(WorkerError, match=r"did not open its device within 0\.3 s.*trace-01\.log"):
        workers.ready()
    assert not Path(f"/proc/{pid}").exists()
    assert workers._worker is None
    monkeypatch.setattr("kernel_lab.runner.starting.OPEN_LIMIT_S", 300.0)
    assert workers.ready().alive  # the next one is not the one that hung
