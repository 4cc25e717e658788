"""The private line between supervisor and worker: JSON messages over a Unix socket.

A socket's path survives every wrapper (a profiler, a shell, `env -i`), and nothing that a kernel
prints can reach it. One message is one line.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from .errors import WorkerError

_LONE = re.compile("[\ud800-\udfff]")


def encoded(message: dict[str, Any]) -> bytes:
    """The message as one line of JSON. Whoever reads it finds lone surrogates spelt out, as
    `printable` has them: a traceback may hold any. Raises ValueError for NaN and infinity."""
    text = json.dumps(message, allow_nan=False, ensure_ascii=False)
    return _LONE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text).encode()


class Channel:
    """One end of the line."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pending = b""

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """Sends one message. Raises OSError where the other end is gone."""
        self._connection.sendall(encoded(message) + b"\n")

    def receive(self) -> dict[str, Any] | None:
        """Waits for one message; None when the other end is gone."""
        while b"\n" not in self._pending:
            try:
                part = self._connection.recv(1 << 20)
            except OSError:
                return None
            if not part:
                return None
            self._pending += part
        line, self._pending = self._pending.split(b"\n", 1)
        return json.loads(line)

    @property
    def waiting(self) -> bool:
        """Whether a whole message was read already and waits here."""
        return b"\n" in self._pending

    def close(self) -> None:
        self._connection.close()


def connect(path: str) -> Channel:
    """The worker's end."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return Channel(connection)


SHORT_FOLDERS = ("/tmp", "/dev/shm")
"""Where the socket lies if TMPDIR's path is too long for it, as a batch system's may be."""

_PATH_BYTES = 107
"""Linux: 108 in all, of which the last is a zero."""

_OWN_BYTES = len("/klab-12345678/s")


def _short_folder() -> str:
    """A new folder, this user's own, for a socket. Raises WorkerError where none can be made."""
    folders = [tempfile.gettempdir(), *SHORT_FOLDERS]
    for folder in folders:
        if len(os.fsencode(folder)) + _OWN_BYTES <= _PATH_BYTES:
            with contextlib.suppress(OSError):
                return tempfile.mkdtemp(prefix="klab-", dir=folder)
    raise WorkerError(
        f"no folder for the socket between supervisor and worker, whose path may hold {_PATH_BYTES}"
        f" bytes: {', '.join(folders)} cannot be written or are longer than "
        f"{_PATH_BYTES - _OWN_BYTES}. Set TMPDIR to a short folder that can be written."
    )


class Listener:
    """The supervisor's end until the worker has called; its folder goes when it closes. Raises
    WorkerError where there is no place for it."""

    def __init__(self) -> None:
        self._folder = _short_folder()  # wherever outputs lie: their path may be of any length
        self.path = str(Path(self._folder) / "s")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen(1)
        os.set_inheritable(self._socket.fileno(), False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> Channel:
        connection, _ = self._socket.accept()
        return Channel(connection)

    def __enter__(self) -> "Listener":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)
