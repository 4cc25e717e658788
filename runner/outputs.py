"""Where runs leave their files: one absolute place, found the same way by every command.

<outputs>/mlflow.db, mlflow-artifacts/    the default tracking store
<outputs>/runs/<job id>/                  one folder a job
<outputs>/sweeps/<sweep id>/              one folder a multirun, its jobs below it
<outputs>/doctor/<id>/                    one folder a `klab doctor --measure`
"""

import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .errors import ConfigError, StoreError, unknown

_NAMED = 12
"""How many jobs a message names: the last."""


def outputs() -> Path:
    """KLAB_OUTPUTS, else the checkout's `outputs/`, else `./outputs`; absolute, not created."""
    chosen = os.environ.get("KLAB_OUTPUTS")
    if chosen:
        return Path(chosen).expanduser().resolve()
    root = checkout()
    return root / "outputs" if root else Path("outputs").resolve()


def checkout() -> Path | None:
    """The checkout that this package runs from; None where it is installed as a wheel."""
    root = Path(__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").exists() else None


def run_folder(job_id: str) -> Path:
    """The folder of a job that is no part of a multirun."""
    return outputs() / "runs" / job_id


def sweep_folder(sweep_id: str) -> Path:
    """The folder of a multirun."""
    return outputs() / "sweeps" / sweep_id


def create_exclusively(folder: Path) -> Path:
    """Creates the folder of a run or a sweep: two commands never share one.

    Raises StoreError where it is there already, or the outputs cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except OSError as error:
        raise StoreError(
            f"the outputs folder {outputs()} cannot be used: {error}. "
            "Set KLAB_OUTPUTS to a folder that can be written."
        ) from error
    return folder


def job_folders() -> Iterator[Path]:
    """Every job folder under the outputs, in no particular order."""
    for root in (outputs() / "runs", outputs() / "sweeps"):
        for file in root.glob("**/job.json"):
            yield file.parent


def latest_job() -> Path:
    """The job folder that started last. Raises ConfigError where there is none."""
    folders = sorted(job_folders(), key=lambda path: (path / "job.json").stat().st_ctime)
    if not folders:
        raise ConfigError(f"no job under {outputs()} yet. Start one: klab run experiment=NAME")
    return folders[-1]


def find_job(job_id: str) -> Path:
    """The folder of a job by its id, a unique beginning of it, or the folder itself.

    Raises ConfigError with the known ids where none or several match.
    """
    if is_job(job_id):
        return Path(job_id).expanduser().resolve()
    folders = {path.name: path for path in job_folders()}
    if job_id in folders:
        return folders[job_id]
    matches = [name for name in folders if job_id and name.startswith(job_id)]
    if len(matches) == 1:
        return folders[matches[0]]
    if matches:
        raise ConfigError(f"job={job_id}: several begin so: {', '.join(sorted(matches))}")
    last = sorted(folders)[-_NAMED:]
    older = f" {len(folders) - len(last)} older ones are there." if len(folders) > _NAMED else ""
    raise unknown("job", job_id, last, next_step=f"Looked under {outputs()}.{older}", between=" ")


def is_job(folder: str) -> bool:
    """Whether the text is the path of a job's folder; whatever else it is, it is not."""
    try:
        return bool(folder) and (Path(folder).expanduser() / "job.json").exists()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, ~nobody
        return False


def new_id(kind: str) -> str:
    """Sorts by time, begins with a letter, and is not made twice in the same second."""
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"{kind}-{now}-{secrets.token_hex(2)}"
