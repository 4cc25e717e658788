"""Jobs made by hand, for every test of a sink."""

import importlib.util
from pathlib import Path

import pytest


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
