"""A job's order of passes and files, with a supervisor that answers from a list."""

import contextlib
import dataclasses
import shlex

import pytest
from kernel_lab.runner import job as module
from kernel_lab.runner.device import Gpu
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.folder import JobFolder, read_job
from kernel_lab.runner.job import JobRun, Request, describe, worker_environment
from kernel_lab.runner.question.plan import Plan
from kernel_lab.runner.records import (
    Cell,
    ClaimResult,
    ClaimVerdict,
    Cost,
    Evidence,
    Interval,
    JobStatus,
    Judgement,
    Launch,
    PlannedCell,
    Record,
    Stage,
    Status,
    Timing,
    Workload,
)
from kernel_lab.runner.results import exit_code
from kernel_lab.runner.schema import Dtype, Experiment, Implementation, Kernel, Mode, Target
from kernel_lab.runner.supervisor import Progress

GPU = Gpu(index=1, name="NVIDIA H200", uuid="GPU-1234", capability="9.0", memory_bytes=1)
CELLS = [
    Cell(index=n, kernel="k", workload=Workload(axes={"N": n}, dtype="fp32")) for n in range(3)
]


def record(cell, name, status=Status.ok, stages=1):
    timing = None
    if status in (Status.ok, Status.noisy, Status.invalid):
        timing = Timing(
            timer="t",
            headline="period_us",
            state="cold",
            latency_us=Interval(median=2.0, low=2.0, high=2.0),
            rounds_us=(2.0, 2.01, 2.0),
            calls=1,
            cache="",
        )
    cost = Cost(
        stages=tuple(
            Stage(name=f"s{k}", kind="pointwise", flops=1, bytes_read=1, bytes_written=1)
            for k in range(stages)
        )
    )
    return Record(
        job="j",
        experiment="e",
        cell=cell,
        implementation=name,
        status=status,
        timing=timing,
        cost=cost,
    )


def evidence(cell, name, kernels=1, reason=""):
    launch = Launch(name="mul", kind="pointwise", family="x", duration_us=1.0, start_us=0.0)
    return Evidence(
        tool="torch",
        cell_id=cell.id,
        implementation=name,
        reason=reason,
        launches=(launch,) * kernels,
        launch_count=None if reason else kernels,
    )


