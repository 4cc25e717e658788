"""The doctor's report within 100 columns, its finding, and the tables printed from that."""

import copy
import importlib.util
import json
from pathlib import Path

import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.report import doctor, doctor_finding
from kernel_lab.runner.report.doctor_legend import LEGEND
from kernel_lab.runner.report.finding_tables import filled, read_findings


@pytest.fixture
def values():
    path = Path(__file__).with_name("doctors.py")
    spec = importlib.util.spec_from_file_location("made_doctors", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.gpu()


@pytest.fixture
def folder(values, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/doctor.json").write_text(json.dumps(values))
    return tmp_path / "run"


def text(values):
    return "\n".join([*doctor.lines(values), *doctor.closing(values, Path("out"), ["x"])])


def test_every_line_fits_a_terminal_of_100_columns(values):
    assert max(len(line) for line in text(values).split("\n")) <= 100


def test_every_method_in_a_head_has_its_line(values):
    shown = text(values)
    for name in set(LEGEND) - {"wall"}:
        assert f"\n{name}: " in shown, name


def test_the_line_over_copies_goes_from_its_first_point_to_its_last(values):
    row = values["rows"]["ladder"][0]
    row["graph_copies"] = [[1, 12.0], [2, 13.0], [64, 264.0]]  # what a replay costs cancels
    shown = next(line for line in text(values).split("\n") if line.startswith("N1024 "))
    assert shown.endswith("  4.000")
    row["graph_copies"] = None
    shown = next(line for line in text(values).split("\n") if line.startswith("N1024 "))
    assert shown.endswith("  -")


def test_what_cells_share_is_said_once(values):
    lines = text(values).split("\n")
    assert any(line.startswith("N2400000000 ") for line in lines)
    assert any("doctor_ladder_pointwise: factors2-fp32" in line for line in lines)


def test_what_differs_and_why_something_is_not_measured(values):
    shown = " ".join(text(values).split())
    assert "differs: busy vs nsys, b eager: 90 us against 99 us (-9.09%)" in shown
    assert "explained: period vs graph, a eager" in shown
    assert "not measured: busy vs ncu (2): the driver gives GPU counters" in shown
    assert shown.count("administrator only") == 1


def test_what_is_seen_and_not_judged_is_no_missing_measurement(values):
    made = {"name": "repeats", "verdict": "not_measured", "reason": "no limit is set"}
    values["checks"].append({**values["checks"][0], **made, "seen": "3 to 4 us (33%)"})
    shown = text(values)
    head = next(line for line in shown.split("\n") if line.startswith("check "))
    assert head.split()[-4:] == ["not", "judged", "not", "measured"]
    assert "not judged: repeats (1): no limit is set" in shown
    assert "1 not judged, 2 not measured" in shown


def test_how_pairs_are_divided_is_said(values):
    line = "pairs=200: 50 of the same function, divided among 1 cases; half as many, 100, of the"
    assert line in text(values)


def test_the_next_step_is_a_finding_or_the_sections_that_lack(values):
    def last(values):
        return list(doctor.closing(values, Path("out"), []))[-1]

    assert last(values) == "keep it: klab finding out"
    del values["rows"]["cold"]
    assert last(values).startswith("no finding without cold: klab doctor --measure")


def test_an_absent_time_is_a_dash_and_never_zero(values):
    values["rows"]["ladder"][0]["stamp_us"] = None
    line = next(x for x in text(values).split("\n") if x.startswith("N1024 "))
    assert line.split()[4] == "-"


def test_versions_of_the_tools_that_gave_numbers(values):
    source = doctor.source(values)
    assert "nsys 2025.3.1" in source
    assert "ncu" not in source
    assert "commit 0123456789-dirty" in source


def test_a_section_alone_has_its_own_tables_only(values):
    alone = {**values, "rows": {"cold": values["rows"]["cold"]}, "checks": [], "notes": []}
    shown = text(alone)
    assert "cold: one call" in shown
    assert "ladder:" not in shown.partition("measured in")[0].replace("doctor_ladder", "")


def test_the_finding_holds_rows_and_checks_and_no_paths(values, folder, tmp_path):
    path = doctor_finding.write_finding(folder, tmp_path / "findings")
    assert path == tmp_path / "findings/h200/doctor.json"
    found = json.loads(path.read_text())
    assert found["rows"]["ladder"][0]["host_us"] == 12.3457
    assert len(found["checks"]) == len(values["checks"])
    for secret in ("/home/somebody", "GPU-12"):
        assert secret not in path.read_text()


@pytest.mark.parametrize("change", ["broken", "lacking"])
def test_part_of_an_answer_is_no_finding(values, folder, tmp_path, change):
    if change == "broken":
        values["sections"]["pairs"]["reason"] = "it died by signal 9"
    else:
        del values["rows"]["pairs"]
    (folder / "doctor.json").write_text(json.dumps(values))
    with pytest.raises(ConfigError, match="pairs"):
        doctor_finding.write_finding(folder, tmp_path / "findings")


def test_tables_between_markers_are_those_of_the_report(folder, tmp_path):
    doctor_finding.write_finding(folder, tmp_path / "findings")
    known = read_findings(tmp_path / "findings")
    marked = "<!-- findings: h200/doctor{} -->\nstale\n<!-- end -->\n"
    full = filled(marked.format(""), known, source="README.md")
    assert "stale" not in full
    assert "| N2400000000 | eager | 24 | 9012 |" in full
    assert filled(full, known, source="README.md") == full
    short = filled(marked.format(" summary"), known, source="README.md")
    assert len(short.split("\n")) < 12
    line = next(x for x in short.split("\n") if x.startswith("| busy vs nsys"))
    assert line.split(" | ")[2:4] == ["2", "1"]
    assert "(-9.09%)" in line


def test_all_leaves_the_doctor_to_its_own_markers(folder, tmp_path):
    doctor_finding.write_finding(folder, tmp_path / "findings")
    known = read_findings(tmp_path / "findings")
    text = filled("<!-- findings: all -->\n<!-- end -->\n", known, source="README.md")
    assert "doctor" not in text
    with pytest.raises(ConfigError, match="h200/doctor"):
        filled("<!-- findings: h200/docto -->\n<!-- end -->\n", known, source="README.md")


def test_numbers_are_not_changed_by_the_finding_beyond_six_digits(values, folder, tmp_path):
    path = doctor_finding.write_finding(folder, tmp_path / "findings")
    kept = json.loads(path.read_text())
    whole = {**copy.deepcopy(values)}
    assert doctor.full("h200/doctor", kept) == doctor.full("h200/doctor", whole)
