"""The gate that every implementation passes before it is timed, and once more after.

Fresh random inputs; poisoned output memory; the output's shape, dtype, values and non-finite
places against y64; inputs unchanged; then the same call again, so that one which adds to a hidden
buffer is found out; then other values written into the same memory, so that a result remembered
by shape or address is found stale, and the first output looked at once more: the memory is the
caller's. The tolerance is a multiple of the yardstick's own error in the same dtype, never less
than 2 ulp, or than what the order of the kernel's longest sum makes.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..records import Cell, Correctness, Status
from ..schema import Precision
from .answers import WrongAnswer, bit_sum, same_form, shared_input, unchanged
from .compare import Errors, combine, errors_of
from .context import Context
from .inputs import CONSTANT, Draw, Inputs, clone, make, poisoned, refill, tensors
from .load import bind, kernel_functions

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
    """One set of inputs with its truth and the yardstick's errors on it; whether the operation
    is a view, by the yardstick."""

    inputs: Inputs
    truth: tuple[Tensor, ...]
    yardstick: Errors
    view: bool


class Gate:
    """Holds two sets of inputs of a cell with their truths; checks implementations on them.

    Raises WrongAnswer(invalid) where the yardstick itself is too far from the truth or of another
    form, or an output of the truth is nothing but NaN: then no comparison would mean anything.
    With `inputs`, these are the only set: for `again`.
    """

    def __init__(
        self, context: Context, cell: Cell, *, seed: int = 0, inputs: Inputs | None = None
    ) -> None:
        self._context = context
        self._cell = cell
        self._yardstick = context.experiment.kernel.yardstick
        if inputs is not None:
            self._trials: tuple[Trial, ...] = (self._trial(inputs),)
            return
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
        """The inputs that `named` gives, in call order."""
        return tuple(Gate.named(context, cell, seed, distribution).values())

    @staticmethod
    def named(
        context: Context, cell: Cell, seed: int, distribution: str = ""
    ) -> dict[str, Tensor | None]:
        """Inputs of the cell by name from a seed, in its dtype and layout; in its distribution
        where no other is named."""
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
        name = self._yardstick
        arguments = self._context.arguments(self._cell)
        with _within(f"the yardstick {name}"):
            call = bind(self._context.experiment, name, arguments, self._context.kind)
            copies = clone(inputs)
            outputs = tensors(call(*copies))
            self._context.synchronize()
        try:
            same_form(outputs, truth, self._context.output)
        except WrongAnswer as wrong:
            raise WrongAnswer(
                Status.invalid, f"the yardstick {name} itself: {wrong.reason}"
            ) from wrong
        errors = combine([errors_of(y, t) for y, t in zip(outputs, truth, strict=True)])
        if any(t.numel() and not torch.isfinite(t).any() for t in truth):
            raise WrongAnswer(
                Status.invalid,
                "invalid test input: the reference has no finite value on it "
                f"({errors.nonfinite_reference} of {errors.count} not finite, "
                f"{errors.nonfinite} in the output of {name})",
            )
        sane = self._context.experiment.dtype.sane_rms
        if errors.rms_error > sane or errors.misplaced:
            raise WrongAnswer(
                Status.invalid,
                f"the yardstick {name} is itself {errors.rms_error:.3g} rms from the reference, "
                f"{errors.misplaced} non-finite values misplaced (dtype.sane_rms={sane:g}): "
                "the comparison would mean nothing",
            )
        view = shared_input(outputs, copies) is not None
        return Trial(inputs=inputs, truth=truth, yardstick=errors, view=view)

    def check(self, call: Callable[..., Any]) -> Correctness:
        """Passes an implementation on both trials. Raises WrongAnswer where it fails."""
        first, second = self._trials
        inputs = clone(first.inputs)
        errors, kept = self._once(call, inputs, first)
        sums = [bit_sum(y) for y in kept]
        try:
            self._once(call, inputs, first)
        except WrongAnswer as wrong:
            wrong.reason = f"in a second call on the same inputs: {wrong.reason}"
            raise
        refill(inputs, second.inputs)
        found = [errors, self._once(call, inputs, second)[0]]
        if not first.view and [bit_sum(y) for y in kept] != sums:
            raise WrongAnswer(
                Status.invalid,
                "a later call overwrote the output of an earlier one: it returns memory that it "
                "keeps, and is spared what fresh outputs cost the others",
                self._correctness(found),
            )
        return self._correctness(found)

    def again(self, call: Callable[..., Any], copies: Sequence[Inputs]) -> Correctness:
        """Passes an implementation once on each copy of the inputs that this gate was made of."""
        (trial,) = self._trials
        return self._correctness([self._once(call, inputs, trial)[0] for inputs in copies])

    def _once(
        self, call: Callable[..., Any], inputs: Inputs, trial: Trial
    ) -> tuple[Errors, tuple[Tensor, ...]]:
        context = self._context
        before = clone(inputs)
        sizes = tuple(t.numel() * context.output.itemsize for t in trial.truth)
        with poisoned(context.device, sizes):
            value = call(*inputs)
            context.synchronize()
        outputs = tensors(value)
        same_form(outputs, trial.truth, context.output)
        unchanged(inputs, before)
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
        shared = shared_input(outputs, inputs)
        if shared is not None and not trial.view:
            raise WrongAnswer(
                Status.invalid,
                f"an output lies in the memory of input {shared}: it is not written anew",
                correctness,
            )
        return errors, outputs

    def _correctness(self, found: list[Errors]) -> Correctness:
        k = self._context.experiment.kernel.error_multiple
        floor = self._context.least_tolerance(self._cell)
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
