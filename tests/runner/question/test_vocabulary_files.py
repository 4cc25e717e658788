"""Where words come from, and how YAML scalars are read."""

import math

import pytest
import yaml
from kernel_lab.runner.question import vocabulary
from kernel_lab.runner.question.targets import targets


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("true", True),
        ("False", False),
        ("1e9", 1e9),
        ("1_000", 1000),
        ("-3", -3),
        ("0x10", 16),
        ("010", "010"),
        ("10:30", "10:30"),
        ("2026-12-01", "2026-12-01"),
        ("1.5", 1.5),
        ("c1234567", "c1234567"),
        ("12e", "12e"),
        ("~", None),
        ("", None),
        ("none", "none"),
        ("null", None),
    ],
)
def test_scalars(text, value):
    read = vocabulary.load_yaml(f"key: {text}")["key"]
    assert read == value
    assert type(read) is type(value)


def test_infinity_and_merge_keys():
    assert math.isinf(vocabulary.load_yaml("a: .inf")["a"])
    assert vocabulary.load_yaml("a: &x {b: 1}\nc: {<<: *x, d: 2}")["c"] == {"b": 1, "d": 2}
    assert vocabulary.load_yaml("no: 1") == {"no": 1}


def test_a_key_twice_is_an_error():
    with pytest.raises(yaml.YAMLError, match="a stands there twice"):
        vocabulary.load_yaml("a: 1\nb: 2\na: 3")


def test_names_and_descriptions_without_composing(outside):
    found = vocabulary.read([outside])
    assert "tiny" in found.names("kernel")
    assert {"auto", "cpu", "h100_sxm"} <= set(found.names("target"))
    assert found.get("kernel", "tiny").doc == "y = x + y over M x N, K unused"
    assert found.get("shapes", "square").doc == "three sizes that grow together"
    assert found.get("experiment", "tiny_question").doc == 'Does it, "really", pay?'
    assert found.get("experiment", "saved").doc == "runs over dtypes"
    assert found.names("implementation/tiny") == ["guest"]
    assert found.python_path == [str(outside)]


def test_every_shipped_word_can_be_read_and_says_what_it_is():
    found = vocabulary.read()
    for group in found.groups():
        for entry in found.entries[group].values():
            assert not entry.error, entry
            assert entry.doc, entry.path


def test_targets_pass_over_what_is_no_target(outside, add):
    add({"target/odd.yaml": "kind: tpu", "target/mine.yaml": "kind: cuda\nproduct: Some GPU"})
    names = [target.name for target in targets([outside])]
    assert "mine" in names
    assert "odd" not in names
