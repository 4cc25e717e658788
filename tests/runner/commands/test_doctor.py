"""`klab doctor`: its words, its exit codes, and one measurement from words to files."""

import json
import os
import signal
from pathlib import Path

import pytest
from kernel_lab.runner import cli
from kernel_lab.runner.commands import doctor, doctor_measure
from kernel_lab.runner.commands import finding as finding_command
from kernel_lab.runner.doctor.probe import TorchState
from kernel_lab.runner.doctor.sections import Section
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.report.console import Console
from kernel_lab.runner.schema import Device

WHO = {"experiment": "doctor_cold", "cell": "N1-fp32", "cell_id": "c00000001"}
WHO |= {"implementation": "eager"}


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr("kernel_lab.runner.commands.doctor.gpus", list)
    monkeypatch.setattr("kernel_lab.runner.preparing.gpus", list)
    monkeypatch.setattr("kernel_lab.runner.device._DRIVER", Path("/nowhere"))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["laddr"], "Choices: cold, ladder, pairs, repeats. Did you mean ladder"),
        (["paris=3"], "Choices: device, pairs, repeats, target"),
        (["pairs=none"], "pairs=none: a whole number from 2"),
        (["repeats=1"], "repeats=1: a whole number from 2"),
        (["target=h201", "cold"], "h200_sxm"),
    ],
)
def test_what_cannot_be_asked_names_the_choices(words, named):
    with pytest.raises(ConfigError) as caught:
        doctor.main(["--measure", *words])
    assert named in str(caught.value)


def test_sections_without_measure_say_how():
    with pytest.raises(ConfigError, match="klab doctor --measure cold"):
        doctor.main(["cold"])
    with pytest.raises(ConfigError, match="klab doctor --measure cold pairs=3 device=0"):
        doctor.main(["cold", "pairs=3", "device=0"])


def test_sections_keep_their_own_order():
    assert doctor.parse(["repeats", "ladder", "pairs=3"]) == (("ladder", "repeats"), {"pairs": "3"})


@pytest.mark.parametrize(
    ("torch", "code"), [(TorchState(version="2.13.0"), 0), (TorchState(error="no torch"), 1)]
)
def test_the_set_up_check_ends_1_where_a_run_cannot_work(torch, code, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "torch_state", lambda: torch)
    assert doctor.main([]) == code
    shown = capsys.readouterr().out
    assert "broken" in shown if code else "klab run experiment=quickstart" in shown


def test_the_set_up_check_names_an_unknown_target():
    with pytest.raises(ConfigError, match="h200_sxm"):
        doctor.main(["target=h201"])


def test_help_is_among_the_commands(capsys):
    assert cli.main(["--help"]) == 0
    assert "doctor" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        doctor.main(["--help"])
    assert caught.value.code == 0


@pytest.fixture
def answers(monkeypatch):
    """Stands for the measuring processes; remembers what they were asked."""
    asked = []

    def measure(place, name, section, experiments, options, progress):
        progress(name, 1)
        asked.append((name, section, [e.experiment_name for e in experiments], options))
        rows = {
            "ladder": [{**WHO, "wall_us": 3.0, "period_us": None, "reasons": {"period_us": "cpu"}}],
            "cold": [{**WHO, "bytes_read": 8, "wall_us": 3.0}],
            "pairs": [
                {
                    "kind": "same",
                    "case": "x, twice",
                    "us": 3.0,
                    "pairs": 60,
                    "faster": asked_faster[0],
                }
                | {"slower": 0, "equal": 4, "undecided": 0, "width": 0.01}
            ],
            "repeat": [{**WHO, "wall_us": 3.0 + len(asked)}],
        }[section]
        reason = "it died by signal 9" if name == fails[0] else ""
        return Section(name=name, rows=rows, environment={"gpu": {}}, seconds=1.0, reason=reason)

    asked_faster, fails = [0], [""]
    monkeypatch.setattr(doctor_measure, "measure_section", measure)
    return asked, asked_faster, fails


def written(outputs):
    (folder,) = (outputs / "doctor").iterdir()
    return folder, json.loads((folder / "doctor.json").read_text())


def test_all_sections_from_words_to_files_and_a_finding(answers, outputs, tmp_path, capsys):
    asked, *_ = answers
    assert doctor.main(["--measure", "target=cpu", "pairs=4", "repeats=3"]) == 0
    names = [name for name, *_ in asked]
    assert names == ["ladder", "cold", "pairs", "repeat-1", "repeat-2", "repeat-3"]
    assert asked[0][2] == ["doctor_ladder_pointwise", "doctor_ladder_gemm"]
    assert asked[2][3] == {"pairs": 4}
    folder, values = written(outputs)
    assert values["kind"] == "cpu"
    assert values["command"].endswith("ladder cold pairs repeats target=cpu pairs=4 repeats=3")
    assert values["rows"]["repeats"][0]["wall_us"]["processes"] == 3
    assert "a CPU has no device timeline" in values["rows"]["nsys"][0]["reason"]
    shown = capsys.readouterr().out
    assert (folder / "report.txt").read_text().strip() in shown
    findings = tmp_path / "findings"
    for name in (str(folder), folder.name):
        assert finding_command.main([name, "--output", str(findings)]) == 0
        assert (findings / "cpu/doctor.json").exists()
        (findings / "cpu/doctor.json").unlink()


