"""`klab plan`: what a run would do and what it must cost, for any target, without a GPU."""

import dataclasses
import json
import sys
from collections.abc import Sequence

from rich.markup import escape

from ..device import gpus, settle
from ..errors import ConfigError, TargetError
from ..judge.claims import check_claim
from ..question import on_cpu, vocabulary
from ..question.compose import compose, compose_jobs
from ..question.costs import cost_of
from ..question.plan import Plan, plan
from ..question.targets import targets
from ..records import Cost
from ..report.console import Console
from ..report.text import counted
from ..schema import Device, Distribution, Experiment, Mode, Submit, Target
from ..traced import check_cells
from .arguments import Arguments, parse
from .plan_values import names, values

SUMMARY = "cells, skips and floor times of a question on any target, without running it"

HELP = f"""klab plan [--json] [-m] [--config-dir FOLDER] OVERRIDES...

{SUMMARY}

  klab plan kernel=NAME shapes.product.N=[1e9] dtype=fp32 target=h100_sxm
  klab plan -m experiment=NAME dtype=bf16,fp16

Floor times are the sum over stages of max(FLOPs / peak, bytes / bandwidth) by the target's
datasheet. klab list shows what can be named.
"""


def main(argv: Sequence[str]) -> int:
    """Plans every job of the command. Raises ConfigError before anything is printed."""
    arguments = parse(argv, flags=("--json",))
    if arguments.help:
        sys.stdout.write(HELP)
        return 0
    found = vocabulary.read(arguments.config_dirs)
    for folder in found.python_path:
        if folder not in sys.path:
            sys.path.append(folder)
    known = targets(arguments.config_dirs)
    planned = [_planned(job, experiment, known) for job, experiment in _jobs(arguments)]
    if "--json" in arguments.flags:
        text = json.dumps({"jobs": [values(*job) for job in planned]}, indent=1, allow_nan=False)
        sys.stdout.write(text + "\n")
        return 0
    console = Console(soft_wrap=True)
    for job in planned:
        _show(console, *job)
    return 0


Planned = tuple[Sequence[str], Experiment, Plan, dict[tuple[str, str], Cost]]


def _jobs(arguments: Arguments) -> list[tuple[list[str], Experiment]]:
    if arguments.multirun:
        return compose_jobs(arguments.overrides, arguments.config_dirs)
    overrides = list(arguments.overrides)
    return [(overrides, compose(overrides, arguments.config_dirs))]


def _planned(job: Sequence[str], experiment: Experiment, known: Sequence[Target]) -> Planned:
    check_claim(experiment.claim)
    target = experiment.target
    if target.kind is None:
        try:
            target, _ = settle(target, known, gpus(), experiment.device)
        except TargetError as error:
            raise ConfigError(f"{error} Or plan for a GPU by name: target=NAME.") from error
    experiment = dataclasses.replace(experiment, target=target)
    if target.kind is Device.cpu:
        try:
            on_cpu.refuse(experiment, job)
        except ConfigError as error:
            raise ConfigError(f"{error} Or plan for a GPU by name: target=NAME.") from error
    done = plan(experiment, experiment.target.kind or Device.cpu)
    check_cells(experiment, [planned.cell for planned in done.cells])
    costs = {
        (p.cell.id, name): cost_of(experiment, p.cell, name)
        for p in done.cells
        for name in names(experiment, p)
    }
    return job, experiment, done, costs


def _show(
    console: Console,
    job: Sequence[str],
    experiment: Experiment,
    done: Plan,
    costs: dict[tuple[str, str], Cost],
) -> None:
    target, dtype = experiment.target, experiment.dtype
    console.print(f"[bold]{escape(experiment.experiment_name)}[/]  {escape(' '.join(job))}")
    if experiment.question:
        console.print(escape(experiment.question))
    line = f"{experiment.kernel.name}, {dtype.name} on {target.name}"
    peak = target.peak_tflops.get(dtype.peak)
    if target.kind == Device.cuda and peak and target.bandwidth_gbps:
        line += (
            f": {peak:g} TFLOP/s, {target.bandwidth_gbps:g} GB/s, "
            f"ridge {peak * 1e3 / target.bandwidth_gbps:.0f} FLOP/byte"
        )
    else:
        line += ": no floor times, the datasheet has no such peak or bandwidth"
    console.print(line)
    if experiment.distribution is not Distribution.normal:
        console.print(f"inputs drawn by distribution={experiment.distribution}")
    if experiment.submit is Submit.graph:
        console.print("submit=graph: latency is graph_us, a call inside a CUDA graph")
    _table(console, experiment, done, costs)
    for note in done.notes:
        console.print(f"note: {escape(note)}")
    for left_out in done.excluded:
        console.print(escape(f"excluded: {left_out.workload.label} ({left_out.condition})"))
    if done.duplicates:
        console.print(f"duplicates dropped: {done.duplicates}")
    runs = sum(len(planned.implementations) for planned in done.cells)
    skipped = sum(len(planned.skips) for planned in done.cells)
    cells = counted(len(done.cells), "cell")
    if experiment.mode is Mode.run and experiment.protocol.processes > 1:
        cells += f", {experiment.protocol.processes} processes"
    console.print(f"{cells}, {runs} to run, {skipped} unsupported")
    if not runs:
        console.print("klab run would refuse this: nothing here can run")


_HEADS = ("implementation", "FLOP", "bytes", "stages", "FLOP/byte", "floor", "bound")


def _table(
    console: Console, experiment: Experiment, done: Plan, costs: dict[tuple[str, str], Cost]
) -> None:
    """A line a cell, and under it a line an implementation; reasons stand once, below."""
    numbers: dict[str, int] = {}
    blocks: list[tuple[str, list[tuple[str, ...]]]] = []
    for planned in done.cells:
        reasons = {skip.implementation: skip.reason for skip in planned.skips}
        workload = planned.cell.workload
        lines: list[tuple[str, ...]] = []
        for name in names(experiment, planned):
            mark = ""
            if name in reasons:
                mark = f" [{numbers.setdefault(reasons[name], len(numbers) + 1)}]"
            lines.append((f"  {name}{mark}", *_columns(costs[planned.cell.id, name])))
        label = f"{workload.name} {workload.label}".strip()
        blocks.append((f"{label}  {planned.cell.id}", lines))
    every = [_HEADS, *(line for _, lines in blocks for line in lines)]
    widths = [max(len(line[k]) for line in every) for k in range(len(_HEADS))]
    console.print(_laid_out(_HEADS, widths), style="bold", highlight=False)
    for title, lines in blocks:
        console.print(title, style="cyan", highlight=False, markup=False)
        for line in lines:
            console.print(_laid_out(line, widths), highlight=False, markup=False)
    for reason, number in numbers.items():
        console.print(f"[{number}] unsupported: {reason}", highlight=False, markup=False)


def _columns(cost: Cost) -> tuple[str, ...]:
    return (
        _si(cost.flops),
        _si(cost.bytes, "B"),
        str(len(cost.stages)),
        "" if cost.intensity is None else f"{cost.intensity:.3g}",
        "" if cost.floor_us is None else _duration(cost.floor_us),
        cost.bound or "",
    )


def _laid_out(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = line
    numbers = (text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))
    return "  ".join([first.ljust(widths[0]), *numbers]).rstrip()


def _si(value: float, unit: str = "") -> str:
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.4g} {prefix}{unit}"
    return f"{value:g} {unit}".rstrip()


def _duration(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3g} s"
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} us"
