"""Least squares of many columns by one read: what xarray's `polyfit` solves for each of them."""

from __future__ import annotations

import warnings

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
    columns = oc.reshape(rhs, (rows, -1)).astype(np.float64)
    basis, scales, turn = np.linalg.svd(np.asarray(lhs, np.float64), full_matrices=False)
    kept = scales > (np.finfo(np.float64).eps * max(lhs.shape) if rcond is None else rcond) * scales[0]
    if not kept.all():
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=3)
    basis, back = basis[:, kept], turn[kept].T / scales[kept]
    if skipna:
        known = ~oc.isnan(columns)
        values = oc.where(known, columns, 0.0)
        inner = _inner(basis, known.astype(np.float64), oc.matmul(basis.T, values))
    else:
        known, values = None, columns
        inner = oc.matmul(basis.T, columns)
    distances = values - oc.matmul(np.ascontiguousarray(basis), inner)
    squares = distances**2 if known is None else oc.where(known, distances**2, 0.0)
    coefficients = oc.matmul(np.ascontiguousarray(back), inner)
    return oc.reshape(coefficients, (lhs.shape[1], *shape)), oc.reshape(oc.sum(squares, axis=0), shape)


def _inner(basis: NDArray, known: Array, sums: Array) -> Array:
    """Coefficients in an orthonormal basis of columns of which some rows are missing: (Uᵀ W U)⁻¹ Uᵀ W y for each."""
    order = basis.shape[1]
    pairs = np.einsum("ri,rj->ijr", basis, basis).reshape(order * order, -1)
    gram = oc.matmul(np.ascontiguousarray(pairs), known)
    room = order * order + order
    stacked = oc.concat([gram, sums], axis=0)

    def solve(tile: NDArray) -> NDArray:
        matrices = np.moveaxis(tile[: order * order].reshape(order, order, -1), -1, 0)
        solved = np.linalg.pinv(matrices, hermitian=True) @ tile[order * order :].T[..., np.newaxis]
        result = np.full_like(tile, np.nan)
        result[:order] = np.where(np.trace(matrices, axis1=1, axis2=2) > 0, solved[..., 0].T, np.nan)
        return result

    assert stacked.shape[0] == room
    return oc.map_blocks(solve, stacked, dtype=np.float64, whole=0)[:order]


def dispatched(function: Foreign) -> Foreign:
    """xarray's `least_squares` for all but lazy arrays."""

    def call(lhs: Foreign, rhs: Foreign, rcond: float | None = None, skipna: bool = False) -> Foreign:
        if isinstance(rhs, Array):
            return least_squares(lhs, rhs, rcond, skipna)
        return function(lhs, rhs, rcond=rcond, skipna=skipna)

    return call


__all__ = ["dispatched", "least_squares"]
