"""Which files of a tool go to the tracking store, and what stands there in place of the others."""

import hashlib
import json
from pathlib import Path

REPORT_LIMIT = 64 << 20
"""Bytes of a report that is filed; a larger one is linked."""

_CHUNK = 1 << 20


def link(report: Path, reason: str) -> Path:
    """Writes `NAME.link.json` beside a report that stays where it is: its path, size and sha256,
    and why. A report with a link is not filed."""
    path = report.with_suffix(".link.json")
    digest = hashlib.sha256()
    with report.open("rb") as stream:
        while part := stream.read(_CHUNK):
            digest.update(part)
    values = {
        "path": str(report),
        "bytes": report.stat().st_size,
        "sha256": digest.hexdigest(),
        "reason": reason,
    }
    path.write_text(json.dumps(values, indent=1) + "\n")
    return path


def keep(report: Path, foreign: tuple[str, ...]) -> str:
    """Links a report that must not be filed, and says why; '' where it may be. `foreign` names
    variables of other processes that it holds."""
    reason = ""
    if foreign:
        shown = ", ".join(foreign[:5]) + (" ..." if len(foreign) > 5 else "")
        reason = (
            f"it holds environment variables that it was not given ({shown}): kept on this machine"
        )
    elif (size := report.stat().st_size) > REPORT_LIMIT:
        reason = f"{size / 1e6:.0f} MB are more than the {REPORT_LIMIT / 1e6:.0f} MB that are filed"
    if reason:
        report.chmod(0o600)
        link(report, reason)
    return reason
