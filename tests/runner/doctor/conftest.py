"""A place to measure in."""

import os

import pytest
from kernel_lab.runner.doctor.sections import Place
from kernel_lab.runner.schema import Device


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "doctor"
    folder.mkdir()
    paths = {"do_bench": "somewhere.do_bench"}
    return Place(folder=folder, kind=Device.cuda, environment=dict(os.environ), paths=paths)
