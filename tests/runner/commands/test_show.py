"""`klab show`: by job, cell, implementation, and by default the last job."""

import dataclasses
import os
import re

import pytest
from kernel_lab.runner.commands.show import main
from kernel_lab.runner.errors import ConfigError


def shown(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_last_job_by_default(capsys, gemm, chain):
    assert chain.id in shown(capsys)


def test_job_by_id_prints_its_table(capsys, gemm, chain):
    text = shown(capsys, gemm.id)
    assert gemm.question in text
    assert "speed-up" in text


def test_cell_prints_all_its_records_in_full(capsys, gemm, chain):
    cell = gemm.records[0].cell
    text = shown(capsys, cell.id)
    for record in gemm.records:
        if record.cell.id == cell.id:
            assert record.repro in text


def test_compiling_and_tuning_are_told_apart(capsys, jobs, outputs):
    """T07: both durations and the winner."""
    job = jobs.gemm_job(outputs / "runs/j20261201-120000-cc33")
    told = {"compile_s": 3.0, "tuning_s": 7.0, "first_call_s": 10.0, "tuning": "BLOCK=128"}
    records = tuple(dataclasses.replace(record, **told) for record in job.records)
    written = jobs.written(dataclasses.replace(job, records=records))
    text = shown(capsys, f"{written.id}/{records[0].cell.id}")
    for name, value in (("compile", "3"), ("autotune", "7"), ("first call", "10")):
        assert re.search(rf"{name} +{value}\b", text), text
    assert "BLOCK=128" in text


def test_cell_alone_means_the_last_job_that_holds_it(capsys, jobs, gemm, outputs):
    later = jobs.written(jobs.gemm_job(outputs / "runs/j20261201-120000-cc33"))
    os.utime(f"{gemm.folder}/job.json")
    cell = gemm.records[0].cell.id
    assert gemm.folder in shown(capsys, f"{gemm.id}/{cell}")
    assert later.folder in shown(capsys, f"{later.id}/{cell}")


@pytest.mark.parametrize("form", ["{job}/{cell}/triton", "{cell}/triton", "{folder}"])
def test_forms_of_an_id(capsys, gemm, form):
    cell = gemm.records[0].cell.id
    text = shown(capsys, form.format(job=gemm.id, cell=cell, folder=gemm.folder))
    assert "triton" in text
    if "{cell}" in form:
        assert "triton_kernel_0" in text
        assert "cublaslt" not in text


def test_a_doctor_prints_its_report(capsys, gemm, outputs):
    folder = outputs / "doctor/doctor-20261201-100000-aa11"
    folder.mkdir(parents=True)
    (folder / "doctor.json").write_text("{}")
    (folder / "report.txt").write_text("what the instruments say\n")
    assert shown(capsys, folder.name) == "what the instruments say\n"
    assert shown(capsys, str(folder)) == "what the instruments say\n"


def test_unknown_parts_name_the_known(gemm):
    with pytest.raises(ConfigError, match=gemm.id):
        main(["j0"])
    with pytest.raises(ConfigError, match="holds the cell"):
        main(["c00000000"])
    with pytest.raises(ConfigError, match="triton"):
        main([f"{gemm.id}/{gemm.records[0].cell.id}/tritn"])
