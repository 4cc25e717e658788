"""glibc's allocator, told how to treat the CPU's memory; elsewhere nothing is done, and said so."""

import ctypes
from collections.abc import Callable

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_PERTURB = -1, -4, -6
_LARGEST = 2**31 - 1


def keep_freed() -> str:
    """Keeps freed memory in the process, as the GPU's caching allocator does.

    Without it every large output is mapped anew and paid for page by page: what is measured then
    is the kernel's zeroing of pages, many times the memory traffic of the call.
    """
    mallopt = _mallopt()
    if mallopt is None:
        return "unchanged: no glibc"
    kept = mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, _LARGEST)
    return "freed memory kept (glibc mallopt)" if kept else "unchanged: mallopt refused"


def perturb(byte: int) -> bool:
    """Fresh memory is filled with the complement of `byte` from here on; 0 ends it."""
    mallopt = _mallopt()
    return mallopt is not None and bool(mallopt(_M_PERTURB, byte))


def _mallopt() -> Callable[[int, int], int] | None:
    try:
        return ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return None
