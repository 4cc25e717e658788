"""The messages of names that are not known."""

import pytest
from kernel_lab.runner.cli import main
from kernel_lab.runner.errors import nearest, unknown


@pytest.mark.parametrize(
    ("text", "near"),
    [("h200", "h200_sxm"), ("b20", "b200"), ("h201_sxm", "h200_sxm"), ("zzz", ""), ("", "")],
)
def test_a_name_that_begins_so_comes_before_one_that_looks_alike(text, near):
    assert nearest(text, ["h200_sxm", "b200", "cpu"]) == near


def test_what_nobody_writes_with_an_equals_sign_is_not_said_with_one():
    assert str(unknown("section", "x", ["cold"], between=" ")).startswith("section x: unknown. ")
    assert str(unknown("target", "x", ["cpu"])).startswith("target=x: unknown. ")


def test_a_command_that_is_none_names_the_nearest(capsys):
    assert main(["runn"]) == 2
    assert "Did you mean klab run?" in capsys.readouterr().err
