"""What a store holds of a job: runs, metrics by cell, params, tags, files, and their ends."""

import dataclasses
import json
import math
import os
import shutil
from pathlib import Path

import mlflow
import pytest
from kernel_lab.runner.errors import StoreError
from kernel_lab.runner.records import Interval, JobStatus, Workload
from kernel_lab.runner.report.write import write_report
from kernel_lab.runner.tracking import to_mlflow
from kernel_lab.runner.tracking.contents import implementation_params
from kernel_lab.runner.tracking.identity import identity
from kernel_lab.runner.tracking.store import locate
from kernel_lab.runner.tracking.to_mlflow import file_job, file_sweep, open_job


@pytest.fixture
def filed(gemm, store):
    write_report(gemm)
    return file_job(gemm, store)


def history(client, run, key):
    return {point.step: point.value for point in client.get_metric_history(run, key)}


def children(client, filed):
    experiment = client.get_run(filed["job"]).info.experiment_id
    query = f"tags.`mlflow.parentRunId` = '{filed['job']}'"
    return {run.info.run_id: run for run in client.search_runs([experiment], query)}


def test_one_experiment_a_kernel_a_run_a_job_and_a_child_an_implementation(filed, client, gemm):
    job = client.get_run(filed["job"])
    assert client.get_experiment(job.info.experiment_id).name == "gemm_bias_act"
    assert job.data.tags["role"] == "job"
    assert set(filed["implementations"]) == {"eager", "compile", "cublaslt", "triton"}
    assert set(children(client, filed)) == set(filed["implementations"].values())
    for name, run_id in filed["implementations"].items():
        run = client.get_run(run_id)
        assert run.data.tags["role"] == "implementation"
        assert run.data.tags["implementation"] == name
        assert run.info.run_name.startswith(name)
        assert run.data.tags["job"] == gemm.id


def test_metrics_are_stepped_by_cell_and_equal_the_records(filed, client, gemm):
    run = filed["implementations"]["triton"]
    own = {r.cell.index: r for r in gemm.records if r.implementation == "triton"}
    latency = history(client, run, "latency_us/median")
    assert latency == {k: r.timing.latency_us.median for k, r in own.items()}
    assert history(client, run, "case/M") == {0: 512.0, 1: 1024.0, 2: 4096.0}
    assert history(client, run, "evidence/launches") == {0: 1.0, 1: 1.0, 2: 1.0}
    assert set(history(client, run, "summary/speedup_geomean")) == {0}
    size = history(client, run, "case/size")
    assert list(size.values()) == sorted(size.values())


def test_cell_without_a_time_leaves_a_gap(filed, client):
    run = filed["implementations"]["cublaslt"]
    assert "latency_us/median" not in client.get_run(run).data.metrics
    assert history(client, run, "case/M") == {0: 512.0, 1: 1024.0, 2: 4096.0}


def test_metric_keys_stay_about_thirty_and_are_grouped(filed, client):
    for run_id in [filed["job"], *filed["implementations"].values()]:
        keys = client.get_run(run_id).data.metrics
        assert len(keys) <= 32
        assert all("/" in key for key in keys)


def test_numbers_that_are_not_finite_are_left_out(gemm, store, client):
    first = next(r for r in gemm.records if r.implementation == "triton")
    endless = Interval(median=math.inf, low=math.nan, high=math.inf)
    timing = dataclasses.replace(first.timing, warm_us=endless, host_us=math.nan)
    checked = dataclasses.replace(first.correctness, max_error=math.inf)
    record = dataclasses.replace(first, timing=timing, correctness=checked)
    job = dataclasses.replace(gemm, records=(record,))
    run = client.get_run(file_job(job, store)["implementations"]["triton"])
    assert run.data.metrics
    assert all(abs(value) < 1e300 for value in run.data.metrics.values())
    assert not {"time_us/warm", "time_us/host", "check/max_error"} & set(run.data.metrics)


