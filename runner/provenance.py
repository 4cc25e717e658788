"""Where the code stands: git state, the kernel's source, and the signature of a job's content."""

import hashlib
import importlib.util
import json
import os
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_VERSIONS = ("torch", "triton", "kernel-lab")
_NOT_CONTENT = ("tracking", "worker", "cell", "strict", "device", "trace", "question")
"""Keys of the config that change nothing of what is measured."""


def code_state() -> dict[str, Any]:
    """Commit, whether the tree is dirty, and the hash of its differences; from git or KLAB_COMMIT.

    Every value is None where neither knows.
    """
    checkout = Path(__file__).resolve().parent.parent
    # a package installed somewhere inside another project's checkout has not that commit
    ours = _git(checkout, "ls-files", "--error-unmatch", __file__) is not None
    commit = _git(checkout, "rev-parse", "HEAD") if ours else None
    if commit is None:
        return {"commit": os.environ.get("KLAB_COMMIT"), "dirty": None, "diff_sha": None}
    status = _git(checkout, "status", "--porcelain", "--untracked-files=normal") or ""
    diff = _git(checkout, "diff", "HEAD") or ""
    dirty = bool(status.strip())
    digest = hashlib.sha256((status + diff).encode()).hexdigest()[:16] if dirty else None
    return {"commit": commit, "dirty": dirty, "diff_sha": digest}


def commit_text(code: Mapping[str, Any]) -> str | None:
    """The commit, with `-dirty` where the tree was."""
    commit = code.get("commit")
    return f"{commit}-dirty" if commit and code.get("dirty") else commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def source_hash(module: str, python_path: tuple[str, ...] = ()) -> str:
    """The hash of a kernel module's file; found on the Python path, not imported."""
    import sys

    added = [folder for folder in python_path if folder not in sys.path]
    sys.path.extend(added)
    try:
        spec = importlib.util.find_spec(module)
    except ImportError:
        spec = None
    finally:
        for folder in added:
            sys.path.remove(folder)
    if spec is None or spec.origin is None or not Path(spec.origin).exists():
        return "unknown"
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]


def versions() -> dict[str, str | None]:
    """Versions that decide what a kernel does."""
    found: dict[str, str | None] = {}
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def signature(config: dict[str, Any], kernel_source: str, gpu: str) -> str:
    """`s` and eleven hex digits: the same for the same question, code, versions and GPU."""
    content = {key: value for key, value in config.items() if key not in _NOT_CONTENT}
    whole = [content, kernel_source, versions(), gpu]
    text = json.dumps(whole, sort_keys=True, default=str)
    return "s" + hashlib.sha256(text.encode()).hexdigest()[:11]
