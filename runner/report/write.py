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
    (folder / "report.txt").write_text(as_text(job))
    (folder / "results.csv").write_text(results_csv(job))
    (folder / "samples.csv").write_text(samples_csv(job))
    write_plots(job, folder / "plots")
    write_timelines(job, folder / "plots")
