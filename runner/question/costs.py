"""What one call must do, by the kernel's own convention, and the least time a target needs for it.

The kernel's module is imported by the dotted path of its YAML: the one door to kernels.
"""

import importlib
import inspect
from typing import Any

from ..errors import ConfigError, unknown
from ..records import Cell, Cost, Stage
from ..schema import Device, Experiment, Target

STAGE_KINDS = ("matmul", "pointwise", "reduction", "copy")


def cost_of(experiment: Experiment, cell: Cell, implementation: str) -> Cost:
    """FLOPs and bytes of an implementation's plan, stage by stage, and its floor on the target.

    Raises ConfigError where the kernel's module or its `cost` cannot be used.
    """
    kernel = experiment.kernel
    name = kernel.implementations[implementation].cost
    convention, plans = _plans(experiment, cell)
    if name not in plans:
        raise unknown(f"kernel.implementations.{implementation}.cost", name, plans)
    stages = tuple(_stage(f"{kernel.module}.cost[{name}]", stage) for stage in plans[name])
    floor_us, bound = floor(stages, experiment.target, experiment.dtype.peak)
    return Cost(
        stages=stages,
        convention=convention,
        floor_us=floor_us,
        bound=bound,
        ridge=ridge(experiment.target, experiment.dtype.peak),
    )


def _plans(experiment: Experiment, cell: Cell) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    path = experiment.kernel.module
    try:
        cost = importlib.import_module(path).cost
    except AttributeError as error:
        raise ConfigError(f"kernel.module={path}: {error}. Give a module with `cost`.") from error
    except ImportError as error:
        raise ConfigError(f"kernel.module={path}: {error}") from error
    except (Exception, SystemExit) as error:  # somebody's code: it may raise anything
        raise ConfigError(f"kernel.module={path}: {_named(error)}") from error
    values = {"layout": cell.workload.layout, **cell.workload.axes}
    try:
        plans = cost(
            itemsize=experiment.dtype.itemsize,
            output_itemsize=experiment.dtype.output_itemsize,
            **values,
        )
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{path}.cost({_shown(values)}): {_named(error)}") from error
    if not isinstance(plans, dict) or not all(isinstance(p, list) for p in plans.values()):
        raise ConfigError(f"{path}.cost: a dict of plan name to a list of stages is meant.")
    return inspect.cleandoc(cost.__doc__ or ""), plans


def _shown(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _stage(key: str, given: dict[str, Any]) -> Stage:
    try:
        stage = Stage(**given)
        counts = {n: int(getattr(stage, n)) for n in ("flops", "bytes_read", "bytes_written")}
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"{key}: {error}") from error
    if stage.kind not in STAGE_KINDS:
        raise unknown(f"{key}: stage {stage.name}: kind", stage.kind, STAGE_KINDS)
    for name, count in counts.items():
        if count < 0:
            raise ConfigError(f"{key}: {name} is {count}, below 0.")
    return Stage(name=stage.name, kind=stage.kind, **counts)


def floor(stages: tuple[Stage, ...], target: Target, peak: str) -> tuple[float | None, str | None]:
    """The sum over stages of max(FLOPs/peak, bytes/bandwidth) in us, and what bounds the total.

    None where the target's datasheet says nothing: `cpu`, an unknown GPU, a missing peak.
    """
    tflops, gbps = target.peak_tflops.get(peak), target.bandwidth_gbps
    if target.kind != Device.cuda or not tflops or not gbps:
        return None, None
    compute = [stage.flops / (tflops * 1e6) for stage in stages]
    memory = [(stage.bytes_read + stage.bytes_written) / (gbps * 1e3) for stage in stages]
    total = sum(max(pair) for pair in zip(compute, memory, strict=True))
    if not total:
        return total, None
    return total, "compute" if sum(compute) > sum(memory) else "memory"


def ridge(target: Target, peak: str) -> float | None:
    """FLOP per byte above which the target's peak, not its bandwidth, is the limit."""
    tflops, gbps = target.peak_tflops.get(peak), target.bandwidth_gbps
    if target.kind != Device.cuda or not tflops or not gbps:
        return None
    return tflops * 1e3 / gbps
