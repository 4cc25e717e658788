"""Random inputs in the workload's dtype and layout, their copies for rotation, and poison.

Knows nothing of kernels: a kernel's `make_inputs` draws through `Draw`.
"""

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .host_memory import perturb

Inputs = tuple[Tensor | None, ...]

POISON_BYTE = 0x7F
"""As fp32 and bf16 about 3.4e38, as fp16 NaN: far from any right answer."""


_SMALL = 1032
"""Bytes up to which glibc may hand out freed blocks untouched (its per-thread cache)."""


CONSTANT = frozenset({"zeros"})
"""Distributions whose values are the same in every draw: fit for a time, not for a check."""

OUTLIER_CHANNELS = 0.001
OUTLIER_SCALE = (20.0, 100.0)
"""In transformers of 6.7 billion parameters and more about 0.1 % of the channels of an activation
are up to 20 times larger than the rest, in all tokens alike (Dettmers et al. 2022, LLM.int8(),
arXiv 2208.07339), about 100 times in OPT-175B (Xiao et al. 2022, SmoothQuant, arXiv 2211.10438)."""

_WHOLE = 8


class Draw:
    """Draws fresh random tensors: call it with a shape.

    `normal` has mean 0 and deviation `scale`; `uniform` lies in [-scale, scale]; `integers` are
    whole numbers in [-8, 8]; `zeros` are 0; `outliers` are normal, and of the first tensor drawn
    one channel in a thousand (at least one; the last dimension is the channels') is 20 to 100
    times larger, as far as the dtype reaches.
    """

    def __init__(
        self, dtype: torch.dtype, device: torch.device, distribution: str, seed: int
    ) -> None:
        self.dtype = dtype
        self.device = device
        self.distribution = distribution
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self._drawn = 0

    def __call__(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
        wanted = dtype or self.dtype
        # 8-bit floats have no random fill of their own: drawn in fp32 and rounded
        made = torch.float32 if wanted.itemsize == 1 else wanted
        out = torch.empty(shape, dtype=made, device=self.device)
        if self.distribution == "uniform":
            out.uniform_(-scale, scale, generator=self.generator)
        elif self.distribution == "integers":
            out.random_(-_WHOLE, _WHOLE + 1, generator=self.generator)
        elif self.distribution == "zeros":
            out.zero_()
        else:
            out.normal_(0.0, scale, generator=self.generator)
        if self.distribution == "outliers" and not self._drawn:
            self._enlarge_channels(out, torch.finfo(wanted).max)
        self._drawn += 1
        return out.to(wanted)

    def _enlarge_channels(self, out: Tensor, largest: float) -> None:
        channels = out.shape[-1] if out.ndim else 0
        if not channels:
            return
        count = max(1, round(OUTLIER_CHANNELS * channels))
        where = torch.randint(channels, (count,), device=self.device, generator=self.generator)
        where = where.unique()  # one drawn twice would be written twice, in any order
        low, high = OUTLIER_SCALE
        factors = torch.empty(len(where), device=self.device)
        factors.uniform_(low, high, generator=self.generator)
        enlarged = out[..., where].float() * factors
        out[..., where] = enlarged.clamp_(-largest, largest).to(out.dtype)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """int64 in [low, high)."""
        return torch.randint(low, high, shape, device=self.device, generator=self.generator)


def restride(tensor: Tensor, layout: str) -> Tensor:
    """The same values with other strides.

    transposed: the last two dimensions lie the other way in memory; padded: rows are followed by
    a gap of 64 elements; strided: every second element of a buffer twice as wide. Vectors know
    only `strided`; for them the others leave the tensor as it is. Raises ValueError on others.
    """
    if layout == "contiguous" or tensor.ndim == 0:
        return tensor
    if layout == "transposed":
        return tensor.mT.contiguous().mT if tensor.ndim >= 2 else tensor
    if layout == "padded":
        if tensor.ndim < 2:
            return tensor
        wide = tensor.new_empty((*tensor.shape[:-1], tensor.shape[-1] + 64))
        view = wide[..., : tensor.shape[-1]]
    elif layout == "strided":
        wide = tensor.new_empty((*tensor.shape[:-1], 2 * tensor.shape[-1]))
        view = wide[..., ::2]
    else:
        raise ValueError(f"layout {layout}: unknown")
    view.copy_(tensor)
    return view


def make(
    make_inputs: Callable[..., dict[str, Tensor | None]],
    draw: Draw,
    axes: dict[str, Any],
    layout: str,
) -> dict[str, Tensor | None]:
    """The inputs of one call by name, in call order, in the layout asked for.

    Raises TypeError where `make_inputs` returns something else than names with tensors.
    """
    named = make_inputs(draw, **axes)
    meant = "a dict of name to tensor (or None), in call order, is meant"
    if not isinstance(named, dict):
        raise TypeError(f"it returned {type(named).__name__}; {meant}")
    for name, tensor in named.items():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"it returned {name}: {type(tensor).__name__}; {meant}")
    return {n: None if t is None else restride(t, layout) for n, t in named.items()}


