"""The gate that every implementation passes before it is timed, and once more after.

Fresh random inputs; poisoned output memory; the output's shape, dtype, values and non-finite
places against y64; inputs unchanged; then other values written into the same memory, so that a
result remembered by shape or address is found stale. The tolerance is a multiple of the
yardstick's own error in the same dtype, never less than 2 ulp.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..records import Cell, Correctness, Status
from ..schema import Precision
from .compare import Errors, combine, errors_of
from .context import Context
from .inputs import CONSTANT, Draw, Inputs, clone, make, poisoned, refill, tensors
from .load import bind, kernel_functions


class WrongAnswer(Exception):  # noqa: N818 - an answer, not an error of ours
    """How an implementation failed the gate."""

    def __init__(self, status: Status, reason: str, correctness: Correctness | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.correctness = correctness


_NOTE = "while in "


@contextmanager
def _within(what: str) -> Generator[None]:
    """Notes on an exception whose code it comes from."""
    try:
        yield
    except Exception as error:
        error.add_note(_NOTE + what)
        raise


def place_of(error: BaseException) -> str:
    """Which part of the kernel an exception of the gate's making came from."""
    notes = [n for n in getattr(error, "__notes__", ()) if n.startswith(_NOTE)]
    return notes[0].removeprefix(_NOTE) if notes else "the kernel's module"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One set of inputs with its truth and the yardstick's errors on it."""

    inputs: Inputs
    truth: tuple[Tensor, ...]
    yardstick: Errors


