import dataclasses
import re
import subprocess

import pytest
from kernel_lab.runner import provenance
from kernel_lab.runner.provenance import code_state, signature, source_hash, versions

CONFIG = {
    "experiment_name": "e",
    "question": "why?",
    "dtype": {"name": "bf16"},
    "shapes": {"product": {"M": [1, 2]}},
    "kernel": {"name": "k", "module": "m"},
    "tracking": {"store": "local"},
    "trace": {"cells": "first:8"},
    "device": "0",
    "seed": 0,
    "protocol": {"name": "quick", "clocks": "observe"},
    "strict": False,
    "worker": "process",
    "cell": None,
}


def signed(source="abc", gpu="NVIDIA H200", **changes):
    return signature({**CONFIG, **changes}, source, gpu)


def test_a_signature_is_an_id():
    assert re.fullmatch(r"s[0-9a-f]{11}", signed())
    assert signed() == signed()


@pytest.mark.parametrize(
    "changes",
    [
        {"tracking": {"store": "none"}},
        {"device": "GPU-1"},
        {"trace": {"cells": "all"}},
        {"worker": "inline"},
        {"strict": True},
        {"question": "why not?"},
    ],
    ids=str,
)
def test_where_and_how_it_is_filed_is_no_content(changes):
    assert signed(**changes) == signed()


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": {"name": "fp16"}},
        {"shapes": {"product": {"M": [1, 3]}}},
        {"seed": 1},
        {"protocol": {"name": "quick", "clocks": "lock:1500"}},
        {"kernel": {"name": "k", "module": "m", "baseline": "x"}},
        {"source": "abd"},
        {"gpu": "cpu"},
    ],
    ids=str,
)
def test_what_is_measured_is(changes):
    assert signed(**changes) != signed()


def test_the_order_of_keys_is_no_content():
    assert signature(dict(reversed(CONFIG.items())), "abc", "g") == signature(CONFIG, "abc", "g")


def test_other_versions_are_another_signature(monkeypatch):
    before = signed()
    monkeypatch.setattr(provenance, "versions", lambda: {"torch": "9.9"})
    assert signed() != before


def test_versions_name_what_decides():
    assert versions()["torch"]
    assert set(versions()) == {"torch", "triton", "kernel-lab"}


def test_the_source_is_found_on_the_python_path_and_not_imported(tmp_path):
    file = tmp_path / "kernel_somewhere.py"
    file.write_text("raise RuntimeError('imported')\n")
    first = source_hash("kernel_somewhere", (str(tmp_path),))
    assert re.fullmatch(r"[0-9a-f]{16}", first)
    file.write_text("raise RuntimeError('imported again')\n")
    assert source_hash("kernel_somewhere", (str(tmp_path),)) != first


def test_the_python_path_is_left_as_it_was(tmp_path):
    import sys

    before = list(sys.path)
    source_hash("kernel_nowhere", (str(tmp_path),))
    assert sys.path == before


@pytest.mark.parametrize("module", ["no_such_module", "no.such.module", "json", "sys"])
def test_a_source_that_cannot_be_found_is_unknown_and_nothing_breaks(module):
    found = source_hash(module)
    assert found == "unknown" or module == "json"


def git(folder, *arguments):
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository of its own; `code_state` looks beside a file in it."""
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner/provenance.py").write_text("x = 1\n")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "runner/provenance.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


def test_outside_git_the_commit_is_what_the_environment_says(checkout, monkeypatch):
    monkeypatch.delenv("KLAB_COMMIT", raising=False)
    assert code_state() == {"commit": None, "dirty": None, "diff_sha": None}
    monkeypatch.setenv("KLAB_COMMIT", "c0ffee")
    assert code_state() == {"commit": "c0ffee", "dirty": None, "diff_sha": None}


def test_in_git_the_commit_is_gits_and_differences_are_hashed(checkout, monkeypatch):
    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "one")
    monkeypatch.setenv("KLAB_COMMIT", "c0ffee")
    clean = code_state()
    assert re.fullmatch(r"[0-9a-f]{40}", clean["commit"])
    assert (clean["dirty"], clean["diff_sha"]) == (False, None)

    (checkout / "runner/provenance.py").write_text("x = 2\n")
    changed = code_state()
    assert changed["commit"] == clean["commit"]
    assert changed["dirty"] is True
    (checkout / "runner/provenance.py").write_text("x = 3\n")
    assert code_state()["diff_sha"] != changed["diff_sha"]


def test_a_new_file_is_a_difference(checkout):
    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "one")
    (checkout / "kernels.py").write_text("new = 1\n")
    first = code_state()
    assert first["dirty"] is True
    assert first["diff_sha"]


def test_an_installed_package_takes_no_foreign_repositorys_commit(tmp_path, monkeypatch):
    # a virtual environment inside somebody's repository: that commit is not ours
    git(tmp_path, "init", "-q")
    (tmp_path / "README").write_text("theirs\n")
    (tmp_path / ".gitignore").write_text(".venv/\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "theirs")
    inside = tmp_path / ".venv/lib/site-packages/kernel_lab/runner"
    inside.mkdir(parents=True)
    (inside / "provenance.py").write_text("x = 1\n")
    monkeypatch.setattr(provenance, "__file__", str(inside / "provenance.py"))
    monkeypatch.setenv("KLAB_COMMIT", "c0ffee")
    assert code_state()["commit"] == "c0ffee"


def test_a_signature_of_a_real_experiment_ignores_its_folders():
    from kernel_lab.runner.schema import Experiment

    one = dataclasses.asdict(Experiment())
    assert signature(one, "a", "g") == signature({**one, "device": "1"}, "a", "g")
