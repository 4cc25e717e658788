"""Which cells an evidence pass looks at: `trace.cells` over the records of a job."""

from collections.abc import Sequence

from .question.expressions import holds
from .records import Record
from .schema import Experiment


def traced_cells(experiment: Experiment, records: Sequence[Record]) -> set[str]:
    """Cell ids by `first:N`, `all`, `slowest:N`, or an expression over the axes."""
    chosen = experiment.trace.cells
    order = list(dict.fromkeys(record.cell.id for record in records))
    if chosen == "all":
        return set(order)
    kind, _, count = chosen.partition(":")
    if kind == "first" and count:
        return set(order[: int(count)])
    if kind == "slowest" and count:
        slowest: dict[str, float] = {}
        for record in records:
            if record.timing is not None:
                latency = record.timing.latency_us.median
                slowest[record.cell.id] = max(latency, slowest.get(record.cell.id, 0.0))
        return set(sorted(slowest, key=lambda key: -slowest[key])[: int(count)])
    return {
        record.cell.id
        for record in records
        if holds(
            chosen,
            {
                **record.cell.workload.axes,
                "dtype": record.cell.workload.dtype,
                "layout": record.cell.workload.layout,
            },
            "trace.cells",
        )
    }
