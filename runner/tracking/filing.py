"""Where a command's jobs are filed, and what becomes of a store that fails: said, never lost.

Imports MLflow only once a store is used.
"""

from collections.abc import Sequence
from pathlib import Path

from ..errors import StoreError
from ..records import Job
from ..schema import OnError, Tracking
from ..schema import Store as Kind
from .store import Store, locate, preflight
from .to_mlflow import file_job, file_sweep, open_job


class Filing:
    """Files the jobs of one command. Raises StoreError at once for a store that can never work;
    a later failure becomes a warning, and the files stay."""

    def __init__(self, tracking: Tracking, kernels: Sequence[str], outputs: Path) -> None:
        self._store: Store | None = None
        self.warnings: list[str] = []
        self._told = 0
        if tracking.store is Kind.none:
            return
        store = locate(
            outputs,
            uri=tracking.uri,
            server=tracking.store is Kind.server,
            prefix=tracking.prefix,
            timeout_s=tracking.timeout_s,
        )
        try:
            preflight(store, kernels)
        except StoreError as error:
            if tracking.on_error is OnError.fail or store.database is not None:
                raise
            self._warn(error)
            return
        self._store = store

    @property
    def where(self) -> str:
        """The store's address; empty where nothing is filed."""
        return self._store.uri if self._store is not None else ""

    def open(self, job: Job) -> None:
        """Begins the job's run."""
        if self._store is not None:
            try:
                open_job(job, self._store)
            except StoreError as error:
                self._warn(error)

    def file(self, job: Job) -> None:
        """Completes the job's run."""
        if self._store is not None:
            try:
                file_job(job, self._store)
            except StoreError as error:
                self._warn(error)

    def roll_up(self, sweep_id: str, jobs: Sequence[Job]) -> None:
        """Files the multirun's own run."""
        if self._store is not None and jobs:
            try:
                file_sweep(sweep_id, list(jobs), self._store)
            except StoreError as error:
                self._warn(error)

    def warnings_since(self) -> list[str]:
        """Warnings that were not told yet."""
        fresh = self.warnings[self._told :]
        self._told = len(self.warnings)
        return fresh

    def _warn(self, error: StoreError) -> None:
        self.warnings.append(f"not filed: {error} The job's files are complete and stay.")
