"""Numbers as a person reads them: significant digits, and '-' where there is none."""

from collections.abc import Sequence

from ..records import Interval, Timing
from ..statistics import range_coverage

ABSENT = "-"


def number(value: float | None, digits: int = 4) -> str:
    """`digits` significant digits without an exponent up to 1e9: 0.0123, 1.234, 12345."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0"
    if abs(value) >= 1e9 or abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}"
    # the exponent after rounding: 9.9999 is 10.00
    magnitude = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:.{max(digits - 1 - magnitude, 0)}f}"


def interval(value: Interval | None, digits: int = 4) -> str:
    """`173.2 [172.9, 173.6]`."""
    if value is None:
        return ABSENT
    low, high = number(value.low, digits), number(value.high, digits)
    return f"{number(value.median, digits)} [{low}, {high}]"


def covers(timing: Timing, confidence: float = 0.95) -> str:
    """What a latency's interval is over: `95 % over rounds`, or over fresh processes, whose range
    it is where they are too few for more; how surely that holds the median is said."""
    count = len(timing.by_process)
    if count < 2:
        return f"{_share(confidence)} over rounds"
    reached = range_coverage(count)
    if reached >= confidence:
        return f"{_share(confidence)} over {count} fresh processes' medians"
    return f"the range over {count} fresh processes' medians, {_share(reached)}"


def ranges(timing: Timing, confidence: float = 0.95) -> bool:
    """Whether a latency's interval is the range of fresh processes too few for so much."""
    count = len(timing.by_process)
    return count > 1 and range_coverage(count) < confidence


def _share(value: float) -> str:
    return f"{100 * value:.4g} %"


def speedup(value: Interval, band: float) -> str:
    """`1.33 [1.32, 1.34]`: with more digits where three of them put a bound on the other side of
    1 + band or 1 / (1 + band), or on it, so that the verdict can be read off."""
    for digits in (3, 4, 5):
        if all(_apart(v, digits, edge) for v in (value.low, value.high) for edge in _edges(band)):
            return interval(value, digits)
    return interval(value, 6)


def _edges(band: float) -> tuple[float, float]:
    return 1 / (1 + band), 1 + band


def _apart(value: float, digits: int, edge: float) -> bool:
    """Whether the value as it is shown stands on its own side of the edge."""
    shown = float(number(value, digits))
    return abs(shown - edge) > 1e-9 and (shown > edge) == (value > edge)


def counted(count: int, noun: str, ending: str = "s") -> str:
    """`1 cell`, `2 cells`."""
    return f"{count} {noun}" + ("" if count == 1 else ending)


def percent(value: float | None) -> str:
    """A share as a whole per cent."""
    return ABSENT if value is None else f"{100 * value:.0f} %"


def rate(gbps: float | None, tflops: float | None, bound: str | None) -> str:
    """The rate that the workload's bound asks for: TFLOP/s when compute-bound, else GB/s."""
    if bound == "compute" and tflops is not None:
        return f"{number(tflops, 3)} TFLOP/s"
    if gbps is not None:
        return f"{number(gbps, 3)} GB/s"
    return ABSENT if tflops is None else f"{number(tflops, 3)} TFLOP/s"


def quantity(value: float, unit: str) -> str:
    """With a decimal prefix: `8 GB`, `137.4 GFLOP`."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def cache_state(state: str, cache: str) -> list[str]:
    """The cache state and how it was made, once where the second begins with the first."""
    if cache.startswith(state):
        return [cache]
    return [part for part in (state, cache) if part]


def duration(seconds: float) -> str:
    """In the unit that suits it: `11.4 us`, `250 ms`, `3.20 s`."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{number(seconds / factor, 3)} {unit}"
    return f"{number(seconds / 1e-6, 3)} us"


def short_commit(commit: str | None) -> str:
    """`commit 0123456789-dirty`."""
    sha, _, dirty = (commit or "unknown").partition("-")
    return f"commit {sha[:10]}" + (f"-{dirty}" if dirty else "")


def markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]], *, left: int) -> str:
    """The first `left` columns are words, the others numbers."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    cells = [[" ".join(text.split()).replace("|", "\\|") for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *cells])
