"""Implementations that are wrong on purpose, and deaths of the worker: each ends as a record."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[1] / "lab"
FAST = [
    "protocol.min_rounds=20",
    "protocol.max_rounds=20",
    "protocol.sample_us=10",
    "protocol.warmup_ms=1",
]


KLAB = [sys.executable, "-c", "from kernel_lab.runner.cli import main; raise SystemExit(main())"]
COMMON = ["--config-dir", str(LAB), "--json", "kernel=probe", "dtype=fp32", "target=cpu"]
COMMON += ["tracking=none"]


def klab(outputs, *words, environment=None):
    """Runs `klab run` on the wrong kernel; the process and the jobs that it prints."""
    done = subprocess.run(
        [*KLAB, "run", *COMMON, *FAST, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "KLAB_OUTPUTS": str(outputs), **(environment or {})},
    )
    jobs = json.loads(done.stdout) if done.stdout.strip() else []
    return done, jobs


def by_name(jobs):
    return {record["implementation"]: record for job in jobs for record in job["records"]}


def ended(record):
    """The status; `noisy` counts as ok, since a busy machine may make any time so."""
    return "ok" if record["status"] == "noisy" else record["status"]


WRONG = {
    "off_by_a_little": "wrong_values",
    "all_nan": "wrong_values",
    "zeros": "wrong_values",
    "last_element_missing": "wrong_values",
    "never_written": "wrong_values",
    "half_written": "wrong_values",
    "mutates_its_input": "wrong_values",
    "remembers_by_shape": "wrong_values",
    "remembers_by_address": "wrong_values",
    "remembers_by_address_and_version": "wrong_values",
    "accumulates": "wrong_values",
    "returns_its_buffer": "invalid",
    "returns_its_input": "wrong_values",
    "one_element_short": "wrong_shape",
    "double": "wrong_dtype",
    "two_outputs": "wrong_shape",
    "raises": "crashed",
    "misspelt": "crashed",
    "not_for_this": "unsupported",
    "too_much_memory": "out_of_memory",
    "missing_library": "unavailable",
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    names = ",".join(["right", "also_right", "floods", "spawns", *WRONG])
    return klab(tmp_path_factory.mktemp("wrong"), f"implementations=[{names}]")


@pytest.mark.parametrize(("name", "status"), WRONG.items())
def test_a_wrong_implementation_ends_in_its_status_without_a_time(wrong, name, status):
    record = by_name(wrong[1])[name]
    assert record["status"] == status, record["reason"]
    assert record["timing"] is None
    assert record["reason"]


def test_the_gate_bites_only_the_wrong(wrong):
    records = by_name(wrong[1])
    for name in ("right", "also_right", "floods", "spawns"):
        assert ended(records[name]) == "ok", records[name]["reason"]
        assert len(records[name]["timing"]["rounds_us"]) == 20
        assert records[name]["recheck"]["checks"] == 2


@pytest.mark.parametrize("worker", ["process", "inline"])
def test_the_split_of_a_job_adds_up_to_its_wall_time(tmp_path, worker):
    began = time.perf_counter()
    done, jobs = klab(tmp_path, "implementations=[right,also_right]", f"worker={worker}")
    wall = time.perf_counter() - began
    assert done.returncode == 0
    kept = json.loads(Path(jobs[0]["folder"], "job.json").read_text())["seconds"]
    named = {"start workers", "compile and first calls", "check", "warm-up", "sampling", "recheck"}
    around = {"prepare", "end workers", "judge", "filing", "other"}
    assert {*named, *around} == set(kept)
    assert all(kept[name] > 0 for name in named)
    assert 0.2 * wall < sum(kept.values()) < wall


def test_a_wrong_record_makes_the_exit_code_one(wrong):
    assert wrong[0].returncode == 1, wrong[0].stderr[-2000:]


def test_what_kernels_print_goes_to_the_log_and_nowhere_else(wrong):
    done, jobs = wrong
    assert "xxxx" not in done.stdout + done.stderr
    log = Path(jobs[0]["folder"]) / by_name(jobs)["floods"]["log"]
    assert "xxxx" in log.read_text()


def test_every_record_says_how_to_run_it_again(wrong):
    for name, record in by_name(wrong[1]).items():
        assert f"implementations=[{name}]" in record["repro"]
        assert "cell=c" in record["repro"]


def test_deaths_cost_one_implementation_of_one_cell(tmp_path):
    names = "right,segfaults,exits,forks,hangs,also_right"
    done, jobs = klab(
        tmp_path,
        f"implementations=[{names}]",
        "shapes.product.N=[1000,2000]",
        "protocol.step_limit_s=4",
    )
    assert done.returncode == 1
    records = [r for job in jobs for r in job["records"]]
    assert len(records) == 12
    wanted = {
        "right": "ok",
        "also_right": "ok",
        "segfaults": "crashed",
        "exits": "crashed",
        "forks": "crashed",
        "hangs": "timed_out",
    }
    for record in records:
        assert ended(record) == wanted[record["implementation"]], record["reason"]
    reasons = {r["implementation"]: r["reason"] for r in records}
    assert "SIGSEGV" in reasons["segfaults"]
    assert "code 7" in reasons["exits"]
    assert "code 9" in reasons["forks"]
    assert "step_limit_s=4" in reasons["hangs"]


def test_a_kill_from_outside_is_retried_once(tmp_path):
    marker = tmp_path / "marker"
    done, jobs = klab(
        tmp_path,
        "implementations=[right,killed_once]",
        environment={"KLAB_TEST_MARKER": str(marker)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert marker.exists()
    records = by_name(jobs)
    assert ended(records["killed_once"]) == "ok"
    assert records["killed_once"]["attempts"] == 2


def test_each_of_several_processes_measures_every_cell(tmp_path):
    done, jobs = klab(tmp_path, "implementations=[right,also_right]", "protocol.processes=3")
    assert done.returncode == 0, done.stderr[-2000:]
    for record in by_name(jobs).values():
        assert record["timing"]["process_of_round"] == [1] * 20 + [2] * 20 + [3] * 20
        assert len(record["timing"]["rounds_us"]) == 60
        assert record["log"] in {f"logs/worker-0{k}.log" for k in (1, 2, 3)}
    (compared,) = jobs[0]["judgement"]["comparisons"]
    assert (compared["processes"], compared["rounds"]) == (3, 60)
    folder = Path(jobs[0]["folder"])
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    assert [line["record"]["process"] for line in lines] == [1, 1, 2, 2, 3, 3]
    assert len(list((folder / "logs").glob("worker-*.log"))) == 3


def test_a_budget_measures_wide_cells_a_second_time(tmp_path):
    done, jobs = klab(
        tmp_path,
        "implementations=[right,also_right]",
        "protocol.max_rounds=30",
        "protocol.precision=0.00001",
        "protocol.budget_s=60",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for record in by_name(jobs).values():
        assert record["attempts"] == 2
        assert record["timing"]["stopped"].startswith("second measurement")
        assert len(record["timing"]["rounds_us"]) == 30


def test_a_kill_that_comes_again_is_lost_and_the_rest_completes(tmp_path):
    done, jobs = klab(
        tmp_path,
        "implementations=[right,killed_from_outside_always]",
        "shapes.product.N=[1000,2000]",
    )
    assert done.returncode == 1
    statuses = [(r["implementation"], ended(r)) for j in jobs for r in j["records"]]
    assert statuses.count(("right", "ok")) == 2
    assert statuses.count(("killed_from_outside_always", "lost")) == 2


def test_an_empty_workload_ends_empty_and_its_neighbours_do_not(tmp_path):
    """C15: an empty dimension amid a sweep."""
    done, jobs = klab(tmp_path, "implementations=[right,also_right]", "shapes.product.N=[10,0,20]")
    assert done.returncode == 0, done.stderr[-2000:]
    found = [(r["cell"]["workload"]["axes"]["N"], ended(r)) for j in jobs for r in j["records"]]
    assert found.count((0, "empty")) == 2
    assert found.count((10, "ok")) == 2
    assert found.count((20, "ok")) == 2


def test_mode_check_verifies_without_a_time(tmp_path):
    done, jobs = klab(tmp_path, "implementations=[right,zeros]", "mode=check")
    records = by_name(jobs)
    assert records["right"]["status"] == "checked"
    assert records["right"]["timing"] is None
    assert records["zeros"]["status"] == "wrong_values"
    assert done.returncode == 1


def test_inline_worker_gives_the_same_statuses(tmp_path):
    done, jobs = klab(tmp_path, "implementations=[right,zeros]", "worker=inline")
    assert {n: ended(r) for n, r in by_name(jobs).items()} == {
        "right": "ok",
        "zeros": "wrong_values",
    }
    assert done.returncode == 1


def test_five_jobs_of_which_two_fail_all_end(tmp_path):
    done, jobs = klab(
        tmp_path,
        "-m",
        "implementations=[right],[raises],[also_right],[exits],[right]",
    )
    assert [job["status"] for job in jobs] == [
        "finished",
        "failed",
        "finished",
        "failed",
        "finished",
    ]
    assert done.returncode == 1
    for job, cause in ((jobs[1], "always raises"), (jobs[3], "code 7")):
        failed = [r for r in job["records"] if r["status"] == "crashed"]
        assert len(failed) == 1
        assert cause in failed[0]["reason"]
        assert cause in done.stderr


def test_under_a_profiler_everything_is_checked_and_nothing_is_timed(tmp_path):
    done, jobs = klab(
        tmp_path,
        "implementations=[right,zeros]",
        environment={"NSYS_PROFILING_SESSION_ID": "7"},
    )
    records = by_name(jobs)
    assert done.returncode == 1
    assert records["right"]["status"] == "checked"
    assert "NSYS_PROFILING_SESSION_ID" in records["right"]["reason"]
    assert records["right"]["timing"] is None
    assert records["zeros"]["status"] == "wrong_values"


@pytest.mark.parametrize("words", [["mode=profile"], ["trace=torch"]])
def test_evidence_that_a_cpu_cannot_give_is_refused_before_any_work(tmp_path, words):
    done, _ = klab(tmp_path, "implementations=[right]", *words)
    assert done.returncode == 2
    assert "cpu" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_multirun_stops_after_the_failures_that_it_allows(tmp_path):
    """S07: a fail-fast option."""
    done, jobs = klab(
        tmp_path,
        "-m",
        "implementations=[raises],[right],[also_right]",
        "max_failures=1",
    )
    assert done.returncode == 1
    assert [job["status"] for job in jobs] == ["failed"]
    assert done.stderr.count("not run, max_failures=1") == 2


def test_two_commands_at_once_never_share_a_folder(tmp_path):
    """S09: started in the same second, with the same outputs."""
    environment = {**os.environ, "KLAB_OUTPUTS": str(tmp_path)}
    command = [*KLAB, "run", *COMMON, *FAST, "implementations=[right]"]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in "ab"
    ]
    outputs = [process.communicate(timeout=240)[0] for process in both]
    jobs = [json.loads(text)[0] for text in outputs]
    assert [process.returncode for process in both] == [0, 0]
    assert jobs[0]["folder"] != jobs[1]["folder"]
    for job in jobs:
        assert len(job["records"]) == 1
        assert len(Path(job["folder"], "records.jsonl").read_text().splitlines()) == 1


def test_many_long_overrides_give_short_portable_folder_names(tmp_path):
    """S11: with the whole overrides kept beside the records."""
    long = [
        f"+kernel.implementations.right.kwargs.k{k}='{'a/b =' * 10}{k}.5e-3'" for k in range(16)
    ]
    done, jobs = klab(tmp_path, "-m", "implementations=[right],[also_right]", "mode=check", *long)
    assert len(jobs) == 2, done.stderr[-2000:]
    for job in jobs:
        folder = Path(job["folder"])
        assert len(folder.name) < 64
        assert set(folder.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        kept = json.loads((folder / "job.json").read_text())["overrides"]
        assert sum("kwargs" in override for override in kept) == 16
