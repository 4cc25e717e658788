"""What needs no process: the result's file, the reasons of a row, who is chosen."""

import json
import math
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from kernel_lab.runner.calibration import calls, pairs, repeat
from kernel_lab.runner.calibration.methods import _repeats
from kernel_lab.runner.calibration.request import Report, Request, over, read, short
from kernel_lab.runner.calibration.subjects import Absent, Filled, reason_of
from kernel_lab.runner.question.compose import compose
from kernel_lab.runner.question.vocabulary import ROOT, load_yaml
from kernel_lab.runner.question.vocabulary import read as vocabulary
from kernel_lab.runner.records import Verdict
from kernel_lab.runner.schema import Device, Experiment
from kernel_lab.runner.worker.ranges import Ranges
from pydantic import TypeAdapter


def test_a_result_is_on_disk_after_every_row_and_is_done_only_at_the_end(tmp_path):
    path = tmp_path / "result.json"
    report = Report(path, "ladder")
    report.environment({"gpu": {}, "host": {"cores": 2}, "software": {}, "settings": "not this"})
    report.add({"a": 1})
    half = json.loads(path.read_text())
    assert half["rows"] == [{"a": 1}]
    assert half["environment"] == {"gpu": {}, "host": {"cores": 2}, "software": {}}
    assert half["done"] is False
    report.replace(0, {"a": 2})
    report.put("ranges", [])
    report.finish()
    whole = json.loads(path.read_text())
    assert (whole["rows"], whole["ranges"], whole["done"]) == ([{"a": 2}], [], True)
    assert "error" not in whole
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


def test_an_error_ends_a_result_with_its_rows_kept(tmp_path):
    report = Report(tmp_path / "result.json", "ladder")
    report.add({"a": 1})
    report.finish("Traceback: why")
    values = json.loads((tmp_path / "result.json").read_text())
    assert (values["rows"], values["done"], values["error"]) == (
        [{"a": 1}],
        False,
        "Traceback: why",
    )


def test_what_fails_leaves_its_keys_without_a_number_and_with_the_reason():
    filled = Filled(row={"cell": "x"})
    assert filled.attempt(("a_us",), lambda: {"a_us": 1.0})
    assert not filled.attempt(("b_us", "c_us"), lambda: 1 / 0)
    row = filled.done()
    assert (row["a_us"], row["b_us"], row["c_us"]) == (1.0, None, None)
    assert row["reasons"] == dict.fromkeys(("b_us", "c_us"), "ZeroDivisionError: division by zero")


def test_a_second_attempt_that_succeeds_takes_the_reason_away():
    filled = Filled(row={})
    filled.absent(("a_us",), "not traced yet")
    filled.attempt(("a_us",), lambda: {"a_us": 2.0})
    assert filled.done() == {"a_us": 2.0, "reasons": {}}


def test_a_reason_is_one_line():
    assert reason_of(Absent("no such tool")) == "no such tool"
    assert reason_of(RuntimeError("\n  first\nsecond")) == "RuntimeError: first"


def test_numbers_are_short_and_intervals_whole():
    assert short(1.23456789) == 1.23457
    assert over([1.0, 2.0, 3.0]) == {"median": 2.0, "low": 1.0, "high": 3.0}


def test_long_turns_are_repeated_less_and_never_below_five():
    assert _repeats(10.0, 15) == 15
    assert 5 < _repeats(60_000.0, 15) < 15
    assert _repeats(1e9, 15) == 5


@pytest.fixture(scope="module")
def ladder():
    names = load_yaml((ROOT / "conf/doctor.yaml").read_text())["experiments"]["repeats"]
    return tuple(compose([f"experiment={name}", "target=h200_sxm"]) for name in names)


def asked(experiments, kind=Device.cuda, **options):
    return Request(section="repeat", kind=kind, experiments=experiments, options=options)


def test_the_repeated_are_a_few_evenly_out_of_those_that_take_long_enough(ladder):
    found = repeat.chosen(asked(ladder))
    assert len(found) == repeat.SUBJECTS
    assert found == repeat.chosen(asked(ladder))
    assert len({cell for cell, _ in found}) >= 4
    small = repeat.chosen(asked(ladder, Device.cpu))
    assert 1 <= len(small) <= repeat.SUBJECTS
    assert not any(name == "triton" for _, name in small)


def test_the_repeated_may_be_named(ladder):
    assert repeat.chosen(asked(ladder, cells=[["c1", "eager"]])) == {("c1", "eager")}


def test_there_are_enough_subjects_on_the_ladder_and_they_span_three_decades(ladder):
    from kernel_lab.runner.question.costs import cost_of
    from kernel_lab.runner.question.plan import plan

    floors = [
        cost_of(experiment, planned.cell, name).floor_us
        for experiment in ladder
        for planned in plan(experiment, Device.cuda).cells
        for name in planned.implementations
    ]
    assert 14 <= len(floors) <= 24
    assert min(floors) < 0.01
    assert max(floors) > 3900
    middle = [math.floor(math.log10(us)) for us in floors if 1 <= us < 10_000]
    assert set(middle) == {0, 1, 2, 3}


def test_a_request_comes_back_from_its_file_as_it_was_asked(ladder, tmp_path):
    path = tmp_path / "request.json"
    dumped = [TypeAdapter(Experiment).dump_python(each, mode="json") for each in ladder]
    path.write_text(
        json.dumps({"section": "cold", "kind": "cuda", "experiments": dumped, "options": None})
    )
    found = read(path)
    assert (found.section, found.kind, found.gpu, found.paths) == ("cold", "cuda", True, {})
    assert found.experiments == ladder


def test_what_the_doctor_measures_is_there():
    words = load_yaml((ROOT / "conf/doctor.yaml").read_text())
    shipped = vocabulary().names("experiment")
    assert words["paths"].keys() == {"stamp", "do_bench", "timer"}
    assert words["experiments"].keys() == {"ladder", "cold", "pairs", "repeats"}
    for names in words["experiments"].values():
        assert set(names) <= set(shipped)


def test_of_pairs_that_differ_faster_is_the_right_verdict():
    seen = [Verdict.faster, Verdict.faster, Verdict.slower, Verdict.equal]
    told = {"faster": 2, "slower": 1, "equal": 1, "undecided": 0}
    assert pairs.counts(seen, more=False) == told
    assert pairs.counts(seen, more=True) == {**told, "found": 2, "reversed": 1}


def test_each_call_has_a_range_of_its_own_and_warming_up_another():
    opened, made = [], []

    class Seen(Ranges):
        @contextmanager
        def step(self, cell_index, cell_id, implementation, phase):
            opened.append(phase)
            made.append(0)
            with super().step(cell_index, cell_id, implementation, phase) as index:
                yield index

    def call(x):
        made[-1] += x

    subject = SimpleNamespace(
        context=SimpleNamespace(kind=Device.cpu, synchronize=lambda: None),
        cell=SimpleNamespace(index=0, id="c1"),
        name="it",
        call=lambda: call,
        draw=lambda: (1,),
    )
    found = calls._calls(subject, Seen("doctor", "all"), 4, hold=True)
    assert found == {"calls": 4, "held": None}
    assert opened == ["warmup", "trace", "trace", "trace", "trace"]
    assert made == [calls.WARM_UP, 1, 1, 1, 1]
