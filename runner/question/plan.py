"""An Experiment becomes cells, each with who runs in it and who is left out, and why.

Pure: nothing is imported, looked up or run.
"""

from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from ..records import Cell, PlannedCell, Skip, Status, Workload
from ..schema import Device, Distribution, Experiment, Implementation, Language
from . import expressions, shapes


@dataclass(frozen=True, kw_only=True)
class Excluded:
    """A workload that an `exclude` left out."""

    workload: Workload
    condition: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a job will do; `notes` says what was added to what was asked."""

    cells: tuple[PlannedCell, ...]
    excluded: tuple[Excluded, ...] = ()
    duplicates: int = 0
    notes: tuple[str, ...] = ()


def plan(experiment: Experiment, device_kind: Device | str) -> Plan:
    """Every cell of the experiment on a kind of device (cuda or cpu).

    Implementations keep the experiment's order. Raises ConfigError for a `cell=ID` that is none
    of them.
    """
    kind = Device(device_kind)
    expanded = shapes.expand(experiment)
    names, notes = _implementations(experiment)
    cells = []
    for index, shape in enumerate(expanded.shapes):
        workload = _workload(experiment, shape)
        cell = Cell(index=index, kernel=experiment.kernel.name, workload=workload)
        cells.append(_planned(experiment, cell, names, kind))
    if experiment.cell is not None:
        found = [planned for planned in cells if planned.cell.id == experiment.cell]
        if not found:
            raise _no_such_cell(experiment.cell, cells)
        cells = found
    return Plan(
        cells=tuple(cells),
        excluded=tuple(
            Excluded(workload=_workload(experiment, shape), condition=condition)
            for shape, condition in expanded.excluded
        ),
        duplicates=expanded.duplicates,
        notes=tuple(notes),
    )


CONSTANT_INPUTS = (
    "distribution=zeros: timed on constant inputs, which take less power than real ones and may "
    "be faster for that; checked on normal inputs"
)


def _implementations(experiment: Experiment) -> tuple[list[str], list[str]]:
    kernel = experiment.kernel
    names = list(experiment.implementations) or list(kernel.implementations)
    notes = []
    if kernel.baseline not in names:
        names.insert(0, kernel.baseline)
        notes.append(f"{kernel.baseline} added: it is the baseline that speed-up is against")
    for role in ("fused", "unfused"):
        claimed = getattr(experiment.claim, role)
        if claimed and claimed not in names:
            notes.append(f"claim.{role}={claimed} is not among the implementations of this run")
    if experiment.distribution is Distribution.zeros:
        notes.append(CONSTANT_INPUTS)
    return names, notes


def _workload(experiment: Experiment, shape: shapes.Shape) -> Workload:
    axes = dict(shape.axes)
    layout = str(axes.pop("layout", "contiguous"))
    return Workload(
        axes=axes,
        dtype=experiment.dtype.name,
        layout=layout,
        seed=experiment.seed,
        distribution=experiment.distribution.value,
        name=shape.name,
    )


def _planned(experiment: Experiment, cell: Cell, names: list[str], kind: Device) -> PlannedCell:
    skips = []
    for name in names:
        reason = _refusal(experiment, cell.workload, name, kind)
        if reason:
            skips.append(Skip(implementation=name, status=Status.unsupported, reason=reason))
    skipped = {skip.implementation for skip in skips}
    return PlannedCell(
        cell=cell,
        implementations=tuple(name for name in names if name not in skipped),
        skips=tuple(skips),
    )


def _refusal(experiment: Experiment, workload: Workload, name: str, kind: Device) -> str:
    """Why the implementation does not run this workload here; empty: it does."""
    implementation = experiment.kernel.implementations[name]
    if implementation.dtypes and workload.dtype not in implementation.dtypes:
        return f"dtype {workload.dtype}: it supports {', '.join(implementation.dtypes)}"
    if implementation.layouts and workload.layout not in implementation.layouts:
        return f"layout {workload.layout}: it supports {', '.join(implementation.layouts)}"
    if implementation.devices and kind not in implementation.devices:
        return f"device {kind}: it supports {', '.join(implementation.devices)}"
    if kind == Device.cpu:
        reason = _refusal_on_cpu(experiment, implementation)
        if reason:
            return reason
    where, key = implementation.where, f"kernel.implementations.{name}.where"
    if where and not expressions.holds(where, _values(workload), key):
        return f"it needs {where}"
    return ""


def _refusal_on_cpu(experiment: Experiment, implementation: Implementation) -> str:
    if implementation.language == Language.cuda:
        return "device cpu: CUDA C++ needs an NVIDIA GPU"
    if implementation.language == Language.triton and experiment.dtype.storage == "bfloat16":
        return "dtype bf16 on cpu: Triton's interpreter multiplies the bit patterns of bf16"
    return ""


def _values(workload: Workload) -> dict[str, Any]:
    """What an expression over the axes may name."""
    return {"dtype": workload.dtype, "layout": workload.layout, **workload.axes}


def _no_such_cell(cell_id: str, cells: list[PlannedCell]) -> ConfigError:
    shown = [f"{p.cell.id} ({p.cell.workload.label})" for p in cells[:_SHOWN]]
    more = f" and {len(cells) - _SHOWN} more" if len(cells) > _SHOWN else ""
    return ConfigError(
        f"cell={cell_id}: no cell of this experiment. Its cells: {', '.join(shown)}{more}. "
        "An id depends on kernel, axes, dtype, layout, seed and distribution."
    )


_SHOWN = 20
