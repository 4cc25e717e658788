"""ncu as an executable that stands for it, and its CSV."""

import os

import pytest
from kernel_lab.runner.nsight import ncu
from kernel_lab.runner.nsight.tools import NsightError, find

RANGES = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
CSV = f'''==PROF== Connected to process 7
a line of the program's own
==PROF== Profiling "mul6" - 0: 0%....100% - 1 pass
"ID","Process ID","Kernel Name","Stream","{RANGES}","gpu__time_duration.sum","dram__bytes.sum"
"","","","","","ns","byte"
"0","7","mul6(float *, long)","7","kernel-lab:cell=0001;impl=eager","1,504","n/a"
"1","7","gelu","7","kernel-lab:cell=0001;impl=eager","2,000.5","64"
'''


def test_launches_in_order_with_units_and_ranges():
    first, second = ncu.parse(CSV)
    assert (first.name, first.us()) == ("mul6(float *, long)", 1.504)
    assert "impl=eager" in first.nvtx
    assert second.us() == pytest.approx(2.0005)
    assert second.metrics["dram__bytes.sum"] == 64
    assert "dram__bytes.sum" not in first.metrics


def test_a_line_cut_short_is_no_launch_and_nothing_is_no_launch():
    assert len(ncu.parse(CSV + '"2","7","cut')) == 2
    assert ncu.parse("==PROF== nothing\n") == []


HEAD, UNITS, ROWS = CSV.partition('"ID"')[2].partition('"",')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"ID"' + HEAD, "ends after its header"),
        ('"ID"' + HEAD + '"",""\n' + ROWS, "line of units holds 2 fields, its header 7"),
        (CSV + '"2","7","' + "x" * 200_000 + '","7","","1","1"\n', "field larger than"),
        ('a line that says "Kernel Name" and more\nb\nc\n', "no column Kernel Name"),
    ],
)
def test_a_page_that_is_none_is_said(text, reason):
    with pytest.raises(NsightError, match=reason):
        ncu.parse(text)


@pytest.mark.parametrize("value", ["nan", "-nan", "inf", "-inf", "1e999"])
def test_a_value_that_is_no_number_is_absent(value):
    (first, _) = ncu.parse(CSV.replace("1,504", value))
    assert ncu.DURATION not in first.metrics
    with pytest.raises(NsightError, match="gave no gpu__time_duration"):
        first.us()


@pytest.mark.parametrize("unit", ["nsecond", "ns"])
def test_both_names_of_a_unit(unit):
    assert ncu.parse(CSV.replace('"ns"', f'"{unit}"'))[0].us() == 1.504


def test_a_metric_without_a_unit_of_time_is_said():
    with pytest.raises(NsightError, match="dram__bytes"):
        ncu.parse(CSV)[1].us("dram__bytes.sum")


def test_launches_are_split_into_calls_that_launch_as_many():
    launches = ncu.parse(CSV) * 2
    first, second = ncu.split(launches, 2)
    assert first == second == launches[:2]
    for calls in (3, 0):
        with pytest.raises(NsightError, match=f"4 launches do not divide by {calls} calls"):
            ncu.split(launches, calls)


def profiled(tmp_path):
    return ncu.profile(
        find("ncu"),
        ["program"],
        csv_file=tmp_path / "x.csv",
        include="kernel-lab@trace/",
        environment=dict(os.environ),
        limit_s=20.0,
    )


def test_the_command_and_its_rows(fake, tmp_path):
    program = f'text = {CSV!r}\npathlib.Path(words[words.index("--log-file") + 1]).write_text(text)'
    fake("ncu", program + '\nprint(" ".join(words))')
    assert len(profiled(tmp_path)) == 2
    line = (tmp_path / "x.ncu.log").read_text()
    assert line.startswith("--nvtx --nvtx-include kernel-lab@trace/ --clock-control none")
    assert "--metrics gpu__time_duration.sum --csv --page raw --print-units base" in line


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ('print("==ERROR== ERR_NVGPUCTRPERM - no permission"); sys.exit(1)', "administrator only"),
        ('print("==ERROR== failed to connect to the CUDA driver"); sys.exit(1)', "no CUDA driver"),
        ('print("==WARNING== No kernels were profiled.")', "no kernel was launched"),
        ('print("boom"); sys.exit(9)', "exit code 9: boom"),
        ("sys.exit(0)", "measured no kernel"),
    ],
)
def test_what_may_go_wrong_is_a_reason(fake, tmp_path, program, reason):
    fake("ncu", program)
    with pytest.raises(NsightError, match=reason):
        profiled(tmp_path)
