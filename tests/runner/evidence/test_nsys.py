"""A report becomes evidence of every record: the right calls, rows beside it, reasons otherwise."""

import csv
import json

import pytest
from kernel_lab.runner.evidence.nsys import NsysPass
from kernel_lab.runner.nsight.tools import find
from kernel_lab.runner.records import Evidence

EXPORTS = """
out = words[words.index("-o") + 1]
if words[0] == "export":
    pathlib.Path(out).write_bytes(pathlib.Path(words[-1]).read_bytes())
"""

TABLE = [
    {"index": 0, "cell": "", "implementation": "", "phase": ""},
    {"index": 1, "cell": "c1", "implementation": "eager", "phase": ""},
    {"index": 2, "cell": "c1", "implementation": "eager", "phase": "warmup"},
    {"index": 3, "cell": "c1", "implementation": "eager", "phase": "trace"},
    {"index": 5, "cell": "c1", "implementation": "fused", "phase": "trace"},
]


def said(name, **more):
    return Evidence(tool="nsys", cell_id="c1", implementation=name, calls=3, held=True, **more)


@pytest.fixture
def made(fake, tmp_path):
    fake("nsys", EXPORTS)
    return NsysPass(tool=find("nsys"), folder=tmp_path / "traces")


def calls(export):
    """Three calls of eager with two kernels each, one of fused with one; a warm-up before."""
    export.range("job=j;kernel=k", 0, 10_000, payload=0)
    export.range("warmup", 10, 20, payload=2)
    export.launch(12, ("warm", 12, 14))
    for k, long in enumerate((1000, 3000, 2000)):
        at = 100 * (k + 1)
        export.range("cell=0000;impl=eager", at, at + 50, payload=1)
        export.range("trace", at + 1, at + 49, payload=3)
        first = 100_000 * (k + 1)
        export.launch(
            at + 5, ("void at::native::vectorized_elementwise_kernel<4>", first, first + 1500)
        )
        export.launch(at + 9, ("triton_poi_fused_mul_0", first + 2000, first + 2000 + long))
    export.range("trace", 601, 640, payload=5)
    export.launch(610, ("mul6", 900_000, 900_800))
    return export


def test_the_median_call_is_the_evidence_and_every_row_is_kept(made, export):
    made.around(1)
    calls(export).save(made.report(1))
    eager, fused = made.evidence(1, TABLE, [said("eager"), said("fused")])
    assert (eager.calls, eager.launch_count, eager.reason) == (3, 2, "")
    assert eager.busy_us == 3.5  # 1.5 and 2 us
    assert eager.span_us == 4.0
    assert [launch.family for launch in eager.launches] == ["aten", "inductor"]
    assert [launch.start_us for launch in eager.launches] == [0.0, 2.0]
    assert (fused.calls, fused.launch_count, fused.busy_us) == (1, 1, 0.8)
    assert eager.report == "traces/nsys-01.nsys-rep"
    assert eager.version == "2025.3.1.0"
    assert "profile -t cuda,nvtx" in eager.command
    rows = list(csv.DictReader((made.folder / "nsys-01.csv").open()))
    assert len(rows) == 7
    assert {row["implementation"] for row in rows} == {"eager", "fused"}
    assert rows[3]["call"] == "1"
    assert float(rows[3]["duration_us"]) == 3.0
    assert json.loads((made.folder / "nsys-01.json").read_text())[0]["grid"] == "8x1x1"
    assert not (made.folder / "nsys-01.sqlite").exists()


def test_a_queue_that_was_not_held_has_no_span(made, export):
    made.around(1)
    calls(export).save(made.report(1))
    (eager,) = made.evidence(
        1, TABLE, [Evidence(tool="nsys", cell_id="c1", implementation="eager")]
    )
    assert (eager.busy_us, eager.span_us) == (3.5, None)


def test_without_a_report_or_a_call_there_is_a_reason_and_no_count(made, export):
    (none,) = made.evidence(1, TABLE, [said("eager")])
    assert (none.reason, none.launch_count) == ("no evidence: nsys wrote no report", None)
    made.around(2)
    calls(export).save(made.report(2))
    (other,) = made.evidence(2, TABLE, [said("compile")])
    assert (other.reason, other.launch_count) == (
        "no evidence: the report holds none of its calls",
        None,
    )
    (crashed,) = made.evidence(2, TABLE, [said("eager", reason="no evidence: SIGSEGV")])
    assert (crashed.reason, crashed.launch_count) == ("no evidence: SIGSEGV", None)


def test_calls_without_device_work_are_seen_as_that(made, export):
    made.around(1)
    calls(export)
    export.range("trace", 700, 710, payload=7)
    export.save(made.report(1))
    table = [*TABLE, {"index": 7, "cell": "c1", "implementation": "idle", "phase": "trace"}]
    (idle,) = made.evidence(1, table, [said("idle")])
    assert (idle.launch_count, idle.calls) == (0, 1)
    assert "no device work" in idle.reason


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0 cut short"])
def test_a_report_that_is_none_is_a_reason(made, content):
    made.around(1)
    made.report(1).write_bytes(content)
    (none,) = made.evidence(1, TABLE, [said("eager")])
    assert none.reason.startswith("no evidence:")
    assert none.launch_count is None


def test_a_report_with_the_environment_of_others_is_linked_and_not_filed(made, export):
    made.around(1)
    calls(export)
    export.text("_=/usr/bin/klab\0HOME=/root\0SERVICE_TOKEN=hunter2\0PATH=/bin")
    export.text("CUDA_VISIBLE_DEVICES=0")
    export.save(made.report(1))
    (eager, _) = made.evidence(1, TABLE, [said("eager"), said("fused")])
    assert eager.launch_count == 2
    link = json.loads((made.folder / "nsys-01.link.json").read_text())
    assert "SERVICE_TOKEN" in link["reason"]
    assert "hunter2" not in json.dumps(link)
    assert link["bytes"] == made.report(1).stat().st_size
    assert len(link["sha256"]) == 64
    assert made.report(1).stat().st_mode & 0o077 == 0
