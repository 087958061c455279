"""Least squares of many columns by one read: what xarray's `polyfit` solves for each of them."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._xarray.foreign import Foreign


def least_squares(lhs: NDArray, rhs: Array, rcond: float | None = None, skipna: bool = False) -> tuple[Array, Array]:
    """Coefficients and sums of squared residuals of fits of the columns of `rhs` (rows, …) by those of `lhs`.

    With `skipna` each column is fitted where it is a number. I/O: one read of `rhs` for the coefficients, one more for
    the residuals where these are computed.
    """
    rows, shape = lhs.shape[0], rhs.shape[1:]
    basis, scales, turn = np.linalg.svd(np.asarray(lhs, np.float64), full_matrices=False)
    kept = scales > (np.finfo(np.float64).eps * max(lhs.shape) if rcond is None else rcond) * scales[0]
    if not kept.all():
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=3)
    basis, back = basis[:, kept], turn[kept].T / scales[kept]
    # Sums of products with one vector each, and no matrix product: that would have the axes behind the rows as one.
    vectors = [np.ascontiguousarray(vector).reshape(rows, *(1,) * len(shape)) for vector in basis.T]
    values = rhs.astype(np.float64)
    known = ~oc.isnan(values) if skipna else None
    values = values if known is None else oc.where(known, values, 0.0)
    inner = [oc.sum(values * vector, axis=0) for vector in vectors]
    if known is not None:
        inner = _inner(vectors, known, inner)
    distances = values - _combined(vectors, inner)
    squares = distances**2 if known is None else oc.where(known, distances**2, 0.0)
    return oc.stack([_combined(row, inner) for row in back]), oc.sum(squares, axis=0)


def _combined(factors: Iterable[Foreign], arrays: Iterable[Array]) -> Array:
    products = [array * factor for factor, array in zip(factors, arrays, strict=True)]
    total: Array = reduce(operator.add, products)
    return total


def _inner(vectors: Sequence[NDArray], known: Array, sums: Sequence[Array]) -> list[Array]:
    """Coefficients in an orthonormal basis of columns of which some rows are missing: (Uᵀ W U)⁻¹ Uᵀ W y for each."""
    order = len(vectors)
    upper = np.triu_indices(order)
    gram = [oc.sum(oc.where(known, vectors[i] * vectors[j], 0.0), axis=0) for i, j in np.stack(upper, axis=1).tolist()]

    def solve(tile: NDArray) -> NDArray:
        right = np.moveaxis(tile[len(gram) :], 0, -1)
        matrices = np.empty((*tile.shape[1:], order, order))
        matrices[..., upper[0], upper[1]] = matrices[..., upper[1], upper[0]] = np.moveaxis(tile[: len(gram)], 0, -1)
        solved = (np.linalg.pinv(matrices, hermitian=True) @ right[..., np.newaxis])[..., 0]
        solved[np.trace(matrices, axis1=-2, axis2=-1) <= 0] = np.nan
        result = np.full_like(tile, np.nan)
        result[:order] = np.moveaxis(solved, -1, 0)
        return result

    solved = oc.map_blocks(solve, oc.stack([*gram, *sums]), dtype=np.float64, whole=0)
    return [solved[number] for number in range(order)]


def dispatched(function: Foreign) -> Foreign:
    """xarray's `least_squares` for all but lazy arrays."""

    def call(lhs: Foreign, rhs: Foreign, rcond: float | None = None, skipna: bool = False) -> Foreign:
        if isinstance(rhs, Array):
            return least_squares(lhs, rhs, rcond, skipna)
        return function(lhs, rhs, rcond=rcond, skipna=skipna)

    return call


__all__ = ["dispatched", "least_squares"]
