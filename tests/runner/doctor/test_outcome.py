"""Rows to one value: checks, summaries, and what makes the exit code 1."""

import pytest
from kernel_lab.runner.doctor.outcome import failed, outcome
from kernel_lab.runner.doctor.sections import Section

WHO = {"experiment": "e", "cell": "N1-fp32", "cell_id": "c00000001", "implementation": "eager"}


def interval(us):
    return {"median": us, "low": us, "high": us}


def ladder(period=100.0, busy=98.0):
    return {
        **WHO,
        "launches": 1,
        "period_us": interval(period),
        "stamp_us": interval(100.0),
        "graph_us": interval(100.0),
        "busy_us": interval(busy),
        "reasons": {},
    }


def nsys(us):
    return {**WHO, "tool": "nsys", "version": "2025", "busy_us": us and interval(us), "reason": "x"}


def values(gpu=True, **sections):
    return outcome(
        {name: Section(name=name, rows=rows) for name, rows in sections.items()}, {}, gpu=gpu
    )


def verdicts(found):
    return {check["name"]: check["verdict"] for check in found["checks"]}


def test_instruments_that_agree_and_one_that_differs():
    found = values(ladder=[ladder()], nsys=[nsys(98.1)], ncu=[])
    assert verdicts(found)["busy vs nsys"] == "agrees"
    assert verdicts(found)["busy vs ncu"] == "not_measured"
    assert failed(found) == []
    found = values(ladder=[ladder()], nsys=[nsys(90.0)], ncu=[])
    assert verdicts(found)["busy vs nsys"] == "differs"
    assert "busy vs nsys" in failed(found)[0]


def test_only_the_sections_that_were_measured_are_judged():
    found = values(pairs=[])
    assert set(verdicts(found)) == {"the same twice", "a true difference"}
    assert values(cold=[WHO])["checks"] == []


def test_a_section_that_ended_badly_fails_the_command():
    found = outcome({"cold": Section(name="cold", reason="it died by signal 9")}, {}, gpu=True)
    assert failed(found) == ["cold: it died by signal 9"]


def unjudged(**more):
    return {**ladder(), "period_us": None, "stamp_us": None, "busy_us": None, "graph_us": None} | (
        {"reasons": dict.fromkeys(("stamp_us", "stamp_events_us"), "no CUPTI"), **more}
    )


def test_on_a_gpu_a_section_of_which_nothing_could_be_judged_fails_the_command():
    found = values(ladder=[unjudged(host_us=interval(3.0))], nsys=[], ncu=[])
    assert set(verdicts(found).values()) == {"not_measured"}
    (said,) = failed(found)
    assert said.startswith("ladder: none of its 5 checks could be judged: ")
    assert "no CUPTI" in said
    assert failed(values(ladder=[unjudged(), ladder()], nsys=[], ncu=[])) == []
    assert failed(values(pairs=[]))[0].startswith("pairs: none of its 2 checks could be judged")
    short = [{**WHO, "period_us": 1.0}, {**WHO, "period_us": 1.1}]
    assert failed(values(repeats=short))[0].startswith("repeats: none of its 1 checks")
    assert failed(values(repeats=[]))[0] == "repeats: it holds nothing that could be judged"
    assert failed(values(cold=[WHO])) == []  # it is shown and not judged


def test_on_a_cpu_most_is_said_and_not_judged():
    found = values(gpu=False, ladder=[{**WHO, "wall_us": 3.0}], pairs=[], repeats=[])
    assert failed(found) == []


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("rows", [[], [unjudged()]])
def test_a_ladder_without_any_time_fails_the_command(gpu, rows):
    assert failed(values(gpu=gpu, ladder=rows)) == ["ladder: no subject of it has any time"]


def test_a_section_that_ended_badly_is_said_once():
    died = Section(name="ladder", reason="it died by signal 9")
    found = outcome({"ladder": died, "pairs": Section(name="pairs", reason="so too")}, {}, gpu=True)
    assert failed(found) == ["ladder: it died by signal 9", "pairs: so too"]


def test_repeats_become_a_row_a_subject():
    rows = [
        {**WHO, "period_us": us, "do_bench_us": 2 * us, "timer_us": None} for us in (100.0, 101.0)
    ]
    found = values(repeats=rows)
    (row,) = found["rows"]["repeats"]
    assert row["period_us"]["spread"] == pytest.approx(0.01)
    assert (row["period_us"]["low"], row["period_us"]["high"]) == (100.0, 101.0)
    assert row["timer_us"] is None
    assert row["experiment"] == "e"
    assert verdicts(found) == {"repeats": "agrees"}
    assert found["sections"]["repeats"]["rows"] == 2
