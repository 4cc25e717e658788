"""The supervisor against workers that say what the test tells them to, and die where it says."""

from collections import deque

import pytest
from kernel_lab.runner import starting as module
from kernel_lab.runner.errors import WorkerError
from kernel_lab.runner.records import Cell, PlannedCell, Skip, Status, Workload
from kernel_lab.runner.schema import Experiment, Protocol, Target
from kernel_lab.runner.supervisor import Progress, Supervisor

CELL = Cell(index=0, kernel="k", workload=Workload(axes={"N": 8}, dtype="fp32"))
TRACED = {"say": "traced", "ranges": []}
READY = {"say": "ready", "environment": {"gpu": {}}, "pid": 1, "profiled": ""}


def step(name, phase="check"):
    return {"say": "step", "implementation": name, "phase": phase}


def records(*names, status="checked"):
    made = [
        {
            "job": "j",
            "experiment": "e",
            "cell": {"index": 0, "kernel": "k", "workload": {"axes": {"N": 8}, "dtype": "fp32"}},
            "implementation": name,
            "status": status,
        }
        for name in names
    ]
    return {"say": "records", "records": made, "ranges": [{"index": 0}]}


def evidence(name):
    said = {"tool": "torch", "cell_id": CELL.id, "implementation": name, "launch_count": 1}
    return {"say": "evidence", "evidence": said}


class Death:
    """In a script: the process ends here with this code."""

    def __init__(self, code, last=""):
        self.code = code
        self.last = last


class Silence:
    """In a script: nothing is said any more, and the process lives on."""


class Worker:
    """Says its script after each request; keeps what it was told."""

    def __init__(self, answers, log):
        self.log = log
        self.channel = self
        self.told = []
        self.ended = 0
        self.alive = True
        self._answers = deque(answers)
        self._script = deque()
        self.waiting = False

    def send(self, message):
        if isinstance(self._answers[0] if self._answers else None, BrokenPipeError):
            raise self._answers.popleft()
        self.told.append(message)
        self._script.extend(self._answers.popleft())

    def receive(self):
        return self._script.popleft()

    def wait(self, seconds):
        return not isinstance(self._script[0], Silence)

    def heard(self):
        return not isinstance(self._script[0], Death)

    def exit_code(self, patience_s):
        death = self._script[0] if self._script else Death(1)
        return death.code

    def last_line(self):
        return self._script[0].last if self._script else ""

    def end(self):
        self.alive = False
        self.ended += 1


@pytest.fixture
def supervise(monkeypatch, tmp_path):
    """`supervise(script, ...)`: one a worker: its answers to start, then to each request."""

    def begin(*scripts, **protocol):
        workers = []

        def start(log, environment):
            answers = scripts[len(workers)]
            workers.append(Worker(answers, log))
            return workers[-1]

        monkeypatch.setattr(module, "WorkerProcess", start)
        experiment = Experiment(
            experiment_name="e",
            protocol=Protocol(name="test", **protocol),
            target=Target(name="cpu"),
        )
        made = Supervisor(
            experiment,
            job="j",
            logs=tmp_path,
            start={"do": "start", "ceilings": True},
            environment={},
        )
        made.workers = workers
        return made

    return begin


def planned(*names, skips=()):
    return PlannedCell(cell=CELL, implementations=names, skips=skips)


def by_name(found):
    return {record.implementation: record for record in found}


def test_records_come_back_and_the_worker_stays_for_the_next_cell(supervise):
    made = supervise([[READY], [step("a"), step("b"), records("a", "b")], [records("a")]])
    with made:
        found = by_name(made.measure(planned("a", "b")))
        assert {n: r.status for n, r in found.items()} == {"a": "checked", "b": "checked"}
        assert found["a"].log == "logs/worker-01.log"
        assert found["a"].attempts == 1
        assert made.ranges == [{"index": 0}]
        assert made.worker_environment == {"gpu": {}}
        made.measure(planned("a"))
        assert len(made.workers) == 1
    assert made.workers[0].ended == 1
    assert made.workers[0].told[1]["implementations"] == ["a", "b"]


def test_the_seconds_are_the_workers_own_and_its_start_stands_apart(supervise):
    told = {**records("a"), "seconds": {"sampling": 3.0, "check": 1.0}}
    made = supervise([[READY], [step("a", "time"), {**told}], [step("a"), {**told}]])
    made.measure(planned("a"))
    made.measure(planned("a"))
    seconds = made.seconds
    assert seconds.pop("start workers") > 0
    assert seconds == {"check": 2.0, "sampling": 6.0}


