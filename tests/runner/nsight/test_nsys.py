"""nsys as an executable that stands for it: what it is given, and what it may fail to leave."""

import os

import pytest
from kernel_lab.runner.nsight import nsys
from kernel_lab.runner.nsight.tools import NsightError, find

GOOD = """
out = words[words.index("-o") + 1]
if words[0] == "profile":
    seen = " SECRET=" + os.environ.get("SECRET", "none")
    pathlib.Path(out + ".nsys-rep").write_text(" ".join(words) + seen)
else:
    pathlib.Path(out).write_text("exported")
"""


def profiled(tmp_path, **more):
    asked = {"environment": dict(os.environ), "limit_s": 20.0, **more}
    return nsys.profile(find("nsys"), ["program", "word"], report=tmp_path / "x.nsys-rep", **asked)


def test_the_command_and_its_files(fake, tmp_path, monkeypatch):
    fake("nsys", GOOD)
    monkeypatch.setenv("SECRET", "s3")
    report = profiled(tmp_path)
    line = report.path.read_text()
    assert line.startswith("profile -t cuda,nvtx -s none --cpuctxsw=none --cuda-graph-trace=node")
    assert line.endswith("program word SECRET=none")
    assert report.sqlite.read_text() == "exported"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("sys.exit(0)", r"wrote no x\.nsys-rep"),
        ("print('out of luck'); sys.exit(3)", r"exit code 3: out of luck; see x\.nsys\.log"),
        (GOOD.replace('"exported"', '""'), r"nsys export ended well and wrote no x\.sqlite"),
        (GOOD + "if words[0] == 'export': sys.exit(1)", "export failed: exit code 1"),
        ("import time; time.sleep(60)", "after its limit"),
    ],
)
def test_what_may_go_wrong_is_a_reason(fake, tmp_path, program, reason):
    fake("nsys", program)
    with pytest.raises(NsightError, match=reason):
        profiled(tmp_path, limit_s=1.0 if "sleep" in program else 20.0)


def test_an_old_report_is_not_taken_for_a_new_one(fake, tmp_path):
    fake("nsys", "sys.exit(0)")
    (tmp_path / "x.nsys-rep").write_text("of yesterday")
    with pytest.raises(NsightError, match=r"wrote no x\.nsys-rep"):
        profiled(tmp_path)
