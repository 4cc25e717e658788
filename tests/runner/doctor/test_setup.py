"""The set-up check: what is ok, missing, a warning, broken, and what to do next."""

import sys
from types import SimpleNamespace

import pytest
from kernel_lab.runner.device import Gpu
from kernel_lab.runner.doctor import driver, probe, setup
from kernel_lab.runner.doctor.driver import DriverState
from kernel_lab.runner.doctor.probe import TorchState
from kernel_lab.runner.doctor.setup import State, set_up
from kernel_lab.runner.question.targets import targets

H200 = Gpu(index=0, name="NVIDIA H200", uuid="GPU-1", capability="9.0", memory_bytes=150 << 30)
CPU_TORCH = TorchState(version="2.13.0+cpu")
GPU_TORCH = TorchState(version="2.11.0", cuda="13.0", usable=True, names=["NVIDIA H200"])


def lines(torch=CPU_TORCH, state=None, target="auto", gpus=()):
    known = targets()
    asked = next(t for t in known if t.name == target)
    found = set_up(torch, state or DriverState(), asked, known, list(gpus))
    return {line.what: line for line in found}


@pytest.fixture(autouse=True)
def no_tools(monkeypatch):
    monkeypatch.setenv("KLAB_NSYS", "/nowhere/nsys")
    monkeypatch.setenv("KLAB_NCU", "/nowhere/ncu")
    monkeypatch.setattr("kernel_lab.runner.device._DRIVER", setup.Path("/nowhere"))


def test_a_cpu_needs_no_gpu_and_no_tools():
    found = lines()
    assert found["target"].state is State.ok
    assert found["nsys"].state is State.missing
    assert found["nsys"].text == "not needed without an NVIDIA GPU"
    assert found["nsys"].next_step == ""
    assert not any(line.state is State.broken for line in found.values())
    assert "driver" not in found


def test_a_gpu_that_works():
    state = DriverState(version="580.1", clocks="SM 345 MHz now, 1980 at most; locking needs root")
    found = lines(GPU_TORCH, state, gpus=[H200])
    assert found["cuda"].state is State.ok
    assert "h200_sxm" in found["target"].text
    assert found["energy"].state is State.ok
    assert "580.1" in found["driver"].text


def test_a_gpu_that_torch_cannot_use_is_broken():
    found = lines(CPU_TORCH, gpus=[H200])
    assert found["cuda"].state is State.broken
    assert "target=cpu" in found["cuda"].next_step


def test_a_gpu_that_no_target_knows_is_a_warning():
    other = Gpu(index=0, name="NVIDIA X1", uuid="GPU-2", capability="9.9", memory_bytes=1 << 30)
    found = lines(GPU_TORCH, gpus=[other])
    assert found["target"].state is State.warning
    assert "conf/target" in found["target"].next_step


def test_another_target_than_the_gpu_that_is_here_is_broken():
    found = lines(GPU_TORCH, target="b200", gpus=[H200])
    assert found["target"].state is State.broken


def test_no_torch_is_broken_with_its_error():
    found = lines(TorchState(error="ModuleNotFoundError: No module named 'torch'"))
    assert found["torch"].state is State.broken
    assert "No module" in found["torch"].text


def test_no_energy_counter_is_missing():
    found = lines(GPU_TORCH, DriverState(energy="Not Supported"), gpus=[H200])
    assert found["energy"].state is State.missing


def test_outputs_that_cannot_be_written_are_broken(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KLAB_OUTPUTS", str(tmp_path / "file"))
    assert lines()["outputs"].state is State.broken


def test_little_room_is_a_warning(monkeypatch):
    monkeypatch.setattr(setup.shutil, "disk_usage", lambda place: SimpleNamespace(free=1e9))
    assert lines()["disk"].state is State.warning


def test_a_compiler_that_is_named_and_not_there(monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/c++")
    found = lines()["compiler"]
    assert found.state is State.missing
    assert "/nowhere/c++" in found.text


def test_nvtx_that_an_old_nsys_does_not_hear(monkeypatch):
    old = SimpleNamespace(version="2023.4.4", path="nsys")
    monkeypatch.setattr(setup, "find", lambda name: old)
    monkeypatch.setattr(setup, "_installed", lambda name: "0.2.17")
    assert lines()["nvtx"].state is State.warning
    monkeypatch.setattr(setup, "_installed", lambda name: "0.2.11")
    assert lines()["nvtx"].state is State.ok


def test_python_outside_the_range_is_broken(monkeypatch):
    monkeypatch.setattr(setup, "PYTHONS", ((3, 99), (3, 100)))
    assert lines()["python"].state is State.broken


def test_the_probe_asks_torch_elsewhere(monkeypatch, tmp_path):
    found = probe.torch_state()
    assert found.version
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho bad library >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    assert probe.torch_state().error == "bad library"
    broken.write_text("#!/bin/sh\necho hello\n")
    assert probe.torch_state().error == "it printed no answer, and last: hello"


def test_what_others_print_is_not_taken_for_the_answer(monkeypatch, tmp_path):
    noise = "import atexit; print('hello'); atexit.register(print, '{}')"
    (tmp_path / "sitecustomize.py").write_text(noise)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert probe.torch_state().version


class Nvml:
    """NVML that only answers questions; whatever sets something is not there."""

    class NVMLError(Exception):
        pass

    NVML_CLOCK_SM = 1

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if not name.startswith(("nvmlInit", "nvmlDeviceGet", "nvmlSystemGet")):
            raise AssertionError(f"{name}: the doctor only asks")

        def ask(*arguments):
            self.asked.append(name)
            if "Energy" in name:
                raise Nvml.NVMLError("Not Supported")
            return 345 if "Clock" in name else "580.1"

        return ask


def test_the_driver_is_asked_and_nothing_is_set(monkeypatch):
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    found = driver.driver_state(H200)
    assert found.energy == "Not Supported"
    assert "345 MHz" in found.clocks
    assert "lock" in found.clocks
    assert nvml.asked
