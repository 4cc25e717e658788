"""How a worker ended, in words: every signal and every text of its last line."""

import signal

import pytest
from kernel_lab.runner.death import died
from kernel_lab.runner.records import Status


class Gone:
    """A worker that ended with this code."""

    def __init__(self, code):
        self._code = code

    def exit_code(self, patience_s):
        return self._code

    def last_line(self):
        return "bang"


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (-signal.SIGSEGV, "SIGSEGV"),
        (-signal.SIGRTMIN, "SIGRTMIN"),
        (-(signal.SIGRTMIN + 3), f"signal {signal.SIGRTMIN + 3}"),  # it has no name of its own
        (-(signal.SIGRTMIN - 1), f"signal {signal.SIGRTMIN - 1}"),
    ],
)
def test_whatever_signal_ended_it_is_named(code, named):
    death = died(Gone(code), "triton", "time")
    assert death.reason == f"the worker was ended by {named}: bang"
    assert (death.status, death.implementation, death.phase) == (Status.crashed, "triton", "time")
