"""The join: who launched what, over threads, graphs, nesting, and tables that are not there."""

import sqlite3

import pytest
from kernel_lab.runner.nsight.join import joined
from kernel_lab.runner.nsight.tools import NsightError


def by_payload(found):
    return {each.payload: each for each in found}


def test_work_belongs_to_the_range_that_launched_it_however_late_it_runs(export, tmp_path):
    export.range("trace", 100, 200, payload=1)
    export.range("trace", 300, 400, payload=2)
    export.launch(110, ("a", 1000, 2000), ("memset", 2000, 2500))  # a graph: one call, two nodes
    export.launch(310, ("b", 2500, 4500))
    export.launch(250, ("stray", 500, 600))
    found = by_payload(joined(export.save(tmp_path / "x.sqlite"), domain="kernel-lab"))
    assert [(a.kind, a.name) for a in found[1].work] == [("kernel", "a"), ("memset", "memset")]
    assert [a.name for a in found[2].work] == ["b"]
    assert found[1].kernels == 1
    assert (found[1].busy_us, found[2].busy_us) == (1.5, 2.0)
    assert found[2].work[0].grid == (8, 1, 1)
    assert found[2].work[0].dynamic_shared == 1024


def test_the_innermost_of_nested_ranges_owns(export, tmp_path):
    export.range("job", 0, 1000, payload=0)
    export.range("cell", 100, 500, payload=1)
    export.range("trace", 100, 300, payload=2)  # opened in the same moment
    export.launch(50, ("outer", 2000, 2001))
    export.launch(150, ("inner", 2001, 2002))
    export.launch(350, ("middle", 2002, 2003))
    found = by_payload(joined(export.save(tmp_path / "x.sqlite")))
    assert {key: [a.name for a in each.work] for key, each in found.items()} == {
        0: ["outer"],
        1: ["middle"],
        2: ["inner"],
    }


def test_busy_counts_overlap_once_and_span_counts_gaps(export, tmp_path):
    export.range("trace", 0, 100, payload=1)
    works = [("a", 1000, 3000), ("b", 2000, 2500), ("memcpy", 2900, 4000), ("c", 6000, 7000)]
    export.launch(10, *works)
    (found,) = joined(export.save(tmp_path / "x.sqlite"))
    assert found.busy_us == 4.0
    assert found.span_us == 6.0


def test_push_pop_owns_its_own_thread_only_and_start_end_the_process(export, exports, tmp_path):
    export.range("pushed", 0, 100, payload=1)
    export.launch(10, ("elsewhere", 1000, 1001), thread=exports.OTHER)
    export.launch(20, ("here", 1001, 1002))
    export.range("started", 200, 300, payload=2, kind=60)
    export.launch(210, ("helper", 1002, 1003), thread=exports.OTHER)
    found = by_payload(joined(export.save(tmp_path / "x.sqlite")))
    assert [a.name for a in found[1].work] == ["here"]
    assert [a.name for a in found[2].work] == ["helper"]


def test_a_launch_from_a_thread_without_ranges_may_be_given_to_its_process(
    export, exports, tmp_path
):
    """N03: a backward pass runs in a thread of its own."""
    export.range("outer", 0, 100)
    export.range("inner", 5, 50)
    export.launch(10, ("backward", 1000, 1001), thread=exports.OTHER)
    export.launch(60, ("later", 1002, 1003), thread=exports.OTHER)
    path = export.save(tmp_path / "x.sqlite")
    found = {each.name: [a.name for a in each.work] for each in joined(path, any_thread=True)}
    assert found == {"outer": ["later"], "inner": ["backward"]}
    assert [each.work for each in joined(path)] == [(), ()]


def test_a_range_of_another_thread_takes_nothing_from_the_own_one(export, exports, tmp_path):
    export.range("own", 0, 100, payload=1)
    export.range("later", 20, 90, payload=2, kind=60, thread=exports.OTHER)
    export.launch(50, ("mine", 1000, 1001))
    found = by_payload(joined(export.save(tmp_path / "x.sqlite")))
    assert [a.name for a in found[1].work] == ["mine"]
    assert not found[2].work