def test_only_the_sections_asked_for(answers, outputs):
    asked, *_ = answers
    assert doctor.main(["--measure", "cold", "target=cpu"]) == 0
    assert [name for name, *_ in asked] == ["cold"]
    assert set(written(outputs)[1]["rows"]) == {"cold"}


def test_instruments_that_differ_end_the_command_with_1(answers, outputs):
    answers[1][0] = 4
    assert doctor.main(["--measure", "pairs", "target=cpu"]) == 1
    checks = written(outputs)[1]["checks"]
    assert next(c for c in checks if c["name"] == "the same twice")["verdict"] == "differs"


def test_a_section_that_dies_ends_the_command_with_1_and_the_rest_is_measured(
    answers, outputs, capsys
):
    answers[2][0] = "ladder"
    assert doctor.main(["--measure", "ladder", "cold", "target=cpu"]) == 1
    assert set(written(outputs)[1]["rows"]) == {"ladder", "nsys", "ncu", "cold"}
    assert "ladder did not end well: it died by signal 9" in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["ladder", "cold", "repeat-2"])
def test_whatever_a_section_raises_the_rest_is_filed_and_the_reason_said(
    broken, answers, outputs, monkeypatch, capsys
):
    before = doctor_measure.measure_section

    def breaks(place, name, *rest):
        if name == broken:
            raise KeyError("odd")
        return before(place, name, *rest)

    monkeypatch.setattr(doctor_measure, "measure_section", breaks)
    words = ["ladder", "cold", "repeats", "target=cpu", "repeats=2"]
    assert doctor.main(["--measure", *words]) == 1
    _, values = written(outputs)
    assert set(values["rows"]) == {"ladder", "nsys", "ncu", "cold", "repeats"}
    section = broken.partition("-")[0].replace("repeat", "repeats")
    reasons = {name: found["reason"] for name, found in values["sections"].items()}
    assert reasons.pop(section) == "KeyError: 'odd'"
    assert not any(reasons.values())
    assert values["rows"]["repeats"]
    assert f"{section} did not end well: KeyError: 'odd'" in capsys.readouterr().out


def test_whatever_a_tool_raises_loses_only_its_own_rows(answers, outputs, monkeypatch):
    def breaks(*_):
        raise IndexError("no such line")

    monkeypatch.setattr(doctor_measure.tools, "by_nsys", breaks)
    monkeypatch.setattr(doctor_measure.tools, "by_ncu", breaks)
    found = Section(name="ladder", rows=[{**WHO, "period_us": 3.0, "launches": 1}])
    monkeypatch.setattr(doctor_measure, "measure_section", lambda *_: found)
    command = doctor_measure.Measurement(["ladder"], {"target": "cpu"}, Console())
    command._kind = Device.cuda
    assert command.run() == 1
    _, values = written(outputs)
    assert values["rows"]["ladder"][0]["period_us"] == 3.0
    for tool in ("nsys", "ncu"):
        assert values["sections"][tool]["reason"] == "IndexError: no such line"
        assert values["rows"][tool][0]["reason"] == "IndexError: no such line"


def test_a_ladder_without_any_time_ends_the_command_with_1_and_says_so(
    answers, outputs, monkeypatch, capsys
):
    found = Section(name="ladder", rows=[{**WHO, "wall_us": None, "reasons": {"wall_us": "odd"}}])
    monkeypatch.setattr(doctor_measure, "measure_section", lambda *_: found)
    assert doctor.main(["--measure", "ladder", "target=cpu"]) == 1
    assert "ladder: no subject of it has any time" in capsys.readouterr().out


def test_an_interrupt_keeps_what_was_measured(answers, outputs, monkeypatch):

    before = doctor_measure.measure_section

    def interrupted(place, name, *rest):
        if name == "cold":
            os.kill(os.getpid(), signal.SIGINT)
        return before(place, name, *rest)

    monkeypatch.setattr(doctor_measure, "measure_section", interrupted)
    assert doctor.main(["--measure", "ladder", "cold", "target=cpu"]) == 130
    assert set(written(outputs)[1]["rows"]) == {"ladder", "nsys", "ncu"}


@pytest.mark.slow
def test_the_ladder_of_this_machine_for_real(outputs):
    """The shipped experiments through the measuring process: no stand-in anywhere."""
    assert doctor.main(["--measure", "ladder", "target=cpu"]) == 0
    folder, values = written(outputs)
    names = {row["implementation"] for row in values["rows"]["ladder"] if row["wall_us"]}
    assert {"eager", "folded"} <= names
    assert values["environment"]["software"]["torch"]
    assert (folder / "ladder.log").exists()
