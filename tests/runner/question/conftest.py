"""A folder from outside with a kernel, shapes, an implementation and questions of its own."""

import textwrap
from pathlib import Path

import pytest

FILES = {
    "kernel/tiny.yaml": """
        # a kernel for tests
        name: tiny
        module: tiny_kernel
        doc: y = x + y over M x N, K unused
        axes:
          M: {min: 0, max: 1e6}
          N: {min: 0}
          K: {min: 1, default: 16}
          act: {type: str, choices: [none, off, gelu], default: none}
          causal: {type: bool, default: false}
          scale: {type: float, default: 1.0}
          layout: {type: str, choices: [contiguous, transposed], default: contiguous}
        arguments: [act]
        implementations:
          eager: {target: tiny_kernel.eager, cost: unfused}
          fused: {target: tiny_kernel.fused, cost: fused, dtypes: [fp32, fp16, bf16],
                  where: "act in ['none', 'gelu']"}
          tiled: {target: tiny_kernel.fused, cost: fused, language: triton,
                  layouts: [contiguous]}
          native: {target: tiny_kernel.fused, cost: fused, language: cuda}
          library: {target: tiny_kernel.fused, cost: fused, devices: [cuda]}
        from_model:
          up: {M: tokens*batch, N: intermediate/tp, act: gelu}
          down: {M: tokens*batch, N: hidden, K: intermediate/tp}
          head: {M: batch, N: vocab/tp}
        shapes:
          product: {M: [8, 16], N: [32, 64], K: [4]}
    """,
    "implementation/tiny/guest.yaml": """
        # somebody else's
        target: guest_library.run
        requires: [guest_library]
        cost: fused
    """,
    "shapes/square.yaml": """
        # three sizes that grow together
        product: {M: [1, 2, 3], N: [1, 2, 3]}
        zip: [[M, N]]
    """,
    "shapes/small_model.yaml": """
        # a model of round numbers
        defaults: [{/model@model: toy}]
        tokens: [1, 4]
    """,
    "model/toy.yaml": """
        # hidden 64, intermediate 256
        hidden: 64
        intermediate: 256
    """,
    "experiments/tiny_question.yaml": """
        # @package _global_
        # klab run experiment=tiny_question
        defaults:
          - override /kernel: tiny
          - override /shapes: square
          - override /dtype: fp32
        question: Does it, "really", pay?
        implementations: [fused, eager]
        claim: {fused: fused, unfused: eager, expect: {speedup: ">= 1.05"}}
    """,
    "experiments/saved.yaml": """
        # @package _global_
        # runs over dtypes
        defaults: [override /kernel: tiny]
        hydra: {sweeper: {params: {dtype: "fp32,bf16", seed: "range(0,2)"}}}
    """,
    "tiny_kernel.py": '''
        def cost(*, itemsize, output_itemsize, M, N, **_):
            """One read and one write of M x N; an unfused path does it twice."""
            one = {"kind": "pointwise", "flops": M * N, "bytes_read": M * N * itemsize,
                   "bytes_written": M * N * output_itemsize}
            return {"unfused": [{"name": "a", **one}, {"name": "b", **one}],
                    "fused": [{"name": "ab", **one}]}
    ''',
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


@pytest.fixture
def outside(tmp_path) -> Path:
    return write(tmp_path / "outside", FILES)


@pytest.fixture
def add(outside):
    """Writes further files there, or other ones in their place."""

    def _add(files: dict[str, str]) -> Path:
        return write(outside, files)

    return _add