class Gate:
    """Holds two sets of inputs of a cell with their truths; checks implementations on them.

    Raises WrongAnswer(invalid) where the yardstick itself is too far from the truth or of another
    form, or an output of the truth is nothing but NaN: then no comparison would mean anything.
    """

    def __init__(self, context: Context, cell: Cell, *, seed: int) -> None:
        self._context = context
        self._cell = cell
        self._yardstick = context.experiment.kernel.yardstick
        # on constant inputs every remembered or constant answer is right: no check
        named = cell.workload.distribution
        drawn = "normal" if named in CONSTANT else named
        first, second = (
            self._trial(self.draw(context, cell, s, drawn)) for s in (seed, seed + 1_000_003)
        )
        self.first_inputs = first.inputs
        self.empty = any(t.numel() == 0 for t in first.truth)
        self._trials = (first, second)

    @staticmethod
    def draw(context: Context, cell: Cell, seed: int, distribution: str = "") -> Inputs:
        """Inputs of the cell from a seed, in its dtype and layout; in its distribution where no
        other is named."""
        make_inputs, _ = kernel_functions(context.experiment)
        workload = cell.workload
        draw = Draw(context.storage, context.device, distribution or workload.distribution, seed)
        axes = {**workload.axes, "layout": workload.layout}
        with _within("make_inputs"):
            return make(make_inputs, draw, axes, workload.layout)

    def _truth(self, inputs: Inputs) -> tuple[Tensor, ...]:
        _, reference = kernel_functions(self._context.experiment)
        high = self._context.experiment.kernel.precision
        wanted = torch.float64 if high is Precision.fp64 else torch.float32
        upcast = [t.to(wanted) if t is not None and t.is_floating_point() else t for t in inputs]
        with _within("the reference"):
            value = reference(*upcast, **self._context.arguments(self._cell))
        truth = tensors(value)
        if not truth:
            raise WrongAnswer(
                Status.invalid,
                f"the reference returned {type(value).__name__}; a tensor, or a tuple or list of "
                "tensors, is meant",
            )
        return truth

    def _trial(self, inputs: Inputs) -> Trial:
        truth = self._truth(inputs)
        if any(t.numel() and not torch.isfinite(t).any() for t in truth):
            raise WrongAnswer(Status.invalid, "the reference has no finite value on these inputs")
        name = self._yardstick
        arguments = self._context.arguments(self._cell)
        with _within(f"the yardstick {name}"):
            call = bind(self._context.experiment, name, arguments, self._context.kind)
            outputs = tensors(call(*clone(inputs)))
            self._context.synchronize()
        try:
            self._same_form(outputs, truth)
        except WrongAnswer as wrong:
            raise WrongAnswer(
                Status.invalid, f"the yardstick {name} itself: {wrong.reason}"
            ) from wrong
        errors = combine([errors_of(y, t) for y, t in zip(outputs, truth, strict=True)])
        sane = self._context.experiment.dtype.sane_rms
        if errors.rms_error > sane or errors.misplaced:
            raise WrongAnswer(
                Status.invalid,
                f"the yardstick {name} is itself {errors.rms_error:.3g} rms from the reference, "
                f"{errors.misplaced} non-finite values misplaced (dtype.sane_rms={sane:g}): "
                "the comparison would mean nothing",
            )
        return Trial(inputs=inputs, truth=truth, yardstick=errors)

    def check(self, call: Callable[..., Any]) -> Correctness:
        """Passes an implementation on both trials. Raises WrongAnswer where it fails."""
        first, second = self._trials
        inputs = clone(first.inputs)
        found = [self._once(call, inputs, first)]
        refill(inputs, second.inputs)
        found.append(self._once(call, inputs, second))
        return self._correctness(found)

    def _once(self, call: Callable[..., Any], inputs: Inputs, trial: Trial) -> Errors:
        context = self._context
        before = clone(inputs)
        sizes = tuple(t.numel() * context.output.itemsize for t in trial.truth)
        with poisoned(context.device, sizes):
            value = call(*inputs)
            context.synchronize()
        outputs = tensors(value)
        self._same_form(outputs, trial.truth)
        self._unchanged(inputs, before)
        errors = combine([errors_of(y, t) for y, t in zip(outputs, trial.truth, strict=True)])
        correctness = self._correctness([errors])
        if errors.misplaced:
            raise WrongAnswer(
                Status.wrong_values,
                f"{errors.misplaced} non-finite values where the reference has others "
                f"({errors.nonfinite} in the output, {errors.nonfinite_reference} there)",
                correctness,
            )
        if errors.max_error > correctness.max_tolerance:
            raise WrongAnswer(
                Status.wrong_values,
                f"largest error {errors.max_error:.3g} at {list(errors.worst_index)} exceeds "
                f"{correctness.max_tolerance:.3g}",
                correctness,
            )
        if errors.rms_error > correctness.rms_tolerance:
            raise WrongAnswer(
                Status.wrong_values,
                f"rms error {errors.rms_error:.3g} exceeds {correctness.rms_tolerance:.3g}",
                correctness,
            )
        return errors

    def _same_form(self, outputs: tuple[Tensor, ...], truth: tuple[Tensor, ...]) -> None:
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
            wanted = self._context.output if t.is_floating_point() else t.dtype
            if y.dtype != wanted:
                raise WrongAnswer(
                    Status.wrong_dtype, f"output {place} is {y.dtype} instead of {wanted}"
                )
            if y.device.type != t.device.type:
                raise WrongAnswer(
                    Status.wrong_dtype, f"output {place} is on {y.device} instead of {t.device}"
                )

    def _unchanged(self, inputs: Inputs, before: Inputs) -> None:
        for place, (now, then) in enumerate(zip(inputs, before, strict=True)):
            if now is None or then is None:
                continue
            if not torch.equal(_bits(now), _bits(then)):
                raise WrongAnswer(Status.wrong_values, f"input {place} was changed by the call")

    def _correctness(self, found: list[Errors]) -> Correctness:
        k = self._context.experiment.kernel.error_multiple
        floor = 2 * self._context.ulp
        # both trials' together: on a tiny output one alone may be near zero by luck
        eager = combine([trial.yardstick for trial in self._trials])
        worst = combine(found)
        return Correctness(
            max_error=worst.max_error,
            rms_error=worst.rms_error,
            max_tolerance=max(k * eager.max_error, floor),
            rms_tolerance=max(k * eager.rms_error, floor),
            yardstick=self._yardstick,
            yardstick_max_error=eager.max_error,
            yardstick_rms_error=eager.rms_error,
            worst_index=worst.worst_index,
            nonfinite=worst.nonfinite,
            nonfinite_reference=worst.nonfinite_reference,
            checks=len(found),
        )


_INTEGER_OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _bits(tensor: Tensor) -> Tensor:
    """The same memory as integers: NaN equals NaN, and 0 differs from -0."""
    if not tensor.is_floating_point():
        return tensor
    return tensor.view(_INTEGER_OF_SIZE[tensor.element_size()])