def test_axis_with_a_name_that_the_store_refuses_is_logged(gemm, store, client):
    record = next(r for r in gemm.records if r.implementation == "triton")
    workload = Workload(axes={"M@cold(x)": 7}, dtype="bf16")
    cell = dataclasses.replace(record.cell, workload=workload)
    job = dataclasses.replace(gemm, records=(dataclasses.replace(record, cell=cell),))
    run = client.get_run(file_job(job, store)["implementations"]["triton"])
    assert run.data.metrics["case/M_u40_cold_u28_x_u29_"] == 7


def test_params_are_the_resolved_config(filed, client):
    params = client.get_run(filed["job"]).data.params
    assert params["dtype.name"] == "bf16"
    assert params["protocol.band"] == "0.01"
    assert params["shapes.product.M"] == "[512, 1024, 4096]"
    child = client.get_run(filed["implementations"]["triton"]).data.params
    assert child["implementation"] == "triton"


def test_long_param_is_shortened_with_its_text_as_a_file(gemm, store, client):
    config = {**gemm.config, "shapes": {"cases": ["M=1"] * 3000}}
    filed = file_job(dataclasses.replace(gemm, config=config), store)
    run = client.get_run(filed["job"])
    value = run.data.params["shapes.cases"]
    assert len(value) <= 6000
    assert "sha256:" in value
    path = client.download_artifacts(filed["job"], "params/shapes.cases.txt")
    assert json.loads(Path(path).read_text()) == ["M=1"] * 3000
    assert run.data.metrics


def test_tags_tell_who_where_and_what_came_out(filed, client, gemm):
    tags = client.get_run(filed["job"]).data.tags
    assert tags["job_sig"] == gemm.signature
    assert tags["gpu"] == "NVIDIA H200"
    assert tags["gpu_driver"] == "580.95.05"
    assert tags["git_commit"] == gemm.environment["code"]["commit"]
    assert tags["git_dirty"] == "False"
    assert tags["verdict"] == "supported"
    assert tags["status_reason"] == "2 records failed"
    assert tags["case_size_unit"] == "FLOP"
    assert client.get_run(filed["implementations"]["triton"]).data.tags["verdict"] == "faster 3"


def test_a_locked_clock_is_a_tag_and_a_param_and_an_observed_one_is_not(gemm):
    def told(clocks):
        config = {**gemm.config, "protocol": {"name": "standard", "clocks": clocks}}
        job = dataclasses.replace(gemm, config=config)
        params = implementation_params(job, "triton")
        return identity(job).get("clocks"), params.get("protocol.clocks")

    assert told("lock:1500") == ("lock:1500", "lock:1500")
    assert told("observe") == (None, None)


def test_note_is_a_table_with_question_and_verdicts(filed, client, gemm):
    note = client.get_run(filed["job"]).data.tags["mlflow.note.content"]
    assert gemm.question in note
    assert "| speedup >= 1.05 | supported |" in note
    assert note.count("\n| M") == len(gemm.records)


def test_files_of_the_folder_are_artifacts(filed, client, store):
    names = {item.path for item in client.list_artifacts(filed["job"])}
    assert names >= {
        "config.json", "environment.json", "records.jsonl", "judgement.json", "ranges.json",
        "job.json", "results.csv", "samples.csv", "report.txt", "plots",
    }  # fmt: skip
    plots = [item.path for item in client.list_artifacts(filed["job"], "plots")]
    assert plots[0] == "plots/latency.png"
    assert len(plots) > 1
    assert all(path.startswith("plots/timeline-") for path in plots[1:])
    assert any(store.artifacts.rglob("report.txt"))


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (JobStatus.finished, "FINISHED"),
        (JobStatus.failed, "FAILED"),
        (JobStatus.killed, "KILLED"),
    ],
)
def test_runs_end_as_the_job_ended(gemm, store, client, status, end):
    filed = file_job(dataclasses.replace(gemm, status=status), store)
    job = client.get_run(filed["job"]).info
    assert job.status == end
    assert job.end_time - job.start_time == 100_000
    ends = {name: client.get_run(run).info.status for name, run in filed["implementations"].items()}
    if status == JobStatus.killed:
        assert set(ends.values()) == {"KILLED"}
    else:
        assert ends["triton"] == "FINISHED"
        assert ends["cublaslt"] == "FAILED"


