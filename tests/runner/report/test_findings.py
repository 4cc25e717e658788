"""Findings: exact fields, strict JSON, names, and the tables printed from them."""

import dataclasses
import json
import math

import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.records import JobStatus, Status
from kernel_lab.runner.report.finding_place import place, replaced
from kernel_lab.runner.report.finding_tables import filled, read_findings
from kernel_lab.runner.report.findings import finding, write_finding


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_fields_of_a_finding(gemm, tmp_path):
    values = strict(write_finding(gemm, tmp_path / "findings").read_text())
    assert set(values) == {
        "experiment", "question", "job", "command", "date", "commit", "environment", "protocol",
        "rows", "claim",
    }  # fmt: skip
    assert values["date"] == "2026-12-01"
    assert values["environment"]["device"] == "NVIDIA H200"
    assert values["protocol"]["name"] == "standard"
    assert values["protocol"]["rounds"] == 20
    assert values["claim"]["verdict"] == "supported"
    assert len(values["rows"]) == len(gemm.records)
    row = next(row for row in values["rows"] if row["implementation"] == "triton")
    assert set(row) >= {
        "kernel", "axes", "dtype", "layout", "implementation", "status", "latency_us", "busy_us",
        "speedup", "gbps", "tflops", "share_of_roof", "launches", "kernels", "error", "verdict",
    }  # fmt: skip
    assert set(row["latency_us"]) == {"median", "low", "high"}
    assert set(row["speedup"]) == {"value", "low", "high", "against"}
    assert row["kernels"] == ["triton_kernel_0"]
    assert row["axes"]["M"] == 512


def test_failed_row_keeps_status_and_reason_and_has_null_for_numbers(gemm):
    rows = [row for row in finding(gemm)["rows"] if row["implementation"] == "cublaslt"]
    assert [row["status"] for row in rows] == ["unsupported", "wrong_values", "out_of_memory"]
    for row in rows:
        assert row["reason"]
        assert row["latency_us"] is None
        assert row["launches"] is None
        assert row["kernels"] is None


def test_number_that_is_not_finite_is_null(gemm, tmp_path):
    first = gemm.records[0]
    broken = dataclasses.replace(first.correctness, max_error=math.inf)
    records = (dataclasses.replace(first, correctness=broken), *gemm.records[1:])
    path = write_finding(dataclasses.replace(gemm, records=records), tmp_path)
    assert strict(path.read_text())["rows"][0]["error"] is None


def test_finding_holds_no_paths_of_the_machine(gemm):
    assert gemm.folder not in json.dumps(finding(gemm))


def test_place_is_by_gpu_and_experiment(gemm, chain):
    assert str(place(gemm)) == "h200/bias_gelu_fusion.json"
    assert str(place(chain)) == "cpu/quickstart.json"


def test_runs_that_differ_by_shapes_or_dtype_have_names_of_their_own(gemm):
    def named(*overrides):
        return place(dataclasses.replace(gemm, overrides=overrides)).name

    names = [
        named("experiment=bias_gelu_fusion"),
        named("experiment=bias_gelu_fusion", "shapes=llama3_8b_prefill"),
        named("experiment=bias_gelu_fusion", "shapes=llama3_8b_prefill", "dtype=bf16"),
        named("experiment=bias_gelu_fusion", "shapes.product.M=[1]"),
        named("experiment=bias_gelu_fusion", "shapes.product.M=[2]"),
    ]
    assert names[:3] == [
        "bias_gelu_fusion.json",
        "bias_gelu_fusion-llama3_8b_prefill.json",
        "bias_gelu_fusion-llama3_8b_prefill-bf16.json",
    ]
    assert len(set(names)) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"status": JobStatus.killed},
        {"status": JobStatus.running},
        {"records": ()},
        {"config": {"cell": "c01234567"}},
        {"config": {"mode": "check"}},
    ],
)
def test_part_of_an_answer_is_no_finding(gemm, tmp_path, change):
    with pytest.raises(ConfigError):
        write_finding(dataclasses.replace(gemm, **change), tmp_path)
    assert not list(tmp_path.glob("*/*.json"))


@pytest.fixture
def findings(gemm, chain, tmp_path):
    folder = tmp_path / "experiments/findings"
    write_finding(gemm, folder)
    write_finding(chain, folder)
    return read_findings(folder)


def marked(name, body=""):
    return f"before\n<!-- findings: {name} -->\n{body}<!-- end -->\nafter\n"


def test_compact_table_has_a_line_a_cell_and_its_source(findings):
    text = filled(marked("h200/bias_gelu_fusion"), findings, source="README.md")
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    lines = [line for line in text.split("\n") if line.startswith("| M=")]
    assert len(lines) == 3
    assert "(1.33x, faster)" in lines[0]
    assert "out_of_memory" in lines[2]
    for part in ("NVIDIA H200", "2026-12-01", "torch 2.13.0", "protocol standard", "20 rounds"):
        assert part in text


