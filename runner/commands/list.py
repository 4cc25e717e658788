"""`klab list`: what can be named, with a line on each. Composes nothing."""

import json
import sys
import textwrap
from collections.abc import Sequence

from rich.markup import escape

from ..errors import unknown
from ..question import vocabulary
from ..report.console import Console
from .arguments import parse

SUMMARY = "kernels, experiments, shapes, targets ... that can be named"

PLURALS = {
    "kernels": "kernel",
    "experiments": "experiment",
    "shapes": "shapes",
    "models": "model",
    "dtypes": "dtype",
    "targets": "target",
    "protocols": "protocol",
    "traces": "trace",
    "trackings": "tracking",
    "implementations": "implementation",
}

HELP = f"""klab list [--json] [--config-dir FOLDER] [{"|".join(PLURALS)}]

{SUMMARY}
"""


def main(argv: Sequence[str]) -> int:
    """Lists the groups named, or all. Raises ConfigError for a group that is none."""
    arguments = parse(argv, flags=("--json",))
    if arguments.help:
        sys.stdout.write(HELP)
        return 0
    singular = set(PLURALS.values())
    for word in arguments.overrides:
        if word not in PLURALS and word not in singular:
            raise unknown("group", word, PLURALS, between=" ")
    asked = [PLURALS.get(word, word) for word in arguments.overrides] or list(PLURALS.values())
    found = vocabulary.read(arguments.config_dirs)
    rows = [row for group in asked for row in _rows(found, group)]
    if "--json" in arguments.flags:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return 0
    console = Console() if sys.stdout.isatty() else Console(width=200)
    for group in dict.fromkeys(row["group"] for row in rows):
        console.print(f"[bold]{escape(group)}[/]=")
        own = [row for row in rows if row["group"] == group]
        wide = max(len(row["name"]) for row in own)
        for row in own:
            head = f"  {row['name']:<{wide}}  "
            room = max(console.width - len(head), 20)
            for line in textwrap.wrap(row["doc"], room) or [""]:
                console.print(f"{head}{line}".rstrip(), highlight=False, markup=False)
                head = " " * len(head)
    for group in asked:
        if not any(row["group"].split("/")[0] == group for row in rows):
            console.print(f"[bold]{escape(group)}[/]= (none)")
    return 0


def _rows(found: vocabulary.Vocabulary, group: str) -> list[dict[str, str]]:
    groups = [g for g in found.groups() if g == group or g.startswith(f"{group}/")]
    return [
        {
            "group": g,
            "name": entry.name,
            "doc": f"cannot be read: {entry.error}" if entry.error else entry.doc,
            "path": str(entry.path),
        }
        for g in groups
        for _, entry in sorted(found.entries[g].items())
    ]
