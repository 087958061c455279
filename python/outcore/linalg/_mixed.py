"""Factors that are approximate, of single precision or of low rank, with solutions of double precision."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.digests import digest
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._run.holding import Holder
from outcore._standard.creation import asarray
from outcore._standard.searching import where
from outcore._standard.statistical import max, sum
from outcore.elementwise import abs, conj, real
from outcore.errors import ArgumentError

Precision = Literal["double", "mixed"]
# By what rows and columns are multiplied, in the order of elimination.
Scales: TypeAlias = npt.NDArray[np.float64]

# Steps at most, and steps without a residual of half the size.
_STEPS, _STEPS_IN_VAIN = 60, 5
# The least tolerance of tiles of low rank of single precision, whose rounding is of full rank.
_SINGLE_LEAST = 1e-5


class Approximation(NamedTuple):
    """The factor of a matrix with rows and columns scaled, of some type, where it is not one of all digits."""

    scales: Scales
    dtype: DType

    @property
    def remedy(self) -> str:
        """The way to a factor of more digits."""
        is_single = self.dtype in (np.float32, np.complex64)
        return (
            'one with precision="double" has more digits'
            if is_single
            else "one with a smaller low_rank has more digits"
        )


def checked_precision(name: str, precision: Precision) -> Precision:
    if precision not in ("double", "mixed"):
        raise ArgumentError(f"{name}: precision={precision!r} is none of 'double', 'mixed'")
    return precision


def checked_tolerance(name: str, low_rank: float | None, precision: Precision) -> float | None:
    """The tolerance of tiles of low rank, which of single precision is not below its rounding."""
    if low_rank is None:
        return None
    if isinstance(low_rank, bool) or not isinstance(low_rank, int | float | np.number) or not 0 < low_rank < 1:
        raise ArgumentError(f"{name}: low_rank={low_rank!r} is no tolerance; a number between 0 and 1, or None")
    return builtins.max(float(low_rank), _SINGLE_LEAST if precision == "mixed" else 0.0)


def known_array(values: npt.NDArray[np.float64]) -> Array:
    """An array in memory that is the same in all processes, by what it has: who goes on with a run knows it again."""
    copy = np.array(values)
    copy.flags.writeable = False
    return Array(_core.from_numpy(copy, digest(copy.tobytes(), size=32).hexdigest()))


def named_approximation(of: Approximation | None, dtype: DType, low_rank: float | None) -> str:
    """The digits of a factor of a matrix of a type, as a part of its name; nothing where those are all."""
    single = " of mixed precision" if of is not None and of.dtype != dtype else ""
    return single if low_rank is None else f"{single} of low rank to {low_rank:g}"


def single_of(dtype: DType) -> DType:
    """The type of single precision for float64 or complex128."""
    return np.dtype(np.complex64 if dtype.kind == "c" else np.float32)


def single_scales(diagonal: npt.NDArray[np.float64]) -> Scales:
    """Powers of two that make elements of a positive diagonal about 1, so that no element of a positive definite matrix
    is too large or too small for single precision."""
    usable = np.isfinite(diagonal) & (diagonal > 0)
    _, exponents = np.frexp(np.where(usable, diagonal, 1.0))
    scales: Scales = np.ldexp(1.0, -(exponents // 2))
    return scales


def powers_of_two(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Powers of two about as large as sizes; 1 for those that are 0 or not finite."""
    _, exponents = np.frexp(np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0))
    powers: npt.NDArray[np.float64] = np.ldexp(1.0, exponents)
    return powers


def swept_scaled(analysis: _core.Analysis, tiles: _core.Expr, dtype: DType, of: Approximation, b: Array) -> Array:
    """Solutions by a factor of the scaled matrix, in its type; rows are in the order of elimination. Columns are taken
    as multiples of columns with a largest element of 1."""
    by_row, single = asarray(of.scales)[:, None], of.dtype
    scaled = b.astype(dtype) * by_row
    largest = max(abs(scaled), axis=0)
    sizes = where(largest > 0, largest, 1.0)
    right = (scaled / sizes).astype(single)
    solved = Array(analysis.solve(tiles, single.name, right._expr))
    return solved.astype(dtype) * sizes * by_row


def refined(
    x: Array,
    good: float,
    *,
    error_of: Callable[[Array], tuple[float, Array]],
    solved: Callable[[Array], Array],
    multiplied: Callable[[Array], Array],
) -> tuple[Array, float]:
    """A better solution and its error, of which `error_of` gives the residual too: by corrections while each halves the
    error, which have the same bits at every limit, then by gradients."""
    holder = Holder(x.nbytes, 2)
    worst, difference = error_of(x)
    while worst > good and np.isfinite(worst):
        corrected = holder.held([x + solved(difference)])[0][0]
        better, next_difference = error_of(corrected)
        if not better <= worst / 2:
            return _refined_by_gradients(x, (worst, difference), good, (error_of, solved, multiplied))
        x, worst, difference = corrected, better, next_difference
    return x, worst


def _refined_by_gradients(
    x: Array,
    start: tuple[float, Array],
    good: float,
    calls: tuple[Callable[[Array], tuple[float, Array]], Callable[[Array], Array], Callable[[Array], Array]],
) -> tuple[Array, float]:
    """By conjugate gradients, each column for itself, with the factor as their preconditioner and residuals of double
    precision.

    Corrections converge where the condition is below about 1e7; gradients need more steps above. Directions are made
    orthogonal to the last one with what was computed (Polak, Ribière 1969), for the factor is that of a matrix nearby
    (Golub, Ye, Inexact preconditioned conjugate gradient method, SISC 21 (1999)).
    """
    error_of, preconditioned, multiplied = calls
    worst, difference = start
    holder = Holder(x.nbytes, 6)
    best, least, in_vain = x, worst, 0
    direction = before = None
    last = np.ones(x.shape[1])
    for _ in range(_STEPS):
        if least <= good or not np.isfinite(worst) or in_vain > _STEPS_IN_VAIN:
            break
        residual = holder.held([difference])[0][0]
        solved = holder.held([preconditioned(residual)])[0][0]
        of = [real(sum(conj(vector) * solved, axis=0)) for vector in (residual, before) if vector is not None]
        product, *shared = (np.asarray(value) for value in holder.held([], of)[1])
        if direction is None:
            direction = solved
        else:
            share = np.where(last == 0, 0.0, (product - shared[0]) / np.where(last == 0, 1.0, last))
            direction = solved + direction * asarray(share)
        direction = holder.held([direction])[0][0]
        along = real(sum(conj(direction) * multiplied(direction), axis=0))
        curvature = np.asarray(holder.held([], [along])[1][0])
        step = np.where(curvature > 0, product / np.where(curvature > 0, curvature, 1.0), 0.0)
        x = holder.held([x + direction * asarray(step)])[0][0]
        before, last = residual, product
        worst, difference = error_of(x)
        in_vain += 1
        if worst <= least / 2:
            in_vain = 0
        if worst < least:
            best, least = x, worst
    return best, least


__all__: list[str] = []
