"""Where files go, and how a job is found again."""

from pathlib import Path

import pytest
from kernel_lab.runner import outputs as place
from kernel_lab.runner.errors import ConfigError


def test_environment_says_where_and_the_answer_is_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KLAB_OUTPUTS", "here")
    assert place.outputs() == tmp_path / "here"
    assert not (tmp_path / "here").exists()


def test_checkout_is_used_whatever_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLAB_OUTPUTS")
    root = Path(__file__).resolve().parents[2]
    assert place.outputs() == root / "outputs"


def test_installed_package_uses_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLAB_OUTPUTS")
    monkeypatch.setattr(place, "__file__", str(tmp_path / "site/kernel_lab/runner/outputs.py"))
    assert place.outputs() == tmp_path / "outputs"


def test_job_is_found_by_id_by_beginning_and_by_folder(outputs, gemm, chain):
    assert str(place.find_job(gemm.id)) == gemm.folder
    assert str(place.find_job("j20261201-11")) == chain.folder
    assert str(place.find_job(chain.folder)) == chain.folder


def test_job_of_a_sweep_is_found(outputs, jobs):
    job = jobs.written(jobs.gemm_job(outputs / "sweeps/s1/j20261201-130000-ee55"))
    assert str(place.find_job(job.id)) == job.folder


def test_unknown_and_ambiguous_ids_name_the_known_ones(outputs, gemm, chain):
    with pytest.raises(ConfigError, match=gemm.id):
        place.find_job("j19990101")
    with pytest.raises(ConfigError, match="several"):
        place.find_job("j2026")


def test_no_job_yet_says_how_to_start_one(outputs):
    with pytest.raises(ConfigError, match="klab run"):
        place.latest_job()
