"""What holds for every test: its own outputs folder, no settings from outside, GPU tests marked."""

import functools
import os
import shutil
from pathlib import Path

import pytest

_FROM_OUTSIDE = ("KLAB_PATH", "KLAB_COMMIT", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME")


@pytest.fixture(autouse=True, scope="session")
def _session_outputs(tmp_path_factory):
    """Fixtures of wider scope than a test write here; never into the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KLAB_OUTPUTS", str(tmp_path_factory.mktemp("outputs")))
        for name in _FROM_OUTSIDE:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True)
def outputs(_session_outputs, tmp_path, monkeypatch) -> Path:
    """This test's own outputs folder, where KLAB_OUTPUTS points; not made until somebody does."""
    folder = tmp_path / "outputs"
    monkeypatch.setenv("KLAB_OUTPUTS", str(folder))
    return folder


@functools.cache
def no_gpu() -> str:
    """Why tests marked `gpu` cannot run here; empty where they can."""
    import torch

    if torch.cuda.is_available():
        return ""
    if shutil.which("nvidia-smi") or Path("/dev/nvidiactl").exists():
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        return (
            "needs a GPU: NVIDIA's driver seems to be here, but torch cannot use CUDA "
            f"(torch built for CUDA {torch.version.cuda}, CUDA_VISIBLE_DEVICES={hidden})"
        )
    return "needs a GPU: no NVIDIA driver here"


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and no_gpu():
        pytest.skip(no_gpu())
