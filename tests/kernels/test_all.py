"""Every implementation of every kernel in conf/kernel on odd workloads, against fp64.

Kernels are found by listing the folder: a new one is tested without a line here. The arms of
torch.compile are the runner's; their targets are held here as what they are, eager.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kernel_lab.runner.question import expressions

ROOT = Path(__file__).resolve().parents[2]
KERNELS = {p.stem: yaml.safe_load(p.read_text()) for p in (ROOT / "conf/kernel").glob("*.yaml")}

LONG = (0, 1, 3, 781, 1023)
"""For a single dimension."""
SHORT = (1, 3, 33, 67, 129)
"""For several: below, at and beyond the blocks of 32 that the interpreter runs with."""


def workloads(kernel):
    """Axes for each case; every choice of every option comes up, every size at every place."""
    axes = {n: a or {} for n, a in kernel["axes"].items() if n != "layout"}
    sizes = [n for n, a in axes.items() if a.get("type", "int") == "int" and "default" not in a]
    if len(sizes) == 1:
        rows = [(value,) for value in LONG]
    else:
        count = len(SHORT)
        rows = [
            tuple(SHORT[(first + step * place) % count] for place in range(len(sizes)))
            for first, step in itertools.product(range(count), (0, 2))
        ]
        rows += [tuple(0 if p == z else 5 for p in range(len(sizes))) for z in range(len(sizes))]
    layouts = kernel["axes"].get("layout", {}).get("choices", ["contiguous"])
    for (index, row), (shift, layout) in itertools.product(enumerate(rows), enumerate(layouts)):
        values = dict(zip(sizes, row, strict=True))
        for name, axis in axes.items():
            if name not in sizes:
                options = choices(axis)
                values[name] = options[(index + shift) % len(options)]
        yield values, layout


def choices(axis):
    if axis.get("type") == "bool":
        return [True, False]
    if axis.get("choices"):
        return axis["choices"]
    least = int(axis.get("min", axis["default"]))
    return sorted({least, axis["default"], axis["default"] + 3})


def runs(implementation, values, layout, dtype, device):
    if implementation.get("compile", "none") != "none":
        return False
    if device not in implementation.get("devices", ["cuda", "cpu"]):
        return False
    if layout not in implementation.get("layouts", [layout]):
        return False
    if dtype not in implementation.get("dtypes", [dtype]):
        return False
    if device == "cpu" and dtype == "tf32":
        return False  # tensor cores are a GPU's
    if device == "cpu" and dtype == "bf16" and implementation.get("language") == "triton":
        return False  # the interpreter multiplies bit patterns
    where = implementation.get("where", "")
    return not where or expressions.holds(
        where, {"layout": layout, "dtype": dtype, **values}, "where"
    )


def cases(device):
    for name, kernel in sorted(KERNELS.items()):
        for word, implementation in kernel["implementations"].items():
            for (values, layout), dtype in itertools.product(
                workloads(kernel), ("fp32", "tf32", "bf16", "fp16")
            ):
                if not runs(implementation, values, layout, dtype, device):
                    continue
                shown = [f"{n}{v}" if isinstance(v, int) else v for n, v in values.items()]
                shown = [s.removesuffix("True") for s in shown if not s.endswith("False")]
                yield pytest.param(
                    {
                        "kernel": name,
                        "implementation": word,
                        "axes": values,
                        "layout": layout,
                        "dtype": dtype,
                    },
                    id="-".join([name, word, *shown, layout, dtype]),
                )


def bench(device):
    """A process that answers one case after another."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("bench.py")), device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(case):
        process.stdin.write(json.dumps(case) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, f"the process died on this case with {process.wait()}"
        return json.loads(line)

    yield ask
    process.stdin.close()
    process.wait(timeout=60)


@pytest.fixture(scope="module")
def on_cpu():
    yield from bench("cpu")


@pytest.fixture(scope="module")
def on_gpu():
    yield from bench("cuda")


def hold(answer):
    assert "error" not in answer, answer["error"]
    assert "unsupported" not in answer, answer["unsupported"]
    assert answer["shape_ok"], "wrong shape"
    assert answer["dtype_ok"], "wrong dtype"
    assert answer["unchanged"], "an input was written to"
    assert answer["misplaced"] == 0, "NaN or infinity where the truth has none"
    assert answer["max_error"] <= answer["max_error_allowed"]
    assert answer["rms_error"] <= answer["rms_error_allowed"]


@pytest.mark.parametrize("case", list(cases("cpu")))
def test_against_fp64(case, on_cpu):
    hold(on_cpu(case))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("act", KERNELS["gemm_bias_act"]["axes"]["act"]["choices"])
def test_nan_comes_through_every_epilogue(act, device, request):
    # on the GPU too: the interpreter's maximum keeps a NaN that the hardware's drops
    ask = request.getfixturevalue("on_cpu" if device == "cpu" else "on_gpu")
    axes = {"M": 5, "N": 5, "K": 5, "act": act, "bias": True}
    case = {"kernel": "gemm_bias_act", "implementation": "triton", "axes": axes, "nan": True}
    answer = ask({**case, "layout": "contiguous", "dtype": "fp32"})
    assert "error" not in answer, answer["error"]
    assert answer["misplaced"] == 0


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("act", KERNELS["gemm_bias_act"]["axes"]["act"]["choices"])
def test_epilogues_bend_and_end_where_the_formulas_do(act, device, request):
    # infinities, where exp overflows, where it vanishes, and in between
    ask = request.getfixturevalue("on_cpu" if device == "cpu" else "on_gpu")
    column = ["inf", "-inf", 3e38, -3e38, 1e13, -1e13, *(k / 4 for k in range(-440, 441))]
    axes = {"M": len(column), "N": 1, "K": 1, "act": act, "bias": False}
    case = {"kernel": "gemm_bias_act", "implementation": "triton", "axes": axes, "column": column}
    hold(ask({**case, "layout": "contiguous", "dtype": "fp32"}))


@pytest.mark.gpu
@pytest.mark.parametrize("case", list(cases("cuda")))
def test_against_fp64_on_gpu(case, on_gpu):
    hold(on_gpu(case))
