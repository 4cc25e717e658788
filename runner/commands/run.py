"""`klab run`: the Hydra application. Every job is composed and checked before the first starts."""

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from ..errors import KlabError
from ..folder import JobFolder, read_job
from ..interrupts import Interrupts, Terminated
from ..job import JobRun, Request, describe
from ..outputs import create_exclusively, new_id, outputs, run_folder, sweep_folder
from ..passes import processes
from ..preparing import Preparer, refuse_nothing
from ..question.compose import (
    CONFIG_NAME,
    VERSION_BASE,
    compose,
    compose_jobs,
    register,
    to_experiment,
)
from ..records import Job, JobStatus
from ..report.console import Console
from ..report.progress import Reporter
from ..report.summary import closing, job_json
from ..report.table import render
from ..report.write import write_report
from ..results import exit_code
from ..spent import added, whole
from ..tracking.filing import Filing

SUMMARY = "run an experiment (-m: every combination of comma-separated choices)"


class Command:
    """One `klab run` from its words to its exit code."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._since = time.perf_counter()
        self._overrides: list[str] = asked.overrides
        self._multirun: bool = asked.multirun
        stream = sys.stderr if asked.json else sys.stdout
        self._console = Console(file=stream, soft_wrap=True)
        self._found = register(asked.config_dir)
        self._preparer = Preparer(asked.config_dir, self._found.python_path)
        self._id = new_id("sweep" if self._multirun else "run")
        self._jobs: list[Job] = []
        self._errors: list[KlabError] = []
        self._skipped = 0
        self._interrupts = Interrupts()
        self._filing: Filing | None = None

    def run(self) -> int:
        """Checks all, runs all, reports all. Raises ConfigError before the first job."""
        with self._preparer:
            requests = self._prepare_all()
            with self._interrupts:
                return self._run(requests)

    def _run(self, requests: list[Request]) -> int:
        self._filing = Filing(
            requests[0].experiment.tracking, [r.experiment.kernel.name for r in requests], outputs()
        )
        with self._interrupts.allowed():
            self._preparer.confirm()
        for warning in self._filing.warnings_since():
            self._print(warning)
        folder = create_exclusively((sweep_folder if self._multirun else run_folder)(self._id))
        try:
            self._hydra(folder)
        except KeyboardInterrupt:
            if self._interrupts.received is None:
                raise
        return self._finish()

    def _prepare_all(self) -> list[Request]:
        """Composes and checks every job of the command, as Hydra will compose them."""
        dirs = self._asked.config_dir
        if self._multirun:
            composed = compose_jobs(self._overrides, dirs)
        else:
            composed = [(self._overrides, compose(self._overrides, dirs))]
        requests = []
        for number, (overrides, experiment) in enumerate(composed):
            try:
                requests.append(
                    self._preparer.request(
                        experiment,
                        job_id=self._job_id(number),
                        overrides=overrides,
                        sweep_id=self._id if self._multirun else None,
                    )
                )
            except KlabError as error:
                if len(composed) == 1:
                    raise
                text = f"job {number + 1} of {len(composed)} ({' '.join(overrides)}): {error}"
                raise type(error)(text) from error
        refuse_nothing(requests)
        return requests

    def _job_id(self, number: int) -> str:
        return f"{self._id}-{number}" if self._multirun else self._id

    def _hydra(self, folder: Path) -> None:
        """Hands over to Hydra, which calls `_task` once a job."""
        places = [_quoted("hydra.run.dir", str(folder))]
        flags: list[str] = []
        if self._multirun:
            flags = ["--multirun"]
            places = [
                _quoted("hydra.sweep.dir", str(folder)),
                f"hydra.sweep.subdir={self._id}-${{hydra.job.num}}",
            ]
        os.environ["HYDRA_FULL_ERROR"] = "1"
        application = hydra.main(
            config_path=None, config_name=CONFIG_NAME, version_base=VERSION_BASE
        )(self._task)
        before = sys.argv
        sys.argv = ["klab", *flags, *self._overrides, *places]
        try:
            application()
        finally:
            sys.argv = before

    def _task(self, config: DictConfig) -> None:
        """One job of Hydra's. An error of one job is kept, and the next job runs."""
        with self._interrupts.allowed():
            pass  # what came while the last job was filed ends the command before the next
        hydra_config = HydraConfig.get()
        number = int(hydra_config.job.num) if self._multirun else 0
        overrides = list(hydra_config.overrides.task)
        experiment = to_experiment(config, self._found, overrides)
        if not self._multirun and (saved := hydra_config.sweeper.get("params")):
            sweep = ", ".join(f"{key}={value}" for key, value in saved.items())
            self._print(f"its saved sweep ({sweep}) is not run without -m")
        if 0 < experiment.max_failures <= self._failures:
            self._skipped += 1
            self._print(f"{self._job_id(number)}: not run, max_failures={experiment.max_failures}")
            return
        request = self._preparer.request(
            experiment,
            job_id=self._job_id(number),
            overrides=overrides,
            sweep_id=self._id if self._multirun else None,
        )
        folder = sweep_folder(self._id) / request.id if self._multirun else run_folder(self._id)
        try:
            self._one(request, JobFolder(folder))
        except KlabError as error:
            self._errors.append(error)
            self._print(f"{request.id}: {error}")

    def _one(self, request: Request, folder: JobFolder) -> None:
        assert self._filing is not None
        began = time.perf_counter()
        job = describe(request, str(folder.path))
        folder.write_job(job)
        self._filing.open(job)
        for note in request.plan.notes:
            self._print(note)
        cells = len(request.plan.cells) * processes(request.experiment)
        reporter = Reporter(self._console, job, cells, quiet=self._asked.quiet)
        try:
            hooks = reporter.progress, reporter.cell_done
            JobRun(request, job, folder, *hooks, interrupts=self._interrupts).run()
        finally:
            reporter.close()
            done = read_job(folder.path)
            self._jobs.append(done)
            write_report(done)
            self._filing.file(done)
            now = time.perf_counter()
            seconds = added({"prepare": began - self._since}, done.seconds)
            seconds, self._since = whole(seconds, now - self._since, "filing"), now
            self._jobs[-1] = done = dataclasses.replace(done, seconds=seconds)
            folder.write_job(done)
        if not self._asked.quiet and not self._asked.json:
            render(done, self._console)

    def _finish(self) -> int:
        assert self._filing is not None
        if self._multirun:
            self._filing.roll_up(self._id, self._jobs)
        for warning in self._filing.warnings_since():
            self._print(warning)
        if self._asked.json:
            json.dump([job_json(job) for job in self._jobs], sys.stdout, indent=1, allow_nan=False)
            sys.stdout.write("\n")
        elif not self._asked.quiet:
            for line in closing(self._jobs, self._id, self._filing.where):
                self._print(line)
        if self._interrupts.received is not None:
            self._print("interrupted; what was measured is kept")
            return 143 if isinstance(self._interrupts.received, Terminated) else 130
        strict = [bool(job.config.get("strict")) for job in self._jobs]
        codes = [exit_code(job, strict=s) for job, s in zip(self._jobs, strict, strict=True)]
        codes += [error.exit_code for error in self._errors] + [1] * bool(self._skipped)
        return max(codes, default=0)

    @property
    def _failures(self) -> int:
        return len(self._errors) + sum(job.status is JobStatus.failed for job in self._jobs)

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)


def main(arguments: Sequence[str]) -> int:
    """The exit code. Raises ConfigError before any job starts."""
    return Command(parse(arguments)).run()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Flags anywhere among the overrides; everything else is an override of Hydra's grammar."""
    parser = argparse.ArgumentParser(
        prog="klab run",
        description=SUMMARY,
        epilog="klab list shows what there is to choose from; klab plan says what a run would do.",
    )
    parser.add_argument("-m", "--multirun", action="store_true", help="run every combination")
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own with kernel/, shapes/, experiments/ ...; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")
    parser.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="e.g. experiment=quickstart"
    )
    return parser.parse_intermixed_args(list(arguments))


def _quoted(key: str, value: str) -> str:
    # `${` in a folder's name is no interpolation
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")
    return f"{key}='{escaped}'"
