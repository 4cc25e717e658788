"""From a checked experiment to a request: target settled, cells planned, before anything starts."""

import dataclasses
import shlex
from collections.abc import Sequence
from functools import cache

from .clock_lock import require_lockable
from .clocks import check_clocks, locked_mhz
from .device import Gpu, Probe, crowded, gpus, settle
from .errors import ConfigError
from .job import Request
from .judge.claims import check_claim
from .nsight.tools import NsightError, find
from .question import on_cpu
from .question.plan import plan
from .question.targets import targets
from .schema import Device, Experiment, Mode, Target, WorkerMode
from .traced import check_cells, tools


class Preparer:
    """Looks at the machine once, then makes requests out of experiments. Use as a context: leaving
    it ends what still looks at a GPU."""

    def __init__(self, config_dirs: Sequence[str], python_path: Sequence[str]) -> None:
        self._config_dirs = tuple(config_dirs)
        self._python_path = tuple(python_path)
        self._gpus = gpus()
        self._targets = targets(config_dirs)
        self._probes: dict[str, Probe | None] = {}
        """By the GPU's UUID; None once it was confirmed."""
        self._lockable = cache(require_lockable)

    def request(
        self,
        experiment: Experiment,
        *,
        job_id: str,
        overrides: Sequence[str],
        sweep_id: str | None,
    ) -> Request:
        """The job as it will run; `confirm` is to be called before any work. Raises ConfigError
        and TargetError."""
        check_claim(experiment.claim)
        target, gpu = settle(experiment.target, self._targets, self._gpus, experiment.device)
        if gpu is not None and gpu.uuid not in self._probes:
            self._probes[gpu.uuid] = Probe(gpu)
        if gpu is None:
            on_cpu.refuse(experiment, overrides)
        self._clocks(experiment, target, gpu)
        self._tools(experiment, gpu)
        if experiment.mode is Mode.profile and not tools(experiment, gpu=gpu is not None):
            raise ConfigError("mode=profile takes only the evidence passes, and trace is none.")
        experiment.target = target
        kind = Device.cpu if gpu is None else Device.cuda
        planned = plan(experiment, kind)
        if not planned.cells:
            raise ConfigError(
                f"{experiment.experiment_name}: no cell is left to run; "
                f"{len(planned.excluded)} workloads were excluded (shapes.exclude)"
            )
        check_cells(experiment, [cell.cell for cell in planned.cells])
        if gpu is None and (note := crowded(experiment.settings.threads)):
            planned = dataclasses.replace(planned, notes=(*planned.notes, note))
        dirs = [part for folder in self._config_dirs for part in ("--config-dir", folder)]
        return Request(
            id=job_id,
            experiment=experiment,
            gpu=gpu,
            plan=planned,
            overrides=tuple(overrides),
            command=shlex.join(["klab", "run", *dirs, *overrides]),
            config_dirs=self._config_dirs,
            python_path=self._python_path,
            sweep_id=sweep_id,
        )

    def confirm(self) -> None:
        """Waits until it is known that torch can use the GPUs of all requests. A request only
        begins to look: torch's import takes seconds, in which the store can be opened. Raises
        TargetError where it cannot, or does not say within a minute. Interrupts pass through."""
        for uuid, probe in self._probes.items():
            if probe is not None:
                probe.confirm()
                self._probes[uuid] = None

    def __enter__(self) -> "Preparer":
        return self

    def __exit__(self, *_: object) -> None:
        for probe in self._probes.values():
            if probe is not None:
                probe.end()

    def _tools(self, experiment: Experiment, gpu: Gpu | None) -> None:
        """Raises ConfigError where a tool that the trace asks for cannot be had here."""
        for name in tools(experiment, gpu=gpu is not None):
            if name == "torch":
                continue
            if experiment.worker is WorkerMode.inline:
                raise ConfigError(
                    f"trace={name} runs around a worker process, and worker=inline has none. "
                    "Leave one of them out."
                )
            try:
                find(name)
            except NsightError as error:
                raise ConfigError(f"trace={name}: {error}.") from error

    def _clocks(self, experiment: Experiment, target: Target, gpu: Gpu | None) -> None:
        """Raises ConfigError where the SM clock cannot be locked as the protocol asks."""
        clocks = experiment.protocol.clocks
        mhz = locked_mhz(clocks)
        if mhz is None or gpu is None:
            return
        check_clocks(clocks, target=target.name, max_mhz=target.max_mhz)
        if experiment.mode is Mode.run:
            self._lockable(gpu, mhz)


def refuse_nothing(requests: Sequence[Request]) -> None:
    """Raises ConfigError where no implementation of any of these jobs would run, with why."""
    cells = [cell for request in requests for cell in request.plan.cells]
    if any(cell.implementations for cell in cells):
        return
    names: dict[str, dict[str, None]] = {}
    for skip in (skip for cell in cells for skip in cell.skips):
        names.setdefault(skip.reason, {})[skip.implementation] = None
    reasons = "; ".join(f"{', '.join(who)}: {reason}" for reason, who in names.items())
    raise ConfigError(f"nothing here can run, so no job is started. Unsupported: {reasons}.")
