"""Keys that the store refuses are spelt so that it takes them, and can be read back."""

import string

import pytest
from kernel_lab.runner.tracking.names import KEY_LENGTH, original, safe, shortened
from mlflow.utils.validation import _validate_metric_name

AWKWARD = [
    "time(us)", "gemm[M=1]", "p50@cold", "a:b", "µs", "a,b", "50%", "a+b", "..", "a//b", "/a", "a/",
    "a/../b", "./a", "_u28_", "__u28_x", "x_u5f_", "", "tab\there", "a\\b", "naïve ☃",
]  # fmt: skip


@pytest.mark.parametrize("key", [key for key in AWKWARD if key])
def test_key_is_taken_and_reversible(key):
    _validate_metric_name(safe(key))
    assert original(safe(key)) == key


def test_spellings_stay_apart():
    assert len({safe(key) for key in AWKWARD}) == len(AWKWARD)


@pytest.mark.parametrize(
    "key", ["latency_us/median", "case/M", "kernel.name", "a:b", "_units", "µs"]
)
def test_key_that_is_fine_stays(key):
    assert safe(key) == key


def test_every_printable_character_is_taken():
    for character in string.printable:
        _validate_metric_name(safe(f"a{character}b"))


def test_long_keys_stay_apart_within_the_limit():
    one, two = safe("k" * 400 + "1"), safe("k" * 400 + "2")
    assert one != two
    assert max(len(one), len(two)) <= KEY_LENGTH
    _validate_metric_name(one)


def test_long_values_stay_apart_within_the_limit():
    one, two = (shortened("v" * 9000 + end, 6000) for end in "12")
    assert one != two
    assert len(one) == len(two) == 6000
    assert shortened("short", 6000) == "short"
