import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.records import Cell, Interval, Record, Status, Timing, Workload
from kernel_lab.runner.schema import Experiment
from kernel_lab.runner.traced import check_cells, traced_cells


def record(n, latency=None, name="eager", layout="contiguous"):
    cell = Cell(index=n, kernel="k", workload=Workload(axes={"N": n}, dtype="bf16", layout=layout))
    timing = None
    if latency is not None:
        timing = Timing(
            timer="t",
            headline="period_us",
            state="cold",
            latency_us=Interval(median=latency, low=latency, high=latency),
            rounds_us=(latency,) * 2,
            calls=1,
            cache="",
        )
    status = Status.crashed if latency is None else Status.ok
    return Record(
        job="j", experiment="e", cell=cell, implementation=name, status=status, timing=timing
    )


RECORDS = [record(1, 5.0), record(1, 9.0, "triton"), record(2), record(3, 50.0), record(4, 7.0)]


def chosen(cells, records=RECORDS):
    experiment = Experiment()
    experiment.trace.cells = cells
    ids = traced_cells(experiment, records)
    return [n for n in (1, 2, 3, 4) if record(n).cell.id in ids]


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ("first:1", [1]),
        ("first:3", [1, 2, 3]),
        ("first:99", [1, 2, 3, 4]),
        ("first:0", []),
        ("all", [1, 2, 3, 4]),
        ("slowest:1", [3]),
        ("slowest:2", [1, 3]),
        ("slowest:9", [1, 3, 4]),
        ("N >= 3", [3, 4]),
        ("dtype == 'bf16' and N < 2", [1]),
        ("layout == 'transposed'", []),
    ],
)
def test_which_cells_are_traced(cells, found):
    assert chosen(cells) == found


@pytest.mark.parametrize("cells", ["first:x", "first:-1", "slowest:", "M > 3", "first 8"])
def test_what_cannot_be_read_names_its_key(cells):
    with pytest.raises(ConfigError, match=r"trace\.cells"):
        chosen(cells)
    experiment = Experiment()
    experiment.trace.cells = cells
    with pytest.raises(ConfigError, match=r"trace\.cells"):
        check_cells(experiment, [record.cell for record in RECORDS])


@pytest.mark.parametrize("cells", ["first:8", "all", "slowest: 2", "N > 2"])
def test_what_can_be_read_is_let_through_before_any_work(cells):
    experiment = Experiment()
    experiment.trace.cells = cells
    check_cells(experiment, [record.cell for record in RECORDS])


def test_no_records_are_no_cells():
    assert chosen("first:8", []) == []
