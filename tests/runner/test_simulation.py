"""Coverage and error rates of the whole rule (rounds, pairing, stopping, band) on simulated clocks.

What is simulated: drift of the machine, a clock that jumps between two states, autocorrelated
noise, rare slow samples; alone and together, with the stopping rule on. The seeds are fixed.
"""

import math
import random
from collections import Counter

import pytest
from kernel_lab.runner.records import Block, Verdict
from kernel_lab.runner.schema import Protocol
from kernel_lab.runner.statistics import paired_ratio, verdict
from kernel_lab.runner.worker.rounds import run_rounds

TRIALS = 400
PROTOCOL = Protocol(
    name="simulated",
    min_rounds=20,
    max_rounds=200,
    round_step=10,
    precision=0.005,
    cell_budget_s=1e9,
)


class Machine:
    """Two implementations on one machine; `b` takes 1 / `speedup` of what `a` takes."""

    states = ("cold",)

    def __init__(self, seed, speedup, trouble):
        self._draw = random.Random(seed)
        self._speedup = speedup
        self._trouble = trouble
        self._time = 0
        self._correlated = 0.0
        self._clock = 1.0

    def block(self, name, state, round_, position):
        self._time += 1
        us = 50.0 * math.exp(self._draw.gauss(0, 0.006))
        if "drift" in self._trouble:
            us *= 1 + 0.05 * math.sin(self._time / 40) + 0.0004 * self._time
        if "correlated" in self._trouble:
            self._correlated = 0.8 * self._correlated + self._draw.gauss(0, 0.004)
            us *= math.exp(self._correlated)
        if "bimodal" in self._trouble:
            if self._draw.random() < 0.05:
                self._clock = 1.08 if self._clock == 1.0 else 1.0
            us *= self._clock
        if "spikes" in self._trouble and self._draw.random() < 0.05:
            us *= 1 + self._draw.expovariate(1 / 0.3)
        if name == "b":
            us /= self._speedup
        return Block(round=round_, position=position, state=state, calls=1, samples_us=(us,))


def simulate(trouble, speedup):
    """The share of intervals that hold the truth, and how often each verdict came out."""
    covered, verdicts = 0, Counter()
    for seed in range(TRIALS):
        machine = Machine(seed, speedup, trouble)
        sampled, _ = run_rounds(machine, ["a", "b"], "a", PROTOCOL, seed=seed)
        ratio = paired_ratio(sampled["a"].rounds("cold"), sampled["b"].rounds("cold"))
        covered += ratio.low <= speedup <= ratio.high
        verdicts[verdict(ratio, PROTOCOL.band)] += 1
    return covered / TRIALS, verdicts


TROUBLES = [(), ("drift",), ("correlated",), ("bimodal",), ("drift", "correlated", "bimodal")]


@pytest.mark.parametrize("trouble", [*TROUBLES, ("spikes",)], ids="-".join)
@pytest.mark.parametrize("speedup", [1.0, 1.02])
def test_nominal_95_percent_covers_at_least_93(trouble, speedup):
    coverage, verdicts = simulate(trouble, speedup)
    assert coverage >= 0.93
    wrong = Verdict.slower if speedup > 1 else None
    assert verdicts[wrong] == 0


@pytest.mark.parametrize("trouble", [*TROUBLES, ("spikes",)], ids="-".join)
def test_equal_implementations_are_told_apart_in_at_most_5_percent(trouble):
    _, verdicts = simulate(trouble, 1.0)
    assert verdicts[Verdict.faster] + verdicts[Verdict.slower] <= 0.05 * TRIALS


@pytest.mark.parametrize("trouble", TROUBLES, ids="-".join)
def test_a_2_percent_effect_is_found_in_at_least_80_percent(trouble):
    _, verdicts = simulate(trouble, 1.02)
    assert verdicts[Verdict.faster] >= 0.8 * TRIALS
