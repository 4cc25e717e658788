"""Sources of workloads, each with what it must give and refuse."""

import pytest
from kernel_lab.runner.errors import ConfigError
from kernel_lab.runner.question.compose import compose
from kernel_lab.runner.question.shapes import expand


@pytest.fixture
def shapes(outside):
    def _shapes(*overrides):
        return expand(compose(["kernel=tiny", *overrides], [outside]))

    return _shapes


def table(expanded, *axes):
    return [tuple(shape.axes[axis] for axis in axes) for shape in expanded.shapes]


def test_the_kernel_s_own_set_is_the_default(shapes):
    assert table(shapes(), "M", "N", "K") == [(8, 32, 4), (8, 64, 4), (16, 32, 4), (16, 64, 4)]


def test_axes_are_complete_and_in_the_kernel_s_order(shapes):
    shape = shapes("shapes.product.M=[1]").shapes[0]
    assert list(shape.axes) == ["M", "N", "K", "act", "causal", "scale", "layout"]
    assert shape.axes["act"] == "none"
    assert shape.axes["causal"] is False


def test_a_product_takes_other_axes_from_the_default_set_then_from_defaults(shapes):
    assert table(shapes("shapes.product.N=[5]"), "M", "N", "K") == [(8, 5, 4), (16, 5, 4)]


def test_cases_take_other_axes_from_defaults_only(shapes):
    assert table(shapes("shapes.cases=[{M: 1, N: 2}]"), "M", "N", "K") == [(1, 2, 16)]
    with pytest.raises(ConfigError, match=r"shapes\.cases\[0\]: axis N of tiny has no value"):
        shapes("shapes.cases=[{M: 1}]")


def test_zip_advances_together(shapes):
    assert table(shapes("shapes=square"), "M", "N") == [(1, 1), (2, 2), (3, 3)]


def test_zip_must_be_equally_long(shapes):
    with pytest.raises(ConfigError, match="M has 1, N has 3"):
        shapes("shapes=square", "shapes.product.M=[1]")
    with pytest.raises(ConfigError, match=r"shapes\.zip=Q: unknown"):
        shapes("shapes.product.M=[1]", "shapes.zip=[[M, Q]]")


def test_model_with_tensor_parallelism(shapes):
    found = shapes("shapes=small_model", "shapes.workloads=[up, down]", "shapes.tp=4")
    assert table(found, "M", "N", "K", "act") == [
        (1, 64, 16, "gelu"),
        (4, 64, 16, "gelu"),
        (1, 64, 64, "none"),
        (4, 64, 64, "none"),
    ]
    assert [shape.name for shape in found.shapes] == ["up", "up", "down", "down"]


def test_model_with_further_axes(shapes):
    found = shapes("shapes=small_model", "shapes.workloads=[down]", "shapes.axes.act=[none, gelu]")
    assert table(found, "M", "act") == [(1, "none"), (1, "gelu"), (4, "none"), (4, "gelu")]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["shapes.tp=3", "shapes.workloads=[up]"], r"from_model\.up\.N: 'intermediate/tp'.*tp=3"),
        (["shapes.workloads=[upp]"], r"shapes\.workloads=upp: unknown.*Did you mean up\?"),
        (["shapes.workloads=[head]"], r"from_model\.head\.N: 'vocab/tp': name=vocab: unknown"),
        (["shapes.workloads=[up]", "shapes.tokens=[]"], r"shapes\.tokens: empty, but up needs it"),
        (
            ["shapes.workloads=[up]", "shapes.axes.act=[none]"],
            r"the model already gives act",
        ),
        (["shapes.product.M=[1]"], r"shapes\.product and shapes\.model are both given"),
        (["shapes.workloads=[up]", "shapes.tokens=[-1]"], r"shapes\.tokens: -1 is below min 0"),
    ],
)
def test_model_refusals(shapes, overrides, message):
    with pytest.raises(ConfigError, match=message):
        shapes("shapes=small_model", *overrides)


