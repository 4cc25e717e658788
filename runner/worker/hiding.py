"""After the rounds: whether what was timed was the work.

One more call on timed copies of the inputs is held against their own truth. Then values that no
call has seen are written into a timed copy, and a call on them is timed beside the same call
again: where the first takes much longer, results are remembered by content, and the rounds timed
the remembering.
"""

import time
import traceback
from collections.abc import Callable, Sequence

from ..records import Cell, Status
from .attempt import Attempt
from .context import Context
from .failure import classify
from .gate import Gate, WrongAnswer
from .inputs import Inputs, vary
from .timing import Clock

StopIfSticky = Callable[[str, Exception], None]

PAIRS = 7
"""Fresh values that each implementation is called on; the fastest call of each kind counts."""

ENOUGH_US = 500_000
"""No more pairs than three past this time: long calls differ by little."""

RATIO = 2.0
LEAST_US = 20.0
"""Below this difference the host's own caches, cold after the writing, may be the cause."""


def remembers(fresh_us: Sequence[float], again_us: Sequence[float]) -> str:
    """Why calls on values seen before do not stand for calls on new ones; '' where they do.

    By the fastest of each: other work on the machine only ever adds.
    """
    fresh, again = min(fresh_us), min(again_us)
    if fresh <= RATIO * again or fresh - again < LEAST_US:
        return ""
    return (
        f"remembers results by content: a call on new values takes {fresh:.4g} us, on values seen "
        f"before {again:.4g} us"
    )


def look(
    context: Context,
    cell: Cell,
    clock: Clock,
    attempts: Sequence[Attempt],
    stop_if_sticky: StopIfSticky,
) -> None:
    """Fails the attempts whose timed calls did not do the work, or on which that is not known."""
    copies = clock.release()
    yardstick = f"yardstick {context.experiment.kernel.yardstick}"
    context.announce(yardstick, "recheck")
    try:
        gate = Gate(context, cell, inputs=copies[0])
    except Exception as error:
        stop_if_sticky(yardstick, error)
        reason = str(error) if isinstance(error, WrongAnswer) else classify(error)[1]
        trace = traceback.format_exc()
        for attempt in attempts:
            attempt.fail(
                Status.invalid,
                f"after timing, on the timed inputs, there was no check: {reason}",
                "recheck",
                trace,
            )
        return
    for attempt in attempts:
        context.announce(attempt.name, "recheck")
        try:
            with context.ranges.step(cell.index, cell.id, attempt.name, "check"):
                attempt.recheck = gate.again(attempt.function, copies)
        except WrongAnswer as wrong:
            attempt.recheck = wrong.correctness
            reason = f"after timing, on the timed inputs: {wrong.reason}"
            attempt.fail(wrong.status, reason, "recheck")
        except Exception as error:
            stop_if_sticky(attempt.name, error)
            attempt.fail(*classify(error), "recheck", traceback.format_exc())
    del gate
    for attempt in attempts:
        if attempt.timing is None:
            continue
        try:
            reason = remembers(*_pairs(context, attempt, copies[0]))
        except Exception as error:
            stop_if_sticky(attempt.name, error)
            attempt.fail(*classify(error), "recheck", traceback.format_exc())
        else:
            if reason:
                attempt.fail(Status.invalid, reason, "recheck")


def _pairs(context: Context, attempt: Attempt, inputs: Inputs) -> tuple[list[float], list[float]]:
    """Host time in us of calls on values not seen before, and of the same calls again."""
    fresh: list[float] = []
    again: list[float] = []
    while len(fresh) < PAIRS and (len(fresh) < 3 or sum(fresh) < ENOUGH_US):
        vary(inputs)
        for into in (fresh, again):
            context.synchronize()
            started = time.perf_counter()
            attempt.function(*inputs)
            context.synchronize()
            into.append((time.perf_counter() - started) * 1e6)
    return fresh, again
