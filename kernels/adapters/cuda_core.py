"""CUDA C++ text to a running kernel through NVIDIA's cuda.core: compile once, launch cheaply."""

import functools
from typing import Any

import torch
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    Device,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Program,
    ProgramOptions,
    Stream,
    launch,
)


def compile_cubin(source: str, *, arch: str) -> ObjectCode:
    """Native code for one architecture, e.g. sm_90; needs neither a driver nor a GPU.

    A cubin, not PTX: the driver may be older than the compiler and refuse its PTX.
    """
    options = ProgramOptions(std="c++17", arch=arch)
    return Program(source, "c++", options).compile("cubin")


@functools.cache
def load(source: str, name: str, device: int) -> Kernel:
    """The kernel called `name` of the text, compiled for and loaded on a device; once each."""
    major, minor = torch.cuda.get_device_capability(device)
    # the same primary context that torch uses
    with torch.cuda.device(device):
        Device(device).set_current()
        return compile_cubin(source, arch=f"sm_{major}{minor}").get_kernel(name)


@functools.lru_cache(maxsize=256)
def _config(grid: int, block: int) -> LaunchConfig:
    return LaunchConfig(grid=grid, block=block)


@functools.lru_cache(maxsize=64)
def _stream(handle: int) -> Stream:
    return Stream.from_handle(handle) if handle else LEGACY_DEFAULT_STREAM


def launch_1d(kernel: Kernel, *arguments: Any, grid: int, block: int, device: int) -> None:
    """Launches on torch's current stream of the device; a Python int arrives as 64 bits."""
    stream = _stream(torch.cuda.current_stream(device).cuda_stream)
    if device == torch.cuda.current_device():
        launch(stream, _config(grid, block), kernel, *arguments)
    else:
        with torch.cuda.device(device):
            launch(stream, _config(grid, block), kernel, *arguments)
