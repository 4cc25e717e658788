"""Copies that rotate, inputs that stay warm, and what the record says of both."""

import pytest
import torch
from kernel_lab.runner.worker.rotation import MAX_CALLS, Rotation, places


def rotation(*inputs, cache_bytes=102400, free=1 << 30, **options):
    return Rotation(
        inputs,
        device=torch.device("cpu"),
        cache_bytes=cache_bytes,
        free_memory=free,
        **options,
    )


def test_runs_go_on_where_the_last_one_ended():
    made = rotation(torch.ones(1024))
    assert made.rotates
    assert made.most_calls == MAX_CALLS
    copies, first = made.take(50)
    _, second = made.take(50)
    _, third = made.take(1)
    assert (len(copies), first, second, third) == (76, 0, 50, 24)


def test_a_warm_input_is_the_same_memory_in_every_copy():
    weight, activation = torch.ones(1024), torch.ones(512)
    made = rotation(weight, activation, warm={1})
    addresses = [[t.data_ptr() for t in copy] for copy in made.copies]
    assert len({a for a, _ in addresses}) == len(made.copies) == 76
    assert {b for _, b in addresses} == {activation.data_ptr()}
    assert "warm: x" in made.method(["x"])
    assert "0.311 MB" not in made.method(["x"])  # the warm input does not count as rotated


def test_where_copies_do_not_rotate_a_copy_is_met_once_a_run():
    made = rotation(torch.ones(4))
    assert not made.rotates
    assert made.most_calls == len(made.copies) == MAX_CALLS
    assert "L2 filled by reading" in made.method()
    made.before_run()


def test_a_graph_has_the_cache_read_full_before_each_replay_though_copies_rotate():
    """T03: outside of the graph and of the window."""
    assert "filled by reading" in rotation(torch.ones(1024), always_flush=True).method()
    assert "filled by reading" not in rotation(torch.ones(1024)).method()


def test_warm_inputs_are_named_as_make_inputs_names_them():
    assert places(["b"], ["a", "b"]) == {"b": 1}
    with pytest.raises(ValueError, match=r"warm_inputs: w: no such input\. Inputs: a, b\."):
        places(["w"], ["a", "b"])


def test_warm_calls_take_the_copy_that_the_next_cold_ones_meet_last():
    made = rotation(torch.ones(1024))
    for calls in (0, 1, 50, 200):
        copies, place = made.take(calls)
        assert made.last is copies[(place + calls - 1) % len(copies)]
    assert len({id(c) for c in copies}) == 76
    alone = rotation(torch.ones(1024), free=8192)
    assert alone.last is alone.copies[0]


def test_released_copies_are_the_first_and_the_last():
    assert len(rotation(torch.ones(1024)).release()) == 2


def test_a_run_of_twice_the_calls_begins_with_the_same_copies_where_they_are_cold_again():
    large = rotation(torch.ones(1 << 17))  # half a megabyte against a cache of a tenth
    assert large.count == 4
    _, one = large.take(1)
    large.rewind(1)
    _, two = large.take(2)
    large.skip()
    _, later = large.take(1)
    assert (one, two, later) == (0, 0, 3)
    small = rotation(torch.ones(1024))
    small.take(10)
    small.rewind(10)  # 40 kB would still be in the cache
    assert small.take(1)[1] == 10


def test_large_inputs_have_several_places_where_memory_allows():
    assert rotation(torch.ones(1 << 17), free=1 << 21).count == 2
    assert rotation(torch.ones(1 << 17), free=1 << 19).count == 1


def test_after_a_lap_every_copy_was_used_and_the_next_ones_follow():
    made = rotation(torch.ones(1 << 17))
    seen = []
    chosen = made.after_a_lap(lambda x: seen.append(x.data_ptr()), 6)
    assert len(set(seen)) == 4
    assert [copy[0].data_ptr() for copy in chosen] == [*seen, *seen[:2]]


@pytest.mark.parametrize("elements", [1 << 10, 3 << 10, 1 << 13])
def test_no_cold_call_meets_a_copy_before_three_times_the_cache_has_passed(elements):
    """Runs of N and 2N in turn, as one slope after another takes them, whatever N."""
    made = rotation(torch.ones(elements))
    assert made.rotates
    least = 3 * 102400 / (4 * elements)
    for calls in range(1, 3 * made.count):
        used = {}
        now = 0
        back = False
        for _ in range(4):
            for length, rewinds in ((calls, False), (2 * calls, True)):
                if rewinds:
                    back = made.rewind(calls)
                copies, place = made.take(length)
                for k in range(length):
                    copy = (place + k) % len(copies)
                    # between two uses: the calls since, this copy's own among them
                    assert now - used.get(copy, -1000) >= least, (calls, copy)
                    used[copy] = now
                    now += 1
            if back:
                made.skip()


def test_where_every_input_is_warm_or_empty_nothing_has_to_rotate():
    all_warm = rotation(torch.ones(1024), warm={0})
    assert (all_warm.count, all_warm.rotates, all_warm.most_calls) == (1, True, MAX_CALLS)
    assert rotation(torch.ones(0)).most_calls == MAX_CALLS
