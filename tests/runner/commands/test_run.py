"""`klab run` from the shell: what it says, and what it survives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[2] / "lab"
KLAB = [sys.executable, "-c", "from kernel_lab.runner.cli import main; raise SystemExit(main())"]
PROBE = ["--config-dir", str(LAB), "kernel=probe", "dtype=fp32", "target=cpu", "tracking=none"]
CHECK = [*PROBE, "mode=check", "implementations=[right]"]


def environment(outputs):
    return {**os.environ, "KLAB_OUTPUTS": str(outputs)}


def klab(outputs, *words):
    return subprocess.run(
        [*KLAB, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(outputs),
    )


def until_nobody_reads(outputs, words):
    """The exit code of a command whose reader leaves after the first byte, and its last words."""
    process = subprocess.Popen(
        [*KLAB, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=environment(outputs),
    )
    process.stdout.read(1)
    process.stdout.close()
    _, said = process.communicate(timeout=120)
    return process.returncode, said.decode()


def test_a_reader_that_goes_away_ends_no_run(tmp_path):
    words = ["run", *CHECK, "shapes.product.N=[8,16,24]"]
    assert until_nobody_reads(tmp_path, words) == (0, "")
    (job,) = tmp_path.glob("runs/*/job.json")
    assert json.loads(job.read_text())["status"] == "finished"
    assert len((job.parent / "records.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "words", [["--help"], ["list"], ["list", "--json"], ["plan", "experiment=quickstart"]]
)
def test_a_reader_that_goes_away_is_no_failure(tmp_path, words):
    assert until_nobody_reads(tmp_path, words) == (0, "")


@pytest.mark.parametrize("place", ["it ut, a=b'c\"d", "${x}[b]{c}%d@é", "back\\slash"])
def test_outputs_may_lie_anywhere(tmp_path, place):
    done = klab(tmp_path / place, "run", "-m", *CHECK, "shapes.product.N=[8]")
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list((tmp_path / place).glob("sweeps/*/*/records.jsonl"))) == 1


def test_a_saved_sweep_that_is_not_run_is_said(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "swept.yaml").write_text(
        "# @package _global_\nhydra: {sweeper: {params: {seed: '1,2'}}}\n"
    )
    words = ["run", "--config-dir", str(tmp_path), "experiment=swept", *CHECK]
    done = klab(tmp_path, *words)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "saved sweep (seed=1,2) is not run without -m" in done.stdout
    assert "saved sweep" not in klab(tmp_path, *words, "-m").stdout
    assert len(list(tmp_path.glob("sweeps/*/*/records.jsonl"))) == 2


def test_where_nothing_can_run_nothing_is_started(tmp_path):
    done = klab(tmp_path, "run", "kernel=gemm_bias_act", "dtype=fp8", "target=cpu")
    assert done.returncode == 2
    assert "dtype fp8: it supports" in done.stderr
    assert not list(tmp_path.glob("runs/*"))


def test_klab_check_takes_its_words_in_any_order(tmp_path):
    done = klab(tmp_path, "check", *PROBE[2:], *PROBE[:2], "implementations=[right]")
    assert "right            checked" in done.stdout, done.stderr[-2000:]
