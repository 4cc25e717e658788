"""A kernel whose implementations are wrong on purpose, each in its own way: y = x + 1."""

import os
import signal
import subprocess
import sys
import time

import torch


def make_inputs(draw, *, N, **_):
    return {"x": draw(N)}


def reference(x):
    return x + 1


def cost(*, itemsize, output_itemsize, N, **_):
    """One read and one write an element."""
    moved = {"bytes_read": N * itemsize, "bytes_written": N * output_itemsize}
    return {"one": [{"name": "add", "kind": "pointwise", "flops": N, **moved}]}


def right(x):
    return x + 1


def also_right(x):
    return torch.add(x, 1)


def off_by_a_little(x):
    return x * 1.01 + 1


def all_nan(x):
    return torch.full_like(x, float("nan"))


def zeros(x):
    return torch.zeros_like(x)


def last_element_missing(x):
    y = x + 1
    y[-1] = 0
    return y


def never_written(x):
    return torch.empty_like(x)


def half_written(x):
    y = torch.empty_like(x)
    half = x.numel() // 2
    y[:half] = x[:half] + 1
    return y


def mutates_its_input(x):
    x += 1
    return x.clone()


_by_shape = {}
_by_address = {}


def remembers_by_shape(x):
    if tuple(x.shape) not in _by_shape:
        _by_shape[tuple(x.shape)] = x + 1
    return _by_shape[tuple(x.shape)]


def remembers_by_address(x):
    if x.data_ptr() not in _by_address:
        _by_address[x.data_ptr()] = x + 1
    return _by_address[x.data_ptr()]


def remembers_by_address_and_version(x):
    """What autograd's counter does not count must show too."""
    key = (x.data_ptr(), x._version)
    if key not in _by_address:
        _by_address[key] = x + 1
    return _by_address[key]


_hidden = {}


def accumulates(x):
    """In place, on a buffer of its own."""
    sums = _hidden.setdefault(tuple(x.shape), torch.zeros_like(x))
    sums += x + 1
    return sums.clone()


def returns_its_buffer(x):
    """The next call overwrites what this one returned."""
    return torch.add(x, 1, out=_hidden.setdefault(("out", *x.shape), torch.empty_like(x)))


def returns_its_input(x):
    """In place: the right values, in the caller's own tensor."""
    x += 1
    return x


def one_element_short(x):
    return (x + 1)[:-1]


def double(x):
    return (x + 1).double()


def two_outputs(x):
    return x + 1, x


def raises(x):
    raise RuntimeError("this path always raises")


def not_for_this(x):
    raise NotImplementedError("only for vectors of length 7")


def too_much_memory(x):
    return torch.empty(1 << 50, dtype=x.dtype)


def segfaults(x):
    os.kill(os.getpid(), signal.SIGSEGV)


def exits(x):
    os._exit(7)


def killed_from_outside_always(x):
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(x):
    """SIGKILL the first time any process comes here, right afterwards."""
    marker = os.environ["KLAB_TEST_MARKER"]
    if not os.path.exists(marker):  # noqa: PTH110
        open(marker, "w").close()  # noqa: PTH123
        os.kill(os.getpid(), signal.SIGKILL)
    return x + 1


def hangs(x):
    if marker := os.environ.get("KLAB_TEST_MARKER"):
        open(marker, "w").close()  # noqa: PTH123
    time.sleep(3600)


def floods(x):
    sys.stdout.write("x" * 4096 + "\n")
    os.write(2, b'{"say": "records", "records": []}\n')
    return x + 1


def forks(x):
    """Leaves a child that holds every descriptor open, and dies itself."""
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(9)


def spawns(x):
    subprocess.Popen(["sleep", "3600"])
    return x + 1
