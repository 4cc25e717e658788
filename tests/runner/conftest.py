"""Jobs made by hand, for every test of a sink."""

import importlib.util
import json
from pathlib import Path

import pytest
from kernel_lab.runner import clock_lock


@pytest.fixture(scope="session")
def jobs():
    """The module `jobs.py` beside this file."""
    spec = importlib.util.spec_from_file_location("made_jobs", Path(__file__).with_name("jobs.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gemm(jobs, tmp_path):
    """A job on a GPU, read from its folder: ok, noisy, unsupported, wrong and out of memory."""
    return jobs.written(jobs.gemm_job(tmp_path / "outputs/runs/j20261201-100000-aa11"))


@pytest.fixture
def chain(jobs, tmp_path):
    """A job on a CPU, read from its folder: ok, checked and empty, and without a floor."""
    return jobs.written(jobs.chain_job(tmp_path / "outputs/runs/j20261201-110000-bb22"))


class Nvml:
    """The driver that other processes find: what was asked of it, and what it says no to."""

    def __init__(self, calls, monkeypatch):
        self._calls = calls
        self._monkeypatch = monkeypatch

    @property
    def calls(self):
        """Locks and resets in order: `lock 1500`, `reset`."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        found = [json.loads(line) for line in lines]
        assert all(given[1] == "GPU-1234" for given in found if given[0] != "init")
        assert all(given[2] == given[3] for given in found if given[0] == "lock")
        return [" ".join([name, *map(str, given[1:2])]) for name, *given in found if name != "init"]

    def fails(self, call, value):
        self._monkeypatch.setenv("KLAB_TEST_NVML_FAULT", f"{call}:{value}")


@pytest.fixture
def nvml(monkeypatch, tmp_path):
    """No process that is started from here meets the real driver."""
    monkeypatch.setenv("KLAB_TEST_NVML", str(tmp_path / "nvml.jsonl"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("nvml")))
    monkeypatch.setattr(clock_lock, "FOLDERS", (tmp_path,))
    return Nvml(tmp_path / "nvml.jsonl", monkeypatch)
