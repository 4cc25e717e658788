"""`trace=nsys` through a whole job on a CPU, with an executable in the place of nsys that runs the
worker and reports device work for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPORTS = """
out = words[words.index("-o") + 1]
if words[0] == "profile":
    seen = sorted(key for key in os.environ if "TOKEN" in key)
    pathlib.Path(out + ".seen").write_text(" ".join(seen))
    code = subprocess.run(words[words.index("-o") + 2 :]).returncode
    canned = pathlib.Path(os.environ["KLAB_CANNED"])
    pathlib.Path(out + ".nsys-rep").write_bytes(canned.read_bytes())
    sys.exit(code)
pathlib.Path(out).write_bytes(pathlib.Path(words[-1]).read_bytes())
"""


def klab(tmp_path, *words):
    return subprocess.run(
        [sys.executable, "-m", "kernel_lab.runner", "experiment=quickstart", "target=cpu", *words],
        env={
            **os.environ,
            "KLAB_OUTPUTS": str(tmp_path / "outputs"),
            "KLAB_CANNED": str(tmp_path / "canned.sqlite"),
            "SERVICE_TOKEN": "hunter2hunter2",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def canned(export, tmp_path):
    """Of each implementation three calls of one kernel; payloads as a worker counts its ranges:
    the job 0, then who, warm-up and trace of each."""
    for payload, name in ((3, "eager"), (6, "folded")):
        for k in range(3):
            at = 1000 * payload + 100 * k
            export.range("trace", at, at + 50, payload=payload)
            export.launch(at + 5, (f"void at::native::of_{name}", at + 10_000, at + 12_000))
    export.save(tmp_path / "canned.sqlite")


SMALL = ("protocol=quick", "shapes.product.N=[4096]", "implementations=[eager,folded]")


def test_every_record_has_what_nsys_saw_and_the_command_that_asked(tmp_path, fake, canned):
    fake("nsys", REPORTS)
    done = klab(tmp_path, "trace=nsys", *SMALL)
    assert "Traceback" not in done.stderr
    (folder,) = (tmp_path / "outputs" / "runs").iterdir()
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    seen = {e["implementation"]: e for line in lines if (e := line.get("evidence"))}
    assert {name: e["launch_count"] for name, e in seen.items()} == {"eager": 1, "folded": 1}
    assert seen["eager"]["launches"][0]["name"] == "void at::native::of_eager"
    assert seen["eager"]["busy_us"] == 2.0
    assert "profile -t cuda,nvtx" in seen["eager"]["command"]
    timed = [line["record"] for line in lines if line.get("record", {}).get("timing")]
    assert {record["implementation"] for record in timed} == {"eager", "folded"}
    # eager declares two stages and one kernel was seen: the trace is believed
    ends = {r["implementation"]: r for line in lines if (r := line.get("record"))}
    assert ends["eager"]["status"] == "invalid"
    assert "the trace saw 1 kernels" in ends["eager"]["reason"]
    assert ends["folded"]["status"] == "ok"
    assert done.returncode == 1


def test_no_token_reaches_the_tool_or_any_artifact(tmp_path, fake, canned):
    fake("nsys", REPORTS)
    klab(tmp_path, "trace=nsys", *SMALL)
    outputs = tmp_path / "outputs"
    (seen,) = (outputs / "runs").rglob("*.seen")
    assert seen.read_text() == ""
    for path in outputs.rglob("*"):
        if path.is_file():
            assert b"hunter2hunter2" not in path.read_bytes(), path
    filed = {path.name for path in (outputs / "mlflow-artifacts").rglob("*") if path.is_file()}
    assert {"nsys-01.nsys-rep", "nsys-01.csv", "nsys-01.json"} <= filed


def test_a_tool_that_is_not_here_stops_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setenv("KLAB_NSYS", str(tmp_path / "nowhere"))
    done = klab(tmp_path, "trace=nsys", *SMALL)
    assert done.returncode == 2
    assert "trace=nsys: KLAB_NSYS=" in done.stderr
    assert "no executable" in done.stderr
    assert not Path(tmp_path / "outputs" / "runs").exists()


def test_a_report_that_never_came_costs_the_evidence_and_not_the_times(tmp_path, fake):
    fake("nsys", "sys.exit(subprocess.run(words[words.index('-o') + 2 :]).returncode)")
    done = klab(tmp_path, "trace=nsys", *SMALL)
    assert done.returncode == 0
    assert "no evidence: nsys wrote no report" in done.stdout
