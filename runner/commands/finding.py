"""`klab finding`: keeps what a run found, and prints the tables of what is kept."""

import argparse
import difflib
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigError
from ..folder import read_job
from ..outputs import checkout, find_job, outputs
from ..report import doctor_finding, finding_place
from ..report.finding_place import replaced
from ..report.finding_tables import filled, read_findings
from ..report.findings import write_finding
from ..report.text import short_commit

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
    return _keep(asked.run, folder, named=asked.output is not None)


def _keep(run: str, findings: Path, *, named: bool) -> int:
    """Writes the finding of a run, and says what it replaces and what is to be done next."""
    measured = _doctor(run)
    if measured is not None:
        place = doctor_finding.place(doctor_finding.read(measured))
        before = replaced(findings / place)
        path = doctor_finding.write_finding(measured, findings)
    else:
        job = read_job(_folder(run))
        before = replaced(findings / finding_place.place(job))
        path = write_finding(job, findings)
    sys.stdout.write(f"wrote {path}\n")
    if before:
        sys.stdout.write(f"replaces {before}\n")
    commit = json.loads(path.read_text())["commit"] or "unknown"
    if commit == "unknown" or commit.endswith("-dirty"):
        sys.stdout.write(f"note: {short_commit(commit)}: no commit holds the code it ran with\n")
    sys.stdout.write(f"next: {_next(path, findings, named=named)}\n")
    return 0


def _next(path: Path, findings: Path, *, named: bool) -> str:
    """How the finding comes into a document: its tables stand between markers."""
    name = f"{path.parent.name}/{path.stem}"
    texts = [file.read_text() for file in _documents(findings) if file.exists()]
    doctor = path.name == doctor_finding.FILE
    heads = (f"findings: {name} ", "findings: all " if not doctor else f"findings: {name} ")
    again = "klab finding --tables" + (f" --output {shlex.quote(str(findings))}" * named)
    if any(head in text for text in texts for head in heads):
        return f"{again} prints it into the documents"
    where = " or ".join(str(file) for file in _documents(findings))
    return f"put <!-- findings: {name} --> and <!-- end --> into {where}, then {again}"


def _documents(findings: Path) -> tuple[Path, Path]:
    """README.md and experiments/README.md of the checkout that holds the findings."""
    root = findings.resolve().parent.parent
    return root / "README.md", root / "experiments" / "README.md"


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
    except ConfigError as error:
        if not _looks_like_run(run):
            doctors = sorted(place.name for place in (outputs() / "doctor").glob("doctor-*"))
            more = f" Doctors: {', '.join(doctors[-10:])}." if doctors else ""
            raise ConfigError(f"{error}{more}") from error
    from ..tracking.store import folder_of_run, locate

    return folder_of_run(locate(outputs()), run)


def _looks_like_run(text: str) -> bool:
    return len(text) == 32 and all(character in "0123456789abcdef" for character in text)


def _tables(findings: Path, *, check: bool) -> int:
    """Prints into the documents of the checkout that holds the findings."""
    known = read_findings(findings)
    root = _documents(findings)[0].parent
    differing = 0
    for file in _documents(findings):
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
