"""The section `calls` under fake tools: rows of every subject, or the reason."""

import json

import pytest
from kernel_lab.runner.doctor import tools

ONE, TWO = ("c00000001", "eager"), ("c00000001", "folded")
TABLE = [
    {"index": 0, "message": "job=doctor;kernel=all", "cell": "", "implementation": "", "phase": ""},
    *(
        {"index": index, "message": message, "cell": who[0], "implementation": who[1], "phase": p}
        for index, who, message, p in (
            (1, ONE, "cell=0000;impl=eager", ""),
            (2, ONE, "cell=0000;impl=eager>trace", "trace"),
            (3, TWO, "cell=0000;impl=folded", ""),
            (4, TWO, "cell=0000;impl=folded>trace", "trace"),
        )
    ),
]


def result(*, calls=3, held=True, reasons=None):
    rows = [
        {"cell_id": cell, "implementation": name, "calls": calls, "held": held, "reasons": {}}
        for cell, name in (ONE, TWO)
    ]
    if reasons:
        rows[1] |= {"calls": None, "reasons": {"calls": reasons}}
    return {"rows": rows, "ranges": TABLE, "environment": {"gpu": {}}, "seconds": 1, "done": True}


def nsys_program(place, made, sqlite):
    """Answers the request and exports what was made by hand."""
    return f"""
out = words[words.index("-o") + 1]
if words[0] == "profile":
    pathlib.Path(words[-1]).write_text({json.dumps(made)!r})
    pathlib.Path(out + ".nsys-rep").write_text("report")
else:
    pathlib.Path(out).write_bytes(pathlib.Path({str(sqlite)!r}).read_bytes())
"""


def three_calls(export):
    for turn in range(3):
        at = 1000 * turn
        export.range("trace", at, at + 100, payload=2)
        export.launch(at + 10, ("a", at + 200, at + 200 + 10 * (turn + 1)))
        export.launch(at + 20, ("b", at + 300, at + 310), ("memset", at + 320, at + 325))
        export.range("trace", at + 500, at + 600, payload=4)
        export.launch(at + 510, ("c", at + 700, at + 750))
    export.range("warmup", 5000, 5100, payload=1)
    export.launch(5010, ("a", 6000, 9000))


def test_nsys_rows_hold_medians_over_the_traced_calls(export, place, fake, tmp_path):
    three_calls(export)
    sqlite = export.save(tmp_path / "made.sqlite")
    fake("nsys", nsys_program(place, result(), sqlite))
    found = tools.by_nsys(place, [], [ONE, TWO])
    one, two = found.rows
    assert one["busy_us"] == {"median": 0.035, "low": 0.025, "high": 0.045}
    assert one["span_us"]["median"] == 0.125
    assert (one["launches"], one["kernels"], one["calls"]) == (3, 2, 3)
    assert two["busy_us"]["median"] == 0.05
    assert (one["tool"], one["version"], one["reason"]) == ("nsys", "2025.3.1.0", "")
    request = json.loads((place.folder / "nsys.request.json").read_text())
    assert request["section"] == "calls"
    assert request["options"]["cells"] == [list(ONE), list(TWO)]
    assert request["options"]["hold"] is True
    assert request["options"]["paths"] == {"do_bench": "somewhere.do_bench"}


def test_a_span_is_no_span_where_the_queue_was_not_held(export, place, fake, tmp_path):
    three_calls(export)
    fake("nsys", nsys_program(place, result(held=False), export.save(tmp_path / "m.sqlite")))
    row = tools.by_nsys(place, [], [ONE]).rows[0]
    assert row["span_us"] is None
    assert row["busy_us"] is not None


def test_a_subject_that_made_no_calls_has_the_workers_reason(export, place, fake, tmp_path):
    export.range("trace", 0, 100, payload=2)
    export.launch(10, ("a", 200, 210))
    made = result(reasons="OutOfMemoryError: 20 GB")
    fake("nsys", nsys_program(place, made, export.save(tmp_path / "m.sqlite")))
    one, two = tools.by_nsys(place, [], [ONE, TWO]).rows
    assert one["busy_us"]["median"] == 0.01
    assert two["busy_us"] is None
    assert two["reason"] == "OutOfMemoryError: 20 GB"


