"""`klab check`: does a kernel keep the contract? Composition, cost, inputs, reference, one cell."""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigError
from ..folder import JobFolder
from ..interrupts import Interrupts
from ..job import JobRun, Request, describe
from ..preparing import Preparer
from ..question.compose import compose, register
from ..question.costs import cost_of
from ..records import FAILED, Job, PlannedCell
from ..schema import Mode
from ..supervisor import Progress

SUMMARY = "verify a kernel's contract on one small cell"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 where an implementation fails. Raises ConfigError for a broken contract."""
    parser = argparse.ArgumentParser(prog="klab check", description=SUMMARY)
    parser.add_argument("--config-dir", action="append", default=[], metavar="DIR")
    parser.add_argument(
        "overrides", nargs="+", metavar="KEY=VALUE", help="kernel=NAME or experiment=NAME"
    )
    asked = parser.parse_intermixed_args(list(arguments))
    found = register(asked.config_dir)
    sys.path.extend(p for p in found.python_path if p not in sys.path)
    experiment = compose([*asked.overrides, "mode=check"], asked.config_dir)
    with Preparer(asked.config_dir, found.python_path) as preparer:
        request = preparer.request(
            experiment, job_id="check", overrides=asked.overrides, sweep_id=None
        )
        preparer.confirm()
    _say("ok", "composes", f"{len(request.plan.cells)} cells on {request.experiment.target.name}")
    planned = _smallest(request)
    job = _check(
        dataclasses.replace(request, plan=dataclasses.replace(request.plan, cells=(planned,)))
    )
    failed = 0
    for record in job.records:
        bad = record.status in FAILED
        failed += bad
        _say("bad" if bad else "ok", record.implementation, f"{record.status}  {record.reason}")
    return 1 if failed else 0


def _smallest(request: Request) -> PlannedCell:
    """The cell that moves the fewest bytes, none of them empty if that can be; costs on the way.

    Raises ConfigError where the kernel's `cost` does not keep its contract.
    """
    sized: list[tuple[int, int, PlannedCell]] = []
    for planned in request.plan.cells:
        names = [*planned.implementations, *(skip.implementation for skip in planned.skips)]
        costs = [cost_of(request.experiment, planned.cell, name) for name in names]
        sized.append((min(cost.bytes for cost in costs), planned.cell.index, planned))
    if not sized:
        raise ConfigError("no cell to check")
    _say(
        "ok", "cost", f"{len(sized)} cells, {len(request.experiment.kernel.implementations)} paths"
    )
    whole = [entry for entry in sized if entry[0] > 0] or sized
    size, _, planned = min(whole, key=lambda entry: entry[:2])
    _say("ok", "cell", f"{planned.cell.workload.label}, {size} bytes, {planned.cell.id}")
    return planned


def _check(request: Request) -> Job:
    """Runs the one cell without times in a folder that goes away."""
    request.experiment.mode = Mode.check
    with tempfile.TemporaryDirectory(prefix="klab-check-") as name:
        folder = JobFolder(Path(name))
        with Interrupts() as interrupts:
            job = describe(request, name)
            return JobRun(request, job, folder, Progress(), interrupts=interrupts).run()


def _say(state: str, what: str, text: str) -> None:
    sys.stdout.write(f"{state:<4} {what:<16} {text.strip()}\n")
