"""The MLflow server in front of a local store, for a browser on this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from ..errors import StoreError
from .store import Store, connect, translated

if TYPE_CHECKING:
    from mlflow import MlflowClient

_PATIENCE_S = 120
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_QUIET = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""Without the seven processes that serve what runs here have no use for."""

Run = tuple[str, str]
"""A run's id and its experiment's."""


def serve(store: Store, *, port: int, say: Callable[[str], None]) -> int:
    """Starts the server, says where it is once it answers, and stays until it ends.

    Runs may be filed meanwhile. A store that is a server needs none: its address is said.
    Raises StoreError where the port is taken or the server does not come up.
    """
    if store.artifacts is None:
        say(f"the store is a server: {store.uri}")
        return 0
    port = _free_port() if port == 0 else port
    _hold(port)
    experiments, last = _contents(store)
    say(f"MLflow is starting on {store.uri}; this takes some ten seconds")
    log = (store.database.parent if store.database else Path.cwd()) / "mlflow-ui.log"
    with log.open("wb") as stream:
        # a session of its own, so that all of its processes can be ended together
        server = subprocess.Popen(
            _command(store, port),
            stdout=stream,
            stderr=stream,
            env=_environment(),
            start_new_session=True,
        )
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        _wait(server, port, log)
        _welcome(f"http://127.0.0.1:{port}", experiments, last, say)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _end(server)
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _end(server: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, number)
        except ProcessLookupError:
            return
        # the leader is gone first; helpers that outlive it get the second signal
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=5)


def _command(store: Store, port: int) -> list[str]:
    return [
        sys.executable, "-m", "mlflow", "server",
        "--backend-store-uri", store.uri,
        "--default-artifact-root", str(store.artifacts),
        "--host", "127.0.0.1",
        "--port", str(port),
        "--workers", "1",
    ]  # fmt: skip


def _environment() -> dict[str, str]:
    """The server must not take its own address from the variable that clients read."""
    kept = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    return {**kept, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", **_QUIET}


def _contents(store: Store) -> tuple[dict[str, str], list[Run]]:
    """The store's experiments by name, and the implementations of its last job."""
    client = connect(store)
    with translated(store):
        found = {e.name: e.experiment_id for e in client.search_experiments()}
        return found, _last_job(client, found.values())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _hold(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StoreError(
                f"--port {port}: taken ({error.strerror}). Another: klab ui --port {port + 1}"
            ) from error


def _wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Until /health answers. Raises StoreError with the log's end where it does not."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if server.poll() is not None:
            tail = log.read_text(errors="replace").strip().split("\n")[-5:]
            raise StoreError(f"mlflow server ended with {server.returncode}:\n" + "\n".join(tail))
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise StoreError(f"mlflow server did not answer within {_PATIENCE_S} s; its log: {log}")


def _welcome(
    address: str, experiments: dict[str, str], last: list[Run], say: Callable[[str], None]
) -> None:
    """The GenAI layout that the UI opens with hides what runs are about: links name the other."""
    layout = "workflowType=machine_learning"
    say(f"open {address} (Ctrl-C ends it)")
    for name, number in experiments.items():
        if name != "Default":
            say(f"  {name}: {address}/#/experiments/{number}/runs?{layout}")
    if last:
        say(
            f"latency of the last job's implementations, one line each:\n  {address}/{_lines(last)}"
        )
    say("filters for the search box:")
    say("  tags.role = 'job'")
    say("  tags.role = 'implementation' AND tags.implementation = 'NAME'")
    say("  tags.sweep_id = 'ID'")
    say(
        "compare: expand jobs with [+], tick implementations, Compare; in a chart's settings, x may"
    )
    say("be the metric case/size or an axis such as case/M")


def _last_job(client: "MlflowClient", experiments: Iterable[str]) -> list[Run]:
    """Run and experiment ids of the implementations of the job that was filed last."""
    ids = list(experiments)
    jobs = client.search_runs(
        ids, "tags.role = 'job'", order_by=["attributes.start_time DESC"], max_results=1
    )
    if not jobs:
        return []
    query = f"tags.`mlflow.parentRunId` = '{jobs[0].info.run_id}'"
    children = client.search_runs(ids, query, order_by=["attributes.run_name ASC"])
    return [(run.info.run_id, run.info.experiment_id) for run in children]


def _lines(runs: list[Run]) -> str:
    """The page that overlays one metric of several runs over their steps."""
    metric = "latency_us/median"
    values = {
        "runs": json.dumps([run for run, _ in runs]),
        "metric": json.dumps(metric),
        "experiments": json.dumps(sorted({experiment for _, experiment in runs})),
        "plot_metric_keys": json.dumps([metric]),
        "x_axis": "step",
        "y_axis_scale": "log",
    }
    return f"#/metric?{urlencode(values, quote_via=quote)}"
