"""`klab finding`: keeps what a run found, and prints the tables of what is kept."""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigError
from ..folder import read_job
from ..outputs import checkout, find_job, outputs
from ..report import doctor_finding
from ..report.finding_tables import filled, read_findings
from ..report.findings import write_finding

SUMMARY = "write a run's finding to experiments/findings, or print the tables from them"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 where --check finds a table that differs. Raises ConfigError, StoreError."""
    parser = argparse.ArgumentParser(prog="klab finding", description=SUMMARY)
    parser.add_argument("run", nargs="?", help="a job or doctor id, an MLflow run id, or a folder")
    parser.add_argument("--output", type=Path, help="the findings folder")
    parser.add_argument("--tables", action="store_true", help="print the tables between markers")
    parser.add_argument("--check", action="store_true", help="with --tables: change nothing")
    asked = parser.parse_args(arguments)
    if asked.tables == (asked.run is not None):
        parser.error("give either a run or --tables")
    if asked.check and not asked.tables:
        parser.error("--check goes with --tables")
    folder = asked.output or _findings()
    if asked.tables:
        return _tables(folder, check=asked.check)
    measured = _doctor(asked.run)
    if measured is not None:
        path = doctor_finding.write_finding(measured, folder)
    else:
        path = write_finding(read_job(_folder(asked.run)), folder)
    sys.stdout.write(f"wrote {path}\n")
    sys.stdout.write("next: klab finding --tables prints it into experiments/README.md\n")
    return 0


def _findings() -> Path:
    root = checkout()
    if root is None:
        raise ConfigError("no checkout of the project here: name a folder with --output DIR")
    return root / "experiments" / "findings"


def _doctor(run: str) -> Path | None:
    """The folder that `klab doctor --measure` left, by its id or path; None: it is no such."""
    for folder in (Path(run).expanduser(), outputs() / "doctor" / run):
        if (folder / doctor_finding.FILE).is_file():
            return folder
    return None


def _folder(run: str) -> Path:
    """A job's folder by job id or path, or by the id of an MLflow run that was filed from it."""
    try:
        return find_job(run)
    except ConfigError:
        if not _looks_like_run(run):
            raise
    from ..tracking.store import folder_of_run, locate

    return folder_of_run(locate(outputs()), run)


def _looks_like_run(text: str) -> bool:
    return len(text) == 32 and all(character in "0123456789abcdef" for character in text)


def _tables(findings: Path, *, check: bool) -> int:
    """Prints into README.md and experiments/README.md of the checkout that holds the findings."""
    known = read_findings(findings)
    root = findings.parent.parent
    differing = 0
    for file in (root / "README.md", root / "experiments" / "README.md"):
        if not file.exists():
            continue
        before = file.read_text()
        after = filled(before, known, source=str(file.relative_to(root)))
        if before == after:
            continue
        differing += 1
        if check:
            sys.stdout.writelines(_difference(before, after, file.name))
        else:
            file.write_text(after)
            sys.stdout.write(f"wrote {file}\n")
    if check and differing:
        sys.stdout.write("the tables differ from the findings: klab finding --tables\n")
        return 1
    return 0


def _difference(before: str, after: str, name: str) -> list[str]:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, "from findings"
    )
    return list(lines)
