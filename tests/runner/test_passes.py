"""Cells through processes and budget, with a supervisor whose noise and clock the test sets."""

import pytest
from kernel_lab.runner.passes import Passes, better
from kernel_lab.runner.records import (
    Cell,
    Interval,
    PlannedCell,
    Record,
    Skip,
    Status,
    Timing,
    Workload,
)
from kernel_lab.runner.schema import Experiment, Kernel, Mode, Protocol

CELLS = [
    PlannedCell(
        cell=Cell(index=n, kernel="k", workload=Workload(axes={"N": n}, dtype="fp32")),
        implementations=("eager", "other"),
        skips=(Skip(implementation="z", status=Status.unsupported, reason="no"),),
    )
    for n in range(3)
]


def timing(rounds, noise=0.0):
    """Rounds that alternate by `noise` around 10 us."""
    return Timing(
        timer="t",
        headline="wall_us",
        state="warm",
        latency_us=Interval(median=10.0, low=10.0, high=10.0),
        rounds_us=tuple(10.0 * (1 + noise * (-1) ** k) for k in range(rounds)),
        calls=1,
        cache="",
        stopped="max_rounds reached",
    )


class Lab:
    """A supervisor; `noise` by cell; a measurement takes a second for each 20 rounds."""

    def __init__(self, noise=(0.0, 0.0, 0.0), ends=None):
        self.noise, self.ends = noise, ends or {}
        self.asked, self.kept, self.started, self.now = [], [], 1, 0.0

    def close(self):
        self.started += 1

    def measure(self, planned, sampling):
        n, rounds = planned.cell.index, int(sampling.get("max_rounds", 60))
        process = sampling["process"]
        assert process == self.started
        self.asked.append((process, n, planned.implementations, sampling))
        self.now += rounds / 20
        made = []
        for name in planned.implementations:
            status = self.ends.get((len(self.asked), name), Status.ok)
            timed = (
                timing(rounds, self.noise[n] * (name == "other")) if status is Status.ok else None
            )
            made.append(self.record(planned, name, status, timed))
        return made + [self.record(planned, s.implementation, s.status) for s in planned.skips]

    def record(self, planned, name, status, timed=None):
        return Record(
            job="j",
            experiment="e",
            cell=planned.cell,
            implementation=name,
            status=status,
            reason="" if status is Status.ok else "because",
            timing=timed,
        )

    def keep(self, planned, records, again):
        self.kept += records
        return records

    def run(self, mode=Mode.run, **protocol):
        given = {"min_rounds": 20, "max_rounds": 60, **protocol}
        experiment = Experiment(
            kernel=Kernel(name="k", module="m"), protocol=Protocol(name="t", **given), mode=mode
        )
        passes = Passes(experiment, CELLS, self, self.keep, clock=lambda: self.now)
        return {(r.cell.index, r.implementation): r for r in passes.run()}


def test_every_process_measures_every_cell_and_the_records_are_merged():
    lab = Lab()
    found = lab.run(processes=3)
    assert [(p, n) for p, n, _, _ in lab.asked] == [(p, n) for p in (1, 2, 3) for n in range(3)]
    assert len(found) == 9
    assert len(found[0, "eager"].timing.rounds_us) == 180
    assert set(found[0, "eager"].timing.by_process) == {1, 2, 3}
    assert found[0, "z"].status is Status.unsupported
    assert [r.process for r in lab.kept if r.implementation == "eager"] == [1] * 3 + [2] * 3 + [
        3
    ] * 3


def test_one_process_is_as_before_and_values_are_checked_once():
    lab = Lab()
    assert lab.run()[0, "eager"].timing.process_of_round == ()
    assert all(record.process == 0 for record in lab.kept)
    lab = Lab()
    lab.run(Mode.check, processes=5, budget_s=9.0)
    assert [sampling for *_, sampling in lab.asked] == [{"process": 1}] * 3


def test_what_failed_is_not_repeated_and_what_was_lost_is():
    lab = Lab(ends={(1, "other"): Status.crashed, (2, "other"): Status.lost})
    found = lab.run(processes=2)
    assert [names for p, _, names, _ in lab.asked if p == 2] == [
        ("eager",),
        ("eager", "other"),
        ("eager", "other"),
    ]
    assert found[0, "other"].status is Status.crashed
    assert found[1, "other"].status is Status.ok
    assert found[1, "other"].timing.notes == ("lost in process 1: because",)


def test_the_budget_goes_to_the_widest_first_and_not_to_the_narrow():
    lab = Lab(noise=(0.05, 0.0, 0.2))
    found = lab.run(budget_s=100.0)
    assert [(n, s["max_rounds"]) for _, n, _, s in lab.asked] == [
        (0, 20), (1, 20), (2, 20), (2, 60), (0, 60),
    ]  # fmt: skip
    assert len(found[1, "eager"].timing.rounds_us) == 20
    assert "first 20 rounds" in found[1, "eager"].timing.stopped
    assert len(found[2, "other"].timing.rounds_us) == 60
    assert found[2, "other"].attempts == 2
    assert found[2, "other"].timing.stopped.startswith("second measurement, the first left")
    assert lab.asked[-1][3]["cell_budget_s"] == 20.0


def test_a_spent_budget_ends_it_and_every_cell_has_its_first_rounds():
    lab = Lab(noise=(0.05, 0.1, 0.2))
    lab.run(budget_s=4.0)  # three cells, then one second is left
    assert [n for _, n, _, _ in lab.asked] == [0, 1, 2, 2]
    assert lab.asked[-1][3]["cell_budget_s"] == 1.0
    lab = Lab(noise=(0.05, 0.1, 0.2))
    lab.run(budget_s=0.5)
    assert [n for _, n, _, _ in lab.asked] == [0, 1, 2]


def test_each_process_has_its_share_of_the_budget():
    lab = Lab(noise=(0.05, 0.1, 0.2))
    lab.run(budget_s=8.0, processes=2)
    assert [(p, n) for p, n, _, _ in lab.asked] == [
        (1, 0), (1, 1), (1, 2), (1, 2), (2, 0), (2, 1), (2, 2), (2, 2),
    ]  # fmt: skip


def test_a_second_measurement_that_lost_one_leaves_the_first_which_is_kept_last():
    lab = Lab(noise=(0.2, 0.0, 0.0), ends={(4, "other"): Status.lost})
    found = lab.run(budget_s=100.0)
    assert len(found[0, "eager"].timing.rounds_us) == 20
    assert "lost other" in found[0, "eager"].timing.notes[-1]
    of = [r for r in lab.kept if r.cell.index == 0 and r.implementation == "eager"]
    assert [len(r.timing.rounds_us) for r in of] == [20, 60, 20]
    assert of[-1] == found[0, "eager"]


def test_a_second_measurement_that_found_a_failure_counts():
    lab = Lab(noise=(0.2, 0.0, 0.0), ends={(4, "other"): Status.wrong_values})
    found = lab.run(budget_s=100.0)
    assert found[0, "other"].status is Status.wrong_values
    assert len(found[0, "eager"].timing.rounds_us) == 60


@pytest.mark.parametrize(("rounds", "counts"), [(20, "earlier"), (30, "later")])
def test_more_rounds_count(rounds, counts):
    lab = Lab()
    earlier = [lab.record(CELLS[0], "eager", Status.ok, timing(20))]
    later = [lab.record(CELLS[0], "eager", Status.ok, timing(rounds))]
    chosen = better(earlier, later)
    assert (chosen is later) == (counts == "later")
    assert len(chosen[0].timing.rounds_us) == rounds
