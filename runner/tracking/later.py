"""Files that came to a job after it was filed: traces that were attached by hand."""

from pathlib import Path

from ..errors import StoreError
from ..records import Job
from .notes import job_note
from .store import connect, locate, translated
from .to_mlflow import is_filed, read_filed

_FOLDERS = ("traces", "plots")
_FILES = ("report.txt", "results.csv", "records.jsonl", "judgement.json")


def file_later(job: Job, outputs: Path) -> str:
    """Adds the job's traces, pictures and what was made anew of them to its run, and says where.

    Raises StoreError where the job has no run in the store that its configuration names.
    """
    tracking = job.config.get("tracking") or {}
    if tracking.get("store") == "none":
        return "tracking=none: the files stay in the job's folder"
    store = locate(
        outputs,
        uri=tracking.get("uri") or "",
        server=tracking.get("store") == "server",
        prefix=tracking.get("prefix") or "",
        timeout_s=tracking.get("timeout_s") or 3,
    )
    filed = read_filed(job)
    if filed.get("store") != store.uri or not filed.get("job"):
        raise StoreError(f"job {job.id} has no run in {store.uri}")
    folder = Path(job.folder)
    paths = [folder / name for name in _FILES]
    paths += sorted(path for name in _FOLDERS for path in (folder / name).rglob("*"))
    client = connect(store)
    with translated(store):
        for path in paths:
            inside = path.relative_to(folder)
            if path.is_file() and is_filed(inside, path):
                place = None if inside.parent == Path() else inside.parent.as_posix()
                client.log_artifact(filed["job"], str(path), place)
        client.set_tag(filed["job"], "mlflow.note.content", job_note(job))
    return f"filed in {store.uri}"
