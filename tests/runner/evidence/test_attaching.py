"""A report taken by hand around `klab run`, joined to its job: from the command line to MLflow."""

import json
from pathlib import Path

import pytest
from kernel_lab.runner.commands import trace
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.folder import read_job

EXPORTS = """
out = words[words.index("-o") + 1]
pathlib.Path(out).write_bytes(pathlib.Path(words[-1]).read_bytes())
"""


@pytest.fixture
def job(gemm, monkeypatch, tmp_path):
    """A job in its folder, its ranges told: 3 are the traced calls of eager in the first cell."""
    monkeypatch.setenv("KLAB_OUTPUTS", str(tmp_path / "outputs"))
    record = next(r for r in gemm.records if r.implementation == "eager")
    who = {"cell": record.cell.id, "implementation": "eager"}
    table = [{"index": 0, "cell": "", "implementation": "", "phase": ""}]
    table.append({"index": 3, **who, "phase": "trace"})
    (Path(gemm.folder) / "ranges.json").write_text(json.dumps(table))
    return gemm, record


@pytest.fixture
def report(export, tmp_path, job, fake):
    """Two calls of one kernel in the trace of this job."""
    fake("nsys", EXPORTS)
    made, _ = job

    def save(job_id=made.id):
        export.range(f"job={job_id};kernel=gemm_bias_act", 0, 10_000, payload=0)
        for k in range(2):
            at = 100 * (k + 1)
            export.range("trace", at, at + 50, payload=3)
            export.launch(at + 5, ("nvjet_sm90_tst_128x64", 5000 + at, 7000 + at))
        return export.save(tmp_path / "mine.nsys-rep")

    return save


def test_what_a_report_holds_of_a_job_stands_in_its_records(job, report, tmp_path, capsys):
    made, record = job
    assert trace.main(["attach", str(report()), made.id]) == 0
    said = capsys.readouterr().out
    assert f"joined to 1 of {len(made.records)} records" in said
    after = read_job(Path(made.folder))
    found = next(
        r for r in after.records if (r.cell.id, r.implementation) == (record.cell.id, "eager")
    )
    seen = next(e for e in found.evidence if e.tool == "nsys")
    assert (seen.calls, seen.launch_count, seen.busy_us) == (2, 1, 2.0)
    assert seen.launches[0].family == "cublas"
    assert seen.span_us is None  # nobody knows whether the queue was held
    assert (Path(made.folder) / seen.report).exists()
    assert (Path(made.folder) / "traces" / "nsys-01.csv").exists()
    # a second report stands beside the first
    assert trace.main(["attach", str(tmp_path / "mine.nsys-rep"), made.folder]) == 0
    assert (Path(made.folder) / "traces" / "nsys-02.nsys-rep").exists()


def test_a_report_of_another_job_is_refused_and_leaves_nothing(job, report):
    made, _ = job
    with pytest.raises(ConfigError, match=r"no range of job .*Jobs in it: somebody-elses"):
        trace.main(["attach", str(report("somebody-elses")), made.id])
    assert list((Path(made.folder) / "traces").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.nsys-rep", None, "no such file"),
        ("x.sqlite", b"x", "a report of nsys is meant"),
        ("x.nsys-rep", b"no database at all", "cannot be read as a report"),
    ],
)
def test_what_is_no_report_is_refused(job, fake, tmp_path, name, content, reason):
    fake("nsys", EXPORTS)
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason):
        trace.main(["attach", str(path), job[0].id])


def test_without_nsys_the_next_step_is_said(job, monkeypatch, tmp_path):
    monkeypatch.setenv("KLAB_NSYS", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="needs nsys to export the report: KLAB_NSYS="):
        trace.main(["attach", "x.nsys-rep", job[0].id])
