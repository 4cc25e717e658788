"""Every section from its request to its result, in a process of its own, on tiny cells."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_lab.runner.question.compose import compose
from kernel_lab.runner.question.plan import plan
from kernel_lab.runner.question.vocabulary import ROOT, load_yaml
from kernel_lab.runner.schema import Device, Experiment
from pydantic import TypeAdapter

LAB = Path(__file__).resolve().parents[2] / "lab"
WORDS = load_yaml((ROOT / "conf/doctor.yaml").read_text())
DEVICE = ("period_us", "host_us", "stamp_us", "graph_us", "graph_copies", "nodes", "event_us")
TRACED = ("event_unheld_us", "busy_us", "span_us", "launches", "sm_mhz")


@pytest.fixture(scope="module")
def experiment():
    """Two that work, one that raises, one whose library is absent."""
    made = compose(
        [
            "kernel=probe",
            "dtype=fp32",
            "target=cpu",
            "protocol=quick",
            "protocol.warmup_ms=1",
            "protocol.sample_us=20",
            "shapes.product.N=[4096]",
            "implementations=[right,also_right,raises,missing_library]",
        ],
        [LAB],
    )
    return TypeAdapter(Experiment).dump_python(made, mode="json")


@pytest.fixture(scope="module")
def cell(experiment):
    """The id of the one cell."""
    (planned,) = plan(TypeAdapter(Experiment).validate_python(experiment), Device.cpu).cells
    return planned.cell.id


@pytest.fixture
def ask(experiment, tmp_path):
    """`ask(section, kind="cpu", **options)`: exit code and result."""

    def run(section, kind="cpu", **options):
        request, result = tmp_path / "request.json", tmp_path / "result.json"
        values = {
            "section": section,
            "kind": kind,
            "experiments": [experiment],
            "python_path": [str(LAB)],
            "options": {"paths": WORDS["paths"], **options},
        }
        request.write_text(json.dumps(values))
        hidden = {} if kind == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "kernel_lab.runner.calibration.main",
                str(request),
                str(result),
            ],
            env={**os.environ, **hidden},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert result.exists(), done.stderr
        return done.returncode, json.loads(result.read_text())

    return run


def by_name(result):
    return {row["implementation"]: row for row in result["rows"]}


def explained(row):
    """Every number that is absent has its reason, and no other."""
    absent = {key for key, value in row.items() if value is None and key != "held"}
    return absent == set(row["reasons"]) and all(row["reasons"].values())


def test_the_ladder_on_a_cpu_is_the_hosts_clock_and_says_what_a_cpu_has_not(ask):
    code, result = ask("ladder")
    assert code == 0, result.get("error")
    assert result["done"]
    assert result["section"] == "ladder"
    assert result["environment"].keys() == {"gpu", "host", "software"}
    assert result["seconds"] > 0
    rows = by_name(result)
    assert set(rows) == {"right", "also_right", "raises", "missing_library"}
    for row in rows.values():
        assert explained(row), row
        assert all(row[key] is None for key in (*DEVICE, *TRACED))
        assert row["cell"] == "N4096-fp32"
        assert row["cell_id"].startswith("c")
        assert row["experiment"]
    wall = rows["right"]["wall_us"]
    assert 0 < wall["low"] <= wall["median"] <= wall["high"]
    assert rows["raises"]["wall_us"] is None
    assert "no_such_library_anywhere" in rows["missing_library"]["reasons"]["wall_us"]


def test_cold_on_a_cpu_has_what_it_reads_and_the_hosts_clock(ask):
    code, result = ask("cold")
    assert code == 0, result.get("error")
    row = by_name(result)["right"]
    assert row["bytes_read"] == 4 * 4096
    assert row["wall_us"]["median"] > 0
    assert explained(row), row
    assert row["period_cold_us"] is row["write_flush_us"] is None


def test_pairs_count_every_verdict(ask):
    code, result = ask("pairs", pairs=3)
    assert code == 0, result.get("error")
    assert [row["kind"] for row in result["rows"]] == ["same", "same", "same", "more"]
    for row in result["rows"]:
        verdicts = ("faster", "slower", "equal", "undecided")
        assert sum(row[key] for key in verdicts) == row["pairs"] == 1
        assert row["us"] > 0
        assert row["width"] >= 0
        assert " fp32" in row["case"]
    (more,) = [row for row in result["rows"] if row["kind"] == "more"]
    assert (more["found"], more["reversed"]) == (more["faster"], more["slower"])


def test_repeat_has_our_clock_and_the_foreign_ones_that_a_cpu_has(ask, cell):
    who = [[cell, "right"], [cell, "also_right"]]
    code, result = ask("repeat", cells=who)
    assert code == 0, result.get("error")
    assert [row["implementation"] for row in result["rows"]] == [name for _, name in who]
    for row in result["rows"]:
        assert row["wall_us"] > 0
        assert row["timer_us"] > 0
        assert row["reasons"].keys() == {"period_us", "do_bench_us"}


def test_repeat_without_a_path_says_so(ask, cell):
    _, result = ask("repeat", cells=[[cell, "right"]], paths={})
    assert result["rows"][0]["reasons"]["timer_us"] == "options.paths.timer is not given"


def test_calls_are_a_range_each_and_ranges_of_all_subjects_are_one_table(ask):
    code, result = ask("calls", calls=3, hold=False)
    assert code == 0, result.get("error")
    rows = by_name(result)
    assert rows["right"]["calls"] == rows["also_right"]["calls"] == 3
    assert rows["raises"]["calls"] is None
    assert rows["raises"]["reasons"]["calls"]
    table = result["ranges"]
    assert [entry["index"] for entry in table] == list(range(len(table)))
    traced = [entry for entry in table if entry["phase"] == "trace"]
    assert {(e["cell"], e["implementation"]) for e in traced} == {
        (rows[name]["cell_id"], name) for name in ("right", "also_right")
    }


def test_calls_of_chosen_subjects_only(ask, cell):
    who = [[cell, "also_right"]]
    _, result = ask("calls", calls=1, cells=who)
    assert [[row["cell_id"], row["implementation"]] for row in result["rows"]] == who


def test_an_unknown_section_ends_with_the_choices_in_the_result(ask):
    code, result = ask("ladders")
    assert code == 1
    assert not result["done"]
    assert "section=ladders" in result["error"].replace(": ", "=")
    assert "Choices: calls, cold, ladder, pairs, repeat" in result["error"]


@pytest.mark.gpu
def test_the_ladder_on_a_gpu_has_every_instrument(ask):
    code, result = ask("ladder", kind="cuda")
    assert code == 0, result.get("error")
    rows = by_name(result)
    for name in ("right", "also_right"):
        row = rows[name]
        assert not row["reasons"], row["reasons"]
        assert row["launches"] == row["nodes"] == 1
        assert row["node_kinds"] == {"kernel": 1}
        assert [count for count, _ in row["graph_copies"]] == [1, 2, 4, 8, 16, 32, 64]
    assert rows["raises"]["period_us"] is None
    assert explained(rows["raises"])


@pytest.mark.gpu
def test_cold_pairs_repeat_and_calls_on_a_gpu(ask):
    code, cold = ask("cold", kind="cuda")
    assert code == 0, cold.get("error")
    row = by_name(cold)["right"]
    # 16 kB do not rotate through 3x L2: the only thing that may be absent
    assert set(row["reasons"]) <= {"rotated_us"}, row["reasons"]
    code, pairs = ask("pairs", kind="cuda", pairs=4)
    assert code == 0, pairs.get("error")
    assert len(pairs["rows"]) == 5
    who = [[row["cell_id"], "right"]]
    code, repeat = ask("repeat", kind="cuda", cells=who)
    assert code == 0, repeat.get("error")
    assert not repeat["rows"][0]["reasons"], repeat["rows"][0]["reasons"]
    for hold in (True, False):
        code, calls = ask("calls", kind="cuda", cells=who, calls=5, hold=hold)
        assert code == 0, calls.get("error")
        assert calls["rows"][0]["calls"] == 5
        assert calls["rows"][0]["held"] is (True if hold else None)
