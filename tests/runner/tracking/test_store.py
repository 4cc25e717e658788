"""Where the store is, and what is found out before the first job."""

import http.server
import socket
import subprocess
import sys
import threading
import time

import pytest
from kernel_lab.runner.errors import StoreError
from kernel_lab.runner.tracking.store import (
    SWEEPS,
    connect,
    experiment_id,
    folder_of_run,
    locate,
    preflight,
)
from kernel_lab.runner.tracking.to_mlflow import file_job


def test_default_is_a_database_under_the_outputs_with_artifacts_beside_it(tmp_path):
    store = locate(tmp_path)
    assert store.uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert store.artifacts == tmp_path / "mlflow-artifacts"
    assert not list(tmp_path.iterdir())


def test_environment_names_the_store_and_configuration_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracker:5000")
    assert locate(tmp_path).uri == "http://tracker:5000"
    assert locate(tmp_path, uri="postgresql+psycopg2://u@h/d").uri.startswith("postgresql")


def test_relative_database_does_not_move_with_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = locate(tmp_path / "outputs", uri="sqlite:///here.db")
    assert store.database == tmp_path / "here.db"
    assert store.artifacts == tmp_path / "mlflow-artifacts"


@pytest.mark.parametrize(
    "uri", ["./mlruns", "file:./mlruns", "file:///data/mlruns", "/data/mlruns"]
)
@pytest.mark.parametrize("how", ["configuration", "environment"])
def test_folder_store_is_refused_with_what_to_write_instead(tmp_path, monkeypatch, uri, how):
    if how == "environment":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(StoreError, match="sqlite:///") as caught:
        locate(tmp_path, uri=uri if how == "configuration" else "")
    assert uri in str(caught.value)
    assert caught.value.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_unknown_kind_and_server_without_address_are_refused(tmp_path):
    with pytest.raises(StoreError, match="ftp"):
        locate(tmp_path, uri="ftp://host/x")
    with pytest.raises(StoreError, match="MLFLOW_TRACKING_URI"):
        locate(tmp_path, server=True)


def test_server_that_is_not_there_is_said_within_seconds(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{free.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(StoreError, match=uri):
        preflight(locate(tmp_path, uri=uri), ["gemm"])
    assert time.monotonic() - began < 20


def test_server_that_never_answers_is_said_within_its_time_out(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(StoreError, match="within 1 s"):
            preflight(locate(tmp_path, uri=uri, timeout_s=1), ["gemm"])
        assert time.monotonic() - began < 20


def test_server_that_breaks_after_its_health_page_is_a_store_error(tmp_path):
    class Broken(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            healthy = self.path == "/health"
            self.send_response(200 if healthy else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Broken) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(StoreError, match=uri):
            preflight(locate(tmp_path, uri=uri), ["gemm"])
        server.shutdown()


def test_file_that_is_no_database_is_a_store_error(tmp_path):
    (tmp_path / "mlflow.db").write_text("not a database " * 100)
    with pytest.raises(StoreError, match=r"mlflow\.db"):
        preflight(locate(tmp_path), ["gemm"])


def test_deleted_experiment_is_found_before_the_first_job(store, client):
    number = experiment_id(client, store, "gemm")
    client.delete_experiment(number)
    with pytest.raises(StoreError) as caught:
        preflight(store, ["softmax", "gemm"])
    for choice in ("restore --experiment-id " + number, "tracking.prefix=", "tracking.uri="):
        assert choice in str(caught.value)
    client.restore_experiment(number)
    preflight(store, ["softmax", "gemm"])


def test_deleted_sweeps_experiment_is_found_too(store, client):
    client.delete_experiment(experiment_id(client, store, SWEEPS))
    with pytest.raises(StoreError, match=SWEEPS):
        preflight(store, ["gemm"])


def test_prefix_is_the_way_out_of_a_taken_name(store, client, tmp_path):
    client.delete_experiment(experiment_id(client, store, "gemm"))
    other = locate(tmp_path / "outputs", prefix="new-")
    preflight(other, ["gemm"])
    assert client.get_experiment(experiment_id(client, other, "gemm")).name == "new-gemm"


def test_experiment_has_its_artifact_place_and_the_tags_that_the_ui_reads(store, client):
    experiment = client.get_experiment(experiment_id(client, store, "gemm"))
    assert experiment.artifact_location == (store.artifacts / "gemm").as_uri()
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    assert experiment.tags["mlflow.experiment.primaryMetric.name"] == "latency_us/median"
    assert experiment_id(client, store, "gemm") == experiment.experiment_id


def test_job_folder_is_found_from_a_run_and_from_its_children(store, gemm):
    filed = file_job(gemm, store)
    for run in (filed["job"], filed["implementations"]["triton"]):
        assert str(folder_of_run(store, run)) == gemm.folder
    with pytest.raises(StoreError):
        folder_of_run(store, "0" * 32)


START_AT_ONCE = """
import sys, time
from pathlib import Path
import mlflow
from kernel_lab.runner.tracking.store import connect, experiment_id, locate
folder = Path(sys.argv[1])
(folder / f"ready-{sys.argv[2]}").touch()
while not (folder / "go").exists():
    time.sleep(0.01)
store = locate(folder / "outputs")
client = connect(store)
run = client.create_run(experiment_id(client, store, "gemm")).info.run_id
for first in range(0, 200, 50):
    points = [mlflow.entities.Metric("x", float(k), 0, k) for k in range(first, first + 50)]
    client.log_batch(run, metrics=points)
client.set_terminated(run)
print(run)
"""


@pytest.mark.slow
def test_processes_that_start_at_once_on_a_missing_database_all_complete(tmp_path):
    count = 8
    started = [
        subprocess.Popen(
            [sys.executable, "-c", START_AT_ONCE, str(tmp_path), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    while len(list(tmp_path.glob("ready-*"))) < count:
        assert all(process.poll() is None for process in started)
        time.sleep(0.05)
    (tmp_path / "go").touch()
    ended = [(process.communicate(timeout=200), process.returncode) for process in started]
    assert [code for _, code in ended] == [0] * count, ended
    client = connect(locate(tmp_path / "outputs"))
    for (printed, _), _ in ended:
        run = printed.strip().split("\n")[-1]
        assert client.get_run(run).info.status == "FINISHED"
        assert len(client.get_metric_history(run, "x")) == 200
