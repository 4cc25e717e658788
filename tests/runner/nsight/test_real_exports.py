"""The join on exports that nsys itself wrote; the right numbers are NVIDIA's own."""

import gzip
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from kernel_lab.runner.nsight.join import joined
from kernel_lab.runner.nsight.leaks import strangers
from kernel_lab.runner.nsight.tools import NsightError

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def unpacked(tmp_path):
    def unpack(name):
        path = tmp_path / f"{name}.sqlite"
        path.write_bytes(gzip.decompress((DATA / f"{name}.sqlite.gz").read_bytes()))
        return path

    return unpack


def sums(work):
    """(launches, ns) of each kernel, in the order of its first launch; copies and fills apart."""
    counts, total = Counter(), Counter()
    for activity in work:
        if activity.kind == "kernel":
            counts[activity.name] += 1
            total[activity.name] += activity.end_ns - activity.start_ns
    return [(counts[name], total[name]) for name in counts]


def test_an_h200_export_gives_what_nvidias_own_report_gives(unpacked):
    found = joined(unpacked("h200-nsys-2025.3"))
    by_name = {each.name.split(";")[1] if ";" in each.name else each.name: each for each in found}
    assert {name: sums(each.work) for name, each in by_name.items()} == {
        "impl=eager": [(6, 45088)],
        "impl=compile": [(3, 21664)],
        "impl=triton": [(3, 19040)],
        "impl=gemm": [(3, 17056), (3, 7584)],
        "impl=sdpa": [(3, 51583)],
        "torchnvtx/graph": [(4, 29024), (2, 20352)],
    }
    assert {each.payload for each in found if each.domain} == {7}
    # by node: every kernel of a replay has a row, with the node it came from
    assert all(activity.graph_node for activity in by_name["torchnvtx/graph"].work)


def test_one_domain_may_be_asked_for(unpacked):
    found = joined(unpacked("h200-nsys-2025.3"), domain="kernel-lab")
    assert len(found) == 5
    with pytest.raises(NsightError, match="no NVTX range of the domain nobody"):
        joined(unpacked("h200-nsys-2025.3"), domain="nobody")


def test_a_reduced_export_holds_nobodys_environment(unpacked):
    assert strangers(unpacked("h200-nsys-2025.3")) == ()


def filled(path):
    """Puts three launches into a full schema: in the second `measure`, in the thread's own range,
    and in the start/end range that another thread ends."""
    with closing(sqlite3.connect(path)) as connection:
        ranges = connection.execute(
            "SELECT n.start, n.end, n.eventType, coalesce(n.text, s.value), n.int64Value, "
            "n.globalTid FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
            "WHERE n.eventType IN (59, 60) ORDER BY n.start"
        ).fetchall()
        second = next(r for r in ranges if r[3] == "measure" and r[4] == 1)
        inside = next(r for r in ranges if r[3] == "in_thread")
        across = next(r for r in ranges if r[3] == "xthread")
        launches = [
            (second[0] + 100, second[5], 1),
            (inside[0] + 100, inside[5], 2),
            (across[0] + 100, across[5], 3),
        ]
        connection.execute("INSERT INTO StringIds (id, value) VALUES (900001, 'a_kernel')")
        for at, thread, correlation in launches:
            _row(
                connection,
                "CUPTI_ACTIVITY_KIND_RUNTIME",
                {"start": at, "end": at + 5, "globalTid": thread, "correlationId": correlation},
            )
            _row(
                connection,
                "CUPTI_ACTIVITY_KIND_KERNEL",
                {
                    "start": at + 50,
                    "end": at + 50 + 10 * correlation,
                    "correlationId": correlation,
                    "globalPid": thread & ~0xFFFFFF,
                    "demangledName": 900001,
                    "shortName": 900001,
                },
            )
        connection.commit()


def _row(connection, table, values):
    """A row of a full schema: what must not be NULL and is not given is 0."""
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    row = {c[1]: values.get(c[1], 0 if c[3] else None) for c in columns}
    marks = ", ".join("?" * len(row))
    connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values())
    )


@pytest.mark.parametrize("version", ["2022.4", "2023.4"])
def test_full_schemas_of_other_versions_join_too(unpacked, version):
    path = unpacked(f"cpu-nvtx-nsys-{version}-full-schema")
    with pytest.raises(NsightError, match="holds no CUDA work"):
        joined(path)
    filled(path)
    found = {(each.domain, each.name, each.payload): each for each in joined(path)}
    assert sums(found["kexp", "measure", 1].work) == [(1, 10)]
    assert sums(found["kexp", "measure", 0].work) == []
    assert sums(found["kexp", "in_thread", None].work) == [(1, 20)]
    assert sums(found["kexp", "xthread", None].work) == [(1, 30)]


@pytest.mark.parametrize("keep", [0, 100, 4096, 40_000])
def test_an_export_that_was_cut_short_is_an_error_and_no_numbers(unpacked, keep):
    path = unpacked("h200-nsys-2025.3")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(NsightError):
        joined(path)


def test_a_database_of_somebody_else_is_no_export(tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
        connection.commit()
    with pytest.raises(NsightError, match="no nsys export"):
        joined(path)
