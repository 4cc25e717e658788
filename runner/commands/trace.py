"""`klab trace attach`: a report that was taken by hand, joined to the records of its job."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from ..errors import ConfigError, StoreError
from ..evidence.attaching import attach
from ..folder import JobFolder, read_job
from ..judge.verdicts import judge
from ..nsight.tools import NsightError, find
from ..outputs import find_job, outputs
from ..report.write import write_report
from ..schema import Experiment
from ..tracking.later import file_later

SUMMARY = "attach a report of nsys that you took around klab run to its job"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 where nothing of the report could be joined. Raises ConfigError."""
    parser = argparse.ArgumentParser(
        prog="klab trace",
        description=SUMMARY,
        epilog="The report is one of `nsys profile -t cuda,nvtx klab run ...`: a job under a "
        "profiler publishes no time, and makes a few calls of every right implementation for it.",
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="attach")
    attaching = commands.add_parser("attach", help=SUMMARY)
    attaching.add_argument("report", type=Path, metavar="REPORT", help="a .nsys-rep file")
    attaching.add_argument("job", metavar="JOB", help="a job's id, or its folder")
    asked = parser.parse_args(arguments)
    folder = find_job(asked.job)
    try:
        tool = find("nsys")
    except NsightError as error:
        raise ConfigError(f"klab trace attach needs nsys to export the report: {error}.") from error
    found = attach(asked.report.expanduser(), read_job(folder), tool)
    joined = [evidence for evidence in found if evidence.launch_count is not None]
    job = read_job(folder)
    experiment = TypeAdapter(Experiment).validate_python(job.config)
    JobFolder(folder).write_judgement(judge(job.records, experiment))
    job = read_job(folder)
    write_report(job)
    say = sys.stdout.write
    say(f"{job.id}: joined to {len(joined)} of {len(found)} records\n")
    for reason in dict.fromkeys(e.reason for e in found if e.launch_count is None):
        say(f"  {reason}\n")
    try:
        say(f"  {file_later(job, outputs())}\n")
    except StoreError as error:
        say(f"  not filed: {error}\n")
    say(f"next: klab show {job.id}\n")
    return 0 if joined else 1
