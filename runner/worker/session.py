"""One job inside the worker: its device, its context, and what can be asked of it."""

import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ..records import Cell, Evidence, Record, Status
from ..schema import Device, Experiment
from . import ceilings, environment
from .called import called
from .cell import CellRun
from .context import Announce, Context
from .device_state import DeviceMonitor
from .evidence import trace, warm_profiler
from .failure import classify
from .gate import Gate
from .load import bind, forget_compiled, tuning_of
from .ranges import Ranges
from .rotation import Rotation, places

PROFILERS = (
    "NSYS_PROFILING_SESSION_ID",
    "NV_COMPUTE_PROFILER_PERFWORKS_DIR",
    "CUDA_INJECTION64_PATH",
)
"""Variables that say that somebody profiles this process: no time is published then."""


class Session:
    """Opens the device and holds it. Raises RuntimeError where CUDA cannot be used."""

    def __init__(self, experiment: Experiment, kind: Device, job: str, announce: Announce) -> None:
        self._gpu: dict[str, Any] = {}
        device = torch.device("cpu")
        cache = 0
        if kind is Device.cuda:
            if not torch.cuda.is_available():
                raise RuntimeError(
                    "torch cannot use the GPU that is here "
                    f"(torch {torch.__version__}, built for CUDA {torch.version.cuda})"
                )
            device = torch.device("cuda", 0)
            torch.cuda.set_device(device)
            torch.ones(1, device=device)
            self._gpu = environment.gpu(device)
            cache = int(self._gpu["l2_bytes"])
        self._settings = environment.apply_settings(experiment, kind)
        self._monitor = DeviceMonitor(self._gpu.get("uuid", ""))
        self._ceilings: dict[str, Any] | None = None
        self._profiler_warm = False
        self.context = Context(
            job=job,
            experiment=experiment,
            kind=kind,
            device=device,
            ranges=Ranges(job, experiment.kernel.name),
            announce=announce,
            cache_bytes=cache,
            profiled=next((name for name in PROFILERS if os.environ.get(name)), ""),
        )

    def environment(self) -> dict[str, Any]:
        """The snapshot that goes into every job."""
        state = self._monitor.read()
        return {
            "gpu": self._gpu,
            "host": environment.host(),
            "software": environment.software(),
            "settings": self._settings,
            "ceilings": self._ceilings,
            "nvtx": self.context.ranges.available,
            "profiler": self.context.profiled,
            "nvml": self._monitor.reason or "available",
            "idle_state": None
            if state is None
            else {"sm_mhz": state.sm_mhz, "memory_mhz": state.memory_mhz, "watts": state.watts},
        }

    def know_ceilings(self, measured: dict[str, Any] | None) -> None:
        """Takes what an earlier worker of the job measured; None where none did."""
        self._ceilings = measured

    def measure_ceilings(self) -> None:
        """Measures what this GPU's memory gives; part of the environment from then on. Where that
        fails there are no ceilings, and the reason stands in their place."""
        context = self.context
        if context.kind is not Device.cuda:
            return
        try:
            self._ceilings = ceilings.measure(
                context.experiment.protocol,
                device=context.device,
                cache_bytes=context.cache_bytes,
                free_memory=context.free_memory(),
                monitor=self._monitor,
            )
        except Exception as error:
            context.synchronize()  # a device that answers no more is fatal all the same
            self._ceilings = {"reason": f"no ceilings: {classify(error)[1]}"}
        torch.cuda.empty_cache()

    def measure(
        self,
        cell: Cell,
        names: list[str],
        progress: Callable[[int], None],
        sampling: dict[str, Any] | None = None,
    ) -> list[Record]:
        """Records of a cell. `sampling` holds values of the protocol that differ this time, and
        `process`, the number of this process. Raises Poisoned after a sticky device error."""
        limits = dict(sampling or {})
        process = limits.pop("process", 1)
        experiment = self.context.experiment
        experiment = replace(experiment, protocol=replace(experiment.protocol, **limits))
        context = replace(self.context, experiment=experiment, process=process)
        records = CellRun(context, cell, names, self._monitor, progress).run()
        if context.profiled:
            # no time is taken; the tool around the user's own command sees some calls all the same
            tool = "nsys" if context.profiled.startswith("NSYS") else "ncu"
            for record in records:
                if record.status is Status.checked:
                    self.trace(cell, record.implementation, tool)
        datasheet = experiment.target.bandwidth_gbps
        return [ceilings.within_the_roof(r, self._ceilings, datasheet) for r in records]

    def trace(self, cell: Cell, name: str, tool: str) -> tuple[Evidence, bool]:
        """Evidence of one implementation, and whether this process can go on.

        Of `torch` all that the profiler saw; under any other tool, which stands around this
        process, the calls that were made for it to see.
        """
        context = self.context
        context.announce(name, "trace")
        try:
            return self._traced(cell, name, tool), True
        except Exception as error:
            status, reason = classify(error)
            usable = True
            try:
                context.synchronize()
            except Exception:
                usable = False
            evidence = Evidence(
                tool=tool,
                cell_id=cell.id,
                implementation=name,
                reason=f"{status}: {reason or traceback.format_exc(limit=1)}",
            )
            return evidence, usable

    def _traced(self, cell: Cell, name: str, tool: str) -> Evidence:
        context, experiment = self.context, self.context.experiment
        if tool == "torch" and not self._profiler_warm:
            warm_profiler()
            self._profiler_warm = True
        forget_compiled()
        named = Gate.named(context, cell, experiment.seed + cell.workload.seed + 5)
        rotation = Rotation(
            tuple(named.values()),
            device=context.device,
            cache_bytes=context.cache_bytes,
            free_memory=context.free_memory(),
            warm=set(places(experiment.warm_inputs, named).values()),
        )
        call = bind(experiment, name, context.arguments(cell), context.kind)
        calls = max(1, experiment.trace.calls)
        with torch.no_grad():
            with context.ranges.step(cell.index, cell.id, name, "warmup"):
                for _ in range(3):
                    call(*rotation.copies[0])
                copies = rotation.after_a_lap(call, calls)
                context.synchronize()
            if tool == "torch":
                with context.ranges.step(cell.index, cell.id, name, "trace"):
                    evidence = trace(
                        call,
                        copies,
                        cell_id=cell.id,
                        implementation=name,
                        own_language=experiment.kernel.implementations[name].language,
                        flush=rotation.before_run,
                        host_us=200.0,
                    )
            else:
                # ncu lets kernels run one at a time: a held queue would wait for ever
                hold = tool == "nsys"
                held = called(context, cell, name, call, copies, rotation, hold=hold)
                evidence = Evidence(
                    tool=tool, cell_id=cell.id, implementation=name, calls=calls, held=held
                )
        if context.kind is Device.cuda:
            torch.cuda.empty_cache()
        return replace(evidence, tuning=tuning_of(experiment.kernel.implementations[name]))
