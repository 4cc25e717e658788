"""Records with times and traces made by hand."""

import random

import pytest
from kernel_lab.runner.records import (
    Cell,
    Cost,
    Evidence,
    Interval,
    Launch,
    Record,
    Stage,
    Status,
    Timing,
    Workload,
)
from kernel_lab.runner.schema import Claim, Experiment, Kernel, Protocol


def cell(n=1):
    return Cell(index=n, kernel="k", workload=Workload(axes={"N": n}, dtype="bf16"))


def timing(
    latency,
    *,
    noise=0.001,
    host_us=None,
    rounds=20,
    state="cold",
    seed=0,
    headline="period_us",
):
    draw = random.Random(f"{seed}-{latency}")
    values = tuple(latency * (1 + draw.uniform(-noise, noise)) for _ in range(rounds))
    return Timing(
        timer="t",
        headline=headline,
        state=state,
        latency_us=Interval(median=latency, low=min(values), high=max(values)),
        rounds_us=values,
        calls=4,
        cache="",
        host_us=host_us,
        launch_bound=None if host_us is None else host_us > latency,
    )


def record(name, *, n=1, latency=None, status=None, stages=1, launches=None, reason="", **of):
    """`stages` in the cost, each 100 bytes; `launches` in the trace, those beyond
    the stages memsets; None: no trace."""
    evidence = ()
    if launches is not None:
        seen = tuple(
            Launch(
                name=f"k{k}",
                kind="pointwise" if k < stages else "memset",
                family="x",
                duration_us=1.0,
                start_us=k,
            )
            for k in range(launches)
        )
        evidence = (
            Evidence(
                tool="torch",
                cell_id=cell(n).id,
                implementation=name,
                launches=seen,
                launch_count=launches,
            ),
        )
    return Record(
        job="j",
        experiment="e",
        cell=cell(n),
        implementation=name,
        status=status or (Status.crashed if latency is None else Status.ok),
        reason=reason,
        cost=Cost(
            stages=tuple(
                Stage(name=f"s{k}", kind="pointwise", flops=1, bytes_read=50, bytes_written=50)
                for k in range(stages)
            )
        ),
        timing=None if latency is None else timing(latency, **of),
        evidence=evidence,
    )


def experiment(**expect):
    return Experiment(
        kernel=Kernel(name="k", module="m", baseline="eager"),
        protocol=Protocol(name="test", band=0.01),
        claim=Claim(fused="fused", unfused="eager", expect=expect),
    )


class Made:
    cell = staticmethod(cell)
    record = staticmethod(record)
    experiment = staticmethod(experiment)


@pytest.fixture
def made():
    return Made
