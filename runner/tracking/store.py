"""The tracking store: where it is, whether it can be used, and a client for it.

    tracking.uri, else MLFLOW_TRACKING_URI, else sqlite:///<outputs>/mlflow.db

Only MLFLOW_TRACKING_URI and the variables of authentication are taken from the environment: run
and experiment ids there belong to somebody else's run.
"""

import fcntl
import logging
import os
import urllib.error
import urllib.request
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..errors import StoreError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

SWEEPS = "sweeps"
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_PRIMARY = "latency_us/median"


@dataclass(frozen=True, kw_only=True, slots=True)
class Store:
    """Where runs are filed. `artifacts` is None where the server decides."""

    uri: str
    artifacts: Path | None
    prefix: str = ""
    timeout_s: int = 3

    @property
    def database(self) -> Path | None:
        """The file of a SQLite store."""
        return Path(unquote(self.uri[len("sqlite:///") :])) if self.uri[:7] == "sqlite:" else None


def locate(
    outputs: Path, *, uri: str = "", server: bool = False, prefix: str = "", timeout_s: int = 3
) -> Store:
    """The store that the configuration and the environment name. Nothing is opened or made.

    Raises StoreError for a folder store, an unknown kind, and a server without an address.
    """
    source = "tracking.uri" if uri else "MLFLOW_TRACKING_URI"
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        if server:
            raise StoreError(
                "tracking=server: no address. Set tracking.uri=http://HOST:PORT or "
                "MLFLOW_TRACKING_URI, or use tracking=local."
            )
        uri = f"sqlite:///{outputs / 'mlflow.db'}"
    scheme = urlsplit(uri).scheme.split("+")[0]
    if scheme in ("", "file"):
        raise StoreError(
            f"{source}={uri}: MLflow no longer opens a folder as a store. Use a database, "
            f"sqlite:///{outputs / 'mlflow.db'} (the default when nothing is set), or a server, "
            f"http://HOST:PORT. `mlflow migrate-filestore` takes an old folder over."
        )
    if scheme == "sqlite":
        file = Path(unquote(uri.partition("///")[2])).expanduser().resolve()
        uri = f"sqlite:///{file}"
        artifacts = file.parent / "mlflow-artifacts"
    elif scheme in _DATABASES:
        artifacts = outputs / "mlflow-artifacts"
    elif scheme in ("http", "https", "databricks"):
        artifacts = None
    else:
        kinds = ", ".join([*_DATABASES, "http", "https", "databricks"])
        raise StoreError(f"{source}={uri}: unknown kind of store {scheme!r}. Kinds: {kinds}.")
    return Store(uri=uri, artifacts=artifacts, prefix=prefix, timeout_s=timeout_s)


def preflight(store: Store, kernels: Iterable[str]) -> None:
    """Opens the store before the first job, so that nothing is found out after the work.

    Makes the schema of a local database; looks for experiments that were deleted by name.
    Raises StoreError within seconds where the store cannot be used.
    """
    _reach(store)
    client = connect(store)
    for name in dict.fromkeys([*kernels, SWEEPS]):
        with translated(store):
            found = client.get_experiment_by_name(store.prefix + name)
        if found is not None and found.lifecycle_stage == "deleted":
            raise StoreError(_deleted(store, found))


def _deleted(store: Store, experiment: "Experiment") -> str:
    return (
        f"the MLflow experiment {experiment.name!r} was deleted in {store.uri}, and its name "
        f"stays taken. Choices: restore it, `MLFLOW_TRACKING_URI={store.uri} mlflow experiments "
        f"restore --experiment-id {experiment.experiment_id}`; file under another name, "
        f"`tracking.prefix=new-`; use another store, `tracking.uri=...`; or `tracking=none`."
    )


def _reach(store: Store) -> None:
    """A server must answer its health page within the time-out; any HTTP answer will do."""
    if urlsplit(store.uri).scheme not in ("http", "https"):
        return
    try:
        with urllib.request.urlopen(f"{store.uri.rstrip('/')}/health", timeout=store.timeout_s):
            pass
    except urllib.error.HTTPError as error:
        error.close()
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the tracking server {store.uri} did not answer within {store.timeout_s} s: {error}"
        ) from error


def connect(store: Store) -> "MlflowClient":
    """A client; the schema of a local database is made first, by one process at a time.

    Raises StoreError where the store cannot be opened.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["DO_NOT_TRACK"] = "true"
    from mlflow import MlflowClient

    # after the import, which sets levels of its own: no lines of schema migrations between ours
    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.WARNING)

    with translated(store):
        if store.database is None:
            # an unreachable server must not hold the run for MLflow's own minutes of retries
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
            os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(max(store.timeout_s, 10)))
            return MlflowClient(tracking_uri=store.uri)
        store.database.parent.mkdir(parents=True, exist_ok=True)
        with _locked(store.database):
            client = MlflowClient(tracking_uri=store.uri)
            client.search_experiments(max_results=1)
            return client


@contextmanager
def _locked(database: Path) -> Generator[None]:
    with database.with_name(f".{database.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextmanager
def translated(store: Store) -> Generator[None]:
    """Turns what the store raises into StoreError with its address."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        text = str(error).split("\n")[0]
        raise StoreError(f"the tracking store {store.uri} cannot be used: {text}") from error


def experiment_id(client: "MlflowClient", store: Store, name: str) -> str:
    """The id of the experiment of a kernel, made with its artifact place and tags if need be.

    Raises StoreError where it was deleted.
    """
    from mlflow.exceptions import MlflowException

    full = store.prefix + name
    found = client.get_experiment_by_name(full)
    if found is None:
        place = (store.artifacts / full).as_uri() if store.artifacts else None
        try:
            return client.create_experiment(
                full,
                artifact_location=place,
                tags={
                    "mlflow.experimentKind": "custom_model_development",
                    "mlflow.experiment.primaryMetric.name": _PRIMARY,
                    "mlflow.experiment.primaryMetric.greaterIsBetter": "False",
                },
            )
        except MlflowException as error:
            # another process may have made it since
            found = client.get_experiment_by_name(full)
            if found is None:
                raise StoreError(f"experiment {full!r} cannot be made: {error}") from error
    if found.lifecycle_stage == "deleted":
        raise StoreError(_deleted(store, found))
    return found.experiment_id


def folder_of_run(store: Store, run_id: str) -> Path:
    """The job folder that a run was filed from, by its tag. Raises StoreError."""
    client = connect(store)
    with translated(store):
        tags = client.get_run(run_id).data.tags
        parent = tags.get("mlflow.parentRunId")
        if parent:
            tags = client.get_run(parent).data.tags
    folder = Path(tags.get("folder", ""))
    if not (folder / "job.json").exists():
        raise StoreError(f"run {run_id}: its job folder {folder} is not on this machine")
    return folder
