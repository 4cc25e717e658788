"""Interleaved rounds: who is sampled when, and when there is enough. Knows no device and no torch.

In each round every implementation has one block, in an order that is random and balanced: every
second round runs the round before it backwards, so that no one profits from its place.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Protocol as Interface

from ..records import Block
from ..schema import Protocol
from ..statistics import half_width, median_interval


class Sampler(Interface):
    """A clock over prepared implementations."""

    states: tuple[str, ...]
    """States sampled in each round, the headline's first."""

    def block(self, name: str, state: str, round_: int, position: int) -> Block:
        """Takes one block of samples of one implementation in one state."""
        ...


@dataclass(slots=True)
class Sampled:
    """The blocks of one implementation, in round order."""

    blocks: list[Block] = field(default_factory=list)

    def rounds(self, state: str) -> tuple[float, ...]:
        """Median of each round's samples in one state."""
        return tuple(
            median_interval(block.samples_us).median
            for block in self.blocks
            if block.state == state
        )


def orders(names: Sequence[str], seed: int, count: int) -> list[list[str]]:
    """The order of each round: random, and balanced over every two rounds."""
    draw = random.Random(seed)
    made: list[list[str]] = []
    while len(made) < count:
        order = list(names)
        draw.shuffle(order)
        made += [order, order[::-1]]
    return made[:count]


def run_rounds(
    sampler: Sampler,
    names: Sequence[str],
    baseline: str,
    protocol: Protocol,
    *,
    seed: int,
    before_block: Callable[[str, int], None] = lambda name, round_: None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, Sampled], str]:
    """Samples all implementations in rounds until their intervals are narrow or time is up.

    Stops after `min_rounds` once the half-width of every log-ratio against the baseline is below
    `precision`; looks again every `round_step`; ends at `max_rounds` or past `cell_budget_s`.
    The rule looks at widths, never at which side of 1 a ratio lies. Returns the blocks of each
    name and the reason for stopping.
    """
    sampled = {name: Sampled() for name in names}
    started = clock()
    for round_, order in enumerate(orders(names, seed, protocol.max_rounds)):
        for position, name in enumerate(order):
            before_block(name, round_)
            for state in sampler.states:
                sampled[name].blocks.append(sampler.block(name, state, round_, position))
        done = round_ + 1
        if done >= protocol.max_rounds:
            break
        if done < protocol.min_rounds or (done - protocol.min_rounds) % protocol.round_step:
            continue
        width = widest(sampled, baseline, sampler.states[0], protocol.confidence)
        if width <= protocol.precision:
            return sampled, f"every interval within {protocol.precision:.3g} after {done} rounds"
        if clock() - started > protocol.cell_budget_s:
            return sampled, f"budget of {protocol.cell_budget_s:g} s spent after {done} rounds"
    return sampled, f"max_rounds={protocol.max_rounds} reached"


def widest(sampled: dict[str, Sampled], baseline: str, state: str, confidence: float) -> float:
    """The largest half-width of a paired log-ratio; of the log times where there is no pair."""
    base = [log(v) for v in sampled[baseline].rounds(state)]
    widths = [
        half_width([b - log(v) for b, v in zip(base, s.rounds(state), strict=True)], confidence)
        for name, s in sampled.items()
        if name != baseline
    ]
    return max(widths) if widths else half_width(base, confidence)