def test_domains_are_told_apart_and_other_ranges_do_not_take(export, tmp_path):
    export.domain("other-library", 2)
    export.range("trace", 0, 100, payload=1)
    export.range("inside", 10, 90, payload=9, domain=2, plain=True)
    export.launch(50, ("a", 1000, 1001))
    path = export.save(tmp_path / "x.sqlite")
    assert [a.name for a in joined(path, domain="kernel-lab")[0].work] == ["a"]
    everyone = {each.name: each for each in joined(path)}
    assert everyone["inside"].domain == "other-library"
    assert [a.name for a in everyone["inside"].work] == ["a"]


def test_a_range_still_open_at_the_end_owns(export, tmp_path):
    export.range("trace", 0, None, payload=1)
    export.launch(50, ("a", 1000, 1001))
    assert len(joined(export.save(tmp_path / "x.sqlite"))[0].work) == 1


def test_ranges_that_the_tool_never_saw_are_said(export, tmp_path):
    export.ranges.clear()
    export.launch(10, ("a", 1000, 1001))
    with pytest.raises(NsightError, match=r"no NVTX range of the domain kernel-lab.*0\.2\.12"):
        joined(export.save(tmp_path / "x.sqlite"), domain="kernel-lab")


def test_no_device_work_and_no_export_are_said(export, tmp_path):
    export.range("trace", 0, 100, payload=1)
    with pytest.raises(NsightError, match="no CUDA work"):
        joined(export.save(tmp_path / "x.sqlite"))
    (tmp_path / "text.sqlite").write_text("no database at all, only text of some length")
    with pytest.raises(NsightError, match="cannot be read"):
        joined(tmp_path / "text.sqlite")
    sqlite3.connect(tmp_path / "empty.sqlite").execute("CREATE TABLE t (x INT)")
    with pytest.raises(NsightError, match="StringIds"):
        joined(tmp_path / "empty.sqlite")


def one_range(export):
    export.range("trace", 0, 100, payload=1)
    export.launch(10, ("a", 1000, 2000), ("memcpy", 2000, 2500))


def altered(export, tmp_path, *statements):
    path = export.save(tmp_path / "x.sqlite")
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


KERNELS, COPIES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (KERNELS, "globalPid"),
        (KERNELS, "end"),
        (COPIES, "correlationId"),
        (CALLS, "globalTid"),
        (CALLS, "correlationId"),
        ("NVTX_EVENTS", "domainId"),
        ("NVTX_EVENTS", "start"),
    ],
)
def test_a_column_without_which_nothing_can_be_joined_is_named(export, tmp_path, table, column):
    one_range(export)
    path = altered(export, tmp_path, f"ALTER TABLE {table} DROP COLUMN {column}")
    with pytest.raises(NsightError, match=rf"table {table} has no column {column}"):
        joined(path)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (KERNELS, "end", "NULL"),
        (KERNELS, "globalPid", "NULL"),
        (COPIES, "start", "NULL"),
        (CALLS, "end", "NULL"),
        (CALLS, "globalTid", "'text'"),
        ("NVTX_EVENTS", "globalTid", "NULL"),
        ("NVTX_EVENTS", "start", "NULL"),
        ("NVTX_EVENTS", "end", "'text'"),
    ],
)
def test_a_row_cut_short_is_said_and_not_left_out(export, tmp_path, table, column, value):
    one_range(export)
    path = altered(export, tmp_path, f"UPDATE {table} SET {column} = {value}")
    with pytest.raises(NsightError, match=rf"row of {table} has no whole number as its {column}"):
        joined(path)


def test_columns_that_no_time_stands_on_may_be_absent(export, tmp_path):
    one_range(export)
    rest = ["graphNodeId", "demangledName", "registersPerThread", "gridX", "blockZ"]
    rest += ["staticSharedMemory", "dynamicSharedMemory", "streamId", "deviceId"]
    drops = [f"ALTER TABLE {KERNELS} DROP COLUMN {column}" for column in rest]
    path = altered(export, tmp_path, *drops, f"ALTER TABLE {COPIES} DROP COLUMN bytes")
    (found,) = joined(path)
    kernel, copy = found.work
    assert found.busy_us == 1.5
    assert (kernel.name, copy.bytes) == ("a", None)
    assert (kernel.grid, kernel.block, kernel.registers, kernel.stream) == (None, None, None, None)


def test_a_payload_that_is_no_number_is_none(export, tmp_path):
    one_range(export)
    (found,) = joined(altered(export, tmp_path, "UPDATE NVTX_EVENTS SET int64Value = 'x'"))
    assert found.payload is None
