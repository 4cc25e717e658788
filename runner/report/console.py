"""The terminal, or whatever reads instead: a reader that goes away ends no work."""

import os
from typing import IO

from rich import console


class Console(console.Console):
    """rich's, which would end the process with code 1 where a pipe is closed (`klab run | head`).

    Here the rest is not printed, and a run goes on: its records are worth more than its output.
    """

    def on_broken_pipe(self) -> None:
        self.quiet = True
        silence(self.file)


def silence(stream: IO[str]) -> None:
    """Points the stream's descriptor at nothing, so that the flush at exit cannot fail either."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
