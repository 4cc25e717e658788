"""What this process runs on: GPU, libraries, the settings that decide dispatch."""

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from ..schema import Device, Experiment
from .host_memory import keep_freed

_PACKAGES = (
    "torch",
    "triton",
    "numpy",
    "scipy",
    "nvtx",
    "nvidia-ml-py",
    "cuda-core",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "liger-kernel",
    "hydra-core",
    "mlflow",
    "kernel-lab",
)


def apply_settings(experiment: Experiment, kind: Device) -> dict[str, Any]:
    """Sets the library switches that the experiment names; returns all that decide dispatch."""
    settings = experiment.settings
    torch.set_float32_matmul_precision("high" if experiment.dtype.tf32 else "highest")
    torch.backends.cudnn.benchmark = settings.cudnn_benchmark
    if settings.threads:
        torch.set_num_threads(settings.threads)
    matmul = torch.backends.cuda.matmul
    matmul.allow_bf16_reduced_precision_reduction = settings.reduced_precision_reduction
    matmul.allow_fp16_reduced_precision_reduction = settings.reduced_precision_reduction
    if kind is Device.cuda and settings.blas != "default":
        torch.backends.cuda.preferred_blas_library(settings.blas)
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "reduced_precision_reduction": settings.reduced_precision_reduction,
        "cudnn_benchmark": settings.cudnn_benchmark,
        "preferred_blas": settings.blas,
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""),
        "threads": torch.get_num_threads(),
        "host_allocator": keep_freed() if kind is Device.cpu else "unchanged",
        "triton_interpret": os.environ.get("TRITON_INTERPRET", ""),
    }


def gpu(device: torch.device) -> dict[str, Any]:
    """The GPU as torch and the driver tell it."""
    properties = torch.cuda.get_device_properties(device)
    return {
        "name": properties.name,
        "uuid": "GPU-" + str(properties.uuid),
        "capability": f"{properties.major}.{properties.minor}",
        "sms": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "l2_bytes": properties.L2_cache_size,
        "driver": _driver(),
        "cuda_runtime": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "arch_list": torch.cuda.get_arch_list(),
    }


def _driver() -> str | None:
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:
        return None


def software() -> dict[str, Any]:
    """Versions of what takes part; a package that is absent has none."""
    versions: dict[str, Any] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    versions["torch"] = torch.__version__
    return versions


def host() -> dict[str, Any]:
    """The machine's processor and system; no names of people or networks."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "executable": sys.executable,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
