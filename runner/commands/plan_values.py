"""A plan as JSON holds it, and who stands in a cell of it."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..question.plan import Plan
from ..records import Cost, PlannedCell
from ..schema import Experiment


def names(experiment: Experiment, planned: PlannedCell) -> list[str]:
    """Everyone in the cell, in the experiment's order, whether it runs or not."""
    here = {*planned.implementations, *(skip.implementation for skip in planned.skips)}
    order = [*experiment.implementations, *experiment.kernel.implementations]
    if experiment.kernel.baseline not in experiment.implementations:
        order.insert(0, experiment.kernel.baseline)  # where a run takes it
    return [name for name in dict.fromkeys(order) if name in here]


def values(
    job: Sequence[str],
    experiment: Experiment,
    done: Plan,
    costs: dict[tuple[str, str], Cost],
) -> dict[str, Any]:
    """The plan as JSON holds it; every number finite, what is unknown null."""
    return {
        "overrides": list(job),
        "experiment": experiment.experiment_name,
        "question": experiment.question,
        "kernel": experiment.kernel.name,
        "dtype": experiment.dtype.name,
        "target": experiment.target.name,
        "notes": list(done.notes),
        "duplicates": done.duplicates,
        "excluded": [
            {"axes": e.workload.axes, "layout": e.workload.layout, "condition": e.condition}
            for e in done.excluded
        ],
        "cells": [_cell(experiment, planned, costs) for planned in done.cells],
    }


def _cell(
    experiment: Experiment, planned: PlannedCell, costs: dict[tuple[str, str], Cost]
) -> dict[str, Any]:
    workload = planned.cell.workload
    reasons = {skip.implementation: skip for skip in planned.skips}
    rows = []
    for name in names(experiment, planned):
        cost, skip = costs[planned.cell.id, name], reasons.get(name)
        rows.append(
            {
                "implementation": name,
                "status": skip.status.value if skip else "planned",
                "reason": skip.reason if skip else "",
                "flops": cost.flops,
                "bytes": cost.bytes,
                "bytes_read": cost.bytes_read,
                "bytes_written": cost.bytes - cost.bytes_read,
                "stages": [dataclasses.asdict(stage) for stage in cost.stages],
                "flop_per_byte": cost.intensity,
                "ridge": cost.ridge,
                "floor_us": cost.floor_us,
                "bound": cost.bound,
            }
        )
    return {
        "id": planned.cell.id,
        "index": planned.cell.index,
        "label": workload.label,
        "name": workload.name,
        "axes": workload.axes,
        "layout": workload.layout,
        "distribution": workload.distribution,
        "seed": workload.seed,
        "implementations": rows,
    }
