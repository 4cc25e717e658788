"""An output against the truth: errors, non-finite values, shape and dtype.

error = |y - y64| / s with s = |y64| + rms of its row (of the whole output where rows hold fewer
than NARROW elements). Chunked, so that a vector of 1e9 elements
costs no second copy of everything.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_CHUNK = 1 << 26

NARROW = 8
"""A row of fewer elements tells no scale: a single one that cancels to nearly 0 would make every
rounding of its terms an error without bound. There the rms of the whole output stands for it."""

_LARGEST = 1e100
"""An error beyond this counts as this: its square is still a number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Errors:
    """Largest and rms error of an output; `misplaced` counts non-finite values where the reference
    has other ones (NaN against number, infinity of the other sign)."""

    max_error: float
    rms_error: float
    worst_index: tuple[int, ...]
    nonfinite: int
    nonfinite_reference: int
    misplaced: int
    count: int


def errors_of(output: Tensor, truth: Tensor) -> Errors:
    """Errors of `output` against `truth`, of the same shape; rows are the last dimension.

    Raises ValueError where the shapes differ.
    """
    if output.shape != truth.shape:
        raise ValueError(f"shape {tuple(output.shape)} against {tuple(truth.shape)}")
    if truth.numel() == 0:
        return Errors(
            max_error=0.0,
            rms_error=0.0,
            worst_index=(),
            nonfinite=0,
            nonfinite_reference=0,
            misplaced=0,
            count=0,
        )
    width = truth.shape[-1] if truth.ndim else 1
    y = output.reshape(-1, width)
    t = truth.reshape(-1, width)
    rows_at_once = max(1, _CHUNK // width)
    whole = _row_rms(t.reshape(1, -1)) if width < NARROW else None
    largest, worst, squares = -1.0, 0, 0.0
    nonfinite = nonfinite_reference = misplaced = finite_count = 0
    for first in range(0, t.shape[0], rows_at_once):
        rows = slice(first, first + rows_at_once)
        row_rms = _row_rms(t[rows]) if whole is None else whole
        for left in range(0, width, _CHUNK):
            columns = slice(left, left + _CHUNK)
            truth_part = t[rows, columns].to(torch.float64)
            part = y[rows, columns].to(torch.float64)
            finite_truth = torch.isfinite(truth_part)
            finite = torch.isfinite(part)
            nonfinite += int((~finite).sum())
            nonfinite_reference += int((~finite_truth).sum())
            same = (part == truth_part) | (torch.isnan(part) & torch.isnan(truth_part))
            misplaced += int(((~finite | ~finite_truth) & ~same).sum())
            both = finite & finite_truth
            scale = truth_part.abs() + row_rms
            # a row of zeros has no scale of its own: any difference there counts whole
            scale = torch.where(scale > 0, scale, 1.0)
            error = torch.where(both, (part - truth_part).abs() / scale, 0.0).clamp_(max=_LARGEST)
            squares += float((error * error).sum())
            finite_count += int(both.sum())
            value, place = error.reshape(-1).max(dim=0)
            if float(value) > largest:
                largest = float(value)
                row, column = divmod(int(place), error.shape[1])
                worst = (first + row) * width + left + column
    return Errors(
        max_error=largest,
        rms_error=math.sqrt(squares / finite_count) if finite_count else 0.0,
        worst_index=_unravel(worst, tuple(truth.shape)),
        nonfinite=nonfinite,
        nonfinite_reference=nonfinite_reference,
        misplaced=misplaced,
        count=truth.numel(),
    )


def _row_rms(rows: Tensor) -> Tensor:
    total = torch.zeros(rows.shape[0], 1, dtype=torch.float64, device=rows.device)
    for left in range(0, rows.shape[1], _CHUNK):
        part = rows[:, left : left + _CHUNK].to(torch.float64)
        part = torch.where(torch.isfinite(part), part, 0.0)
        total += (part * part).sum(dim=1, keepdim=True)
    return (total / rows.shape[1]).sqrt()


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))


def combine(errors: list[Errors]) -> Errors:
    """The worst of several outputs."""
    worst = max(errors, key=lambda e: e.max_error)
    return Errors(
        max_error=worst.max_error,
        rms_error=max(e.rms_error for e in errors),
        worst_index=worst.worst_index,
        nonfinite=sum(e.nonfinite for e in errors),
        nonfinite_reference=sum(e.nonfinite_reference for e in errors),
        misplaced=sum(e.misplaced for e in errors),
        count=sum(e.count for e in errors),
    )


def least_tolerance(spacing: float, accumulate: torch.dtype, terms: float) -> float:
    """What any right answer may err: 2 ulp of its dtype, or what the order of a sum makes.

    n additions in the accumulation's dtype, each off by up to half an ulp of the partial sum, of
    random sign: about sqrt(n) / 6 ulp rms one after another, six times that at the largest of
    millions. A tree of partial sums errs less, and is no measure for the plain loop.
    """
    return max(2 * spacing, max(terms, 0.0) ** 0.5 * ulp(accumulate))


def ulp(dtype: torch.dtype) -> float:
    """The spacing of numbers next to 1: the relative size of a unit in the last place."""
    return float(torch.finfo(dtype).eps)
