"""Where runs leave their files: one absolute place, found the same way by every command.

<outputs>/mlflow.db, mlflow-artifacts/    the default tracking store
<outputs>/runs/<job id>/                  one folder a job
<outputs>/sweeps/<sweep id>/              one folder a multirun, its jobs below it
"""

import os
from collections.abc import Iterator
from pathlib import Path

from .errors import ConfigError, unknown


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
    as_folder = Path(job_id).expanduser()
    if (as_folder / "job.json").exists():
        return as_folder.resolve()
    folders = {path.name: path for path in job_folders()}
    if job_id in folders:
        return folders[job_id]
    matches = [name for name in folders if name.startswith(job_id)]
    if len(matches) == 1:
        return folders[matches[0]]
    if matches:
        raise ConfigError(f"job={job_id}: several begin so: {', '.join(sorted(matches))}")
    raise unknown("job", job_id, folders, next_step=f"Looked under {outputs()}.")
