"""The MLflow server in front of a local store, for a browser on this machine."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from ..errors import StoreError
from .store import SWEEPS, Store, connect, translated

_PATIENCE_S = 90


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
    experiments = _experiments(store)
    say(f"MLflow is starting on {store.uri}; this takes some ten seconds")
    log = (store.database.parent if store.database else Path.cwd()) / "mlflow-ui.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(
            _command(store, port), stdout=stream, stderr=stream, env=_environment()
        )
    try:
        _wait(server, port, log)
        _welcome(f"http://127.0.0.1:{port}", experiments, say)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


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
    return {**kept, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}


def _experiments(store: Store) -> dict[str, str]:
    client = connect(store)
    with translated(store):
        found = client.search_experiments()
    return {experiment.name: experiment.experiment_id for experiment in found}


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


def _welcome(address: str, experiments: dict[str, str], say: Callable[[str], None]) -> None:
    say(f"open {address} (Ctrl-C ends it)")
    for name, number in experiments.items():
        if name != "Default":
            say(f"  {name}: {address}/#/experiments/{number}/runs")
    say("filters for the search box:")
    say("  tags.role = 'job'")
    say("  tags.sweep_id = 'SWEEP_ID'   (from the experiment " + SWEEPS + ")")
    say("  tags.experiment = 'EXPERIMENT' AND tags.role = 'implementation'")
    say("compare: tick implementation runs, Compare, and take case/size or an axis as x")
