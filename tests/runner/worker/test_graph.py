"""Calls in a CUDA graph. All but the reading of nodes needs a GPU."""

import pytest
import torch
from kernel_lab.runner.records import DeviceState
from kernel_lab.runner.schema import Protocol, Submit
from kernel_lab.runner.worker.device_clock import DeviceClock
from kernel_lab.runner.worker.device_state import DeviceMonitor
from kernel_lab.runner.worker.graph import EmptyGraph, Pool, Uncapturable, capture, graphed

DEVICE = torch.device("cuda", 0)
L2 = 60 << 20


def one(x):
    return x * 2


def two(x):
    return x * 2 * 3


@pytest.mark.gpu
def test_nodes_are_counted_and_replays_do_the_work():
    x = torch.randn(4096, device=DEVICE)
    two(x)
    made = capture(two, [(x,)], 5, 5, DEVICE)
    assert made.nodes == {"kernel": 10}
    x.fill_(7.0)
    made.replay()
    torch.cuda.synchronize()
    assert all(bool((y == 42).all()) for y in made.outputs)


@pytest.mark.gpu
@pytest.mark.parametrize("sync", [lambda x: x.sum().item(), lambda x: torch.cuda.synchronize()])
def test_what_cannot_be_captured_says_why_and_the_next_capture_is_unharmed(sync):
    x = torch.randn(4096, device=DEVICE)
    with pytest.raises(Uncapturable, match="cannot be captured in a CUDA graph") as refused:
        capture(lambda x: (x * 2, sync(x)), [(x,)], 3, 1, DEVICE)
    assert not refused.value.harmed
    assert capture(two, [(x,)], 2, 1, DEVICE).nodes == {"kernel": 4}
    assert torch.randn(8, device=DEVICE).isfinite().all()
    torch.cuda.empty_cache()


@pytest.mark.gpu
def test_a_graph_without_a_kernel_is_an_error():
    x = torch.randn(4096, device=DEVICE)
    kept = x * 2
    with pytest.raises(EmptyGraph, match="holds no kernel and no memcpy: nothing"):
        capture(lambda x: kept, [(x,)], 3, 1, DEVICE)


@pytest.mark.gpu
def test_graphs_of_one_pool_share_the_memory_of_their_outputs():
    x = torch.randn(16 << 20, device=DEVICE)
    two(x)
    pool = Pool.of(DEVICE)
    first = capture(two, [(x,)], 4, 2, DEVICE, pool=pool)
    first.outputs.clear()
    reserved = torch.cuda.memory_reserved()
    second = capture(two, [(x,)], 4, 2, DEVICE, pool=pool)
    assert torch.cuda.memory_reserved() == reserved
    assert first.nodes == second.nodes


@pytest.mark.gpu
def test_a_graphed_call_answers_on_other_inputs_as_the_call_does():
    x = torch.randn(4096, device=DEVICE)
    replay = graphed(two, (x,), DEVICE)
    first = replay(x)
    y = torch.randn(4096, device=DEVICE)
    assert torch.equal(replay(y)[0], two(y))
    assert torch.equal(first[0], two(x))  # an output is the caller's: a later replay leaves it


@pytest.mark.gpu
def test_a_graph_that_holds_a_part_of_the_work_answers_wrongly_on_other_inputs():
    """T15: the first factor was computed before the capture and is not in the graph."""
    kept = {}

    def remembers(x):
        if "y" not in kept:
            kept["y"] = x * 2
        return kept["y"] * 3

    x = torch.randn(4096, device=DEVICE)
    replay = graphed(remembers, (x,), DEVICE)
    y = torch.randn(4096, device=DEVICE)
    assert not torch.equal(replay(y)[0], two(y))


def clock(calls, inputs, **options):
    return DeviceClock(
        calls,
        inputs,
        Protocol(name="test", warmup_ms=5.0),
        device=DEVICE,
        cache_bytes=L2,
        free_memory=8 << 30,
        monitor=DeviceMonitor(""),
        submit=Submit.graph,
        **options,
    )


@pytest.mark.gpu
def test_a_graph_has_its_own_slope_beside_that_of_the_stream():
    """T03: L2 is read full before a replay, and that is in no time: a copy of 64 KiB stays small
    against the reading, which takes tens of us."""
    x = torch.randn(16 << 10, device=DEVICE)
    made = clock({"one": one, "two": two}, (x,))
    assert made.states == ("graph cold", "graph warm", "cold")
    for name in ("one", "two"):
        made.prepare(name)
    assert made.nodes("two") == {"kernel": 2.0}
    medians = {}
    for name in ("one", "two"):
        for state in made.states:
            blocks = [made.block(name, state, k, 0) for k in range(9)]
            medians[name, state] = sorted(b.samples_us[0] for b in blocks)[4]
    assert 1.5 <= medians["two", "graph cold"] / medians["one", "graph cold"] <= 2.6
    assert medians["one", "graph cold"] < medians["one", "cold"] + 2.0
    assert medians["one", "graph warm"] <= medians["one", "graph cold"] * 1.05


class Falling:
    """An NVML whose clock falls to 60 % for some readings."""

    def __init__(self, low):
        self._low = low
        self._reads = 0

    def read(self):
        self._reads += 1
        return DeviceState(sm_mhz=1188 if self._reads in self._low else 1980)


@pytest.mark.gpu
def test_a_block_at_a_fallen_clock_is_repeated_and_labelled_only_if_it_stays():
    """T11."""
    x = torch.randn(1 << 20, device=DEVICE)
    made = DeviceClock(
        {"one": two},
        (x,),
        Protocol(name="test", warmup_ms=5.0),
        device=DEVICE,
        cache_bytes=L2,
        free_memory=8 << 30,
        monitor=Falling({10, 20, 21, 22}),
    )
    made.prepare("one")
    blocks = [made.block("one", "cold", k, 0) for k in range(20)]
    assert [b.repeats for b in blocks if b.repeats] == [1, 2]
    assert [b.fault for b in blocks if b.fault] == ["SM clock 1188 MHz, usually 1980"]