def test_two_sources_are_named(shapes):
    with pytest.raises(ConfigError, match=r"shapes\.cases and shapes\.product are both given"):
        shapes("shapes.cases=[{M: 1, N: 1}]", "shapes.product.M=[1]")


def test_what_belongs_to_a_model_is_not_ignored_elsewhere(shapes):
    with pytest.raises(ConfigError, match=r"shapes\.axes: only goes with shapes\.model"):
        shapes("shapes.axes.act=[gelu]")


def test_exclude_says_which_condition(shapes):
    found = shapes("shapes=square", "shapes.exclude=['M == 2', 'N > 2 and dtype == \"bf16\"']")
    assert table(found, "M") == [(1,)]
    assert [(s.axes["M"], why) for s, why in found.excluded] == [
        (2, "M == 2"),
        (3, 'N > 2 and dtype == "bf16"'),
    ]


def test_duplicates_are_dropped_and_counted(shapes):
    found = shapes("shapes.cases=[{M: 1, N: 1}, {M: 1.0, N: 1}, {M: 1, N: 1, K: 16}, {M: 2, N: 1}]")
    assert table(found, "M") == [(1,), (2,)]
    assert found.duplicates == 2


def test_zero_is_legal(shapes):
    assert table(shapes("shapes.product.M=[0]", "shapes.product.N=[1]"), "M") == [(0,)]


def test_integral_floats_are_integers(shapes):
    values = table(shapes("shapes.product.N=[1e9, 2.0]", "shapes.product.M=[1]"), "N")
    assert values == [(1_000_000_000,), (2,)]
    assert all(type(value) is int for (value,) in values)


def test_a_float_axis_stays_one(shapes):
    (value,) = table(shapes("shapes.cases=[{M: 1, N: 1, scale: 2}]"), "scale")[0]
    assert type(value) is float


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("shapes.product.M=[-1]", r"^shapes\.product\.M: -1 is below min 0"),
        ("shapes.product.N=[1e30]", r"^shapes\.product\.N: 1e\+30 is beyond 2\^63"),
        ("shapes.product.scale=[nan]", r"^shapes\.product\.scale: nan is no finite number"),
        ("shapes.product.M=[2e6]", r"^shapes\.product\.M: 2000000\.0 is above max 1e\+06"),
        ("shapes.product.M=[1.5]", r"^shapes\.product\.M: 1\.5 .*an integer is meant"),
        ("shapes.product.M=[true]", r"^shapes\.product\.M: true is a boolean; an integer is meant"),
        ("shapes.product.M=[null]", r"^shapes\.product\.M: None is no value"),
        ("shapes.product.M=[]", r"^shapes\.product\.M: an empty list"),
        ("shapes.product.act=[gelo]", r"^shapes\.product\.act=gelo: unknown.*Did you mean gelu\?"),
        ("shapes.product.act=[true]", r"^shapes\.product\.act: true is a boolean; a name is meant"),
        (
            "shapes.product.causal=[maybe]",
            r"^shapes\.product\.causal: maybe is text; true or",
        ),
        ("shapes.product.Q=[1]", r"axis=Q: unknown\. Choices: K, M, N, act, causal, layout, scale"),
        ("shapes.cases=[{M: 1, N: 1, Q: 1}]", r"^shapes\.cases\[0\]: axis=Q: unknown"),
        ("shapes.cases=[{M: -3, N: 1}]", r"^shapes\.cases\[0\]\.M: -3 is below min 0"),
        ("shapes.exclude=['Mx > 1']", r"^shapes\.exclude\[0\]: 'Mx > 1': name=Mx: unknown"),
        ("shapes.product.layout=[padded]", r"^shapes\.product\.layout=padded: unknown"),
    ],
)
def test_values_against_the_axis(shapes, override, message):
    with pytest.raises(ConfigError, match=message):
        shapes(override)


def test_a_very_large_product_is_refused(shapes):
    many = ",".join(str(n) for n in range(1000))
    with pytest.raises(ConfigError, match="1000000 workloads; at most"):
        shapes(f"shapes.product.M=[{many}]", f"shapes.product.N=[{many}]")
