"""The readable files of a job's folder: report.txt, results.csv, samples.csv, plots/."""

from pathlib import Path

from ..records import Job
from .columns import results_csv, samples_csv
from .plots import write_plots
from .table import as_text
from .timeline import write_timelines


def write_report(job: Job) -> None:
    """Writes the files beside the records, replacing those of an earlier call."""
    folder = Path(job.folder)
    _write(folder / "report.txt", as_text(job))
    _write(folder / "results.csv", results_csv(job))
    _write(folder / "samples.csv", samples_csv(job))
    write_plots(job, folder / "plots")
    write_timelines(job, folder / "plots")


def _write(file: Path, text: str) -> None:
    """UTF-8 wherever it runs; what is no UTF-8 is spelt out, and never loses a report."""
    file.write_text(text, encoding="utf-8", errors="backslashreplace")
