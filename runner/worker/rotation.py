"""Cold inputs: copies that rotate, the read flush where they cannot, and what stays warm.

Cold means that the last-level cache holds nothing of the inputs: 3x its size lies between two
uses of the same memory. Where that many copies would outnumber the calls of a run, or memory
forbids them, each copy is used once a run and L2 is filled by *reading* clean memory before it,
outside the window. Never by writing: dirty lines would be written back within the timed kernels.
"""

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from .driver import DriverError, reset_persisting_l2
from .inputs import Inputs, clone, copies_needed, memory_of, nbytes

MAX_CALLS = 256
"""2N stays below this: a stream takes about a thousand launches before the host must wait."""

PLACES = 4
"""Copies of large inputs, where memory allows: on an H200 one and the same kernel took 2.23 or
2.49 ms, by where its input and its output lay."""

TIMES = 3
"""How many times the cache's size must pass between two uses of the same memory."""


class Rotation:
    """The copies of one cell's inputs on one GPU, the same for every implementation.

    `warm` holds the places of inputs that a call finds in the cache, since the call before used
    the same memory. With `always_flush` L2 is filled before every run, rotating or not: for
    replays of one graph, which start at the same copy each time.
    """

    def __init__(
        self,
        inputs: Inputs,
        *,
        device: torch.device,
        cache_bytes: int,
        free_memory: int,
        warm: Collection[int] = (),
        always_flush: bool = False,
    ) -> None:
        self._device = device
        self._cache_bytes = cache_bytes
        self._warm = tuple(inputs[place] for place in sorted(warm))
        cold = tuple(None if place in warm else t for place, t in enumerate(inputs))
        self._bytes = nbytes(cold)
        limit = free_memory // 2
        needed = copies_needed(self._bytes, cache_bytes, MAX_CALLS, limit)
        places = min(PLACES, limit // self._bytes) if self._bytes and cache_bytes else 1
        self.count = max(needed, places)
        self.copies: list[Inputs] = [inputs]
        for _ in range(self.count - 1):
            made = clone(cold)
            self.copies.append(
                tuple(inputs[k] if k in warm else tensor for k, tensor in enumerate(made))
            )
        # where nothing is to be cold, nothing has to rotate
        self.rotates = not self._bytes or self.count * self._bytes >= TIMES * cache_bytes
        self._flush: Tensor | None = None
        if always_flush or not self.rotates:
            elements = TIMES * cache_bytes // 4
            self._flush = torch.ones(elements, dtype=torch.float32, device=device)
        self._place = 0
        self.persisting = self._reset_persisting()

    @property
    def most_calls(self) -> int:
        """Calls in a run after which the first copy would be met again while still cached."""
        return MAX_CALLS if self.rotates else max(2, len(self.copies))

    @property
    def last(self) -> Inputs:
        """The copy that is met last from here on: warm calls on it leave the next runs cold."""
        return self.copies[self._place - 1]

    def before_run(self) -> None:
        """Outside the window: no line persists, and L2 is read full where it is to be flushed."""
        if not self.persisting and self._device.type == "cuda":
            reset_persisting_l2()
        if self._flush is not None:
            self._flush.sum()
            for tensor in self._warm:  # what is warm is read last, as the call before would
                if tensor is not None and tensor.numel():
                    memory_of(tensor).view(torch.uint8).sum(dtype=torch.int64)

    def take(self, calls: int) -> tuple[list[Inputs], int]:
        """The copies and the place to start at, so that the next run goes on where this ends."""
        place = self._place
        self._place = (place + calls) % len(self.copies)
        return self.copies, place

    def after_a_lap(self, call: Callable[..., object], calls: int) -> list[Inputs]:
        """The copies of the next calls, after a call on each: the cache is then as between two
        timed runs, full of what other calls read and wrote."""
        for copy in self.copies:
            call(*copy)
        copies, place = self.take(calls)
        return [copies[(place + k) % len(copies)] for k in range(calls)]

    def rewind(self, calls: int) -> bool:
        """Back to where the last run of so many calls began, where what came after its last use
        of that copy is enough to make it cold again; else on from where the run ended. Whether it
        went back."""
        since = (calls - 1) % len(self.copies) + 1
        if since * self._bytes >= TIMES * self._cache_bytes:
            self._place = (self._place - calls) % len(self.copies)
            return True
        return False

    def skip(self) -> None:
        """One copy further, so that runs that went back do not fall into step with the copies."""
        self._place = (self._place + 1) % len(self.copies)

    def release(self) -> tuple[Inputs, ...]:
        """The first and the last copy that were timed; the memory of the rest goes back."""
        self.copies = [self.copies[0], *self.copies[1:][-1:]]
        self._place = 0
        self._flush = None
        return tuple(self.copies)

    def method(self, names: Collection[str] = ()) -> str:
        """How cold was made, with the sizes; `names` are those of the warm inputs."""
        total, l2 = self.count * self._bytes / 1e6, self._cache_bytes / 1e6
        said = [f"cold: inputs rotate through {self.count} copies, {total:.0f} MB"]
        if not self.rotates:
            said = [f"cold: {self.count} copies used once a run"]
        if self._flush is not None:
            said.append(f"L2 filled by reading {TIMES * l2:.0f} MB before each run")
        if names:
            said.append(f"warm: {' '.join(names)}")
        if self.persisting:
            said.append(self.persisting)
        return f"{', '.join(said)} (L2 {l2:.0f} MB)"

    def _reset_persisting(self) -> str:
        """Why persisting lines could not be reset; '' where they could."""
        if self._device.type != "cuda":
            return ""
        try:
            reset_persisting_l2()
        except (DriverError, OSError, AttributeError) as error:
            return f"persisting lines not reset ({error})"
        return ""


def places(warm: Collection[str], names: Collection[str]) -> dict[str, int]:
    """Where the inputs that stay warm stand among all. Raises ValueError naming the inputs."""
    order = list(names)
    for name in warm:
        if name not in order:
            raise ValueError(f"warm_inputs: {name}: no such input. Inputs: {', '.join(order)}.")
    return {name: order.index(name) for name in warm}