def test_all_prints_every_record_of_every_finding(findings, gemm, chain):
    text = filled(marked("all"), findings, source="README.md")
    assert "### h200/bias_gelu_fusion" in text
    assert "### cpu/quickstart" in text
    rows = [x for x in text.split("\n") if x.startswith(("| M=", "| n="))]
    assert len(rows) == len(gemm.records) + len(chain.records)
    assert "Claim: **supported**" in text


def test_printing_twice_changes_nothing(findings):
    once = filled(marked("all", "stale\n"), findings, source="README.md")
    assert "stale" not in once
    assert filled(once, findings, source="README.md") == once


def test_unknown_finding_and_open_marker_are_errors(findings):
    with pytest.raises(ConfigError, match="h200/bias_gelu_fusion"):
        filled(marked("h200/bias_gelu_fusio"), findings, source="README.md")
    with pytest.raises(ConfigError, match=r"README\.md"):
        filled("<!-- findings: all -->\n", findings, source="README.md")


def test_status_beside_a_time_that_is_not_ok(findings):
    text = filled(marked("all"), findings, source="README.md")
    assert any(f"] {Status.noisy.value} |" in line for line in text.split("\n"))


def test_a_locked_clock_is_named_in_the_place_and_the_source(gemm, tmp_path):
    protocol = {**gemm.config["protocol"], "clocks": "lock:1500"}
    locked = dataclasses.replace(gemm, config={**gemm.config, "protocol": protocol})
    assert place(locked).name == "bias_gelu_fusion-1500mhz.json"
    write_finding(locked, tmp_path)
    name = "h200/bias_gelu_fusion-1500mhz"
    text = filled(marked(name), read_findings(tmp_path), source="README.md")
    assert "20 rounds, SM clock locked at 1500 MHz, " in text


@pytest.mark.parametrize(
    ("override", "readable"),
    [
        ("distribution=zeros", "-zeros"),
        ("submit=graph", "-graph"),
        ("settings.threads=1", ""),
        ("implementations=[eager]", ""),
        ("warm_inputs=[x]", ""),
        ("kernel.baseline=compile", ""),
        ("seed=3", ""),
    ],
)
def test_an_override_that_asks_another_question_has_a_place_of_its_own(gemm, override, readable):
    def named(*overrides):
        return place(dataclasses.replace(gemm, overrides=overrides)).stem

    plain = named("experiment=bias_gelu_fusion")
    assert plain == "bias_gelu_fusion"
    other = named("experiment=bias_gelu_fusion", override)
    assert other.startswith(plain + (readable or "-"))
    assert other != plain


@pytest.mark.parametrize("override", ["protocol=rigorous", "tracking=none", "device=1", "mode=run"])
def test_an_override_of_how_and_where_is_the_same_question(gemm, override):
    assert place(dataclasses.replace(gemm, overrides=(override,))) == place(gemm)


def drawn(job, distribution):
    """The job as if its inputs had been drawn so, as a command that asks for it."""
    records = []
    for record in job.records:
        workload = dataclasses.replace(record.cell.workload, distribution=distribution)
        cell = dataclasses.replace(record.cell, workload=workload)
        records.append(dataclasses.replace(record, cell=cell))
    override = f"distribution={distribution}"
    command = f"{job.command} {override}"
    return dataclasses.replace(
        job, records=tuple(records), overrides=(*job.overrides, override), command=command
    )


def test_inputs_that_are_not_normal_are_said_in_every_table(gemm, tmp_path):
    job = drawn(gemm, "zeros")
    write_finding(job, tmp_path)
    known = read_findings(tmp_path)
    (name,) = known
    assert {row["distribution"] for row in known[name]["rows"]} == {"zeros"}
    for marker in (name, "all"):
        text = filled(marked(marker), known, source="README.md")
        lines = [line for line in text.split("\n") if line.startswith("| M=")]
        assert lines
        assert all(" zeros |" in line for line in lines)
        assert ", inputs zeros, " in text
        assert f"`{job.command}`" in text


def test_a_plain_finding_prints_as_it_did_before_it_said_how_inputs_are_drawn(gemm, tmp_path):
    path = write_finding(gemm, tmp_path)
    text = filled(marked("all"), read_findings(tmp_path), source="README.md")
    assert "normal" not in text
    assert "klab run" not in text
    old = json.loads(path.read_text())
    for row in old["rows"]:
        del row["distribution"]
    del old["job"]
    path.write_text(json.dumps(old))
    assert filled(marked("all"), read_findings(tmp_path), source="README.md") == text


def test_the_finding_that_is_replaced_is_named(gemm, tmp_path):
    path = tmp_path / place(gemm)
    assert replaced(path) == ""
    write_finding(gemm, tmp_path)
    assert replaced(path).startswith(f"the one of 2026-12-01, job {gemm.id}, commit ")


def test_few_processes_give_a_range_and_are_said(gemm, tmp_path):
    protocol = {**gemm.config["protocol"], "processes": 5}
    write_finding(dataclasses.replace(gemm, config={**gemm.config, "protocol": protocol}), tmp_path)
    text = filled(marked("all"), read_findings(tmp_path), source="README.md")
    assert "| latency us [range] |" in text
    assert "20 rounds over 5 fresh processes, " in text
