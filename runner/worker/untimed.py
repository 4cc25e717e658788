"""Why calls on a GPU have no time: no slope, or work that the events of the stream do not cover."""

import time
from collections.abc import Callable, Sequence

import torch

TAIL_US = 60.0
"""A device-wide synchronise costs the host 10 to 40 us after work of some milliseconds; so
much longer than after as much work within the stream, the device was still at work."""

LONG_S = 0.01
"""A call that takes longer need not be piled up to be seen."""


STREAMS = 32
"""So many streams torch hands out in turn. The first call on each waits for its memory, and so
lets the work before it end unseen."""


class NoSlope(Exception):  # noqa: N818 - a reason with a name, not an error of ours
    """T_2N was not longer than T_N again and again: these calls have no period to speak of."""


class OutsideWork(NoSlope):
    """Work that no event of the timed stream covers: a time without it would flatter."""


def outside(tails: Sequence[float], within: Sequence[float]) -> str:
    """Why events in the timed stream do not cover the work of the calls; '' where they do.

    `tails`: how many us the device worked on after the last event was done, each time, by the
    host's clock around a device-wide synchronise; `within`: the same after a kernel in the stream
    that lasts as long. The shortest tail counts: what delays the host comes once, work outside the
    stream every time.
    """
    tail, usual = min(tails), sorted(within)[len(within) // 2]
    if tail <= usual + TAIL_US:
        return ""
    return (
        f"work outside the timed stream: the device worked on for {tail:.4g} us after the last "
        f"event of the stream ({usual:.2g} us where all of it is in the stream)"
    )


def work_outside(call: Callable[[], object], device: torch.device) -> str:
    """Why events in the current stream do not cover the work of such calls; '' where they do."""
    torch.cuda.synchronize(device)
    began = time.perf_counter()
    call()
    torch.cuda.synchronize(device)
    seconds = time.perf_counter() - began
    # eight calls, so that short work outside piles up; one where calls are long
    calls = 8 if seconds < LONG_S else 1
    for _ in range(STREAMS if calls > 1 else 0):
        call()
    spin = int(seconds * 2e9)  # as long in the stream, at 2 GHz
    within = _tails_us(lambda: torch.cuda._sleep(spin), calls, device)
    return outside(_tails_us(call, calls, device), within)


def _tails_us(call: Callable[[], object], calls: int, device: torch.device) -> list[float]:
    """Host us from the end of the stream's last event to that of all work, five times."""
    tails: list[float] = []
    for _ in range(5):
        end = torch.cuda.Event()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        started = time.perf_counter()
        torch.cuda.synchronize(device)
        tails.append((time.perf_counter() - started) * 1e6)
    return tails