def test_ranges_that_were_never_recorded_are_the_reason_of_every_row(export, place, fake, tmp_path):
    export.ranges.clear()
    export.launch(10, ("a", 200, 210))
    fake("nsys", nsys_program(place, result(), export.save(tmp_path / "m.sqlite")))
    rows = tools.by_nsys(place, [], [ONE, TWO]).rows
    assert all("no NVTX range" in row["reason"] for row in rows)


@pytest.mark.parametrize("name", ["nsys", "ncu"])
def test_a_tool_that_is_not_here_is_a_reason_and_no_failure(name, place, monkeypatch):
    monkeypatch.setenv(f"KLAB_{name.upper()}", "/nowhere")
    run = {"nsys": lambda: tools.by_nsys(place, [], [ONE]),
           "ncu": lambda: tools.by_ncu(place, [], [ONE])}[name]  # fmt: skip
    found = run()
    assert found.reason == ""
    assert found.rows[0]["busy_us"] is None
    assert "/nowhere" in found.rows[0]["reason"]


def ncu_program(made, launches, *, ranges=True):
    column, unit = (',"thread Domain:Push/Pop_Range"', ',""') if ranges else ("", "")
    text = f'"ID","Kernel Name"{column},"gpu__time_duration.sum"\n"",""{unit},"ns"\n'
    for number, (payload, ns) in enumerate(launches):
        nvtx = f',"7  ""kernel-lab:trace:Int64:{payload}:RGB:0xff:REGISTERED:trace"" "'
        text += f'"{number}","k"{nvtx if ranges else ""},"{ns}"\n'
    return f"""
pathlib.Path(words[words.index("--log-file") + 1]).write_text({text!r})
pathlib.Path(words[-1]).write_text({json.dumps(made)!r})
"""


LAUNCHES = [(2, 1000), (2, 2000), (2, 1100), (2, 2100), (4, 1500), (4, 1700)]
"""By the payload of the range; as TABLE has it, of ONE and of TWO."""


def test_ncu_sums_the_kernels_of_a_call_by_the_payload_of_its_range(place, fake):
    fake("ncu", ncu_program(result(calls=2), LAUNCHES))
    found = tools.by_ncu(place, [], [ONE, TWO])
    one, two = found.rows
    assert one["busy_us"]["median"] == pytest.approx(3.1)
    assert two["busy_us"]["median"] == pytest.approx(1.6)
    assert (one["launches"], two["launches"]) == (2, 1)
    request = json.loads((place.folder / "ncu.request.json").read_text())
    assert request["options"]["hold"] is False


def test_launches_that_do_not_fit_the_calls_are_not_handed_out(place, fake):
    fake("ncu", ncu_program(result(calls=2), LAUNCHES[1:]))
    one, two = tools.by_ncu(place, [], [ONE, TWO]).rows
    assert one["busy_us"] is None
    assert one["reason"] == "3 launches do not divide by 2 calls"
    assert two["busy_us"]["median"] == pytest.approx(1.6)


def test_launches_without_a_range_are_nobodys(place, fake):
    fake("ncu", ncu_program(result(calls=2), LAUNCHES, ranges=False))
    for row in tools.by_ncu(place, [], [ONE, TWO]).rows:
        assert row["busy_us"] is None
        assert "tells of no launch in which range" in row["reason"]


def test_counters_that_are_refused_are_a_reason(place, fake):
    fake("ncu", 'print("==ERROR== ERR_NVGPUCTRPERM"); sys.exit(1)')
    found = tools.by_ncu(place, [], [ONE])
    assert found.reason == ""
    assert "ERR_NVGPUCTRPERM" in found.rows[0]["reason"]