def test_the_time_with_a_worker_that_died_is_booked_by_what_it_announced(supervise):
    made = supervise([[READY], [step("a", "time"), Death(1)]])
    made.measure(planned("a"))
    assert set(made.seconds) == {"start workers", "sampling", "end workers", "other"}


def test_a_death_costs_the_announced_one_and_the_rest_run_in_a_fresh_worker(supervise):
    made = supervise(
        [[READY], [step("a"), step("b", "time"), Death(-11, "core dumped")]],
        [[READY], [records("a", "c")]],
    )
    found = by_name(made.measure(planned("a", "b", "c")))
    assert found["b"].status is Status.crashed
    assert found["b"].phase == "time"
    assert "SIGSEGV" in found["b"].reason
    assert "core dumped" in found["b"].reason
    assert found["b"].log == "logs/worker-01.log"
    assert found["a"].status is found["c"].status is Status.checked
    assert found["a"].log == "logs/worker-02.log"
    assert made.workers[1].told[1]["implementations"] == ["a", "c"]


def test_records_keep_the_order_of_the_plan(supervise):
    made = supervise([[READY], [step("b"), Death(1)]], [[READY], [records("a", "c")]])
    found = made.measure(
        planned(
            "a",
            "b",
            "c",
            skips=[Skip(implementation="z", status=Status.unsupported, reason="not here")],
        )
    )
    assert [r.implementation for r in found] == ["a", "b", "c", "z"]
    assert found[3].status is Status.unsupported
    assert found[3].phase == "plan"


@pytest.mark.parametrize(
    ("code", "says"), [(7, "exited with code 7"), (None, "closed its line"), (-6, "SIGABRT")]
)
def test_each_kind_of_death_is_told(supervise, code, says):
    made = supervise([[READY], [step("a"), Death(code)]])
    (record,) = made.measure(planned("a"))
    assert record.status is Status.crashed
    assert says in record.reason


@pytest.mark.parametrize("number", [9, 15, 1, 2])
def test_a_signal_from_outside_is_retried_once(supervise, number):
    made = supervise([[READY], [step("a"), Death(-number)]], [[READY], [records("a", "b")]])
    found = by_name(made.measure(planned("a", "b")))
    assert found["a"].status is Status.checked
    assert found["a"].attempts == 2


def test_a_signal_from_outside_that_comes_again_is_lost(supervise):
    made = supervise(
        [[READY], [step("a"), Death(-9)]],
        [[READY], [step("a"), Death(-9)]],
        [[READY], [records("b")]],
    )
    found = by_name(made.measure(planned("a", "b")))
    assert found["a"].status is Status.lost
    assert found["a"].attempts == 2
    assert "SIGKILL" in found["a"].reason
    assert found["b"].status is Status.checked


def test_a_death_at_the_yardstick_is_everybodys(supervise):
    made = supervise([[READY], [step("yardstick eager", "reference"), Death(-11)]])
    found = by_name(made.measure(planned("a", "b")))
    for record in found.values():
        assert record.status is Status.crashed
        assert record.reason.startswith("while at yardstick eager: ")


def test_a_death_before_any_step_ends_too(supervise):
    made = supervise([[READY], [Death(1, "killed by nothing in particular")]])
    found = by_name(made.measure(planned("a", "b")))
    assert {r.status for r in found.values()} == {Status.crashed}
    for record in found.values():
        assert "while at :" not in record.reason
        assert "killed by nothing in particular" in record.reason


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"step_limit_s": 0.05, "cell_limit_s": 60.0}, "protocol.step_limit_s=0.05"),
        ({"step_limit_s": 60.0, "cell_limit_s": 0.05}, "protocol.cell_limit_s=0.05"),
    ],
)
def test_a_hang_ends_as_timed_out_and_the_rest_goes_on(supervise, limits, says):
    made = supervise(
        [[READY], [step("a"), step("b", "compile"), Silence()]],
        [[READY], [records("a")]],
        **limits,
    )
    found = by_name(made.measure(planned("a", "b")))
    assert found["b"].status is Status.timed_out
    assert "still in compile" in found["b"].reason
    assert says in found["b"].reason
    assert made.workers[0].ended == 1
    assert found["a"].status is Status.checked


