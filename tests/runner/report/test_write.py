import dataclasses
from pathlib import Path

from kernel_lab.runner.report import write
from kernel_lab.runner.report.write import write_report


def test_a_text_that_is_no_utf_8_loses_no_report(gemm, monkeypatch):
    monkeypatch.setattr(write, "write_plots", lambda job, folder: None)
    said = [
        r if r.timing else dataclasses.replace(r, reason="no file b\udcff") for r in gemm.records
    ]
    write_report(dataclasses.replace(gemm, records=tuple(said)))
    for name in ("report.txt", "results.csv"):
        assert "no file b\\udcff" in (Path(gemm.folder) / name).read_text(encoding="utf-8")
