"""The grammar that traces are joined by: a domain, three nested ranges, a payload each."""

import contextlib
import re

import pytest
from kernel_lab.runner.worker import ranges
from kernel_lab.runner.worker.ranges import PHASES, Ranges, clean


class Recorder:
    """Stands for the nvtx package: keeps what was opened, and what was open around it."""

    def __init__(self):
        self.opened = []
        self._open = []

    @contextlib.contextmanager
    def annotate(self, *, message, domain, payload):
        self._open.append(message)
        self.opened.append((tuple(self._open), domain, payload))
        try:
            yield
        finally:
            self._open.remove(message)


@pytest.fixture
def nvtx(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(ranges, "nvtx", recorder)
    return recorder


def test_three_ranges_nest_in_one_domain(nvtx):
    made = Ranges("j1", "gemm_bias_act")
    with made.job(), made.step(17, "c0a", "eager", "measure"):
        pass
    assert [messages for messages, _, _ in nvtx.opened] == [
        ("job=j1;kernel=gemm_bias_act",),
        ("job=j1;kernel=gemm_bias_act", "cell=0017;impl=eager"),
        ("job=j1;kernel=gemm_bias_act", "cell=0017;impl=eager", "measure"),
    ]
    assert {domain for _, domain, _ in nvtx.opened} == {"kernel-lab"}


def test_a_payload_is_its_index_into_the_table(nvtx):
    made = Ranges("j1", "k")
    with made.job():
        for phase in PHASES:
            with made.step(0, "c0", "eager", phase) as index:
                assert made.table[index]["phase"] == phase
                assert nvtx.opened[-1][2] == index
    for messages, _, payload in nvtx.opened:
        entry = made.table[payload]
        assert entry["index"] == payload
        assert entry["message"].split(">")[-1] == messages[-1]
        assert entry["job"] == "j1"
    assert made.table[1]["cell"] == "c0"
    assert made.table[1]["implementation"] == "eager"


def test_the_same_range_keeps_its_payload_and_another_gets_its_own(nvtx):
    made = Ranges("j1", "k")

    def index(*step):
        with made.step(*step) as given:
            return given

    first = index(0, "c0", "eager", "measure")
    assert index(0, "c0", "eager", "measure") == first
    others = {
        index(0, "c0", "eager", "warmup"),
        index(0, "c0", "triton", "measure"),
        index(1, "c1", "eager", "measure"),
    }
    assert len(others) == 3
    assert first not in others
    assert [entry["index"] for entry in made.table] == list(range(len(made.table)))


def test_names_hold_nothing_that_a_filter_reads_as_an_operator(nvtx):
    made = Ranges("j1;x", "k@,[]/*+$\\ =")
    with made.job(), made.step(3, "c0", "a/b[1]=c;d", "check"):
        pass
    for messages, _, _ in nvtx.opened:
        assert not re.search(r"[@,\[\]/*+$\\ ]", messages[-1])
    assert re.fullmatch(r"job=[^;=]+;kernel=[^;=]+", nvtx.opened[0][0][-1])
    assert re.fullmatch(r"cell=0003;impl=[^;=]+", nvtx.opened[1][0][-1])
    # the table keeps the name as it is
    assert made.table[1]["implementation"] == "a/b[1]=c;d"


def test_names_that_need_no_cleaning_stay():
    assert clean("gemm_bias_act-2.x") == "gemm_bias_act-2.x"


def test_an_unknown_phase_is_refused(nvtx):
    with (
        pytest.raises(ValueError, match="phase timing"),
        Ranges("j", "k").step(0, "c", "a", "timing"),
    ):
        pass
    assert nvtx.opened == []


def test_a_failure_inside_closes_the_ranges(nvtx):
    made = Ranges("j1", "k")
    with pytest.raises(RuntimeError), made.job(), made.step(0, "c0", "eager", "check"):
        raise RuntimeError("in the kernel")
    assert nvtx._open == []


def test_without_nvtx_everything_else_is_the_same(monkeypatch):
    monkeypatch.setattr(ranges, "nvtx", None)
    made = Ranges("j1", "k")
    assert not made.available
    with made.job() as outer, made.step(0, "c0", "eager", "check") as inner:
        assert (outer, inner) == (0, 2)
    assert [entry["message"] for entry in made.table] == [
        "job=j1;kernel=k",
        "cell=0000;impl=eager",
        "cell=0000;impl=eager>check",
    ]


def test_the_real_package_takes_our_ranges():
    pytest.importorskip("nvtx")
    made = Ranges("j1", "k")
    assert made.available
    with made.job(), made.step(0, "c0", "eager", "trace") as index:
        assert index == 2