def test_a_worker_that_poisoned_itself_names_who_did_it(supervise):
    dying = {
        "say": "dying",
        "implementation": "b",
        "status": "crashed",
        "reason": "an illegal memory access was encountered",
        "traceback": "Traceback: ...",
    }
    made = supervise([[READY], [step("a"), step("b", "time"), dying]], [[READY], [records("a")]])
    found = by_name(made.measure(planned("a", "b")))
    assert found["b"].status is Status.crashed
    assert "illegal memory access" in found["b"].reason
    assert found["b"].traceback == "Traceback: ..."
    assert found["a"].status is Status.checked


def test_an_implementation_that_the_worker_forgot_is_no_hole(supervise):
    made = supervise([[READY], [records("a")]])
    found = by_name(made.measure(planned("a", "b")))
    assert set(found) == {"a", "b"}
    assert found["b"].status is Status.lost


def test_a_worker_found_dead_at_the_next_cell_is_started_anew(supervise):
    made = supervise([[READY], [records("a")]], [[READY], [records("a")]])
    made.measure(planned("a"))
    made.workers[0].alive = False
    (record,) = made.measure(planned("a"))
    assert record.log == "logs/worker-02.log"
    assert made.workers[0].ended == 1


def test_ceilings_are_measured_once_a_job_and_not_once_a_worker(supervise):
    made = supervise([[READY], [step("a"), Death(1)]], [[READY], [records("b")]])
    asked = []
    begin = module.WorkerProcess

    class Asking:
        def __new__(cls, log, environment):
            worker = begin(log, environment)
            send = worker.send
            worker.send = lambda message: (asked.append(dict(message)), send(message))[1]
            return worker

    made._workers._start_worker = Asking
    made.measure(planned("a", "b"))
    assert [m["ceilings"] for m in asked if m["do"] == "start"] == [True, False]


def test_a_worker_that_cannot_use_the_device_ends_the_job_with_the_reason(supervise):
    made = supervise([[{"say": "fatal", "reason": "no CUDA here", "traceback": ""}]])
    with pytest.raises(WorkerError, match="no CUDA here"):
        made.measure(planned("a"))
    assert made.workers[0].ended == 1


def test_a_worker_that_dies_as_it_starts_ends_the_job(supervise):
    made = supervise([[None]])
    with pytest.raises(WorkerError, match=r"worker-01\.log"):
        made.measure(planned("a"))


def test_progress_hears_of_steps_rounds_and_deaths(supervise):
    heard = []
    made = supervise(
        [[READY], [step("a", "time"), {"say": "round", "round": 3}, Death(-11)]],
        [[READY], [records("b")]],
    )
    made._progress = Progress(
        step=lambda cell, name, phase: heard.append((name, phase)),
        round=lambda cell, k: heard.append(k),
        death=lambda cell, death: heard.append(death.status),
    )
    made.measure(planned("a", "b"))
    assert heard == [("a", "time"), 3, Status.crashed]


def test_evidence_comes_one_by_one(supervise):
    made = supervise(
        [
            [READY],
            [step("a", "trace"), evidence("a"), evidence("b"), TRACED],
        ]
    )
    found = made.trace(CELL, ["a", "b"])
    assert [(e.implementation, e.launch_count) for e in found] == [("a", 1), ("b", 1)]


def test_a_death_while_tracing_is_no_evidence_and_the_rest_is_traced(supervise):
    made = supervise(
        [[READY], [evidence("a"), step("b", "trace"), Death(-11)]],
        [[READY], [evidence("c"), TRACED]],
    )
    found = {e.implementation: e for e in made.trace(CELL, ["a", "b", "c"])}
    assert found["a"].launch_count == found["c"].launch_count == 1
    assert found["b"].launch_count is None
    assert "SIGSEGV" in found["b"].reason
    assert made.workers[1].told[1]["implementations"] == ["c"]


def test_a_worker_that_stops_after_its_last_evidence_loses_none(supervise):
    made = supervise([[READY], [evidence("a"), Death(0)]])
    assert [e.implementation for e in made.trace(CELL, ["a"])] == ["a"]


def test_evidence_that_the_worker_forgot_is_said_to_be_none(supervise):
    made = supervise([[READY], [evidence("a"), TRACED]])
    found = {e.implementation: e for e in made.trace(CELL, ["a", "b"])}
    assert found["b"].launch_count is None
    assert found["b"].reason
