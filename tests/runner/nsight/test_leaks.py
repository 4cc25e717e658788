"""What a report holds of other people's environments, and how nsys is kept from seeing them."""

import os
import sqlite3
import subprocess

import pytest
from kernel_lab.runner.nsight.leaks import apart, strangers


def test_variables_that_nobody_gave_are_named_without_their_values(export, tmp_path):
    export.text("_=/usr/bin/klab\0HOME=/root\0SERVICE_TOKEN=hunter2\0lower_key=1\0PATH=/bin\0")
    export.text("LD_PRELOAD=/x.so\0CUDA_VISIBLE_DEVICES=0\0KLAB_OUTPUTS=/o\0")
    assert strangers(export.save(tmp_path / "x.sqlite")) == ("SERVICE_TOKEN", "lower_key")


def test_names_of_ranges_and_kernels_are_no_environment(export, tmp_path):
    export.text("cell=0000;impl=eager")
    export.text("a kernel\0with=a zero byte")
    assert strangers(export.save(tmp_path / "x.sqlite")) == ()


def test_what_is_no_database_is_an_error(tmp_path):
    (tmp_path / "x.sqlite").write_bytes(b"none")
    with pytest.raises(sqlite3.Error):
        strangers(tmp_path / "x.sqlite")


def test_apart_from_the_others_a_program_sees_no_process_but_its_own():
    words = apart()
    if not words:
        pytest.skip("this system permits no process namespace")
    seen = subprocess.run(
        [*words, "sh", "-c", "ls /proc"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert str(os.getpid()) not in seen or len([p for p in seen if p.isdigit()]) < 5
    assert len([p for p in seen if p.isdigit()]) < 5


def test_where_that_is_not_permitted_there_are_no_words(monkeypatch, tmp_path):
    fake = tmp_path / "unshare"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert apart() == ()
    fake.unlink()
    assert apart() == ()