def refill(inputs: Inputs, source: Inputs) -> None:
    """Writes new values into the same memory, so that a result cached by address turns stale.

    Past autograd's version counters: one cached by address and version turns stale too.
    """
    for old, new in zip(inputs, source, strict=True):
        if old is not None and new is not None:
            _once_each(old).copy_(_once_each(new))


def vary(inputs: Inputs) -> None:
    """Values not seen before into the same memory: each a 64th larger and one place further.

    Signs and whole numbers (indices) stay, so that what an implementation demands of its inputs
    holds. Nothing but zeros stays as it is.
    """
    for tensor in inputs:
        if tensor is None or not tensor.is_floating_point():
            continue
        memory = _once_each(tensor)
        # 8-bit floats have no arithmetic of their own
        values = memory.float() if memory.element_size() == 1 else memory
        larger = values * (1 + 1 / 64)
        memory.copy_(larger.roll(1, -1) if larger.ndim else larger)


def _once_each(tensor: Tensor) -> Tensor:
    """Every place in memory once (an expanded tensor has many names for one), unseen by version
    counters."""
    tensor = tensor.data
    for dim in range(tensor.ndim):
        if tensor.shape[dim] > 1 and tensor.stride(dim) == 0:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def memory_of(tensor: Tensor) -> Tensor:
    """The memory between the first and the last element, gaps included, as a vector."""
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((span,), (1,), tensor.storage_offset())


def clone(inputs: Inputs) -> Inputs:
    """Copies with the same strides, gaps included; an expanded tensor stays expanded."""
    copies: list[Tensor | None] = []
    for tensor in inputs:
        if tensor is None or not tensor.numel():
            copies.append(None if tensor is None else tensor.new_empty(tensor.shape))
            continue
        copies.append(memory_of(tensor).clone().as_strided(tensor.shape, tensor.stride()))
    return tuple(copies)


def tensors(value: object) -> tuple[Tensor, ...]:
    """The tensors of an output: one, or a tuple or list of them."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(t for t in value if isinstance(t, Tensor))
    return ()


def nbytes(values: tuple[Tensor | None, ...]) -> int:
    """Bytes of the elements; what a call reads of them at the least."""
    return sum(t.numel() * t.element_size() for t in values if t is not None)


def copies_needed(bytes_per_call: int, cache_bytes: int, calls: int, memory_limit: int) -> int:
    """How many copies make a rotation cold: 3x the last-level cache in all, never more than calls.

    At least 1; bounded by what fits in `memory_limit` bytes.
    """
    if bytes_per_call <= 0:
        return 1
    wanted = math.ceil(3 * cache_bytes / bytes_per_call) + 1
    fitting = max(1, memory_limit // bytes_per_call)
    return max(1, min(wanted, calls, fitting))


@contextmanager
def poisoned(device: torch.device, sizes: tuple[int, ...]) -> Generator[bool]:
    """While it lasts, memory that comes fresh from the allocator holds poison, not old results.

    CUDA: blocks of the same sizes are filled and freed, and the caching allocator hands just
    those out next. CPU: glibc fills what it allocates (`mallopt(M_PERTURB)`); blocks of a kilobyte
    or less are filled and freed, which most of the time does. Yields whether this platform could.
    """
    if device.type == "cuda":
        blocks = [
            torch.empty(size, dtype=torch.uint8, device=device) for size in sizes for _ in range(4)
        ]
        for block in blocks:
            block.fill_(0xFF)  # NaN in every floating dtype
        del blocks
        yield True
        return
    # the smallest come from lists of their own, past M_PERTURB: filled as on CUDA, where it helps
    blocks = [
        torch.empty(size, dtype=torch.uint8).fill_(POISON_BYTE)
        for size in sizes
        if size <= _SMALL
        for _ in range(256)
    ]
    del blocks
    able = perturb(POISON_BYTE ^ 0xFF)
    try:
        yield able
    finally:
        perturb(0)
