"""The same calls by other instruments: global-timer stamps, events around one call, a CUDA graph,
the profiler's device timestamps. All cold, as our period is."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..worker.evidence import busy, record, span
from ..worker.graph import Captured, Pool, capture
from .bench import Bench
from .request import over
from .subjects import Absent, middle

Stamp = Callable[[torch.Tensor, int], None]

REPEATS = 20
SLOPES = 15
TRACED = 20
"""How often one call is timed, a slope is taken, and how many calls are traced."""

SECONDS = 0.6
"""Device time that one instrument may take of a subject; long calls are repeated less."""

COPIES = (1, 2, 4, 8, 16, 32, 64)
LINE = 5
"""Calls in a graph, and how often each is replayed for the line over copies."""

REPLAY_US = 20_000.0
"""The longest graph that is replayed for the line over copies, which comes after the slope: such
bursts of a large product run into the power limit."""


def stamp_us(bench: Bench, stamp: Stamp) -> dict[str, Any]:
    """`stamp_us`: the slope (T_2N - T_N) / N between %globaltimer stamps around N and 2N calls,
    N as in our own slope; `stamp_events_us`: the slope between events around the very same calls.
    The timer ticks in up to 1 us; the median of many slopes does not."""
    slots = torch.zeros(2, dtype=torch.int64, device=bench.device)
    stamp(slots, 0)  # compiled and loaded before the queue is held
    bench.synchronize()
    count = bench.sample_calls

    def total(calls: int) -> tuple[float, float]:
        def fill() -> None:
            stamp(slots, 0)
            bench.calls(calls)
            stamp(slots, 1)

        events = bench.between_events(fill, bench.host_guess(calls + 2))
        first, last = slots.tolist()
        return (last - first) / 1e3, events

    while True:
        try:
            total(2 * count)
            break
        except Absent:
            if count == 1:
                raise
            count //= 2  # the stream's queue is full before all launches are in
    stamps, events = [], []
    for _ in range(_repeats(3 * count * bench.period_us, SLOPES)):
        one, two = total(count), total(2 * count)
        stamps.append((two[0] - one[0]) / count)
        events.append((two[1] - one[1]) / count)
    return {
        "stamp_us": over(stamps),
        "stamp_events_us": over(events),
        "stamp_calls": count,
    }


def event_us(bench: Bench) -> dict[str, Any]:
    """`event_us`: events around one call, the queue held."""
    guess = bench.host_guess(1)
    found = [bench.between_events(lambda: bench.calls(1), guess) for _ in range(REPEATS)]
    return {"event_us": over(found)}


def event_unheld_us(bench: Bench) -> dict[str, Any]:
    """`event_unheld_us`: events around one call, into an empty queue, as most people do."""
    found = []
    for _ in range(REPEATS):
        bench.rotation.before_run()
        bench.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        bench.calls(1)
        end.record()
        bench.synchronize()
        found.append(begin.elapsed_time(end) * 1e3)
    return {"event_unheld_us": over(found)}


def graph_us(bench: Bench, period: Callable[[], float]) -> dict[str, Any]:
    """`graph_us`: the slope over calls in a graph, about as many as in our own slope, and
    `graph_period_us`: our own, taken in turn with it; `graph_copies`: [calls, us of one replay];
    `nodes` and `node_kinds` of one call. Raises Uncapturable where there is no graph."""
    two = min(COPIES[1:], key=lambda count: abs(math.log(count / (2 * bench.sample_calls))))
    one = two // 2
    pool = Pool.of(bench.device)
    graphs = _graphs(bench, (one, two), pool)
    slopes, periods = [], []
    for _ in range(_repeats((one + two) * bench.period_us, SLOPES)):
        bench.read_flush()  # the replays left copies in the cache
        periods.append(period())
        first = _replay_us(bench, graphs[one])
        slopes.append((_replay_us(bench, graphs[two]) - first) / (two - one))
    rest = [c for c in COPIES if c <= two or c * bench.period_us <= REPLAY_US]
    graphs |= _graphs(bench, [c for c in rest if c not in graphs], pool)
    totals = {c: middle([_replay_us(bench, graphs[c]) for _ in range(LINE)]) for c in rest}
    kinds = {kind: n // two for kind, n in graphs[two].nodes.items()}
    return {
        "graph_us": over(slopes),
        "graph_period_us": over(periods),
        "graph_copies": [[count, round(us, 3)] for count, us in totals.items()],
        "graph_slope": [one, two],
        "nodes": sum(kinds.values()),
        "node_kinds": kinds,
    }


def _replay_us(bench: Bench, graph: Captured) -> float:
    bench.read_flush()  # every replay starts at the same copy
    return bench.between_events(graph.replay, 300.0)


def _graphs(bench: Bench, counts: Sequence[int], pool: Pool) -> dict[int, Captured]:
    made: dict[int, Captured] = {}
    for count in counts:
        made[count] = capture(
            bench.call, bench.rotation.copies, count, bench.slots, bench.device, pool=pool
        )
        made[count].outputs.clear()  # the next graph may write to the same memory
        made[count].replay()  # the first one uploads the graph
    bench.synchronize()
    return made


def traced(bench: Bench) -> dict[str, Any]:
    """`busy_us`, `span_us` and `launches` of a call, from device timestamps of many, call by call.

    A span has a value only where the queue was held: else it would hold host time.
    """
    bench.forget_outputs()  # the memory goes to the outputs of the traced calls
    copies = bench.rotation.after_a_lap(bench.call, TRACED)
    calls, held = record(
        bench.call,
        copies,
        flush=bench.rotation.before_run,
        host_us=max(200.0, bench.host_guess(1)),
        keep=bench.slots,
    )
    seen = [launches for launches in calls if launches]
    if not seen:
        raise Absent("the profiler saw no device work in any of the calls")
    values: dict[str, Any] = {
        "busy_us": over([busy(launches) for launches in seen]),
        "launches": round(middle([len(launches) for launches in seen])),
        "traced_calls": len(seen),
    }
    if held:
        values["span_us"] = over([span(launches) for launches in seen])
    return values


def _repeats(us: float, most: int) -> int:
    """So many turns of `us` as fit into the time of one instrument; at least 5."""
    return max(5, min(most, int(SECONDS * 1e6 / us)))
