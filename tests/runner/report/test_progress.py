"""The lines that a person sees while a job works."""

import dataclasses
import io

import pytest
from kernel_lab.runner.records import PlannedCell
from kernel_lab.runner.report.progress import Reporter
from rich.console import Console


@pytest.mark.parametrize(("count", "mode"), [(1, "run"), (2, "run"), (2, "check")])
def test_cells_and_processes_are_counted(gemm, count, mode):
    protocol = {**gemm.config["protocol"], "processes": count}
    job = dataclasses.replace(gemm, config={**gemm.config, "protocol": protocol, "mode": mode})
    several = count > 1 and mode == "run"
    stream = io.StringIO()
    reporter = Reporter(Console(file=stream, width=200), job, 2 if several else 1)
    record = gemm.records[0]
    planned = PlannedCell(cell=record.cell, implementations=(record.implementation,))
    for process in (1, 2) if several else (0,):
        reporter.cell_done(planned, [dataclasses.replace(record, process=process)], False)
    reporter.close()
    head, *lines = stream.getvalue().splitlines()
    if several:
        assert ", 1 cell, 2 processes, in " in head
        starts = ["[process 1/2, 1/2] ", "[process 2/2, 2/2] "]
    else:
        assert ", 1 cell, in " in head
        starts = ["[1/1] "]
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))
