"""The evaluator against a table, and what it must refuse."""

import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.question.expressions import evaluate, holds, integral, names

VALUES = {"M": 8, "N": 3, "act": "none", "bias": True, "huge": 10**18 + 8}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2*M/4", 4),
        ("M/16", 0.5),
        ("M // N", 2),
        ("M % N", 2),
        ("M ** 2 - -1", 65),
        ("huge / 8", 125000000000000001),
        ("max(M, N, 20) + min(1, 2)", 21),
        ("act in ['none', 'relu'] and bias", True),
        ("act not in ['none']", False),
        ("1 < N <= 3 < M", True),
        ("not bias or N == 4", False),
        ("N if bias else M", 3),
        ("bias == true", True),
    ],
)
def test_value(text, value):
    assert evaluate(text, VALUES, "key") == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "M.real",
        "[x for x in [1]]",
        "M[0]",
        "lambda: 1",
        "abs(M)",
        "max",
        "max()",
        "M = 3",
        "M +",
        "",
        "None",
        "f'{M}'",
        "b'x'",
    ],
)
def test_refused_before_evaluation(text):
    with pytest.raises(ConfigError, match=r"^kernel\.where: "):
        names(text, "kernel.where")


@pytest.mark.parametrize("text", ["M / 0", "M % 0", "act * 3", "9 ** 999999", "M < act", "Q + 1"])
def test_refused_with_the_key(text):
    with pytest.raises(ConfigError, match=r"^kernel\.where: "):
        evaluate(text, VALUES, "kernel.where")


def test_unknown_name_shows_the_known_ones():
    with pytest.raises(ConfigError, match="Choices: M, N, act, bias, huge"):
        holds("Mx > 1", VALUES, "key")


def test_a_dimension_is_whole():
    assert integral("M/4", VALUES, "key") == 2
    assert isinstance(integral("M/2.0", VALUES, "key"), int)
    with pytest.raises(ConfigError, match=r"key: 'M/N' with M=8, N=3 is 2.66667, not a whole"):
        integral("M/N", VALUES, "key")
