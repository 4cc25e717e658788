"""`klab`: finds the command and runs it; an error of the user's ends in one message and a code.

Only the command asked for is imported: help answers without torch, MLflow or plotting.
"""

import importlib
import os
import sys
from collections.abc import Sequence

from .errors import KlabError, nearest
from .interrupts import Terminated

COMMANDS = {
    "run": "run an experiment (-m: every combination of comma-separated choices)",
    "plan": "say what a run would do, and predict floor times, on any target without a GPU",
    "list": "list kernels, experiments, shapes, targets and the other words of the vocabulary",
    "check": "verify a kernel's contract on one small cell",
    "doctor": "check this machine's set-up; --measure: prove its measurement",
    "show": "print a record with its times, errors and trace rows",
    "trace": "attach a report of nsys that you took around klab run to its job",
    "ui": "open the MLflow UI on the local store",
    "finding": "keep what a run found, or print the tables of what is kept",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a command line (without the program's own name)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except KlabError as error:
        sys.stderr.write(f"klab: {error}\n")
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        sys.stderr.write("klab: interrupted\n")
        return 143 if isinstance(interrupt, Terminated) else 130
    except BrokenPipeError:  # nobody reads any more: the flush at exit must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_help())
        return 0
    if words[0] not in COMMANDS:
        near = nearest(words[0], COMMANDS)
        hint = f" Did you mean klab {near}?" if near else ""
        known = ", ".join(COMMANDS)
        sys.stderr.write(f"klab {words[0]}: no such command. Commands: {known}.{hint}\n")
        return 2
    command = importlib.import_module(f".commands.{words[0]}", __package__)
    return command.main(words[1:])


def _help() -> str:
    rows = "\n".join(f"  {name:<9}{text}" for name, text in COMMANDS.items())
    return (
        "klab answers questions about GPU kernels with evidence.\n\n"
        f"commands:\n{rows}\n\n"
        "first:  klab run experiment=quickstart\n"
        "help:   klab COMMAND --help, klab list\n"
    )
