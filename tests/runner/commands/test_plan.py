"""`klab plan` and `klab list` as commands: known answers, JSON, what they import."""

import json
import subprocess
import sys

import pytest
from kernel_lab.runner.cli import main

GEMM = "shapes.cases=[{{M: {0}, N: {1}, K: {2}, act: {3}, bias: {4}}}]"


@pytest.fixture
def planned(capsys):
    def _planned(*words):
        assert main(["plan", "--json", *words]) == 0
        out = capsys.readouterr().out
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    return _planned


def rows(values, job=0, cell=0):
    return {
        row["implementation"]: row for row in values["jobs"][job]["cells"][cell]["implementations"]
    }


def test_scale_chain_of_a_billion(planned):
    found = rows(
        planned(
            "kernel=scale_chain",
            "dtype=fp32",
            "target=h100_sxm",
            "shapes.product.N=[1e9]",
            "shapes.product.factors=[2]",
        )
    )
    assert found["eager"]["bytes"] == 16_000_000_000
    assert found["eager"]["floor_us"] == pytest.approx(4776, abs=1)
    assert len(found["eager"]["stages"]) == 2
    assert found["triton"]["bytes"] == 8_000_000_000
    assert found["triton"]["floor_us"] == pytest.approx(2388, abs=1)
    assert len(found["triton"]["stages"]) == 1


def test_a_large_gemm_in_fp8(planned):
    shape = GEMM.format(4096, 4096, 4096, "none", "false")
    found = rows(planned("kernel=gemm_bias_act", "dtype=fp8", "target=h100_sxm", shape))
    for row in found.values():
        assert row["flops"] == 2 * 4096**3
        assert row["floor_us"] == pytest.approx(69.4, abs=0.1)
        assert row["ridge"] == pytest.approx(591, abs=0.5)
        assert row["bound"] == "compute"


def test_a_gemv_in_bf16(planned):
    shape = GEMM.format(1, 4096, 4096, "none", "false")
    found = rows(planned("kernel=gemm_bias_act", "dtype=bf16", "target=h100_sxm", shape))
    for row in found.values():
        assert row["flops"] == pytest.approx(33.6e6, rel=0.002)
        assert row["flop_per_byte"] == pytest.approx(1, abs=0.01)
        assert row["bound"] == "memory"


def test_bias_and_activation_apart_move_five_passes_over_the_result_and_fused_one(planned):
    shape = GEMM.format(4096, 4096, 4096, "gelu_tanh", "true")
    found = rows(planned("kernel=gemm_bias_act", "dtype=bf16", "target=h100_sxm", shape))
    result, operands, bias = 4096 * 4096 * 2, 2 * 4096 * 4096 * 2, 4096 * 2
    assert found["eager"]["bytes"] - operands - bias == 5 * result
    assert found["triton"]["bytes"] - operands - bias == result


def test_who_is_unsupported_still_shows_what_it_would_cost(planned):
    shape = GEMM.format(1, 4096, 4096, "none", "false")
    found = rows(planned("kernel=gemm_bias_act", "dtype=bf16", "target=h100_sxm", shape))
    assert found["cublaslt"]["status"] == "unsupported"
    assert found["cublaslt"]["reason"].startswith("it needs bias")
    assert found["cublaslt"]["bytes"] == found["triton"]["bytes"]
    assert list(found) == ["eager", "addmm", "cublaslt", "compile", "triton"]


def test_every_shipped_experiment_plans_on_every_target(planned):
    from kernel_lab.runner.question import vocabulary

    found = vocabulary.read()
    every = ",".join(name for name in found.names("target") if name != "auto")
    for name in found.names("experiment"):
        values = planned("-m", f"experiment={name}", f"target={every}")
        assert len(values["jobs"]) == every.count(",") + 1
        assert all(job["cells"] for job in values["jobs"])


def test_auto_plans_for_this_machine(planned, monkeypatch):
    monkeypatch.setattr("kernel_lab.runner.commands.plan.gpus", list)
    job = planned("kernel=scale_chain")["jobs"][0]
    assert job["target"] == "cpu"
    assert all(r["floor_us"] is None for r in job["cells"][0]["implementations"])


def test_the_flag_of_a_multirun_stands_anywhere(planned):
    values = planned("kernel=scale_chain", "dtype=fp32,bf16", "-m", "target=h200_sxm")
    assert [job["dtype"] for job in values["jobs"]] == ["fp32", "bf16"]


