"""Clocks, power, temperature and throttle reasons from NVML, read around every block."""

import time
from contextlib import suppress
from typing import Any

from ..records import DeviceState

_REASONS = {
    0x01: "idle",
    0x02: "applications_clocks",
    0x04: "power_cap",
    0x08: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "thermal_slowdown",
    0x40: "hardware_thermal_slowdown",
    0x80: "power_brake",
    0x100: "display_clocks",
}
"""nvmlClocksThrottleReasons*, bit by bit."""


SLOW_S = 0.1
"""Power is an average over up to a second and temperature changes no faster: read this often."""


class DeviceMonitor:
    """Reads one GPU by its UUID. Without NVML every reading is None, and `reason` says why.

    Clock and throttle reasons are fresh in every reading; the slow values are at most SLOW_S old,
    since each costs about a millisecond that would stand between two blocks.
    """

    def __init__(self, uuid: str) -> None:
        self._handle: Any = None
        self._nvml: Any = None
        self._slow: dict[str, Any] = {}
        self._slow_at = float("-inf")
        self.reason = ""
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except Exception as error:
            self.reason = f"no NVML: {error}"

    def read(self) -> DeviceState | None:
        """The state now; a value that the driver does not give is None."""
        if self._handle is None:
            return None
        nvml, handle = self._nvml, self._handle
        values: dict[str, Any] = {}
        with suppress(nvml.NVMLError):
            values["sm_mhz"] = nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
        with suppress(nvml.NVMLError):
            mask = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
            values["throttle"] = tuple(text for bit, text in _REASONS.items() if mask & bit)
        if time.monotonic() - self._slow_at > SLOW_S:
            self._slow = self._read_slow()
            self._slow_at = time.monotonic()
        return DeviceState(**values, **self._slow)

    def energy_mj(self) -> int | None:
        """Millijoules that the GPU took since the driver was loaded; None where it does not say."""
        if self._handle is None:
            return None
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        except self._nvml.NVMLError:
            return None

    def _read_slow(self) -> dict[str, Any]:
        nvml, handle = self._nvml, self._handle
        values: dict[str, Any] = {}
        with suppress(nvml.NVMLError):
            values["memory_mhz"] = nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)
        with suppress(nvml.NVMLError):
            values["watts"] = nvml.nvmlDeviceGetPowerUsage(handle) / 1e3
        with suppress(nvml.NVMLError):
            values["celsius"] = nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        with suppress(nvml.NVMLError):
            values["energy_mj"] = nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        return values
