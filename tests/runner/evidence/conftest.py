"""The exports and fakes of the nsight tests, here as well."""

import importlib.util
from pathlib import Path

import pytest

NSIGHT = Path(__file__).parents[1] / "nsight"


def _module(name):
    spec = importlib.util.spec_from_file_location(f"of_nsight_{name}", NSIGHT / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fake = _module("conftest").fake


@pytest.fixture
def export():
    return _module("exports").Export()
