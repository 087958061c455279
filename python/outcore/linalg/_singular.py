"""Singular values and vectors of one large matrix, by the eigenvalues of a Hermitian one."""

from __future__ import annotations

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._standard import statistical
from outcore._standard.creation import eye, zeros
from outcore._standard.manipulation import concat
from outcore._standard.searching import where
from outcore.elementwise import abs, clip
from outcore.linalg._whole import adjoint

# A matrix with more rows and columns goes by the eigenvalues: there that takes about as long as one task in memory,
# on one thread. By the sizes alone, so the bits are the same at every limit.
_LARGE = 4096


def is_large(array: Array) -> bool:
    return array.ndim == 2 and min(array.shape) > _LARGE


def large_svd(array: Array) -> tuple[Array, Array, Array]:
    """U (m, n), S (n,) and Vh (n, n) of a matrix (m, n) with m ≥ n.

    The Hermitian matrix [0 Aᴴ; A 0] has the eigenvalues ±σ with the vectors [v; ±u] / √2 (Golub and Van Loan, section
    8.6.1). Of σ near 0 the two mix, so halves of the vectors are bases of the right spaces that are not orthonormal:
    their QR factors are. Residuals are some n ε |A|, and nothing of the program depends on the values.
    """
    m, n = array.shape
    values, vectors = (Array(result) for result in _core.dense_hermitian(_hermitian(array)._expr, (m, m + n)))
    right, left = (_orthonormal(part[:, ::-1]) for part in (vectors[:n], vectors[n:]))
    return left, _descending(values, n), adjoint(right)


def large_svdvals(array: Array) -> Array:
    """S (n,) of a matrix (m, n) with m ≥ n."""
    return _descending(Array(_core.dense_hermitian(_hermitian(array)._expr, None)[0]), array.shape[1])


def _hermitian(array: Array) -> Array:
    """[0 Aᴴ; A 0], of which the upper triangle is not looked at."""
    m, n = array.shape
    return concat([zeros((n, m + n), dtype=array.dtype), concat([array, zeros((m, m), dtype=array.dtype)], axis=1)])


def _descending(values: Array, count: int) -> Array:
    """The largest eigenvalues, of which rounding may have made some of 0 negative."""
    return clip(values[-count:][::-1], 0.0, np.inf)


def _orthonormal(columns: Array) -> Array:
    """An orthonormal basis of columns of which most are orthogonal already, with their directions."""
    cut, factor = _core.dense_qr(columns._expr)
    n = columns.shape[1]
    along = statistical.sum(where(eye(n, dtype=bool), Array(cut.triangle(factor)), 0.0), axis=0)
    size = abs(along)
    turn = where(size > 0.0, along / where(size > 0.0, size, 1.0), 1.0)
    return Array(cut.basis(factor, n)) * turn


__all__ = ["is_large", "large_svd", "large_svdvals"]
