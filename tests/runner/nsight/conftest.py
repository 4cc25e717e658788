"""Exports made by hand, and executables that stand for nsys and ncu."""

import importlib.util
import sys
from pathlib import Path

import pytest


def _module():
    path = Path(__file__).with_name("exports.py")
    spec = importlib.util.spec_from_file_location("made_exports", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def export():
    return _module().Export()


@pytest.fixture
def exports():
    return _module()


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Makes an executable out of a Python program, found through KLAB_NSYS or KLAB_NCU."""

    def make(name, program):
        path = tmp_path / f"fake-{name}"
        head = f"#!{sys.executable}\nimport os, pathlib, subprocess, sys\nwords = sys.argv[1:]\n"
        version = f'if words == ["--version"]:\n    print("{name} version 2025.3.1.0")\n'
        path.write_text(f"{head}{version}    sys.exit(0)\n{program}\n")
        path.chmod(0o755)
        monkeypatch.setenv({"nsys": "KLAB_NSYS", "ncu": "KLAB_NCU"}[name], str(path))
        return path

    return make
