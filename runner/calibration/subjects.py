"""The subjects of a calibration: every planned cell and implementation, bound."""

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..question.costs import cost_of
from ..question.plan import plan
from ..records import Cell, Cost
from ..schema import Device, Experiment, Language
from ..statistics import median_interval
from ..worker.context import Context
from ..worker.device_state import DeviceMonitor
from ..worker.gate import Gate
from ..worker.inputs import Inputs
from ..worker.load import bind, forget_compiled
from ..worker.session import Session
from .request import Report, Request, Row

Call = Callable[..., Any]

CPU_BYTES = 64_000_000
CPU_FLOPS = 3_000_000_000
"""On a CPU a subject moves and computes no more than this: the small ones, in seconds."""


class Absent(Exception):  # noqa: N818 - a reason, not an error of ours
    """Why something is not measured here."""


@dataclass(kw_only=True)
class Subject:
    """One implementation of one cell, to be measured. `refused` says why it cannot be."""

    context: Context
    cell: Cell
    name: str
    monitor: DeviceMonitor
    cost: Cost | None = None
    refused: str = ""

    @property
    def experiment(self) -> Experiment:
        return self.context.experiment

    def call(self) -> Call:
        """The implementation with its arguments. Raises Absent, and CannotLoad as `bind` does."""
        if self.refused:
            raise Absent(self.refused)
        return bind(
            self.experiment, self.name, self.context.arguments(self.cell), self.context.kind
        )

    def draw(self, number: int = 0) -> Inputs:
        """The `number`-th set of inputs of the cell."""
        return Gate.draw(self.context, self.cell, self.experiment.seed + number)

    def row(self) -> Row:
        """Who this is."""
        return {
            "experiment": self.experiment.experiment_name,
            "cell": self.cell.workload.label,
            "cell_id": self.cell.id,
            "implementation": self.name,
        }


@dataclass(kw_only=True)
class Filled:
    """A row that is filled step by step: what fails leaves its keys None, with the reason."""

    row: Row
    reasons: dict[str, str] = field(default_factory=dict)

    def attempt(self, keys: Sequence[str], made: Callable[[], Mapping[str, Any]]) -> bool:
        """Sets the keys to what `made` returns; whether it returned."""
        try:
            values = made()
        except Exception as error:
            self.absent(keys, reason_of(error))
            return False
        for key in keys:
            self.row[key] = values.get(key)
            self.reasons.pop(key, None)
        return True

    def absent(self, keys: Sequence[str], reason: str) -> None:
        """The keys stay None, for this reason."""
        for key in keys:
            self.row[key] = None
            self.reasons[key] = reason

    def done(self) -> Row:
        """The row with its reasons."""
        return {**self.row, "reasons": self.reasons}


def reason_of(error: Exception) -> str:
    """An exception in one line; of Absent the reason alone."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0][:300] if lines else ""
    return text if isinstance(error, Absent) else f"{type(error).__name__}: {text}"


def sessions(request: Request, report: Report) -> Iterator[Session]:
    """A session of each experiment: its library settings hold until the next one's."""
    for experiment in request.experiments:
        session = Session(experiment, request.kind, "doctor", lambda name, phase: None)
        report.environment(session.environment())
        yield session


def subjects(
    request: Request, report: Report, only: Collection[tuple[str, str]] | None = None
) -> Iterator[Subject]:
    """All subjects, cell by cell, or those of `only`, (cell id, implementation); on a CPU the
    small ones. Memory is given back after each."""
    for session in sessions(request, report):
        context = session.context
        monitor = monitor_of(session)
        for planned in plan(context.experiment, request.kind).cells:
            refusals = {skip.implementation: skip.reason for skip in planned.skips}
            for name in [*planned.implementations, *refusals]:
                if only is not None and (planned.cell.id, name) not in only:
                    continue
                cost = cost_of(context.experiment, planned.cell, name)
                if not request.gpu and (cost.bytes > CPU_BYTES or cost.flops > CPU_FLOPS):
                    continue
                forget_compiled()
                yield Subject(
                    context=context,
                    cell=planned.cell,
                    name=name,
                    monitor=monitor,
                    cost=cost,
                    refused=refusals.get(name)
                    or interpreted(context.experiment, name, request.kind),
                )
                free(context)


def monitor_of(session: Session) -> DeviceMonitor:
    """NVML's view of the session's GPU."""
    return DeviceMonitor(session.environment()["gpu"].get("uuid", ""))


def free(context: Context) -> None:
    """Gives memory back, so that the next subject finds all of it."""
    gc.collect()
    if context.kind is Device.cuda:
        torch.cuda.empty_cache()


def middle(values: Sequence[float]) -> float:
    """The median."""
    return median_interval(values).median


def interpreted(experiment: Experiment, name: str, kind: Device) -> str:
    """Why an implementation has no times on this kind of device; '' where it has."""
    language = experiment.kernel.implementations[name].language
    if kind is Device.cpu and language is Language.triton:
        return "Triton's interpreter on cpu: never timed"
    return ""
