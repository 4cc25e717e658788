"""Runs kernels' implementations in a process of its own: a case a line in, its errors a line out.

A process of its own, because Triton's interpreter is chosen by TRITON_INTERPRET before triton is
imported, and would break ahead-of-time compilation beside it. Start: `bench.py cpu|cuda`.
"""

import importlib
import json
import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any

DEVICE = sys.argv[1]
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
else:
    os.environ.pop("TRITON_INTERPRET", None)

import torch  # noqa: E402
import yaml  # noqa: E402
from kernel_lab.runner.question import expressions  # noqa: E402
from kernel_lab.runner.worker import compare, inputs  # noqa: E402

CONF = Path(__file__).resolve().parents[2] / "conf"
FEWEST = 4096
"""Outputs to pool at least: a yardstick of three numbers may be exact by luck."""
MOST_DRAWS = 16


def resolve(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Pools the errors of several draws, of the implementation and of the yardstick."""
    kernel = yaml.safe_load((CONF / "kernel" / f"{case['kernel']}.yaml").read_text())
    dtype = yaml.safe_load((CONF / "dtype" / f"{case['dtype']}.yaml").read_text())
    storage = getattr(torch, dtype["storage"])
    torch.backends.cuda.matmul.allow_tf32 = dtype["tf32"]
    module = importlib.import_module(kernel["module"])
    arguments = {name: case["axes"][name] for name in kernel["arguments"]}
    function = resolve(kernel["implementations"][case["implementation"]]["target"])
    yardstick = resolve(kernel["implementations"][kernel["yardstick"]]["target"])

    pooled: dict[str, list[compare.Errors]] = {"mine": [], "yardstick": []}
    facts: dict[str, Any] = {"shape_ok": True, "dtype_ok": True, "unchanged": True}
    for seed in range(MOST_DRAWS):
        draw = inputs.Draw(storage, torch.device(DEVICE), "normal", seed)
        tensors = tuple(
            inputs.make(module.make_inputs, draw, case["axes"], case["layout"]).values()
        )
        if case.get("nan"):
            tensors[0][..., :1] = float("nan")
        if case.get("column"):
            # A is this column and B is ones: the epilogue gets just these values
            column = torch.tensor([float(v) for v in case["column"]], device=DEVICE)
            tensors = (column[:, None].to(storage), torch.ones_like(tensors[1]), None)
        before = inputs.clone(tensors)
        output = function(*tensors, **arguments)
        exact = [None if t is None else t.double() for t in before]
        truth = module.reference(*exact, **arguments)
        facts["shape_ok"] &= output.shape == truth.shape
        facts["dtype_ok"] &= output.dtype == getattr(torch, dtype["output"])
        facts["unchanged"] &= all(
            a is b or torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
            for a, b in zip(tensors, before, strict=True)
        )
        pooled["mine"].append(compare.errors_of(output, truth))
        pooled["yardstick"].append(compare.errors_of(yardstick(*before, **arguments), truth))
        if truth.numel() * (seed + 1) >= FEWEST or truth.numel() == 0:
            break
    k = kernel["error_multiple"]
    # the library may leave tf32 aside for a small product, and then is no measure for it
    ulp = 2.0**-9 if dtype["tf32"] else compare.ulp(getattr(torch, dtype["output"]))
    terms = kernel.get("sum_length", "")
    terms = float(expressions.evaluate(terms, case["axes"], "sum_length")) if terms else 0.0
    least = compare.least_tolerance(ulp, getattr(torch, dtype["accumulate"]), terms)
    for name in ("max_error", "rms_error"):
        mine, theirs = (
            _pool([getattr(e, name) for e in pooled[who]], name) for who in ("mine", "yardstick")
        )
        facts[name] = mine
        facts[f"{name}_allowed"] = max(k * theirs, least)
    facts["misplaced"] = sum(e.misplaced for e in pooled["mine"])
    return facts


def _pool(values: list[float], name: str) -> float:
    if name == "max_error":
        return max(values)
    return math.sqrt(sum(v * v for v in values) / len(values))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes beside the answers
    for line in sys.stdin:
        try:
            answer = run(json.loads(line))
        except NotImplementedError as error:
            answer = {"unsupported": str(error)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
