"""Rounds with a clock made by hand: nothing here waits, and nothing here is a device."""

import itertools
import math
import random

import pytest
from kernel_lab.runner.records import Block
from kernel_lab.runner.schema import Protocol
from kernel_lab.runner.statistics import paired_ratio
from kernel_lab.runner.worker.rounds import orders, run_rounds


class Sampler:
    """Gives each implementation its time, with noise of its own and drift that all share."""

    def __init__(self, times, *, noise=0.0, drift=0.0, states=("cold",), seed=0):
        self.states = states
        self.calls = []
        self._times = times
        self._noise = noise
        self._drift = drift
        self._draw = random.Random(seed)
        self._level = {}

    def block(self, name, state, round_, position):
        self.calls.append((round_, position, name, state))
        if round_ not in self._level:
            self._level[round_] = math.exp(self._draw.gauss(0, self._drift))
        value = self._times[name] * self._level[round_]
        value *= math.exp(self._draw.gauss(0, self._noise))
        return Block(round=round_, position=position, state=state, calls=1, samples_us=(value,))


def protocol(**changes):
    values = {
        "min_rounds": 20,
        "max_rounds": 100,
        "round_step": 10,
        "precision": 0.01,
        "cell_budget_s": 1e9,
    }
    return Protocol(name="test", **{**values, **changes})


def sampled(sampler, names="ab", **changes):
    ticks = itertools.count()
    found, reason = run_rounds(
        sampler,
        list(names),
        names[0],
        protocol(**changes),
        seed=5,
        clock=lambda: float(next(ticks)),
    )
    return found, reason, len({c[0] for c in sampler.calls})


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_every_round_holds_each_name_once(count):
    made = orders("abcd", 1, count)
    assert len(made) == count
    assert all(sorted(order) == list("abcd") for order in made)


def test_two_rounds_after_each_other_balance_every_place():
    made = orders("abcd", 1, 40)
    for first, second in zip(made[::2], made[1::2], strict=True):
        for name in "abcd":
            assert first.index(name) + second.index(name) == 3


def test_orders_are_random_and_belong_to_their_seed():
    assert orders("abcd", 1, 20) == orders("abcd", 1, 20)
    assert orders("abcd", 1, 20) != orders("abcd", 2, 20)
    assert len({tuple(order) for order in orders("abcd", 1, 20)}) > 4


def test_blocks_come_in_the_order_of_their_round_and_every_state():
    sampler = Sampler({"a": 1.0, "b": 2.0, "c": 3.0}, states=("cold", "warm"))
    found, _, rounds = sampled(sampler, "abc", max_rounds=20)
    assert rounds == 20
    wanted = [
        (k, place, name, state)
        for k, order in enumerate(orders("abc", 5, 20))
        for place, name in enumerate(order)
        for state in ("cold", "warm")
    ]
    assert sampler.calls == wanted
    assert len(found["a"].rounds("cold")) == len(found["a"].rounds("warm")) == 20


def test_narrow_intervals_stop_at_the_first_look():
    _, reason, rounds = sampled(Sampler({"a": 1.0, "b": 2.0}, noise=0.001))
    assert rounds == 20
    assert "after 20 rounds" in reason
    assert "0.01" in reason


def test_wide_intervals_go_on_a_step_at_a_time_until_narrow():
    # half-width 2.0 * 0.04 / sqrt(n): 0.0187 at 20, 0.0127 at 40
    _, reason, rounds = sampled(Sampler({"a": 1.0, "b": 2.0}, noise=0.03), precision=0.015)
    assert 20 < rounds < 100
    assert rounds % 10 == 0
    assert f"after {rounds} rounds" in reason


def test_the_last_round_is_the_last():
    _, reason, rounds = sampled(Sampler({"a": 1.0, "b": 2.0}, noise=0.3), max_rounds=35)
    assert rounds == 35
    assert "max_rounds=35" in reason


def test_a_spent_budget_stops_at_a_look():
    # the clock ticks once a look: past 2.5 s at the third
    _, reason, rounds = sampled(
        Sampler({"a": 1.0, "b": 2.0}, noise=0.3), max_rounds=1000, cell_budget_s=2.5
    )
    assert rounds == 40
    assert "budget of 2.5 s spent after 40 rounds" in reason


def test_fewer_rounds_than_the_least_are_never_taken():
    _, _, rounds = sampled(Sampler({"a": 1.0, "b": 2.0}), min_rounds=20, cell_budget_s=0.0)
    assert rounds == 20


def test_what_a_round_shares_cancels_in_the_ratio():
    sampler = Sampler({"a": 2.0, "b": 1.0}, noise=0.002, drift=0.3)
    found, reason, rounds = sampled(sampler)
    assert rounds == 20, reason
    ratio = paired_ratio(found["a"].rounds("cold"), found["b"].rounds("cold"))
    assert ratio.low <= 2.0 <= ratio.high
    assert ratio.high / ratio.low < 1.01


def test_the_widest_of_several_pairs_decides():
    class OneNoisy(Sampler):
        def block(self, name, state, round_, position):
            self._noise = 0.3 if name == "c" else 0.0
            return super().block(name, state, round_, position)

    _, reason, _ = sampled(OneNoisy({"a": 1.0, "b": 1.0, "c": 1.0}), "abc", max_rounds=40)
    assert "max_rounds=40" in reason


def test_one_implementation_alone_stops_by_its_own_interval():
    assert sampled(Sampler({"a": 1.0}, noise=0.001), "a")[2] == 20
    assert sampled(Sampler({"a": 1.0}, noise=0.3), "a", max_rounds=40)[2] == 40


def test_each_block_is_announced_before_it_is_taken():
    sampler, announced = Sampler({"a": 1.0, "b": 1.0}), []
    run_rounds(
        sampler,
        ["a", "b"],
        "a",
        protocol(max_rounds=20),
        seed=1,
        before_block=lambda name, round_: announced.append((name, round_, len(sampler.calls))),
    )
    assert [(c[2], c[0]) for c in sampler.calls] == [(n, r) for n, r, _ in announced]
    assert [count for _, _, count in announced] == list(range(40))


def test_stopping_early_keeps_the_intervals_honest():
    # with drift and the rule, the 95 % interval holds the truth at least 93 times in 100
    covered, runs = 0, 600
    for seed in range(runs):
        sampler = Sampler({"a": 1.02, "b": 1.0}, noise=0.02, drift=0.1, seed=seed)
        found, _, _ = sampled(sampler, precision=0.012, max_rounds=60)
        ratio = paired_ratio(found["a"].rounds("cold"), found["b"].rounds("cold"))
        covered += ratio.low <= 1.02 <= ratio.high
    assert covered / runs >= 0.93
