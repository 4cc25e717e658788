"""Which GPU a target means. The driver's list is made by hand: NVML is not asked."""

import pytest
from kernel_lab.runner import device
from kernel_lab.runner.device import Gpu, choose, gpus, settle
from kernel_lab.runner.errors import TargetError
from kernel_lab.runner.schema import Device, Target

H200 = Gpu(
    index=0,
    name="NVIDIA H200",
    uuid="GPU-aaaa1111-0000",
    capability="9.0",
    memory_bytes=150_754_820_096,
)
A100 = Gpu(
    index=1,
    name="NVIDIA A100-SXM4-80GB",
    uuid="GPU-bbbb2222-0000",
    capability="8.0",
    memory_bytes=85_899_345_920,
)
CPU = Target(name="cpu", kind=Device.cpu)
H200_SXM = Target(name="h200_sxm", kind=Device.cuda, product="NVIDIA H200")
B200 = Target(name="b200", kind=Device.cuda, product="NVIDIA B200")
AUTO = Target(name="auto")
KNOWN = [CPU, H200_SXM, B200]


def test_auto_without_a_gpu_is_cpu():
    assert settle(AUTO, KNOWN, [], "0") == (CPU, None)


def test_auto_is_the_known_target_of_the_gpu_that_is_here():
    assert settle(AUTO, KNOWN, [H200, A100], "0") == (H200_SXM, H200)


def test_auto_on_a_gpu_that_no_target_describes_takes_the_drivers_word():
    target, gpu = settle(AUTO, KNOWN, [H200, A100], "1")
    assert gpu is A100
    assert target.kind is Device.cuda
    assert target.name == "a100_sxm4_80gb"
    assert (target.product, target.capability) == ("NVIDIA A100-SXM4-80GB", "8.0")
    assert target.memory_gb == 85.9
    # nothing to draw a roof from
    assert target.peak_tflops == {}
    assert target.bandwidth_gbps is None


def test_cpu_asks_for_no_gpu_even_beside_one():
    assert settle(CPU, KNOWN, [H200], "0") == (CPU, None)
    with pytest.raises(TargetError, match="device=17: names a GPU"):
        settle(CPU, KNOWN, [H200], "17")


def test_a_device_that_is_named_where_there_is_none_is_refused():
    with pytest.raises(TargetError, match="device=7: no NVIDIA GPU"):
        settle(AUTO, KNOWN, [], "7")


def test_auto_beside_a_driver_that_shows_no_gpu_is_no_silent_cpu(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(device, "_DRIVER", tmp_path)
    with pytest.raises(TargetError, match="target=cpu"):
        settle(AUTO, KNOWN, [], "0")
    assert settle(CPU, KNOWN, [], "0") == (CPU, None)
    # hidden on purpose is another matter
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert settle(AUTO, KNOWN, [], "0") == (CPU, None)


def test_a_named_target_takes_its_own_gpu():
    assert settle(H200_SXM, KNOWN, [H200], "0") == (H200_SXM, H200)


def test_another_gpu_than_the_targets_names_both():
    with pytest.raises(TargetError) as raised:
        settle(B200, KNOWN, [H200], "0")
    assert "NVIDIA B200" in str(raised.value)
    assert "NVIDIA H200" in str(raised.value)
    assert "klab plan" in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_target_on_a_machine_without_a_gpu_says_what_to_do():
    with pytest.raises(TargetError) as raised:
        settle(B200, KNOWN, [], "0")
    for word in ("target=b200", "no NVIDIA GPU", "target=cpu", "klab plan"):
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("name", "found"),
    [("0", H200), ("1", A100), ("GPU-bbbb2222-0000", A100), ("GPU-aaaa", H200)],
)
def test_a_device_is_an_index_or_a_uuid(name, found):
    assert choose([H200, A100], name) is found


@pytest.mark.parametrize("name", ["2", "-1", "GPU-cccc", "", "NVIDIA H200"])
def test_a_device_that_is_not_here_lists_those_that_are(name):
    with pytest.raises(TargetError) as raised:
        choose([H200, A100], name)
    assert f"device={name}:" in str(raised.value)
    assert H200.uuid in str(raised.value)
    assert A100.uuid in str(raised.value)


def test_a_uuid_that_two_gpus_share_the_beginning_of_is_refused():
    with pytest.raises(TargetError, match="device=GPU-"):
        choose([H200, A100], "GPU-")


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, [H200, A100]),
        ("0,1", [H200, A100]),
        ("1,0", [A100, H200]),
        ("1", [A100]),
        (" 1 , 0 ", [A100, H200]),
        ("GPU-bbbb2222-0000", [A100]),
        ("GPU-bbbb", [A100]),
        ("", []),
        ("-1", []),
        # CUDA ends its list at the first that it does not know
        ("1,7,0", [A100]),
        ("0,-1,1", [H200]),
    ],
)
def test_cuda_visible_devices_decides_who_is_there_and_in_what_order(monkeypatch, visible, found):
    monkeypatch.setattr(device, "_installed", lambda: [H200, A100])
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus() == found


def test_an_index_counts_among_the_visible():
    assert choose([A100, H200], "0") is A100


@pytest.fixture
def torch_is(tmp_path, monkeypatch):
    """Puts these modules where a probe finds them: torch, sitecustomize."""

    def put(text, **more):
        for name, code in {"torch": text, **more}.items():
            (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return put


USABLE = """
__version__ = "2.0"
class cuda:
    is_available = staticmethod(lambda: {})
"""


def test_a_gpu_that_torch_can_use_whatever_else_is_printed(torch_is):
    noise = "import atexit; print('hello'); atexit.register(print, 'good-bye')"
    torch_is(USABLE.format(True), sitecustomize=noise)
    device.require_usable(H200)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (USABLE.format(False), r"torch 2\.0 finds no CUDA device"),
        ("raise ImportError('libcudart.so.13')", "ImportError: libcudart"),
        ("import os; print('odd'); os._exit(0)", "it printed no answer, and last: odd"),
        ("import os; os.abort()", "it died by signal 6"),
    ],
)
def test_a_gpu_that_torch_cannot_use_is_said_with_its_reason(torch_is, text, reason):
    torch_is(text)
    with pytest.raises(TargetError, match=rf"NVIDIA H200 is here.*{reason}.*target=cpu"):
        device.require_usable(H200)


def test_a_probe_that_hangs_is_ended_after_its_limit(torch_is, monkeypatch):
    monkeypatch.setattr(device, "USABLE_LIMIT_S", 0.3)
    torch_is("import time; time.sleep(600)")
    with pytest.raises(TargetError, match=r"no answer within 0\.3 s.*target=cpu"):
        device.require_usable(H200)


@pytest.mark.gpu
def test_the_driver_names_the_gpu_that_torch_sees():
    import torch

    found = gpus()
    assert len(found) == torch.cuda.device_count()
    assert found[0].name == torch.cuda.get_device_name(0)
    assert found[0].uuid == f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    device.require_usable(found[0])
