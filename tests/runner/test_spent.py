import itertools

import pytest
from kernel_lab.runner.spent import PARTS, WORK, Stopwatch, added, overhead, part_of, whole


def test_a_stopwatch_books_each_part_until_the_next_is_entered():
    ticks = itertools.count()
    watch = Stopwatch(clock=lambda: float(next(ticks)))  # one second a look
    for part in ("check", "sampling", "check"):
        watch.enter(part)
    assert watch.take() == {"other": 1.0, "check": 2.0, "sampling": 1.0}
    watch.enter("warm-up")
    assert watch.take() == {"other": 1.0, "warm-up": 1.0}


@pytest.mark.parametrize(
    ("phase", "part"),
    [
        ("reference", "check"),
        ("load", "compile and first calls"),
        ("time", "sampling"),
        ("start", "other"),
        ("a phase of tomorrow", "other"),
    ],
)
def test_every_phase_has_a_part(phase, part):
    assert part_of(phase) == part
    assert part in PARTS


def test_what_no_part_claims_is_booked_and_the_whole_is_the_wall_time():
    seconds = added({"sampling": 3.0}, {"check": 1.0, "sampling": 1.0})
    assert list(seconds.items()) == [("check", 1.0), ("sampling", 4.0)]
    assert whole(seconds, 7.0) == {"check": 1.0, "sampling": 4.0, "other": 2.0}
    assert whole(seconds, 7.0, "filing") == {"check": 1.0, "sampling": 4.0, "filing": 2.0}
    assert whole(seconds, 4.9) == {"check": 1.0, "sampling": 4.0, "other": 0.0}


def test_overhead_is_all_but_compilation_reference_and_sampling():
    assert WORK == ("compile and first calls", "check", "warm-up", "sampling", "recheck")
    assert set(WORK) < set(PARTS)
    assert overhead(dict.fromkeys(WORK, 2.0)) == 0.0
    assert overhead({"sampling": 3.0, "evidence": 1.0}) == 0.25
    rest = [part for part in PARTS if part not in WORK]
    assert overhead(dict.fromkeys(rest, 1.0)) == 1.0


def test_a_part_that_nobody_knows_is_overhead_and_no_time_has_no_share():
    assert overhead({"sampling": 1.0, "a part of tomorrow": 1.0}) == 0.5
    assert overhead({}) is None
    assert overhead({"sampling": 0.0}) is None
