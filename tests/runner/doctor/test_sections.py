"""A section's process: what it is asked, and what is kept of it however it ends."""

import json
import sys

import pytest
from kernel_lab.runner.doctor import sections
from kernel_lab.runner.doctor.sections import gathered, measure_section, words
from kernel_lab.runner.judge.instruments import SECTIONS
from kernel_lab.runner.question import vocabulary

PYTHON = sys.executable


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Puts a program in the place of the measuring process; it has `request` and `answer`."""

    def make(text):
        head = (
            "import json, os, pathlib, sys\n"
            "request = json.loads(pathlib.Path(sys.argv[-2]).read_text())\n"
            "def answer(**values):\n"
            "    pathlib.Path(sys.argv[-1]).write_text(json.dumps(values))\n"
        )
        script = tmp_path / "script.py"
        script.write_text(head + text)
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nexec {PYTHON} -S {script} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(sections.sys, "executable", str(python))

    return make


def measured(place, progress=lambda name, rows: None):
    return measure_section(place, "ladder", "ladder", [], {"calls": 3}, progress)


def test_rows_environment_and_options(place, program):
    program("answer(rows=[request['options']], environment={'gpu': 1}, seconds=2.0, done=True)")
    found = measured(place)
    assert found.rows == [{"paths": dict(place.paths), "calls": 3}]
    assert (found.environment, found.seconds, found.reason) == ({"gpu": 1}, 2.0, "")


def test_what_was_measured_before_a_death_is_kept_with_its_cause(place, program):
    program("answer(rows=[1, 2], done=False); print('bang', flush=True); os.kill(os.getpid(), 11)")
    found = measured(place)
    assert len(found.rows) == 2
    assert found.reason == "it died by signal 11: bang; see ladder.log"


def test_an_error_that_the_process_tells(place, program):
    program(
        "answer(rows=[1], done=False, error='Traceback ...\\nValueError: no such'); sys.exit(0)"
    )
    assert measured(place).reason == "ValueError: no such; see ladder.result.json"


def test_no_result_at_all_and_one_that_is_not_done(place, program):
    program("pass")
    assert measured(place).reason == "it left no result"
    program("answer(rows=[1], done=False)")
    assert measured(place).reason == "it ended before it was done"


def test_past_the_limit_it_is_ended_and_progress_was_told(place, program, monkeypatch):
    monkeypatch.setitem(sections.LIMIT_S, "ladder", 1.5)
    program("import time; answer(rows=[1, 2, 3], done=False); time.sleep(60)")
    told = []
    found = measured(place, lambda name, rows: told.append((name, rows)))
    assert "ended after its limit" in found.reason
    assert told[-1] == ("ladder", 3)
    assert len(found.rows) == 3


def test_an_earlier_result_is_not_taken(place, program):
    place.file("ladder", "result.json").write_text(json.dumps({"rows": [1], "done": True}))
    program("pass")
    assert measured(place).rows == []


def test_repeats_are_gathered(place):
    runs = [
        sections.Section(name="repeat-1", rows=[{"a": 1}], seconds=1.0),
        sections.Section(name="repeat-2", rows=[{"a": 2}], seconds=2.0, reason="it broke"),
    ]
    found = gathered(runs)
    assert (found.rows, found.seconds) == ([{"a": 1}, {"a": 2}], 3.0)
    assert found.reason == "repeat-2: it broke"


def test_every_section_measures_shipped_experiments():
    shipped = set(vocabulary.read(()).names("experiment"))
    for section in SECTIONS:
        assert set(words().experiments[section]) <= shipped
