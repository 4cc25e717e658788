import dataclasses

import pytest
from kernel_lab.runner.folder import JobFolder, read_records
from kernel_lab.runner.merging import merged
from kernel_lab.runner.records import Cell, Evidence, Record, Status, Workload

CELL = Cell(index=0, kernel="k", workload=Workload(axes={"N": 8}, dtype="fp32"))


@pytest.fixture
def measured(jobs):
    """`measured(process, latency, ...)`: a record of one process."""

    def make(process, latency=10.0, status=Status.ok, reason="", **of):
        timed = status in (Status.ok, Status.noisy, Status.invalid)
        return Record(
            job="j",
            experiment="e",
            cell=CELL,
            implementation="a",
            status=status,
            reason=reason,
            process=process,
            timing=jobs.timing(latency, seed=process, **of) if timed else None,
            correctness=jobs.checked(1e-3 * process) if timed else None,
            compile_s=10.0 / process,
        )

    return make


def test_all_rounds_are_kept_and_say_which_process_they_are_of(measured):
    parts = [measured(2, 11.0, rounds=30), measured(1, 10.0), measured(3, 12.0)]
    whole = merged(parts)
    assert whole.process == 0
    assert whole.timing.by_process == {p.process: p.timing.rounds_us for p in parts}
    assert whole.timing.process_of_round == (1,) * 20 + (2,) * 30 + (3,) * 20
    assert [block.round for block in whole.timing.blocks] == list(range(70))
    values = tuple(block.samples_us[0] for block in whole.timing.blocks)
    assert values == whole.timing.rounds_us
    assert whole.correctness.max_error == 3e-3
    assert whole.compile_s == 10.0  # the first process found no cache


def test_the_latency_is_over_the_processes_medians(measured):
    whole = merged([measured(p, latency) for p, latency in ((1, 10.0), (2, 10.5), (3, 20.0))])
    found = whole.timing.latency_us
    assert found.median == pytest.approx(10.5, rel=0.005)
    assert found.low == pytest.approx(10.0, rel=0.005)
    assert found.high == pytest.approx(20.0, rel=0.005)


def test_a_lost_process_is_said_and_the_others_count(measured):
    parts = [measured(1), measured(2, status=Status.lost, reason="SIGKILL"), measured(3)]
    whole = merged(parts)
    assert whole.status is Status.ok
    assert set(whole.timing.by_process) == {1, 3}
    assert "lost in process 2: SIGKILL" in whole.timing.notes


def test_all_lost_is_lost(measured):
    assert merged([measured(p, status=Status.lost, reason="x") for p in (1, 2)]).status == "lost"


@pytest.mark.parametrize("status", [Status.wrong_values, Status.crashed, Status.timed_out])
def test_a_failure_in_one_process_is_the_implementations(measured, status):
    whole = merged([measured(1), measured(2, status=status, reason="because"), measured(3)])
    assert whole.status is status
    assert whole.timing is None
    assert whole.reason == "in process 2: because"


@pytest.mark.parametrize("status", [Status.noisy, Status.invalid])
def test_a_doubtful_process_makes_the_whole_doubtful_and_keeps_its_rounds(measured, status):
    whole = merged([measured(1), measured(2, status=status, reason="host"), measured(3)])
    assert whole.status is status
    assert whole.reason == "in 1 of 3 processes: host"
    assert len(whole.timing.rounds_us) == 60


def test_a_file_with_lines_of_several_processes_reads_as_one_record(measured, tmp_path):
    folder = JobFolder(tmp_path)
    first, again, second = measured(1), measured(1, 10.1, rounds=40), measured(2, 11.0)
    for line in (first, again, second):
        folder.append([line])
    seen = Evidence(tool="torch", cell_id=CELL.id, implementation="a", launch_count=1)
    folder.append([seen])
    (record,) = read_records(tmp_path / "records.jsonl")
    # of one process the later line counts
    assert record == dataclasses.replace(merged([again, second]), evidence=(seen,))
    joined = dataclasses.replace(record, status=Status.invalid, reason="denied")
    folder.append([joined])
    assert read_records(tmp_path / "records.jsonl") == (joined,)
