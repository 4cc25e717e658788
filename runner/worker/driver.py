"""The few calls of the CUDA driver that torch does not offer. They act on the current context."""

import ctypes
from collections import Counter
from functools import cache

_KINDS = {
    0: "kernel",
    1: "memcpy",
    2: "memset",
    3: "host",
    4: "graph",
    5: "empty",
    6: "wait",
    7: "record",
    10: "allocate",
    11: "free",
}
"""CUgraphNodeType; what is not named here is `other`."""

_CHILD = "graph"


class DriverError(RuntimeError):
    """A call of the driver that did not succeed, with its number."""


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: object) -> None:
    if code := getattr(_library(), name)(*arguments):
        raise DriverError(f"{name} failed with error {code}")


def reset_persisting_l2() -> None:
    """Lines that an access policy holds in L2 become ordinary ones. Raises DriverError, or OSError
    where there is no driver."""
    _call("cuCtxResetPersistingL2Cache")


def graph_nodes(graph: int) -> Counter[str]:
    """How many nodes of each kind a CUgraph holds, those of child graphs in their place.

    `graph` is the handle as `CUDAGraph.raw_cuda_graph` gives it. Raises DriverError.
    """
    count = ctypes.c_size_t()
    handle = ctypes.c_void_p(graph)
    _call("cuGraphGetNodes", handle, None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    if count.value:
        _call("cuGraphGetNodes", handle, nodes, ctypes.byref(count))
    found: Counter[str] = Counter()
    for node in nodes:
        kind = ctypes.c_int()
        _call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        name = _KINDS.get(kind.value, "other")
        if name == _CHILD:
            child = ctypes.c_void_p()
            _call("cuGraphChildGraphNodeGetGraph", ctypes.c_void_p(node), ctypes.byref(child))
            found += graph_nodes(child.value or 0)
        else:
            found[name] += 1
    return found
