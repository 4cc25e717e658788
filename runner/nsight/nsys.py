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
    done = _made(
        report,
        profile_words(tool, report, words),
        environment=environment,
        log=report.with_suffix(".nsys.log"),
        limit_s=limit_s,
        what="the command under nsys",
    )
    return Report(path=report, sqlite=export(tool, report), seconds=done.seconds)


def export(tool: Tool, report: Path) -> Path:
    """`NAME.sqlite` beside the report. Raises NsightError where it cannot be made."""
    target = report.with_suffix(".sqlite")
    words = [str(tool.path), "export", "--quiet", "true", "--type", "sqlite", "-f", "true"]
    _made(
        target,
        [*words, "-o", str(target), str(report)],
        environment=os.environ,
        log=report.with_suffix(".export.log"),
        limit_s=_EXPORT_LIMIT_S,
        what="nsys export",
    )
    return target


def _made(
    file: Path,
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    log: Path,
    limit_s: float,
    what: str,
) -> Ended:
    """Runs what makes the file anew. Raises NsightError where it fails, or leaves nothing."""
    file.unlink(missing_ok=True)
    done = run_limited(words, environment=allowed(environment), log=log, limit_s=limit_s)
    if done.reason:
        raise NsightError(f"{what} failed: {done.reason}; see {log.name}")
    if not file.is_file() or not file.stat().st_size:
        raise NsightError(f"{what} ended well and wrote no {file.name}; see {log.name}")
    return done
