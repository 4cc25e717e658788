"""What NVML says of the GPU: asked only, nothing is ever set."""

import os
from dataclasses import dataclass

from ..device import Gpu


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverState:
    """`energy`: why there is no energy counter, empty where there is one; `clocks`: one line."""

    version: str | None = None
    energy: str = ""
    clocks: str = ""


def driver_state(gpu: Gpu) -> DriverState:
    """The driver's version, whether energy can be read, whether clocks could be locked."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(gpu.index)
    except Exception as error:
        return DriverState(energy=str(error), clocks=f"unknown: {error}")
    try:
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        energy = ""
    except pynvml.NVMLError as error:
        energy = str(error)
    try:
        driver = str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        driver = None
    try:
        now = int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))
        most = int(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM))
        clocks = f"SM {now} MHz now, {most} at most"
    except pynvml.NVMLError as error:
        clocks = f"not readable ({error})"
    root = os.geteuid() == 0
    lock = "root may lock them unless the driver forbids it" if root else "locking them needs root"
    return DriverState(version=driver, energy=energy, clocks=f"{clocks}; {lock}")
