"""Where tools are found, and what of the environment reaches them."""

import pytest
from kernel_lab.runner.nsight import tools
from kernel_lab.runner.nsight.tools import NsightError, allowed, find, older


def test_a_tool_by_its_variable(fake):
    path = fake("nsys", "")
    found = find("nsys")
    assert (found.path, found.version) == (path, "2025.3.1.0")


def test_a_version_beside_bytes_that_are_no_text(fake):
    path = fake("nsys", "")
    path.write_text("#!/bin/sh\nprintf 'version 2025.3.1.0 \\377\\n'\n")
    assert find("nsys").version == "2025.3.1.0"


def test_a_variable_that_names_nothing_is_an_error_and_no_other_is_taken(fake, monkeypatch):
    monkeypatch.setenv("KLAB_NCU", "/nowhere/ncu")
    with pytest.raises(NsightError, match="KLAB_NCU=/nowhere/ncu"):
        find("ncu")


def test_path_comes_before_the_usual_folders_and_a_broken_one_is_passed_over(
    fake, tmp_path, monkeypatch
):
    good = fake("nsys", "")
    monkeypatch.delenv("KLAB_NSYS")
    monkeypatch.setattr(tools, "_FOLDERS", (f"{tmp_path}/versions/*",))
    for version in ("2024.1", "2025.10", "2025.9"):
        folder = tmp_path / "versions" / version
        folder.mkdir(parents=True)
        (folder / "nsys").write_text(good.read_text().replace("2025.3.1.0", version + ".0"))
        (folder / "nsys").chmod(0o755)
    broken = tmp_path / "path"
    broken.mkdir()
    (broken / "nsys").write_text("#!/bin/sh\nexit 127\n")
    (broken / "nsys").chmod(0o755)
    monkeypatch.setenv("PATH", str(broken))
    assert find("nsys").version == "2025.10.0"
    (broken / "nsys").write_text(good.read_text())
    assert find("nsys").path == broken / "nsys"


def test_nowhere_says_what_to_set(monkeypatch):
    monkeypatch.setattr(tools, "_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NsightError, match="KLAB_NCU"):
        find("ncu")


def test_no_secret_reaches_a_tool():
    secrets = {"AWS_SECRET_ACCESS_KEY": "x", "HF_TOKEN": "x", "GITHUB_TOKEN": "x", "MLFLOW_X": "x"}
    needed = {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "0",
        "PYTHONPATH": "p",
        "TRITON_CACHE_DIR": "d",
    }
    assert allowed({**secrets, **needed}) == needed


@pytest.mark.parametrize(
    ("version", "answer"),
    [("2023.4.4", True), ("2024.1", False), ("2025.3.1", False), (None, False)],
)
def test_older(version, answer):
    assert older(version, 2024, 1) is answer
