"""What only a GPU shows of a whole job: the flush, tuning, in place, and what inputs hold."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_lab.runner.folder import read_job
from kernel_lab.runner.judge.conditions import differing
from kernel_lab.runner.records import Status

LAB = Path(__file__).resolve().parents[1] / "lab"
KLAB = [sys.executable, "-c", "from kernel_lab.runner.cli import main; raise SystemExit(main())"]
FAST = ["protocol.min_rounds=20", "protocol.max_rounds=20", "tracking=none", "trace=none"]


def run(outputs, *words, code=0):
    """The records of one job on the GPU that is here, by implementation."""
    done = subprocess.run(
        [*KLAB, "run", "--config-dir", str(LAB), "--json", *FAST, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        # nothing compiled or tuned before
        env={
            **os.environ,
            "KLAB_OUTPUTS": str(outputs / "jobs"),
            "TRITON_CACHE_DIR": str(outputs / "triton"),
        },
    )
    assert done.returncode == code, done.stderr[-3000:]
    job = read_job(Path(json.loads(done.stdout)[0]["folder"]))
    return {record.implementation: record for record in job.records}, job


def test_the_size_of_the_flush_cannot_be_set_too_small(tmp_path):
    """T05: it is derived from the device; a key for it is refused before any work."""
    for key in ("protocol.flush_mb=15", "+protocol.flush_bytes=1000"):
        done = subprocess.run(
            [*KLAB, "run", "kernel=scale_chain", "target=cpu", *FAST, key],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "KLAB_OUTPUTS": str(tmp_path)},
        )
        assert done.returncode == 2
        assert "protocol.flush" in done.stderr
        assert not (tmp_path / "runs").exists()


@pytest.mark.gpu
@pytest.mark.parametrize("elements", [1024, 8 << 20])
def test_the_cache_that_is_cleared_is_the_devices_own(tmp_path, elements):
    """T05: at least L2 is passed between two uses, and both sizes are in the row."""
    import torch

    found, job = run(
        tmp_path, "kernel=tuned", "implementations=[eager]", f"shapes.product.N=[{elements}]"
    )
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    assert job.environment["gpu"]["l2_bytes"] == l2
    cache = found["eager"].timing.cache
    assert f"(L2 {l2 / 1e6:.0f} MB)" in cache
    passed = re.search(r"reading (\d+) MB|copies, (\d+) MB", cache)
    assert passed is not None, cache
    assert float(passed.group(1) or passed.group(2)) * 1e6 >= l2


@pytest.mark.gpu
@pytest.mark.parametrize(("warmup_ms", "elements"), [(0, 65536), (1, 98304)])
def test_twenty_candidates_are_compiled_and_tuned_before_the_first_sample(
    tmp_path, warmup_ms, elements
):
    """T07: whatever the warm-up; both durations and the winner are in the record, apart."""
    words = [f"protocol.warmup_ms={warmup_ms}", f"shapes.product.N=[{elements}]"]
    record = run(tmp_path, "kernel=tuned", "implementations=[twenty]", *words)[0]["twenty"]
    assert record.status is Status.ok, record.reason
    assert "BLOCK" in record.tuning
    assert 0 < record.tuning_s < record.first_call_s
    assert record.compile_s == pytest.approx(record.first_call_s - record.tuning_s)
    assert record.compile_s > 0
    slowest = max(record.timing.rounds_us) * record.timing.calls / 1e6
    assert slowest < 0.1 * min(record.tuning_s, record.compile_s)


@pytest.mark.gpu
def test_an_in_place_kernel_that_tunes_itself_is_named_and_spoils_nothing(tmp_path):
    """C07: x = 1.5 x in bf16; what tuning piled up is in no check and in no neighbour."""
    words = ["dtype=bf16", "implementations=[in_place,twenty]"]
    found, _ = run(tmp_path, "kernel=tuned", *words, code=1)
    assert found["in_place"].status is Status.wrong_values
    assert "input 0 was changed" in found["in_place"].reason
    assert found["in_place"].timing is None
    assert found["eager"].status is found["twenty"].status is Status.ok
    assert found["twenty"].correctness.nonfinite == 0


@pytest.mark.gpu
def test_a_product_of_zeros_is_told_from_one_of_normal_values(tmp_path):
    """T13: stored with the seed, warned, and named where the two runs are compared."""
    import torch

    if torch.cuda.mem_get_info()[0] < 20 << 30:
        pytest.skip("needs 20 GB of free GPU memory")
    words = ["kernel=gemm_bias_act", "implementations=[eager]", "dtype=bf16"]
    words += ["shapes.cases=[{M: 8192, N: 8192, K: 8192, bias: false}]"]
    records = {}
    for name in ("", "zeros", "integers"):
        asked = [f"distribution={name}"] if name else []
        records[name] = run(tmp_path / (name or "normal"), *words, *asked)[0]["eager"]
    assert records[""].cell.workload.distribution == "normal"
    for name, record in records.items():
        assert record.status in (Status.ok, Status.noisy), record.reason
        assert record.cell.workload.distribution == (name or "normal")
        assert record.cell.workload.seed == 0
        assert any("constant inputs" in note for note in record.timing.notes) == (name == "zeros")
    against = differing(records[""], records["zeros"])
    assert "distribution: normal against zeros" in against
