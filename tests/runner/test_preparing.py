"""What is refused of a clock rule once the machine is known, and when locking is tried."""

import contextlib

import pytest
from kernel_lab.runner import preparing
from kernel_lab.runner.device import Gpu
from kernel_lab.runner.errors import ConfigError, TargetError
from kernel_lab.runner.preparing import Preparer, refuse_nothing
from kernel_lab.runner.question.compose import compose

GPU = Gpu(index=0, name="NVIDIA H200", uuid="GPU-1234", capability="9.0", memory_bytes=1)


class Probed:
    """A probe that only remembers; `refuses` is the error that it ends in."""

    refuses: Exception | None = None

    def __init__(self, gpu):
        self.gpu, self.confirmed, self.ended = gpu, 0, False

    def confirm(self):
        self.confirmed += 1
        if self.refuses:
            raise self.refuses

    def end(self):
        self.ended = True


@pytest.fixture
def probes(monkeypatch):
    """The probes that were begun, on a machine with the one GPU."""
    begun = []

    def begin(gpu):
        begun.append(Probed(gpu))
        return begun[-1]

    monkeypatch.setattr(preparing, "gpus", lambda: [GPU])
    monkeypatch.setattr(preparing, "Probe", begin)
    return begun


def asked_twice(preparer):
    for _ in range(2):
        experiment = compose(["experiment=quickstart"], [])
        preparer.request(experiment, job_id="j", overrides=(), sweep_id=None)


@pytest.fixture
def prepare(monkeypatch):
    """Prepares the quickstart with these words on a machine with these GPUs."""

    def begin(*words, gpus=(GPU,), experiment=True):
        asked = ["experiment=quickstart"] if experiment else []
        monkeypatch.setattr(preparing, "gpus", lambda: list(gpus))
        monkeypatch.setattr(preparing, "Probe", Probed)
        preparer = Preparer([], [])
        for _ in range(2):
            composed = compose([*asked, *words], [])
            made = preparer.request(composed, job_id="j", overrides=words, sweep_id=None)
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


def test_sustained_time_is_refused_on_a_cpu_where_the_command_asks_for_it(prepare):
    with pytest.raises(ConfigError, match=r"protocol\.sustained_ms=50 .* run on a GPU"):
        prepare("protocol.sustained_ms=50", "target=cpu")
    prepare("protocol.sustained_ms=0", "target=cpu")
    prepare("protocol=standard", "target=cpu")  # whose file may ask for it
    assert prepare("protocol.sustained_ms=50").gpu is GPU


def test_a_command_of_which_nothing_can_run_is_refused_with_the_reasons(prepare):
    fp8 = ("kernel=gemm_bias_act", "dtype=fp8", "target=cpu")
    nothing = prepare(*fp8, experiment=False)
    with pytest.raises(ConfigError, match=r"nothing here can run.*eager, .*dtype fp8: it supports"):
        refuse_nothing([nothing, nothing])
    refuse_nothing([nothing, prepare("target=cpu")])  # another job of the command can


def test_more_threads_than_cpus_are_said_on_a_cpu(prepare, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    for threads, said in ((0, False), (3, False), (4, True)):
        notes = prepare("target=cpu", f"settings.threads={threads}").plan.notes
        assert any("more threads than the 3 CPUs" in note for note in notes) is said
    assert not prepare("settings.threads=4").plan.notes


def test_a_gpu_that_torch_cannot_use_is_told_when_it_is_confirmed(probes, monkeypatch):
    monkeypatch.setattr(Probed, "refuses", TargetError("torch finds no CUDA device"))
    preparer = Preparer([], [])
    preparer.confirm()  # nothing was asked for yet
    asked_twice(preparer)
    with pytest.raises(TargetError, match="no CUDA device"):
        preparer.confirm()
    assert [probe.gpu for probe in probes] == [GPU]


def test_a_gpu_is_looked_at_once(probes):
    preparer = Preparer([], [])
    for _ in range(2):
        asked_twice(preparer)
        preparer.confirm()
    (probe,) = probes
    assert probe.confirmed == 1


@pytest.mark.parametrize("error", [None, ConfigError, KeyboardInterrupt])
def test_a_probe_that_nobody_waited_for_is_ended_on_every_way_out(probes, error):
    with contextlib.suppress(*[error] if error else []), Preparer([], []) as preparer:
        asked_twice(preparer)
        if error:
            raise error
    assert probes[0].ended
