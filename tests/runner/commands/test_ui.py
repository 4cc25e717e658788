"""`klab ui`: the server on the local store, said with its address, ended with the command."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from kernel_lab.runner.commands.ui import main
from kernel_lab.runner.errors import StoreError
from kernel_lab.runner.outputs import outputs as place
from kernel_lab.runner.tracking.store import locate
from kernel_lab.runner.tracking.to_mlflow import file_job

COMMAND = """
import sys
from kernel_lab.runner.commands.ui import main
sys.exit(main(['--port', '0']))
"""


def test_port_that_is_taken_is_said_with_another(outputs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StoreError, match=f"--port {port}: taken"):
            main(["--port", str(port)])


def test_store_that_is_a_server_needs_none(outputs, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracker:5000")
    assert main([]) == 0
    assert "http://tracker:5000" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_server_answers_with_the_runs_and_ends_with_the_command(gemm, end):
    store = locate(place())
    filed = file_job(gemm, store)
    ui = subprocess.Popen(
        [sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said = []
        while not said or not said[-1].startswith("compare"):
            line = ui.stdout.readline()
            assert line, said
            said.append(line)
        text = "".join(said)
        assert said[0].startswith("MLflow is starting")
        address = re.search(r"open (http://127\.0\.0\.1:\d+)", text).group(1)
        assert filed["implementations"]["triton"] in text
        query = f"{address}/api/2.0/mlflow/runs/get?run_id={filed['job']}"
        with urllib.request.urlopen(query, timeout=20) as answer:
            assert b"bias_gelu_fusion" in answer.read()
        assert _processes(store)
        ui.send_signal(end)
        assert ui.wait(30) == 0
        for _ in range(50):
            if not _processes(store):
                break
            time.sleep(0.2)
        assert not _processes(store)
    finally:
        if ui.poll() is None:
            os.killpg(ui.pid, signal.SIGKILL)


def _processes(store):
    """Command lines of processes that serve this store."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if store.uri.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(path.with_name("cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found