def test_run_is_open_while_the_job_runs_and_is_the_one_that_ends(gemm, store, client):
    started = dataclasses.replace(
        gemm, records=(), ended=None, status=JobStatus.running, environment={}
    )
    run_id = open_job(started, store)
    run = client.get_run(run_id)
    assert run.info.status == "RUNNING"
    assert run.info.end_time is None
    assert run.data.tags["pid"] == str(os.getpid())
    assert run.data.tags["host"]
    assert run.data.tags["boot_id"]
    assert file_job(gemm, store)["job"] == run_id
    ended = client.get_run(run_id)
    assert ended.info.status == "FAILED"
    assert ended.data.tags["gpu"] == "NVIDIA H200"


def test_filing_again_adds_nothing(gemm, store, client, filed):
    assert file_job(gemm, store) == filed
    experiment = client.get_run(filed["job"]).info.experiment_id
    assert len(client.search_runs([experiment])) == 5
    assert len(client.get_metric_history(filed["job"], "summary/cells")) == 1
    assert client.get_run(filed["job"]).data.metrics["summary/records"] == len(gemm.records)
    run = filed["implementations"]["triton"]
    assert len(client.get_metric_history(run, "case/M")) == 3


def test_filing_takes_up_where_it_broke_off(gemm, store, client, monkeypatch):
    log, calls = to_mlflow._log, []

    def breaks(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise OSError("connection reset")
        log(*arguments)

    monkeypatch.setattr(to_mlflow, "_log", breaks)
    with pytest.raises(StoreError, match="connection reset"):
        file_job(gemm, store)
    monkeypatch.setattr(to_mlflow, "_log", log)
    filed = file_job(gemm, store)
    assert set(children(client, filed)) == set(filed["implementations"].values())
    assert len(filed["implementations"]) == 4
    for run in filed["implementations"].values():
        assert len(client.get_metric_history(run, "case/M")) == 3


def test_another_store_gets_runs_of_its_own(gemm, filed, tmp_path, empty_database):
    place = tmp_path / "second"
    place.mkdir()
    shutil.copy(empty_database, place / "mlflow.db")
    second = file_job(gemm, locate(place))
    assert second["job"] != filed["job"]
    assert second["store"] != filed["store"]


def test_ids_in_the_environment_belong_to_somebody_else(gemm, store, client, monkeypatch):
    foreign = client.create_run(client.create_experiment("foreign")).info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", foreign)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "foreign")
    filed = file_job(gemm, store)
    assert foreign not in (filed["job"], *filed["implementations"].values())
    assert client.get_run(foreign).data.metrics == {}
    assert client.get_run(foreign).info.status == "RUNNING"
    assert mlflow.active_run() is None


def test_sweep_has_one_roll_up_linked_by_its_tag(jobs, tmp_path, store, client):
    made = [
        jobs.written(jobs.gemm_job(tmp_path / f"outputs/sweeps/s1/j{k}", sweep_id="s1"))
        for k in range(2)
    ]
    for job in made:
        file_job(job, store)
    run = client.get_run(file_sweep("s1", made, store))
    assert client.get_experiment(run.info.experiment_id).name == "sweeps"
    assert run.data.tags["role"] == "sweep"
    assert run.info.status == "FAILED"
    assert run.data.metrics["summary/jobs"] == 2
    assert run.data.metrics["summary/jobs_failed"] == 2
    kernels = client.get_experiment_by_name("gemm_bias_act").experiment_id
    found = client.search_runs([kernels], "tags.sweep_id = 's1' AND tags.role = 'job'")
    assert len(found) == 2
    for one in found:
        assert one.info.run_id in run.data.tags["mlflow.note.content"]


def test_cpu_job_has_no_gpu_tags_and_no_floor(chain, store, client):
    filed = file_job(chain, store)
    job = client.get_run(filed["job"])
    assert "gpu" not in job.data.tags
    assert job.data.tags["case_size_unit"] == "bytes"
    triton = client.get_run(filed["implementations"]["triton"])
    assert "latency_us/median" not in triton.data.metrics
    assert triton.data.tags["statuses"] == "empty 1, checked 2"