def test_the_table_says_the_same(capsys):
    words = ["kernel=scale_chain", "dtype=fp32", "target=h100_sxm", "shapes.product.N=[1e9,1e9]"]
    words += ["shapes.product.factors=[2,3]", "shapes.exclude=['factors == 3']"]
    assert main(["plan", *words]) == 0
    out = capsys.readouterr().out
    for part in ("16 GB", "8 GB", "4.78 ms", "2.39 ms", "ridge 20 FLOP/byte", "(factors == 3)"):
        assert part in out
    assert "duplicates dropped: 2" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["kernel=gemm_bias_act", "shapes.product.M=[-1]"], "shapes.product.M: -1 is below min 0"),
        (["experiment=nope"], "experiment=nope: unknown"),
        (["kernel=scale_chain", "dtype=bf61"], "dtype=bf61: unknown"),
        (["--jsno"], "option --jsno: unknown"),
        (["--config-dir"], "--config-dir: a folder is missing"),
        (["kernel=scale_chain", "claim.expect.speedupp=1"], "claim.expect=speedupp: unknown"),
    ],
)
def test_refusals_exit_2_with_one_line(capsys, words, message):
    assert main(["plan", *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_list_leaves_no_blanks_at_the_ends_of_lines(capsys):
    assert main(["list"]) == 0
    assert not [line for line in capsys.readouterr().out.split("\n") if line != line.rstrip()]


def test_list_names_everything(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for word in ("scale_chain", "h100_sxm", "llama3_8b", "quick", "bf16", "quickstart"):
        assert word in out
    assert main(["list", "--json", "targets"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert {row["group"] for row in values} == {"target"}
    assert main(["list", "kernles"]) == 2
    assert "Did you mean kernels?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["plan", "kernel=scale_chain", "target=cpu"], ["mlflow", "matplotlib"]),
        (["list"], ["mlflow", "matplotlib", "torch", "hydra"]),
        (["plan", "--help"], ["mlflow", "matplotlib", "torch"]),
    ],
)
def test_what_is_not_imported(words, absent):
    program = (
        "import sys; from kernel_lab.runner.cli import main; code = main(sys.argv[1:]); "
        f"print([m for m in {absent} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().endswith("[]"), done.stderr


@pytest.mark.parametrize("distribution", ["uniform", "integers", "zeros", "outliers"])
def test_how_inputs_are_drawn_is_shown_and_part_of_the_cell(planned, capsys, distribution):
    """T13: stored with the seed; constant inputs warn."""
    words = ["kernel=scale_chain", "target=h100_sxm", "shapes.product.N=[4096]"]
    usual = planned(*words)["jobs"][0]["cells"][0]
    other = planned(*words, f"distribution={distribution}")["jobs"][0]
    cell = other["cells"][0]
    assert (usual["distribution"], cell["distribution"], cell["seed"]) == (
        "normal",
        distribution,
        0,
    )
    assert cell["id"] != usual["id"]
    assert distribution in cell["label"]
    assert any("constant inputs" in note for note in other["notes"]) == (distribution == "zeros")
    assert main(["plan", *words, f"distribution={distribution}"]) == 0
    assert f"distribution={distribution}" in capsys.readouterr().out


ON_CPU = ["plan", "experiment=quickstart", "target=cpu"]


@pytest.mark.parametrize(
    "word", ["submit=graph", "warm_inputs=[x]", "protocol.sustained_ms=50", "trace=torch",
             "protocol.clocks=lock:1500", "mode=profile"],
)  # fmt: skip
def test_what_run_refuses_on_a_cpu_plan_refuses_too(word, capsys):
    assert main([*ON_CPU, word]) == 2
    said = capsys.readouterr().err
    assert word.partition("=")[0] in said
    assert "Or plan for a GPU by name: target=NAME." in said
    assert main(["plan", "experiment=quickstart", "target=h200_sxm", word]) == 0


def test_a_plan_says_processes_and_graph_and_puts_an_added_baseline_first(capsys):
    words = ["target=h200_sxm", "protocol=rigorous", "submit=graph", "shapes.product.N=[8]"]
    assert main(["plan", "experiment=quickstart", *words, "implementations=[triton]"]) == 0
    out = capsys.readouterr().out
    assert "submit=graph: " in out
    assert "\n1 cell, 5 processes, 2 to run, 0 unsupported\n" in out
    assert out.index("\n  eager") < out.index("\n  triton")


def test_a_plan_of_which_nothing_can_run_says_so_and_is_no_failure(capsys):
    assert main(["plan", "kernel=gemm_bias_act", "dtype=fp8", "target=cpu"]) == 0
    assert "klab run would refuse this" in capsys.readouterr().out
