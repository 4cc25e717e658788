"""The labels of a calibration's cells, short enough for a table's first column."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def short_cells(rows: Sequence[Row]) -> tuple[list[str], str]:
    """The labels without what all cells of an experiment share, and a line that says what."""
    groups: dict[str, list[list[str]]] = {}
    for row in rows:
        groups.setdefault(row.get("experiment", ""), []).append(_words(row["cell"]))
    shared = {
        name: [w for w in held[0] if all(w in other for other in held)]
        if len({tuple(words) for words in held}) > 1
        else []
        for name, held in groups.items()
    }
    cells = []
    for row in rows:
        common = shared[row.get("experiment", "")]
        cells.append("-".join(w for w in _words(row["cell"]) if w not in common))
    said = [
        f"{name}: {'-'.join(words)}" if name else "-".join(words)
        for name, words in shared.items()
        if words
    ]
    return cells, "; ".join(said)


def _words(label: str) -> list[str]:
    """A label's parts: `N1024-factors2-fp32`."""
    return label.split("-")
