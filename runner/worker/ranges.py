"""NVTX ranges in the grammar that traces are joined by; nothing without the `nvtx` package.

Domain `kernel-lab`; nested: `job=<id>;kernel=NAME` > `cell=0017;impl=NAME` > phase, one of
check, warmup, measure, trace. The payload of each is its index into `ranges.json`. Names hold
none of `@ , [ ] / * + $ \\`, which Nsight Compute's filters would read as operators.
"""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

try:
    import nvtx
except ImportError:  # optional: ranges are then no-ops, which `available` tells
    nvtx = None

DOMAIN = "kernel-lab"
PHASES = ("check", "warmup", "measure", "trace")
_FORBIDDEN = re.compile(r"[@,\[\]/*+$\\;= ]")


def clean(name: str) -> str:
    """A name without the characters that the range grammar or the tools reserve."""
    return _FORBIDDEN.sub("_", name)


def _forced_domain() -> Any:
    """A domain that records under a tool which does not know the package's question.

    The package nvtx asks from 0.2.12 on whether its domain is enabled; nsys up to 2023.4 does not
    answer, and every range would be dropped without a word. Only then is the domain made past that
    question. None where ranges are recorded as they are, or nobody records.
    """
    if nvtx is None or not os.environ.get("NVTX_INJECTION64_PATH"):
        return None
    try:
        from nvtx._lib import lib

        if not isinstance(nvtx.get_domain(DOMAIN), lib.DummyDomain):
            return None
        domain = object.__new__(lib.Domain)
        domain.handle = lib.DomainHandle(DOMAIN)
        domain.__init__(DOMAIN)
    except (ImportError, AttributeError, TypeError):
        return None  # an older package, which records; or a newer one, whose silence is found
    return domain


class Ranges:
    """Opens ranges and remembers what each payload means."""

    def __init__(self, job: str, kernel: str) -> None:
        self._job = job
        self._kernel = kernel
        self._forced = _forced_domain()
        self._index: dict[tuple[str, str, str, str], int] = {}
        self.table: list[dict[str, Any]] = []

    @property
    def available(self) -> bool:
        return nvtx is not None

    def payload(
        self, message: str, *, cell: str = "", implementation: str = "", phase: str = ""
    ) -> int:
        """The index of a range in the table; the same range keeps its index."""
        key = (message, cell, implementation, phase)
        if key not in self._index:
            self._index[key] = len(self.table)
            self.table.append(
                {
                    "index": len(self.table),
                    "message": message,
                    "job": self._job,
                    "cell": cell,
                    "implementation": implementation,
                    "phase": phase,
                }
            )
        return self._index[key]

    @contextmanager
    def job(self) -> Generator[int]:
        """The outermost range, open while the worker works on a job."""
        message = f"job={clean(self._job)};kernel={clean(self._kernel)}"
        with self._open(message, self.payload(message)) as index:
            yield index

    @contextmanager
    def step(
        self, cell_index: int, cell_id: str, implementation: str, phase: str
    ) -> Generator[int]:
        """The two inner ranges: who, and what is done. Yields the inner one's index."""
        if phase not in PHASES:
            raise ValueError(f"phase {phase}: not one of {', '.join(PHASES)}")
        outer = f"cell={cell_index:04d};impl={clean(implementation)}"
        who = {"cell": cell_id, "implementation": implementation}
        with (
            self._open(outer, self.payload(outer, **who)),
            self._open(phase, self.payload(f"{outer}>{phase}", **who, phase=phase)) as index,
        ):
            yield index

    @contextmanager
    def _open(self, message: str, index: int) -> Generator[int]:
        if nvtx is None:
            yield index
            return
        if self._forced is None:
            with nvtx.annotate(message=message, domain=DOMAIN, payload=index):
                yield index
            return
        self._forced.push_range(self._forced.get_event_attributes(message, None, None, index))
        try:
            yield index
        finally:
            self._forced.pop_range()
