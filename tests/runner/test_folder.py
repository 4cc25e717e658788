import dataclasses
import json
import math

import pytest
from kernel_lab.runner.errors import StoreError
from kernel_lab.runner.folder import JobFolder, finished, read_job, read_records
from kernel_lab.runner.records import (
    Cell,
    Evidence,
    Interval,
    Job,
    JobStatus,
    Record,
    Status,
    Timing,
    Workload,
)


def record(name="eager", *, n=1, status=Status.checked, **values):
    cell = Cell(index=n, kernel="k", workload=Workload(axes={"N": n}, dtype="fp32"))
    return Record(job="j1", experiment="e", cell=cell, implementation=name, status=status, **values)


def timed(latency):
    return Timing(
        timer="t",
        headline="wall_us",
        state="warm",
        latency_us=Interval(median=latency, low=latency, high=latency),
        rounds_us=(latency, latency),
        calls=1,
        cache="",
    )


def evidence(of, *, tool="torch", count=2):
    return Evidence(
        tool=tool, cell_id=of.cell.id, implementation=of.implementation, launch_count=count
    )


@pytest.fixture
def folder(tmp_path):
    return JobFolder(tmp_path / "job")


def lines(folder):
    return (folder.path / "records.jsonl").read_bytes()


def read(folder):
    return read_records(folder.path / "records.jsonl")


def job(folder, **values):
    return Job(
        id="j1",
        folder=str(folder.path),
        signature="s1",
        experiment="e",
        kernel="k",
        question="q",
        command="klab run",
        started="2026-12-01T10:00:00+00:00",
        **values,
    )


def test_records_come_back_as_they_went(folder):
    made = [
        record(n=1, status=Status.ok, timing=timed(3.5), settings={"a": [1, "x"]}),
        record("triton", n=1, status=Status.crashed, reason="näher\nbesehen"),
        record(n=2),
    ]
    folder.append(made)
    assert read(folder) == tuple(made)


def test_each_append_is_seen_by_a_second_reader_at_once(folder):
    for n in range(1, 4):
        folder.append([record(n=n)])
        assert len(read(folder)) == n


def test_evidence_joins_its_record_whenever_it_comes(folder):
    one, other = record(n=1), record(n=2)
    folder.append([one, other])
    folder.append([evidence(one)])
    first, second = read(folder)
    assert first.evidence == (evidence(one),)
    assert second.evidence == ()


def test_later_evidence_of_the_same_tool_replaces_the_earlier_one(folder):
    one = record()
    folder.append([one, evidence(one, count=2), evidence(one, tool="nsys"), evidence(one, count=3)])
    (found,) = read(folder)
    assert {e.tool: e.launch_count for e in found.evidence} == {"torch": 3, "nsys": 2}


def test_a_later_line_of_the_same_record_replaces_the_earlier_one(folder):
    one = record(status=Status.ok, timing=timed(2.0))
    joined = dataclasses.replace(
        one, status=Status.invalid, reason="not fused", evidence=(evidence(one),)
    )
    folder.append([one, record(n=2)])
    folder.append([evidence(one)])
    folder.append([joined])
    first, second = read(folder)
    assert first == joined
    assert second.status is Status.checked


@pytest.mark.parametrize("keep", [1, 20, -2])
def test_a_last_line_cut_short_is_passed_over(folder, keep):
    folder.append([record(n=1)])
    whole = lines(folder)
    folder.append([record(n=2)])
    cut = lines(folder)[len(whole) :][:keep]
    (folder.path / "records.jsonl").write_bytes(whole + cut)
    assert read(folder) == (record(n=1),)


def test_a_folder_goes_on_after_a_line_that_was_cut_short(folder):
    # a resumed job appends behind what a crash left
    folder.append([record(n=1)])
    folder.append([record(n=2)])
    (folder.path / "records.jsonl").write_bytes(lines(folder)[:-15])
    folder.append([record(n=3)])
    assert read(folder) == (record(n=1), record(n=3))


def test_a_broken_line_in_the_middle_names_file_and_line(folder):
    folder.append([record(n=1)])
    with (folder.path / "records.jsonl").open("ab") as stream:
        stream.write(b'{"record": {"job": "j1"}}\n')
    folder.append([record(n=3)])
    with pytest.raises(StoreError, match=r"records\.jsonl:2: not a record"):
        read(folder)


def test_a_whole_last_line_that_is_no_record_is_an_error(folder):
    # it ends with its newline: nothing cut it short
    folder.append([record(n=1)])
    with (folder.path / "records.jsonl").open("ab") as stream:
        stream.write(b'{"record": {"job": "j1"}}\n')
    with pytest.raises(StoreError, match=r"records\.jsonl:2: not a record"):
        read(folder)


def test_evidence_of_no_record_is_an_error_with_its_line(folder):
    folder.append([evidence(record(n=7)), record(n=1)])
    with pytest.raises(StoreError, match=r"records\.jsonl:1"):
        read(folder)


def test_no_file_is_no_records(folder):
    assert read(folder) == ()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_know_are_refused_and_nothing_is_written(folder, value):
    # written as null, such a record could never be read again, nor the folder that holds it
    folder.append([record(n=5)])
    with pytest.raises(ValueError, match="JSON"):
        folder.append([record(n=6), record(status=Status.ok, timing=timed(value))])
    assert read(folder) == (record(n=5),)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_other_files_refuse_such_numbers_and_keep_what_they_held(folder, value):
    folder.write_json("environment.json", {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        folder.write_json("environment.json", {"a": value})
    assert json.loads((folder.path / "environment.json").read_text()) == {"a": 1}


def test_a_job_comes_back_whole(folder):
    one = record()
    folder.write_job(job(folder, overrides=("a=1",)))
    folder.write_json("config.json", {"seed": 0})
    folder.write_json("environment.json", {"gpu": {}})
    folder.append([one])
    found = read_job(folder.path)
    assert found.status is JobStatus.running
    assert (found.id, found.overrides, found.config, found.environment) == (
        "j1",
        ("a=1",),
        {"seed": 0},
        {"gpu": {}},
    )
    assert found.records == (one,)
    ended = finished(found, status=JobStatus.killed, reason="interrupted", ended="now")
    folder.write_job(ended)
    again = read_job(folder.path)
    assert (again.status, again.status_reason, again.ended) == (
        JobStatus.killed,
        "interrupted",
        "now",
    )
    assert again.records == (one,)


def test_a_copied_folder_knows_where_it_lies_now(folder, tmp_path):
    folder.write_job(job(folder))
    folder.path.rename(tmp_path / "elsewhere")
    assert read_job(tmp_path / "elsewhere").folder == str(tmp_path / "elsewhere")


def test_a_folder_without_a_job_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"no job\.json"):
        read_job(tmp_path)


def test_a_job_file_that_is_no_json_is_refused_by_name(folder):
    (folder.path / "job.json").write_text("{")
    with pytest.raises(StoreError, match=r"job\.json"):
        read_job(folder.path)


def test_no_half_written_file_is_left_beside(folder):
    folder.write_job(job(folder))
    folder.write_json("ranges.json", [])
    assert not list(folder.path.glob("*.partial"))
