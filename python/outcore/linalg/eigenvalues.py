"""Eigenvalues and eigenvectors of dense matrices: of those that fit by one task each, of one large Hermitian matrix by
tiles."""

from __future__ import annotations

import operator
from typing import Literal, NamedTuple

import numpy as np

from outcore import _core
from outcore._base.shortened import record_text
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._lazy.reduction import mean_dtype
from outcore._standard.creation import asarray, empty, tril
from outcore.errors import ArgumentError, ShapeError
from outcore.linalg._triangular import solve_triangular
from outcore.linalg._whole import adjoint, check_square, factors_of, goes_by_tiles, is_empty, widened
from outcore.linalg.factorizations import cholesky


class EigResult(NamedTuple):
    """Eigenvalues (…, n) and eigenvectors (…, n, n), which are columns."""

    eigenvalues: Array
    eigenvectors: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


def eigh(
    x: Operand,
    /,
    *,
    b: Operand | None = None,
    UPLO: Literal["L", "U"] = "L",  # noqa: N803 - NumPy's name
    subset_by_index: tuple[int, int] | None = None,
) -> EigResult:
    """Eigenvalues of Hermitian matrices (…, n, n) in ascending order, and orthonormal eigenvectors as columns; of
    `subset_by_index=(first, last)` those from one to the other, both counted, as in SciPy.

    Only the lower triangle is looked at, or the upper one. With a positive definite matrix `b`, A v = λ B v and Vᴴ B V
    is I, by the Cholesky factor of B; both are single matrices then. When computed, LinAlgError for elements that are
    not finite, or so large that sums of them are not, and for a B that is not positive definite. Raises ShapeError
    unless square, ArgumentError for a subset that n has not.

    A matrix of more than 2048 rows goes by tiles of 512, whatever the memory limit, with the same bits (Bischof, Lang
    and Sun 2000; Gu and Eisenstat 1995): to a band, to a tridiagonal matrix, and its vectors back. I/O: one read of
    matrices that fit; of those that do not some n³ / 3072 elements each way where a tenth of the matrix fits, up to ten
    times as many in the smallest memory, and for vectors 3 n² / 2 elements of reflectors for all columns that memory
    holds.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.eigh(np.asarray([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.compute()
    array([1., 3.])
    >>> oc.linalg.eigh(np.diag([3.0, 1.0, 2.0]), subset_by_index=(1, 2)).eigenvectors.shape
    (3, 2)
    """
    array, kind, real_dtype = _hermitian("eigh", x, UPLO)
    if b is not None:
        reduced, lower = _reduced("eigh", array, b, UPLO)
        values, turned = eigh(reduced, subset_by_index=subset_by_index)
        vectors = solve_triangular(lower, turned, trans="C", lower=True)
        kind = np.result_type(kind, mean_dtype(asarray(b).dtype))
        return EigResult(values.astype(np.finfo(kind).dtype), vectors.astype(kind))
    n = array.shape[-1]
    first, end = _subset("eigh", n, subset_by_index)
    if is_empty(array):
        return EigResult(empty(array.shape[:-1], dtype=real_dtype), empty(array.shape, dtype=kind))
    if goes_by_tiles(array):
        values, vectors = (Array(result) for result in _core.dense_hermitian(array._expr, (first, end)))
    else:
        values, vectors = factors_of("eigh", array)
        vectors = vectors[..., first:end] if end - first < n else vectors
    values = values[..., first:end] if end - first < n else values
    return EigResult(values.astype(real_dtype), vectors.astype(kind))


