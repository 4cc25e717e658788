"""What an answer must be beside its values: of the right form, in memory of its own, and without a
trace on the inputs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..records import Correctness, Status
from .inputs import Inputs


class WrongAnswer(Exception):  # noqa: N818 - an answer, not an error of ours
    """How an implementation failed the gate."""

    def __init__(self, status: Status, reason: str, correctness: Correctness | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.correctness = correctness


def same_form(outputs: Sequence[Tensor], truth: Sequence[Tensor], floating: torch.dtype) -> None:
    """Raises WrongAnswer unless shapes and dtypes are the truth's; floating outputs are `floating`
    (the truth's are fp64)."""
    if len(outputs) != len(truth):
        raise WrongAnswer(
            Status.wrong_shape, f"{len(outputs)} output tensors instead of {len(truth)}"
        )
    for place, (y, t) in enumerate(zip(outputs, truth, strict=True)):
        if y.shape != t.shape:
            raise WrongAnswer(
                Status.wrong_shape,
                f"output {place} has shape {tuple(y.shape)} instead of {tuple(t.shape)}",
            )
        wanted = floating if t.is_floating_point() else t.dtype
        if y.dtype != wanted:
            raise WrongAnswer(
                Status.wrong_dtype, f"output {place} is {y.dtype} instead of {wanted}"
            )
        if y.device.type != t.device.type:
            raise WrongAnswer(
                Status.wrong_dtype, f"output {place} is on {y.device} instead of {t.device}"
            )


def unchanged(inputs: Inputs, before: Inputs) -> None:
    """Raises WrongAnswer where a call wrote to its inputs."""
    for place, (now, then) in enumerate(zip(inputs, before, strict=True)):
        if now is None or then is None:
            continue
        if not torch.equal(_bits(now), _bits(then)):
            raise WrongAnswer(Status.wrong_values, f"input {place} was changed by the call")


def shared_input(outputs: Sequence[Tensor], inputs: Inputs) -> int | None:
    """The place of an input in whose memory an output lies; None where none does."""
    for place, tensor in enumerate(inputs):
        if tensor is None or not tensor.numel():
            continue
        memory = tensor.untyped_storage().data_ptr()
        if any(y.numel() and y.untyped_storage().data_ptr() == memory for y in outputs):
            return place
    return None


def bit_sum(tensor: Tensor) -> int:
    """The sum of the bits: memory that was overwritten has another."""
    return int(_bits(tensor).sum())


_INTEGER_OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _bits(tensor: Tensor) -> Tensor:
    """The same memory as integers: NaN equals NaN, and 0 differs from -0."""
    if not tensor.is_floating_point():
        return tensor
    return tensor.view(_INTEGER_OF_SIZE[tensor.element_size()])
