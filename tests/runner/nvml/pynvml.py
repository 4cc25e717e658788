"""Stands for the driver's library in other processes: its state is the file that KLAB_TEST_NVML
names, a line of JSON a call. KLAB_TEST_NVML_FAULT names the call that fails, and how.
"""

import json
import os
from pathlib import Path

NVML_ERROR_NO_PERMISSION = 4
NVML_ERROR_UNKNOWN = 999
_TEXTS = {
    NVML_ERROR_NO_PERMISSION: "Insufficient Permissions",
    NVML_ERROR_UNKNOWN: "Unknown Error",
}
MEMORY = {1593: (1200, 345), 3201: (1980, 1965, 1500, 1485, 345)}


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value

    def __str__(self):
        return _TEXTS[self.value]


def _call(name, *given):
    fault, _, value = os.environ.get("KLAB_TEST_NVML_FAULT", "").partition(":")
    if fault == name:
        raise NVMLError(int(value))
    with Path(os.environ["KLAB_TEST_NVML"]).open("a") as stream:
        stream.write(json.dumps([name, *given]) + "\n")


def nvmlInit():  # noqa: N802
    _call("init")


def nvmlDeviceGetHandleByUUID(uuid):  # noqa: N802
    return uuid


def nvmlDeviceGetSupportedMemoryClocks(handle):  # noqa: N802
    return list(MEMORY)


def nvmlDeviceGetSupportedGraphicsClocks(handle, memory):  # noqa: N802
    return list(MEMORY[memory])


def nvmlDeviceSetGpuLockedClocks(handle, low, high):  # noqa: N802
    _call("lock", handle, low, high)


def nvmlDeviceResetGpuLockedClocks(handle):  # noqa: N802
    _call("reset", handle)
