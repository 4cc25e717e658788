"""The clock rule as it is written."""

import pytest
from kernel_lab.runner.clocks import check_clocks, locked_mhz, said
from kernel_lab.runner.errors import ConfigError


@pytest.mark.parametrize(
    ("clocks", "mhz", "text"),
    [("observe", None, ""), ("lock:1500", 1500, "SM clock locked at 1500 MHz")],
)
def test_a_rule_is_read(clocks, mhz, text):
    assert locked_mhz(clocks) == mhz
    assert said(clocks) == text


@pytest.mark.parametrize(
    "clocks",
    ["", "lock", "lock:", "lock:0", "lock:-5", "lock:1.5e3", "lock:1500.0", "lock: 1500",
     "lock:1500MHz", "lock:0x5dc", "LOCK:1500", "observe:1500", "1500", "lock:1500\n",
     "lock:\u0661\u0665"],
)  # fmt: skip
def test_any_other_is_refused_with_key_value_and_forms(clocks):
    with pytest.raises(ConfigError) as raised:
        check_clocks(clocks, target="t", max_mhz=None)
    text = str(raised.value)
    assert text.startswith(f"protocol.clocks={clocks}: ")
    assert "Choices: observe, or lock:<MHz>" in text


def test_no_clock_above_the_targets_highest():
    check_clocks("lock:1980", target="h200_sxm", max_mhz=1980)
    check_clocks("lock:2500", target="b200", max_mhz=None)
    with pytest.raises(ConfigError, match=r"lock:1981: above 1980 MHz.*target=h200_sxm.*lock:1980"):
        check_clocks("lock:1981", target="h200_sxm", max_mhz=1980)
