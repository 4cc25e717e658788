"""What is refused of a clock rule once the machine is known, and when locking is tried."""

import pytest
from kernel_lab.runner import preparing
from kernel_lab.runner.device import Gpu
from kernel_lab.runner.errors import ConfigError, TargetError
from kernel_lab.runner.preparing import Preparer
from kernel_lab.runner.question.compose import compose

GPU = Gpu(index=0, name="NVIDIA H200", uuid="GPU-1234", capability="9.0", memory_bytes=1)


@pytest.fixture
def prepare(monkeypatch):
    """Prepares the quickstart with these words on a machine with these GPUs."""

    def begin(*words, gpus=(GPU,)):
        monkeypatch.setattr(preparing, "gpus", lambda: list(gpus))
        monkeypatch.setattr(preparing, "require_usable", lambda gpu: None)
        preparer = Preparer([], [])
        for _ in range(2):
            experiment = compose(["experiment=quickstart", *words], [])
            made = preparer.request(experiment, job_id="j", overrides=words, sweep_id=None)
        return made

    return begin


@pytest.mark.parametrize(("target", "gpus"), [("cpu", [GPU]), ("auto", [])])
def test_on_a_cpu_no_clock_is_locked_and_the_reason_is_said(nvml, prepare, target, gpus):
    with pytest.raises(ConfigError, match=r"clocks=lock:1500 locks a GPU's.*cpu.*clocks=observe"):
        prepare(f"target={target}", "protocol.clocks=lock:1500", gpus=gpus)
    prepare(f"target={target}", "protocol.clocks=observe", gpus=gpus)
    assert nvml.calls == []


def test_the_highest_clock_is_that_of_the_gpu_that_auto_found(nvml, prepare):
    with pytest.raises(ConfigError, match=r"above 1980 MHz.*h200_sxm"):
        prepare("target=auto", "protocol.clocks=lock:1981")
    assert nvml.calls == []


def test_whether_the_clock_may_be_locked_is_tried_once(nvml, prepare):
    prepare("protocol.clocks=lock:1500")
    assert nvml.calls == ["lock 1500", "reset"]


def test_a_driver_that_says_no_ends_the_command_before_its_jobs(nvml, prepare):
    nvml.fails("lock", 4)
    with pytest.raises(ConfigError, match=r"Insufficient Permissions.*nvidia-smi"):
        prepare("protocol.clocks=lock:1500")


@pytest.mark.parametrize("words", [["mode=check"], ["mode=profile"], []])
def test_where_nothing_is_locked_nothing_is_tried(nvml, prepare, words):
    prepare(*words, f"protocol.clocks={'lock:1500' if words else 'observe'}")
    assert nvml.calls == []


@pytest.mark.parametrize("words", ["submit=graph", "warm_inputs=[x]"])
def test_what_only_a_gpu_can_do_is_refused_on_a_cpu_before_any_work(prepare, words):
    with pytest.raises(ConfigError, match=words.split("=")[0]) as refused:
        prepare(words, "target=cpu")
    assert "run on a GPU" in str(refused.value)
    assert prepare(words).gpu is GPU


def test_more_threads_than_cpus_are_said_on_a_cpu(prepare, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    for threads, said in ((0, False), (3, False), (4, True)):
        notes = prepare("target=cpu", f"settings.threads={threads}").plan.notes
        assert any("more threads than the 3 CPUs" in note for note in notes) is said
    assert not prepare("settings.threads=4").plan.notes


def test_a_gpu_that_torch_cannot_use_is_told_when_it_is_confirmed_and_looked_at_once(monkeypatch):
    looked = []

    def refuse(gpu):
        looked.append(gpu.uuid)
        raise TargetError("torch finds no CUDA device")

    monkeypatch.setattr(preparing, "gpus", lambda: [GPU])
    monkeypatch.setattr(preparing, "require_usable", refuse)
    preparer = Preparer([], [])
    preparer.confirm()  # nothing was asked for yet
    for _ in range(2):
        experiment = compose(["experiment=quickstart"], [])
        preparer.request(experiment, job_id="j", overrides=(), sweep_id=None)
    with pytest.raises(TargetError, match="no CUDA device"):
        preparer.confirm()
    assert looked == ["GPU-1234"]