class Supervisor:
    """Gives the records and evidence of `answers`; what was asked stands in `asked`."""

    answers = None
    asked = None

    def __init__(self, experiment, **given):
        self.given = given
        self.worker_environment = {"gpu": {"name": "x"}}
        self.ranges = []
        self.seconds = {"sampling": 0.25}
        self.asked.append(given["start"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asked.append("left")

    def close(self):
        pass

    def prepare(self):
        self.asked.append("prepare")

    def prepared(self):
        self.asked.append("prepared")

    def measure(self, planned, sampling):
        found = self.answers["measure"](planned.cell)
        if isinstance(found, BaseException):
            raise found
        return found

    def trace(self, cell, names):
        self.asked.append((cell.index, list(names)))
        return self.answers["trace"](cell, names)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a job of three cells with these answers; the job and the places it left."""
    monkeypatch.setattr(module, "Supervisor", Supervisor)

    def begin(
        measure,
        trace=None,
        *,
        gpu=GPU,
        cells="all",
        clocks="observe",
        mode=Mode.run,
        auto=True,
        threads=0,
        **request,
    ):
        Supervisor.asked = []
        Supervisor.answers = {
            "measure": measure,
            "trace": trace or (lambda cell, names: [evidence(cell, n) for n in names]),
        }
        experiment = Experiment(
            experiment_name="e",
            kernel=Kernel(
                name="k",
                module="json",
                implementations={
                    n: Implementation(target="json.loads", cost="c") for n in ("eager", "other")
                },
            ),
            target=Target(name="t"),
            dtype=Dtype(
                name="fp32",
                storage="float32",
                output="float32",
                itemsize=4,
                output_itemsize=4,
                peak="fp32",
                sane_rms=1e-5,
            ),
        )
        experiment.protocol.name = experiment.tracking.name = "test"
        experiment.protocol.clocks = clocks
        experiment.trace.cells = cells
        experiment.trace.auto = {} if auto else None
        experiment.mode = mode
        experiment.settings.threads = threads
        plan = Plan(
            cells=tuple(PlannedCell(cell=c, implementations=("eager", "other")) for c in CELLS),
            excluded=(),
        )
        made = Request(
            id="j20261201-a",
            experiment=experiment,
            gpu=gpu,
            plan=plan,
            overrides=("experiment=e", "dtype=fp32", "cell=c1", "shapes.product.N=[1, 2]"),
            command="klab run",
            **request,
        )
        folder = JobFolder(tmp_path / "job")
        return JobRun(made, describe(made, str(folder.path)), folder, Progress()).run()

    return begin


def both(cell):
    return [record(cell, "eager"), record(cell, "other")]


def test_a_job_leaves_records_with_evidence_and_a_status(run, tmp_path):
    job = run(both)
    assert job.status is JobStatus.finished
    assert job.ended
    assert len(job.records) == 6
    assert all(r.traced.launch_count == 1 for r in job.records)
    assert all(r.device == "NVIDIA H200" for r in job.records)
    assert job.environment["gpu"] == {"name": "x"}
    assert job.environment["code"]["kernel_source"] != "unknown"
    assert job.seconds["sampling"] == 0.5  # of both passes
    assert list(job.seconds) == ["sampling", "judge", "other"]
    assert len(job.judgement.comparisons) == 3
    assert read_job(tmp_path / "job") == job


def test_only_the_chosen_cells_and_the_timed_records_are_traced(run):
    def measure(cell):
        return [record(cell, "eager"), record(cell, "other", Status.crashed)]

    run(measure, cells="first:2")
    assert [a for a in Supervisor.asked if isinstance(a, tuple)] == [(0, ["eager"]), (1, ["eager"])]


def test_the_evidence_pass_measures_no_ceilings(run):
    run(both)
    starts = [a for a in Supervisor.asked if isinstance(a, dict)]
    assert [s["ceilings"] for s in starts] == [True, False]


def test_both_workers_import_before_anything_is_measured(run):
    seen = []
    run(lambda cell: (seen.append(list(Supervisor.asked)), both(cell))[1])
    assert [a for a in seen[0] if isinstance(a, str)] == ["prepare"] * 2 + ["prepared"] * 2


@pytest.mark.parametrize("change", [{"gpu": None}, {"mode": Mode.check}, {"auto": None}])
def test_no_worker_imports_ahead_where_no_trace_will_come(run, change):
    run(both, **change)
    assert "prepare" not in Supervisor.asked


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), None])
def test_the_worker_ahead_is_ended_also_where_nothing_is_traced(run, stop):
    def measure(cell):
        return stop or [record(cell, "eager", Status.crashed)]

    with pytest.raises(KeyboardInterrupt) if stop else contextlib.nullcontext():
        run(measure)
    assert Supervisor.asked.count("left") == 2  # timing and evidence
    assert [a for a in Supervisor.asked if isinstance(a, tuple)] == []


def test_without_a_gpu_there_is_no_evidence_pass(run):
    job = run(both, gpu=None)
    assert [a for a in Supervisor.asked if isinstance(a, tuple)] == []
    assert all(r.evidence == () for r in job.records)
    assert all(r.device == "cpu" for r in job.records)


def test_more_threads_than_cpus_are_noted_in_every_time(run, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})

    for gpu, threads, said in ((None, 4, True), (None, 2, False), (GPU, 4, False)):
        made = run(both, gpu=gpu, threads=threads)
        for item in made.records:
            assert any("than the 2 CPUs" in note for note in item.timing.notes) is said


def test_a_trace_that_denies_the_stages_makes_the_record_invalid(run):
    def measure(cell):
        return [record(cell, "eager", stages=2), record(cell, "other")]

    job = run(measure)
    statuses = {(r.implementation, r.status) for r in job.records}
    assert statuses == {("eager", Status.invalid), ("other", Status.ok)}
    assert job.status is JobStatus.failed
    assert "3 of 6" in job.status_reason
    invalid = next(r for r in job.records if r.status is Status.invalid)
    assert "declares 2 stages" in invalid.reason
    assert invalid.traced.launch_count == 1
    assert job.judgement.comparisons == ()


def test_a_call_that_launches_nothing_computed_nothing(run):
    job = run(both, lambda cell, names: [evidence(cell, n, kernels=0) for n in names])
    assert {r.status for r in job.records} == {Status.invalid}
    assert "no device work" in job.records[0].reason


def test_no_evidence_leaves_the_record_as_it_was(run):
    job = run(both, lambda cell, names: [evidence(cell, n, reason="no profiler") for n in names])
    assert {r.status for r in job.records} == {Status.ok}
    assert job.records[0].evidence[0].reason == "no profiler"
    assert job.status is JobStatus.finished


@pytest.mark.parametrize(
    ("stop", "status"),
    [(KeyboardInterrupt(), JobStatus.killed), (RuntimeError("no room"), JobStatus.failed)],
)
def test_an_end_in_the_middle_keeps_what_was_measured(run, tmp_path, stop, status):
    with pytest.raises(type(stop)):
        run(lambda cell: stop if cell.index == 2 else both(cell))
    job = read_job(tmp_path / "job")
    assert job.status is status
    assert job.ended
    assert len(job.records) == 4
    assert len(job.judgement.comparisons) == 2


def test_repro_runs_this_implementation_of_this_cell_and_no_other(run):
    job = run(both, config_dirs=("/some where",))
    words = shlex.split(job.records[1].repro)
    assert words == [
        "klab",
        "run",
        "--config-dir",
        "/some where",
        "experiment=e",
        "dtype=fp32",
        "shapes.product.N=[1, 2]",
        f"cell={CELLS[0].id}",
        "implementations=[other]",
    ]


def test_tritons_cache_is_this_gpus_own_and_said_to_be(monkeypatch):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    found = worker_environment(Experiment(), GPU)
    assert found["TRITON_CACHE_DIR"].endswith("cache/triton/h200-GPU-1234")
    assert found["KLAB_TRITON_CACHE"] == found["TRITON_CACHE_DIR"]
    twin = dataclasses.replace(GPU, uuid="GPU-5678")
    assert worker_environment(Experiment(), twin)["TRITON_CACHE_DIR"] != found["TRITON_CACHE_DIR"]
    monkeypatch.setenv("TRITON_CACHE_DIR", "/t")
    assert "KLAB_TRITON_CACHE" not in worker_environment(Experiment(), GPU)


def test_the_worker_sees_one_gpu_and_none_of_the_trackers_secrets(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/t")
    experiment = Experiment()
    experiment.settings.cublas_workspace = ":4096:8"
    found = worker_environment(experiment, GPU)
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-1234"
    assert found["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert found["TRITON_CACHE_DIR"] == "/t"
    assert not [n for n in found if n.startswith(("MLFLOW", "AWS"))]
    assert worker_environment(Experiment(), None)["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("status", "plain", "strict"),
    [
        (Status.ok, 0, 0),
        (Status.checked, 0, 0),
        (Status.empty, 0, 0),
        (Status.noisy, 0, 1),
        (Status.unsupported, 0, 1),
        (Status.unavailable, 0, 1),
        *(
            (status, 1, 1)
            for status in (
                Status.wrong_values,
                Status.wrong_shape,
                Status.wrong_dtype,
                Status.compile_failed,
                Status.crashed,
                Status.unsafe,
                Status.out_of_memory,
                Status.timed_out,
                Status.lost,
                Status.invalid,
            )
        ),
    ],
)
def test_exit_codes_by_status(run, status, plain, strict):
    job = dataclasses.replace(run(both), records=(record(CELLS[0], "eager", status),))
    assert exit_code(job, strict=False) == plain
    assert exit_code(job, strict=True) == strict


@pytest.mark.parametrize(
    ("verdict", "strict"),
    [("supported", 0), ("refuted", 1), ("undecided", 0), ("not_measured", 0)],
)
def test_a_refuted_claim_is_an_answer_unless_strict(run, verdict, strict):
    claim = ClaimResult(verdict=ClaimVerdict(verdict))
    job = dataclasses.replace(run(both), judgement=Judgement(claim=claim))
    assert exit_code(job, strict=False) == 0
    assert exit_code(job, strict=True) == strict


def test_the_clock_is_locked_for_the_timing_and_free_for_the_evidence(run, nvml):
    seen = []

    def measure(cell):
        seen.append(nvml.calls)
        return both(cell)

    def trace(cell, names):
        seen.append(nvml.calls)
        return [evidence(cell, name) for name in names]

    assert run(measure, trace, clocks="lock:1500").status is JobStatus.finished
    assert seen == [["lock 1500"]] * 3 + [["lock 1500", "reset"]] * 3


def test_an_interrupted_job_gives_the_clock_back(run, nvml, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(lambda cell: KeyboardInterrupt(), clocks="lock:1500")
    assert nvml.calls == ["lock 1500", "reset"]
    assert read_job(tmp_path / "job").status is JobStatus.killed


def test_a_clock_that_may_not_be_locked_ends_the_job_before_any_work(run, nvml, tmp_path):
    nvml.fails("lock", 4)
    with pytest.raises(ConfigError, match="Insufficient Permissions"):
        run(lambda cell: pytest.fail("nothing is measured"), clocks="lock:1500")
    assert not any(a["ceilings"] for a in Supervisor.asked)  # not even the timing worker is made
    job = read_job(tmp_path / "job")
    assert job.status is JobStatus.failed
    assert "nvidia-smi" in job.status_reason
