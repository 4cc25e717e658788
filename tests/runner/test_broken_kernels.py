"""Kernels that break their contract: each record says what is meant, and no worker is lost."""

import json
import os
import subprocess
import sys

import pytest

KLAB = [sys.executable, "-c", "from kernel_lab.runner.cli import main; raise SystemExit(main())"]

SOURCE = """
import torch

def make_inputs(draw, *, N, **_):
    return {"x": draw(N)}

def reference(x):
    return x * 2

def cost(*, itemsize, output_itemsize, N, **_):
    stage = {"name": "s", "kind": "pointwise", "flops": N, "bytes_read": N, "bytes_written": N}
    return {"one": [stage]}

def eager(x):
    return x * 2
"""

YAML = """
name: {name}
module: broken_{name}
axes: {{N: {{min: 0}}}}
implementations:
  eager: {{target: broken_{name}.eager, cost: one}}
  other: {{target: broken_{name}.eager, cost: one}}
shapes: {{product: {{N: [64]}}}}
"""

INPUTS, REFERENCE = 'return {"x": draw(N)}', "def reference(x):\n    return x * 2"
BROKEN = {
    "sound": ("", "", "checked", ""),
    "no_import": ("import torch", "import no_such_library", "crashed", "no_such_library"),
    "exits": ("import torch", "raise SystemExit(3)", "crashed", "SystemExit: 3"),
    "syntax": ("import torch", "def (", "crashed", "SyntaxError"),
    "cost_absent": ("def cost", "def costs", "crashed", "has no attribute 'cost'"),
    "cost_raises": ('return {"one"', 'raise RuntimeError("boom")\n    return {"one"', "crashed",
                    "cost(layout=contiguous, N=64): RuntimeError: boom"),
    "cost_infinite": ('"flops": N', '"flops": float("inf")', "crashed", "cannot convert"),
    "cost_of_no_kind": ('"pointwise"', '"magic"', "crashed", "kind=magic: unknown. Choices: copy"),
    "inputs_a_list": (INPUTS, "return [draw(N)]", "crashed", "make_inputs: TypeError: it returned"),
    "inputs_text": (INPUTS, 'return {"x": "y"}', "crashed", "it returned x: str; a dict of name"),
    "inputs_raise": (INPUTS, "return 1 / 0", "crashed", "make_inputs: ZeroDivisionError"),
    "inputs_too_large": (INPUTS, 'return {"x": draw(2**62)}', "out_of_memory", "host memory:"),
    "reference_none": (REFERENCE, "def reference(x):\n    pass", "invalid",
                       "the reference returned NoneType; a tensor"),
    "reference_raises": (REFERENCE, "def reference(x):\n    return x.nope", "crashed",
                         "the reference: AttributeError"),
    "yardstick_raises": ("def eager(x):", "def eager(x):\n    raise ValueError('no')", "crashed",
                         "the yardstick eager: ValueError: no"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("broken")
    (made / "kernel").mkdir()
    for name, (old, new, _, _) in BROKEN.items():
        assert old in SOURCE
        (made / f"broken_{name}.py").write_text(SOURCE.replace(old, new, 1) if old else SOURCE)
        (made / "kernel" / f"{name}.yaml").write_text(YAML.format(name=name))
    return made


def klab(folder, outputs, command, *words):
    return subprocess.run(
        [*KLAB, command, *words, "--config-dir", str(folder), "dtype=fp32", "target=cpu"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "KLAB_OUTPUTS": str(outputs)},
    )


@pytest.fixture(scope="module")
def records(folder, tmp_path_factory):
    words = [f"kernel={','.join(BROKEN)}", "mode=check", "worker=inline", "tracking=none"]
    done = klab(folder, tmp_path_factory.mktemp("outputs"), "run", "-m", "--json", *words)
    assert done.returncode == 1, done.stderr[-2000:]
    jobs = json.loads(done.stdout)
    return {job["kernel"]: job["records"] for job in jobs}


@pytest.mark.parametrize(("name", "status", "reason"), [(n, *b[2:]) for n, b in BROKEN.items()])
def test_every_record_says_what_is_broken(records, name, status, reason):
    assert len(records[name]) == 2
    for record in records[name]:
        assert record["status"] == status, record["reason"]
        assert reason in record["reason"]
        assert record["attempts"] == 1


def test_a_cost_that_cannot_be_had_loses_no_worker(folder, tmp_path):
    words = ["kernel=cost_raises", "mode=check", "tracking=none"]
    done = klab(folder, tmp_path, "run", "--json", *words)
    (job,) = json.loads(done.stdout)
    assert {(r["status"], r["phase"], r["attempts"]) for r in job["records"]} == {
        ("crashed", "cost", 1)
    }
    assert len(list(tmp_path.glob("runs/*/logs/worker-*.log"))) == 1


@pytest.mark.parametrize("name", ["exits", "syntax", "cost_raises", "cost_of_no_kind"])
def test_klab_plan_names_what_is_broken_in_one_message(folder, tmp_path, name):
    done = klab(folder, tmp_path, "plan", f"kernel={name}")
    assert done.returncode == 2
    assert BROKEN[name][3] in done.stderr
    assert "Traceback" not in done.stderr
