"""What a report of Nsight Systems holds of environments that nobody gave it.

nsys (2022.4 and 2025.3) reads the environment of other processes of the machine, that of the shell
and the program which started it among them: an allow-list at its own start does not keep a token
out of the report. Started apart from them it sees none; a report is looked through all the same.
"""

import os
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from .tools import allowed

_BLOCK = re.compile(r"(?:^|\0)([A-Za-z_][A-Za-z0-9_]*)=")
_OWN = ("LD_PRELOAD", "NVTX_INJECTION", "CUDA_INJECTION", "NSYS_", "QUADD_")
"""What nsys itself sets for the program."""

_HARMLESS = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "SHELL", "TERM", "HOSTNAME"})
"""Variables that every shell sets."""


def strangers(sqlite: Path) -> tuple[str, ...]:
    """Names of the environment variables in an export that no tool was given, never their values.

    A block of an environment begins with `NAME=`, and its variables end with a zero byte. Raises
    sqlite3.Error where the file is no database.
    """
    with closing(sqlite3.connect(f"file:{sqlite}?mode=ro", uri=True)) as connection:
        texts = [
            value
            for (value,) in connection.execute("SELECT value FROM StringIds")
            if isinstance(value, str) and "\0" in value and _BLOCK.match(value)
        ]
    names = {name for text in texts for name in _BLOCK.findall(text)}
    foreign = [n for n in names - _HARMLESS if not n.startswith(_OWN) and not allowed({n: ""})]
    return tuple(sorted(foreign))


def apart() -> tuple[str, ...]:
    """Words before a tool's own that show it no other process of this machine; empty where the
    system does not permit it.

    A process-id namespace with a /proc of its own: in it nsys finds nobody's environment but what
    it was given. Its shared memory is its own too: nsys names it by process ids, which begin anew
    in every such namespace, and one that was left behind stops the next. Root may make them;
    others need user namespaces.
    """
    user = ("--user", "--map-root-user") if os.geteuid() else ()
    words = (
        *("unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"),
    )
    try:
        done = subprocess.run(
            [*words, "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return words if done.returncode == 0 else ()
