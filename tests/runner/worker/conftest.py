"""A kernel made in the test: its functions stand in a module that YAML's dotted paths find."""

import sys
import types

import pytest
import torch
from kernel_lab.runner.records import Cell, Workload
from kernel_lab.runner.schema import (
    Compile,
    Device,
    Dtype,
    Experiment,
    Implementation,
    Kernel,
    Language,
    Protocol,
    Target,
)
from kernel_lab.runner.worker.context import Context
from kernel_lab.runner.worker.ranges import Ranges

MODULE = "kernel_of_this_test"


class Lab:
    """`made(eager=..., other=...)` gives the context of a kernel with these implementations."""

    def __init__(self, module):
        self.module = module
        self.announced = []
        self.cell = Cell(index=3, kernel="k", workload=Workload(axes={"N": 64}, dtype="fp32"))

    def define(self, name, value):
        setattr(self.module, name, value)

    def experiment(self, implementations, **changes):
        for name, function in implementations.items():
            self.define(name, function)
        protocol = Protocol(name="test", min_rounds=4, max_rounds=4, sample_us=1.0, warmup_ms=0.01)
        kernel = Kernel(
            name="k",
            module=MODULE,
            implementations={
                name: Implementation(
                    target=f"{MODULE}.{name}",
                    cost="one",
                    compile=changes.get("compile", Compile.none),
                    language=changes.get("language", Language.torch),
                )
                for name in implementations
            },
            **changes.get("kernel", {}),
        )
        storage = changes.get("storage", "float32")
        dtype = Dtype(
            name="test",
            storage=storage,
            output=storage,
            itemsize=4,
            output_itemsize=4,
            peak="fp32",
            sane_rms=0.01,
        )
        return Experiment(
            experiment_name="e",
            kernel=kernel,
            dtype=dtype,
            protocol=protocol,
            target=Target(name="cpu", kind=Device.cpu),
        )

    def context(self, experiment):
        return Context(
            job="j1",
            experiment=experiment,
            kind=Device.cpu,
            device=torch.device("cpu"),
            ranges=Ranges("j1", "k"),
            announce=lambda name, phase: self.announced.append((name, phase)),
            cache_bytes=0,
        )

    def made(self, **implementations):
        return self.context(self.experiment(implementations))


@pytest.fixture
def lab(monkeypatch):
    """The module holds y = 2 x with one pointwise stage until a test defines other functions."""
    module = types.ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    made = Lab(module)
    made.define("make_inputs", lambda draw, *, N, **_: {"x": draw(N)})
    made.define("reference", lambda x: x * 2)

    def cost(*, itemsize, output_itemsize, N, **_):
        """Reads and writes every element once."""
        moved = {"bytes_read": N * itemsize, "bytes_written": N * output_itemsize}
        return {"one": [{"name": "double", "kind": "pointwise", "flops": N, **moved}]}

    made.define("cost", cost)
    return made
