"""Where files go, and how a job is found again."""

from pathlib import Path

import pytest
from kernel_lab.runner import outputs as place
from kernel_lab.runner.errors import ConfigError, StoreError


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


@pytest.mark.parametrize("text", ["", "a" * 300, "nul\0", "..", "/etc", "*"])
def test_what_is_no_id_at_all_is_one_message_too(outputs, gemm, chain, text):
    with pytest.raises(ConfigError, match=r"unknown\. Choices"):
        place.find_job(text)


def test_of_many_jobs_the_last_are_named(outputs, jobs):
    for number in range(30):
        folder = outputs / f"runs/run-{number:02d}"
        folder.mkdir(parents=True)
        (folder / "job.json").write_text("{}")
    with pytest.raises(ConfigError) as caught:
        place.find_job("nope")
    assert "run-29" in str(caught.value)
    assert "run-00" not in str(caught.value)
    assert "18 older" in str(caught.value)


def test_no_job_yet_says_how_to_start_one(outputs):
    with pytest.raises(ConfigError, match="klab run"):
        place.latest_job()


def test_a_folder_is_created_once(outputs):
    folder = place.create_exclusively(place.run_folder("run-1"))
    assert folder.is_dir()
    with pytest.raises(StoreError, match="run-1"):
        place.create_exclusively(place.run_folder("run-1"))


def test_outputs_that_cannot_be_written_are_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KLAB_OUTPUTS", str(tmp_path / "file"))
    with pytest.raises(StoreError, match=r"outputs folder .*file cannot be used.*KLAB_OUTPUTS"):
        place.create_exclusively(place.run_folder("run-1"))
