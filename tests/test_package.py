"""What a wheel holds, and the two ways in from a checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("conf", "experiments", "kernels", "runner")
BUILD = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"


def run(*command, cwd, **environment):
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def shipped(root):
    """Every file that an installation needs, by its path from the root."""
    suffixes = {"conf": {".yaml"}, "experiments": {".yaml", ".json"}}
    return {
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in suffixes.get(folder, {".py"})
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel of a copy of this tree, so that nothing is written here: its source, itself, its log.

    A finding, a word in a folder of its own and a kernel are added, so that each kind is there.
    """
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    for path in (
        "conf/implementation/some_kernel/some_library.yaml",
        "experiments/findings/some_gpu/some_question.json",
        "kernels/some_kernel.py",
    ):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).touch()
    done = run(sys.executable, "-c", BUILD, out, cwd=source)
    assert done.returncode == 0, done.stdout + done.stderr
    return source, next(out.glob("*.whl")), done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_holds_code_words_experiments_and_findings(built):
    source, wheel, _ = built
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    assert {f"kernel_lab/{path}" for path in shipped(source)} <= held


@pytest.mark.slow
def test_the_wheel_installs_nothing_under_a_bare_name(built):
    _, wheel, _ = built
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        inner = {name for name in archive.namelist() if "kernels/__init__" in name}
    assert tops == {"kernel_lab", wheel.name.rpartition("-py3")[0] + ".dist-info"}
    assert not inner


@pytest.mark.slow
def test_the_wheel_is_built_without_a_warning(built):
    log = built[2]
    assert "absent from the `packages`" not in log
    assert "BuildBackendWarning" not in log
    assert "Deprecat" not in log


@pytest.mark.slow
def test_the_unpacked_wheel_answers_from_an_empty_folder(built, tmp_path):
    """Site is off (-S), so the editable install is: only the wheel and the libraries are there."""
    place, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(built[1]) as archive:
        archive.extractall(place)
    script = (
        "import sys; from kernel_lab.runner import cli; print(cli.__file__, flush=True); "
        "sys.exit(cli.main())"
    )
    path = os.pathsep.join([str(place), sysconfig.get_path("purelib")])
    arguments = ("plan", "experiment=quickstart", "target=cpu")
    done = run(sys.executable, "-S", "-c", script, *arguments, cwd=empty, PYTHONPATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(str(place))


@pytest.mark.slow
def test_python_m_runner_is_klab_run():
    """The same refusal, word for word: no job starts."""
    as_klab = "import sys; from kernel_lab.runner.cli import main; sys.exit(main())"
    module = run(sys.executable, "-m", "runner", "experiment=nope", cwd=ROOT)
    command = run(sys.executable, "-c", as_klab, "run", "experiment=nope", cwd=ROOT)
    assert "nope" in module.stderr + module.stdout
    assert module.returncode == command.returncode == 2
    assert (module.stdout, module.stderr) == (command.stdout, command.stderr)
