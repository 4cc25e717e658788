"""A place to measure in, and the makers of exports and of executables that stand for tools."""

import importlib.util
import os
from pathlib import Path

import pytest
from kernel_lab.runner.doctor.sections import Place
from kernel_lab.runner.schema import Device

_NSIGHT = Path(__file__).parents[1] / "nsight"


def _module(name):
    spec = importlib.util.spec_from_file_location(f"made_{name}", _NSIGHT / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fake = _module("conftest").fake


@pytest.fixture
def export():
    return _module("exports").Export()


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "doctor"
    folder.mkdir()
    paths = {"do_bench": "some.library.do_bench"}
    return Place(folder=folder, kind=Device.cuda, environment=dict(os.environ), paths=paths)
