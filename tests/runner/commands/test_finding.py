"""`klab finding`: from a run to a file, and from files to the tables in the documents."""

import json
from pathlib import Path

import pytest
from kernel_lab.runner.commands.finding import main
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.folder import JobFolder
from kernel_lab.runner.outputs import outputs as place
from kernel_lab.runner.tracking.store import locate
from kernel_lab.runner.tracking.to_mlflow import file_job


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "experiments/findings").mkdir(parents=True)
    marked = "# Title\n<!-- findings: {} -->\n<!-- end -->\n"
    (tmp_path / "README.md").write_text(marked.format("h200/bias_gelu_fusion"))
    (tmp_path / "experiments/README.md").write_text(marked.format("all"))
    return tmp_path


def write(checkout, run):
    assert main([run, "--output", str(checkout / "experiments/findings")]) == 0
    return checkout / "experiments/findings/h200/bias_gelu_fusion.json"


def tables(checkout, *more):
    return main(["--tables", "--output", str(checkout / "experiments/findings"), *more])


@pytest.mark.parametrize("by", ["id", "folder"])
def test_run_by_id_and_by_folder(gemm, checkout, by):
    values = json.loads(write(checkout, getattr(gemm, by)).read_text())
    assert len(values["rows"]) == len(gemm.records)


def test_run_by_the_ids_that_the_store_gave(gemm, checkout):
    filed = file_job(gemm, locate(place()))
    for run in (filed["job"], filed["implementations"]["triton"]):
        path = write(checkout, run)
        assert json.loads(path.read_text())["experiment"] == gemm.experiment
        path.unlink()


def test_unknown_run_names_the_known(gemm, checkout):
    with pytest.raises(ConfigError, match=gemm.id):
        main(["j19990101", "--output", str(checkout)])


def test_replacing_a_finding_is_said(gemm, checkout, capsys):
    write(checkout, gemm.id)
    assert "replaces" not in capsys.readouterr().out
    write(checkout, gemm.id)
    assert f"replaces the one of 2026-12-01, job {gemm.id}" in capsys.readouterr().out


def test_a_dirty_commit_is_said(gemm, checkout, capsys):
    write(checkout, gemm.id)
    assert "note:" not in capsys.readouterr().out
    folder = JobFolder(Path(gemm.folder))
    environment = {**gemm.environment, "code": {"commit": "1" * 40, "dirty": True}}
    folder.write_json("environment.json", environment)
    write(checkout, gemm.id)
    assert "note: commit 1111111111-dirty" in capsys.readouterr().out


def test_the_next_step_fits_the_documents_that_are_there(gemm, checkout, capsys):
    write(checkout, gemm.id)
    out = capsys.readouterr().out
    assert f"next: klab finding --tables --output {checkout / 'experiments/findings'}" in out
    for file in ("README.md", "experiments/README.md"):
        (checkout / file).write_text("# Title\n")
    write(checkout, gemm.id)
    assert "next: put <!-- findings: h200/bias_gelu_fusion -->" in capsys.readouterr().out


def test_an_unknown_id_names_the_doctors_too(gemm, checkout):
    (place() / "doctor" / "doctor-20261201-000000-aaaa").mkdir(parents=True)
    with pytest.raises(ConfigError, match="doctor-20261201-000000-aaaa"):
        main(["nonsense", "--output", str(checkout)])


def test_check_fails_until_the_tables_are_printed(gemm, checkout, capsys):
    write(checkout, gemm.id)
    before = (checkout / "README.md").read_text()
    assert tables(checkout, "--check") == 1
    assert (checkout / "README.md").read_text() == before
    assert "+| M=512" in capsys.readouterr().out
    assert tables(checkout) == 0
    assert tables(checkout, "--check") == 0
    assert "| M=512" in (checkout / "README.md").read_text()
    assert "### h200/bias_gelu_fusion" in (checkout / "experiments/README.md").read_text()


def test_number_changed_by_hand_is_found(gemm, checkout):
    write(checkout, gemm.id)
    tables(checkout)
    readme = checkout / "experiments/README.md"
    readme.write_text(readme.read_text().replace("faster", "much faster", 1))
    assert tables(checkout, "--check") == 1


@pytest.mark.parametrize("arguments", [[], ["run", "--tables"], ["run", "--check"]])
def test_unclear_request_is_refused(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_tables_of_this_checkout_are_printed_from_its_findings():
    assert main(["--tables", "--check"]) == 0
