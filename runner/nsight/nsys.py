"""A command under Nsight Systems: profiled, its report exported to SQLite, both looked at.

The tool's exit code is the command's. A report may be missing, or empty, with exit code 0.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..limited import Ended, run_limited
from .tools import NsightError, Tool, allowed

_EXPORT_LIMIT_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What nsys left: its own report, and the SQLite export that is joined."""

    path: Path
    sqlite: Path
    seconds: float


def profile_words(tool: Tool, report: Path, words: Sequence[str]) -> list[str]:
    """The command line. No sampling and no context switches: neither needs a permission then.

    Graph launches are traced node by node, so that every kernel of theirs has a row.
    """
    return [
        *(str(tool.path), "profile"),
        *("-t", "cuda,nvtx", "-s", "none", "--cpuctxsw=none", "--cuda-graph-trace=node"),
        *("-f", "true", "-o", str(report.with_suffix(""))),
        *words,
    ]


def profile(
    tool: Tool,
    words: Sequence[str],
    *,
    report: Path,
    environment: Mapping[str, str],
    limit_s: float,
) -> Report:
    """Runs the command under nsys and exports `report` (`NAME.nsys-rep`) beside it.

    The logs `NAME.nsys.log` and `NAME.export.log` stand there too. Raises NsightError where the
    command failed, where no report came, and where it cannot be exported.
    """
    report.unlink(missing_ok=True)
    done = run_limited(
        profile_words(tool, report, words),
        environment=allowed(environment),
        log=report.with_suffix(".nsys.log"),
        limit_s=limit_s,
    )
    if done.reason:
        raise NsightError(f"the command under nsys failed: {done.reason}; see {done.log.name}")
    if not _there(report):
        raise NsightError(f"nsys ended well and wrote no report; see {done.log.name}")
    return Report(path=report, sqlite=export(tool, report), seconds=done.seconds)


def export(tool: Tool, report: Path) -> Path:
    """`NAME.sqlite` beside the report. Raises NsightError where it cannot be made."""
    target = report.with_suffix(".sqlite")
    target.unlink(missing_ok=True)
    words = [str(tool.path), "export", "--quiet", "true", "--type", "sqlite", "-f", "true"]
    done: Ended = run_limited(
        [*words, "-o", str(target), str(report)],
        environment=allowed(os.environ),
        log=report.with_suffix(".export.log"),
        limit_s=_EXPORT_LIMIT_S,
    )
    if done.reason:
        raise NsightError(f"nsys export failed: {done.reason}; see {done.log.name}")
    if not _there(target):
        raise NsightError(f"nsys export wrote no {target.name}; see {done.log.name}")
    return target


def _there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
