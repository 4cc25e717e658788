import pytest
from kernel_lab.runner.bands import parse
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.records import ClaimVerdict, Interval


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">= 1.05", [1.05, 9], [1.0499]),
        (">1", [1.0001], [1, 0.5]),
        ("<= 2", [2, -3], [2.001]),
        ("< 3", [2.999], [3]),
        ("1.94..2.06", [1.94, 2, 2.06], [1.93, 2.07]),
        ("1 .. 3", [1, 2, 3], [0, 4]),
        ("-2..-1", [-1.5], [0]),
        (2, [2], [1, 3]),
        (0.15, [0.15], [0.1500001]),
        ("1e3", [1000], [999]),
        (">= -.5", [0, -0.5], [-0.6]),
    ],
)
def test_what_a_band_holds(text, inside, outside):
    band = parse("key", text)
    assert all(band.holds(value) for value in inside)
    assert not any(band.holds(value) for value in outside)
    assert band.text == str(text)


@pytest.mark.parametrize(
    "value",
    ["", "fast", ">= fast", "=> 1", "1..", "3..1", "1...2", True, None, [1], {"a": 1}, "> 1 > 2",
     float("nan"), float("inf"), "nan"],
    ids=str,
)  # fmt: skip
def test_what_is_no_band_names_key_value_and_forms(value):
    with pytest.raises(ConfigError) as raised:
        parse("claim.expect.speedup", value)
    assert "claim.expect.speedup" in str(raised.value)
    assert repr(value) in str(raised.value)
    assert "'>= 1.05'" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "low", "high", "verdict"),
    [
        (">= 1.05", 1.05, 1.2, "supported"),
        (">= 1.05", 1.04, 1.2, "undecided"),
        (">= 1.05", 0.9, 1.05, "undecided"),
        (">= 1.05", 0.9, 1.0499, "refuted"),
        ("> 1", 1.0, 1.2, "undecided"),
        ("> 1", 0.9, 1.0, "refuted"),
        ("<= 2", 1.5, 2.0, "supported"),
        ("<= 2", 2.0, 2.5, "undecided"),
        ("< 2", 2.0, 2.5, "refuted"),
        ("1.94..2.06", 1.95, 2.05, "supported"),
        ("1.94..2.06", 1.90, 2.10, "undecided"),
        ("1.94..2.06", 1.80, 1.93, "refuted"),
        ("1.94..2.06", 2.07, 2.50, "refuted"),
        (2, 2.0, 2.0, "supported"),
        (2, 3.0, 3.0, "refuted"),
    ],
)
def test_an_interval_across_a_bound_is_undecided(text, low, high, verdict):
    seen = Interval(median=(low + high) / 2, low=low, high=high)
    assert parse("k", text).judge(seen) is ClaimVerdict(verdict)
