import getpass
import json
import platform
import socket

import pytest
import torch
from kernel_lab.runner.schema import Device
from kernel_lab.runner.worker import environment


@pytest.fixture
def switches():
    """The switches of this process, put back afterwards."""
    matmul = torch.backends.cuda.matmul
    before = (
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.benchmark,
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_fp16_reduced_precision_reduction,
        torch.get_num_threads(),
    )
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.benchmark = before[1]
    matmul.allow_bf16_reduced_precision_reduction = before[2]
    matmul.allow_fp16_reduced_precision_reduction = before[3]
    torch.set_num_threads(before[4])


@pytest.mark.parametrize(("tf32", "precision"), [(False, "highest"), (True, "high")])
def test_the_math_mode_is_set_and_recorded(lab, switches, tf32, precision):
    experiment = lab.experiment({"eager": lambda x: x})
    experiment.dtype.tf32 = tf32
    found = environment.apply_settings(experiment, Device.cpu)
    assert found["float32_matmul_precision"] == torch.get_float32_matmul_precision() == precision


def test_settings_reach_the_library_and_the_record(lab, switches):
    experiment = lab.experiment({"eager": lambda x: x})
    experiment.settings.reduced_precision_reduction = False
    experiment.settings.cudnn_benchmark = True
    experiment.settings.threads = 1
    found = environment.apply_settings(experiment, Device.cpu)
    matmul = torch.backends.cuda.matmul
    assert not matmul.allow_bf16_reduced_precision_reduction
    assert not matmul.allow_fp16_reduced_precision_reduction
    assert torch.backends.cudnn.benchmark
    assert torch.get_num_threads() == found["threads"] == 1
    assert found["cudnn_benchmark"] is True
    assert found["reduced_precision_reduction"] is False
    json.dumps(found, allow_nan=False)


def test_versions_are_those_of_this_process_and_absent_ones_are_none():
    found = environment.software()
    assert found["torch"] == torch.__version__
    assert found["python"] == platform.python_version()
    assert found["kernel-lab"]
    assert all(value is None or isinstance(value, str) for value in found.values())


def test_the_host_is_described_without_names_of_people_or_networks():
    text = json.dumps(environment.host())
    assert socket.gethostname() not in text
    assert environment.host()["cores"]
    assert "node" not in environment.host()
    user = getpass.getuser()
    assert user in ("root", "") or f'"{user}"' not in text
