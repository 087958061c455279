"""Estimates of conditions by the factor of a matrix."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._standard.creation import asarray, ones
from outcore._standard.statistical import max

FactoredMatrix: TypeAlias = Any  # a lazy array, or a sparse matrix

# Solves that an estimate takes at most, but for the last.
_STEPS = 5


def reciprocal_condition(
    matrix: FactoredMatrix, solved: Callable[[Array], Array], solved_adjoint: Callable[[Array], Array]
) -> float:
    """1 ÷ (|A|₁ |A⁻¹|₁), the second norm estimated from below, as LAPACK does (Hager 1984; Higham, FORTRAN codes for
    estimating the one-norm of a real or complex matrix, TOMS 14 (1988))."""
    rows = matrix.shape[0]
    if rows == 0:
        return np.inf
    norm = one_norm(matrix)
    if not 0 < norm < np.inf:
        return 0.0 if norm >= 0 else np.nan

    def applied(solve: Callable[[Array], Array], vector: NDArray) -> NDArray:
        return np.asarray(solve(asarray(vector[:, None])).compute())[:, 0]

    with np.errstate(all="ignore"):
        estimate = _estimated_norm(
            rows, lambda vector: applied(solved, vector), lambda vector: applied(solved_adjoint, vector)
        )
        return 0.0 if not np.isfinite(estimate) else float(1.0 / norm / estimate)


def one_norm(matrix: FactoredMatrix) -> float:
    """The largest sum of the sizes of a column. I/O: one read of A."""
    wide = matrix if matrix.dtype.kind in "fc" else matrix.astype(np.float64)
    return float(max(ones((1, matrix.shape[0])) @ builtins.abs(wide)).compute())


def _estimated_norm(
    rows: int, product: Callable[[NDArray], NDArray], adjoint_product: Callable[[NDArray], NDArray]
) -> float:
    """The one-norm of a matrix that is known by its products, estimated from below."""
    vector = product(np.full(rows, 1.0 / rows))
    estimate = float(np.abs(vector).sum())
    if rows == 1:
        return estimate
    largest = -1
    for _ in range(_STEPS):
        signs = np.where(vector == 0, 1.0, vector / np.where(vector == 0, 1.0, np.abs(vector)))
        slopes = np.abs(adjoint_product(signs))
        place = int(np.argmax(slopes))
        if largest >= 0 and slopes[place] <= slopes[largest]:
            break
        largest, unit = place, np.zeros(rows)
        unit[place] = 1.0
        vector = product(unit)
        better = float(np.abs(vector).sum())
        if not better > estimate:
            break
        estimate = better
    # Where all of these are small by chance.
    places = np.arange(rows)
    alternating = np.where(places % 2 == 0, 1.0, -1.0) * (1.0 + places / (rows - 1))
    return builtins.max(estimate, 2.0 * float(np.abs(product(alternating)).sum()) / (3.0 * rows))


__all__: list[str] = []
