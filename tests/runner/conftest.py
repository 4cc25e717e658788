"""Jobs made by hand for every test of a sink, and what stands for the driver and for tools."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from kernel_lab.runner import clock_lock


def beside(name):
    """The module of this name in this folder."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"made_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def jobs():
    """The module `jobs.py` beside this file."""
    return beside("jobs")


@pytest.fixture(scope="session")
def exports():
    """The module `exports.py` beside this file: what nsys would export, made by hand."""
    return beside("exports")


@pytest.fixture
def export(exports):
    """An export to be filled."""
    return exports.Export()


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


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Makes an executable out of a Python program, found through KLAB_NSYS or KLAB_NCU."""

    def make(name, program):
        path = tmp_path / f"fake-{name}"
        head = f"#!{sys.executable}\nimport os, pathlib, subprocess, sys\nwords = sys.argv[1:]\n"
        version = f'if words == ["--version"]:\n    print("{name} version 2025.3.1.0")\n'
        path.write_text(f"{head}{version}    sys.exit(0)\n{program}\n")
        path.chmod(0o755)
        monkeypatch.setenv({"nsys": "KLAB_NSYS", "ncu": "KLAB_NCU"}[name], str(path))
        return path

    return make