def eigvalsh(
    x: Operand,
    /,
    *,
    b: Operand | None = None,
    UPLO: Literal["L", "U"] = "L",  # noqa: N803 - NumPy's name
    subset_by_index: tuple[int, int] | None = None,
) -> Array:
    """Eigenvalues of Hermitian matrices (…, n, n) in ascending order: (…, n), or those of `subset_by_index`, as `eigh`
    has them. I/O: that of `eigh` but for the vectors.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.eigvalsh(np.asarray([[2.0, 1.0], [1.0, 2.0]])).compute()
    array([1., 3.])
    """
    array, _, real_dtype = _hermitian("eigvalsh", x, UPLO)
    if b is not None:
        real_dtype = np.finfo(np.result_type(real_dtype, mean_dtype(asarray(b).dtype))).dtype
        reduced = _reduced("eigvalsh", array, b, UPLO)[0]
        return eigvalsh(reduced, subset_by_index=subset_by_index).astype(real_dtype)
    n = array.shape[-1]
    first, end = _subset("eigvalsh", n, subset_by_index)
    if is_empty(array):
        return empty(array.shape[:-1], dtype=real_dtype)
    if goes_by_tiles(array):
        values = Array(_core.dense_hermitian(array._expr, None)[0])
    else:
        values = factors_of("eigvalsh", array)[0]
    return (values[..., first:end] if end - first < n else values).astype(real_dtype)


def _subset(name: str, n: int, of: tuple[int, int] | None) -> tuple[int, int]:
    """The first of the values that are asked for, and the end of them."""
    if of is None:
        return 0, n
    try:
        first, last = (operator.index(number) for number in of)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: subset_by_index={of!r} is no pair of numbers of eigenvalues") from None
    if not 0 <= first <= last < n:
        raise ArgumentError(f"{name}: subset_by_index=({first}, {last}) of {n} eigenvalues")
    return first, last + 1


def _reduced(name: str, array: Array, b: Operand, triangle: Literal["L", "U"]) -> tuple[Array, Array]:
    """L⁻¹ A L⁻ᴴ, of which the lower triangle counts, and L, for B = L Lᴴ."""
    other, _, _ = _hermitian(name, b, triangle)
    if array.ndim != 2 or array.shape != other.shape:
        raise ShapeError(f"{name}: matrices of shapes {array.shape} and {other.shape}")
    lower = cholesky(other)
    whole = tril(array) + adjoint(tril(array, k=-1))
    half = solve_triangular(lower, whole, lower=True)
    return solve_triangular(lower, adjoint(half), lower=True), lower


def _hermitian(name: str, x: Operand, triangle: str) -> tuple[Array, DType, DType]:
    array, kind, real_dtype = widened(name, x)
    check_square(name, array)
    if triangle not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO={triangle!r} is neither 'L' nor 'U'")
    return (adjoint(array) if triangle == "U" else array), kind, real_dtype


def eig(x: Operand, /) -> EigResult:
    """Eigenvalues of any square matrices (…, n, n) and eigenvectors of length one as columns; both complex.

    When computed, LinAlgError for elements that are not finite. I/O: one read.

    >>> import numpy as np, outcore as oc
    >>> np.sort_complex(oc.linalg.eig(np.asarray([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.compute())
    array([0.-1.j, 0.+1.j])
    """
    array, dtype = _general("eig", x)
    if is_empty(array):
        return EigResult(empty(array.shape[:-1], dtype=dtype), empty(array.shape, dtype=dtype))
    values, vectors = factors_of("eig", array)
    return EigResult(values.astype(dtype), vectors.astype(dtype))


def eigvals(x: Operand, /) -> Array:
    """Eigenvalues of any square matrices (…, n, n), complex: (…, n). I/O: one read.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.eigvals(np.asarray([[2.0]])).compute()
    array([2.+0.j])
    """
    array, dtype = _general("eigvals", x)
    if is_empty(array):
        return empty(array.shape[:-1], dtype=dtype)
    return factors_of("eigvals", array)[0].astype(dtype)


def _general(name: str, x: Operand) -> tuple[Array, DType]:
    array, kind, _ = widened(name, x)
    check_square(name, array)
    return array, np.result_type(kind, np.complex64)


__all__ = ["EigResult", "eig", "eigh", "eigvals", "eigvalsh"]
