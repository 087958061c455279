"""Factorizations of the array API's `linalg` extension, and what follows from them.

Each matrix along the last two axes is a task of its own and must fit the memory limit, with the workspace that its
factorization says (by `faer`): a plan that cannot fit is refused with the number. Tall matrices of any length go by
tiles instead: QR in two reads, R, singular values and least squares in one (Demmel and others 2012, section 3). So do
systems, inverses and determinants of one matrix of more than 2048 rows, by slabs of its LU factor (`lu_factor`), QR of
one with more than 2048 rows and columns (`qr_factor`), Cholesky factors of one with more than 2048 rows
(`cho_factor`), and singular values of one with more than 4096 rows and columns.

float32 and complex64 are factorized in double precision and rounded once at the end; integers count as float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from outcore import _core
from outcore._base.shortened import record_text
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import mean_dtype
from outcore._standard import statistical
from outcore._standard.creation import empty, eye, ones, zeros
from outcore._standard.linear_algebra import matmul
from outcore._standard.manipulation import broadcast_to, concat, expand_dims
from outcore._standard.searching import where
from outcore.elementwise import abs, clip, floor
from outcore.errors import ArgumentError, ShapeError
from outcore.linalg._singular import is_large, large_svd, large_svdvals
from outcore.linalg._whole import WHOLE_ROWS, adjoint, check_square, factors_of, goes_by_tiles, is_empty, widened


class QRResult(NamedTuple):
    """Factors of A = Q R."""

    Q: Array
    R: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class SVDResult(NamedTuple):
    """Factors of A = U diag(S) Vh."""

    U: Array
    S: Array
    Vh: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of determinants."""

    sign: Array
    logabsdet: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class LstsqResult(NamedTuple):
    """A least-squares solution, its sums of squared residuals (one for each right-hand side), rank and singular values
    of the matrix."""

    x: Array
    residuals: Array
    rank: Array
    singular_values: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


def goes_by_slabs(array: Array) -> bool:
    return array.ndim == 2 and array.shape[0] > WHOLE_ROWS


def _has_small_triangle(array: Array) -> bool:
    """Whether R of a matrix by tiles is so much smaller than the matrix that singular values are those of R first."""
    m, n = array.shape[-2:]
    return goes_by_tiles(array) and 2 * m >= 3 * n


def solved_by_slabs(left: Array, right: Array) -> Array:
    cut, factor = _core.dense_lu(left._expr, False)
    return Array(cut.solve(factor, right._expr, 0))


def _determinant_by_slabs(array: Array) -> tuple[Array, Array, Array]:
    """Sign, logarithm of the size, and value of a determinant."""
    cut, factor = _core.dense_lu(array._expr, True)
    sums = Array(cut.pivots(factor)[0])
    # Beyond these all is infinite or 0.
    power, is_complex = clip(sums[2], -2046.0, 2046.0), array.dtype.kind == "c"
    half = floor(power / 2)
    # The power of two of the largest numbers is none itself, half of it is.
    parts = [sums[part] * 2.0**half * 2.0 ** (power - half) for part in range(2 if is_complex else 1)]
    value = parts[0] + 1j * parts[1] if is_complex else parts[0]
    sign = sums[3] + 1j * sums[4] if is_complex else sums[3]
    return sign, sums[5], value


def _identities(batch: tuple[int, ...], side: int, dtype: DType) -> Array:
    return broadcast_to(eye(side, dtype=dtype), (*batch, side, side))


def cholesky(x: Operand, /, *, upper: bool = False) -> Array:
    """The lower triangle L of L Lᴴ = A (or the upper one, U of Uᴴ U) of Hermitian positive definite matrices (…, n,
    n).

    Only the lower triangle of `x` is looked at (the upper one, if `upper`). Raises ShapeError unless square; when
    computed, LinAlgError where a matrix is not positive definite. I/O: one read; of one matrix of more than 2048 rows
    that and a write of `cho_factor`, and a read of the factor for L.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.cholesky(np.asarray([[4.0, 2.0], [2.0, 5.0]])).compute()
    array([[2., 0.],
           [1., 2.]])
    """
    array, kind, _ = widened("cholesky", x)
    check_square("cholesky", array)
    if is_empty(array):
        return empty(array.shape, dtype=kind)
    array = adjoint(array) if upper else array
    if goes_by_tiles(array):
        lower = Array(_core.cholesky_lower(array._expr)).astype(kind)
    else:
        lower = factors_of("cholesky", array)[0].astype(kind)
    return adjoint(lower) if upper else lower


@overload
def qr(x: Operand, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(x: Operand, /, *, mode: Literal["r"]) -> Array: ...
def qr(x: Operand, /, *, mode: Literal["reduced", "complete", "r"] = "reduced") -> QRResult | Array:
    """A = Q R with orthonormal columns in Q and a triangle R: (…, m, n) → (…, m, k), (…, k, n), k = min(m, n).

    "complete" gives a square Q (m, m) and R (m, n), "r" R alone. I/O: one read of matrices that fit; of tall ones, two
    reads and one write of Q, or one read for R alone; of one matrix with more than 2048 rows and columns that and a
    write of `qr_factor`, and reads of the factor for Q and R.

    >>> import numpy as np, outcore as oc
    >>> q, r = oc.linalg.qr(np.asarray([[3.0], [4.0]]))
    >>> np.abs(r.compute())
    array([[5.]])
    """
    array, kind, _ = widened("qr", x)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode {mode!r} is not 'reduced', 'complete' or 'r'")
    (*batch, m, n), k = array.shape, min(array.shape[-2:])
    if is_empty(array):
        side = m if mode == "complete" else k
        basis = _identities(tuple(batch), m, kind)[..., :side]
        triangle = zeros((*batch, side, n), dtype=kind)
        return triangle if mode == "r" else QRResult(basis, triangle)
    if goes_by_tiles(array):
        cut, factor = _core.dense_qr(array._expr)
        triangle = Array(cut.triangle(factor)).astype(kind)
        if mode == "r":
            return triangle
        side = m if mode == "complete" else k
        below = zeros((side - k, n), dtype=kind)
        triangle = concat([triangle, below]) if side > k else triangle
        return QRResult(Array(cut.basis(factor, side)).astype(kind), triangle)
    if mode == "r":
        return factors_of("triangle", array)[0].astype(kind)
    basis, triangle = factors_of("qr" if mode == "reduced" else "qr_complete", array)[:2]
    return QRResult(basis.astype(kind), triangle.astype(kind))


@overload
def svd(x: Operand, /, *, full_matrices: bool = True, compute_uv: Literal[True] = True) -> SVDResult: ...
@overload
def svd(x: Operand, /, *, full_matrices: bool = True, compute_uv: Literal[False]) -> Array: ...
@overload
def svd(x: Operand, /, *, full_matrices: bool = True, compute_uv: bool) -> SVDResult | Array: ...
def svd(x: Operand, /, *, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | Array:
    """A = U diag(S) Vh: singular values S (…, k) in descending order, k = min(m, n), singular vectors U and Vh.

    U is (…, m, m) and Vh (…, n, n), or (…, m, k) and (…, k, n) unless `full_matrices`; S alone unless `compute_uv`.
    When computed, LinAlgError where a matrix has elements that are not finite. I/O: one read of matrices that fit.
    Tall and wide ones of any length take `full_matrices=False`: two reads and one write of the long factor; S alone
    one read. One matrix with more than 4096 rows and columns goes by the eigenvectors of [0 Aᴴ; A 0], so its reads and
    writes are those of `eigh` of m + n rows, and of `qr_factor` of both kinds of vectors; it may be larger than memory.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.svd(np.asarray([[3.0, 0.0], [0.0, 4.0]])).S.compute()
    array([4., 3.])
    """
    array, kind, real_dtype = widened("svd", x)
    if not compute_uv:
        return svdvals(x)
    (*batch, m, n), k = array.shape, min(array.shape[-2:])
    if is_empty(array):
        left, right = _identities(tuple(batch), m, kind), _identities(tuple(batch), n, kind)
        if not full_matrices:
            left, right = left[..., :k], right[..., :k, :]
        return SVDResult(left, empty((*batch, k), dtype=real_dtype), right)
    if full_matrices and m != n and is_large(array):
        return _completed(svd(array, full_matrices=False), m, n, kind)
    if full_matrices and not is_large(array):
        left, values, right = factors_of("svd_complete", array)
    elif m < n:
        turned = svd(adjoint(array), full_matrices=False)
        left, values, right = adjoint(turned.Vh), turned.S, adjoint(turned.U)
    elif _has_small_triangle(array) or _core.is_tall(array._expr):
        # A = Q R, R = U S Vh: singular vectors of the triangle, turned by Q.
        basis, triangle = qr(array)
        left, values, right = _thin_factors(triangle)
        left = matmul(basis, left)
    else:
        left, values, right = _thin_factors(array)
    return SVDResult(left.astype(kind), values.astype(real_dtype), right.astype(kind))


def _thin_factors(array: Array) -> Sequence[Array]:
    """U (…, m, n), S and Vh of matrices with m ≥ n."""
    return large_svd(array) if is_large(array) else factors_of("svd", array)


def _completed(thin: SVDResult, m: int, n: int, kind: DType) -> SVDResult:
    """The same singular vectors, and others that make square matrices of them."""
    left, values, right = thin
    if m > n:
        left = concat([left, qr(left, mode="complete").Q[:, n:]], axis=1)
    else:
        right = concat([right, adjoint(qr(adjoint(right), mode="complete").Q[:, m:])])
    return SVDResult(left.astype(kind), values, right.astype(kind))


def svdvals(x: Operand, /) -> Array:
    """The singular values of matrices (…, m, n) in descending order: (…, min(m, n)). I/O: one read; of one matrix with
    more than 4096 rows and columns that of `eigvalsh` of m + n rows.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.svdvals(np.asarray([[3.0, 0.0], [0.0, 4.0]])).compute()
    array([4., 3.])
    """
    array, _, real_dtype = widened("svdvals", x)
    (*batch, m, n) = array.shape
    if is_empty(array):
        return empty((*batch, min((m, n))), dtype=real_dtype)
    upright = adjoint(array) if m < n else array
    if _has_small_triangle(upright) or _core.is_tall(upright._expr):
        upright = qr(upright, mode="r")
    values = large_svdvals(upright) if is_large(upright) else factors_of("svdvals", upright)[0]
    return values.astype(real_dtype)


def inv(x: Operand, /) -> Array:
    """Inverses of square matrices (…, n, n). When computed, LinAlgError where one is singular. I/O: one read; of one
    matrix of more than 2048 rows, that and a write of `lu_factor`, and a solve with n right-hand sides.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.inv(np.asarray([[2.0, 0.0], [0.0, 4.0]])).compute()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    array, kind, _ = widened("inv", x)
    check_square("inv", array)
    if is_empty(array):
        return empty(array.shape, dtype=kind)
    if goes_by_slabs(array):
        return solved_by_slabs(array, eye(array.shape[0], dtype=array.dtype)).astype(kind)
    return factors_of("inv", array)[0].astype(kind)


def det(x: Operand, /) -> Array:
    """Determinants of square matrices (…, n, n): (…). I/O: one read; of one matrix of more than 2048 rows that and a
    write of `lu_factor`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.det(np.asarray([[2.0, 0.0], [0.0, 4.0]])).item()
    8.0
    """
    array, kind, _ = widened("det", x)
    check_square("det", array)
    if is_empty(array):
        return ones(array.shape[:-2], dtype=kind)
    factors = _determinant_by_slabs(array) if goes_by_slabs(array) else factors_of("det", array)
    return factors[2].astype(kind)


def slogdet(x: Operand, /) -> SlogdetResult:
    """Sign and log |det| of square matrices (…, n, n), which do not overflow: 0 and −inf where singular. I/O: as `det`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.slogdet(np.asarray([[0.0, 1.0], [1.0, 0.0]])).sign.item()
    -1.0
    """
    array, kind, real_dtype = widened("slogdet", x)
    check_square("slogdet", array)
    if is_empty(array):
        return SlogdetResult(ones(array.shape[:-2], dtype=kind), zeros(array.shape[:-2], dtype=real_dtype))
    sign, logarithm, _ = _determinant_by_slabs(array) if goes_by_slabs(array) else factors_of("det", array)
    return SlogdetResult(sign.astype(kind), logarithm.astype(real_dtype))


def _cutoff(values: Array, rtol: Any, shape: tuple[int, ...], kind: DType) -> Array:
    """The least size of singular values (…, k) that count: `rtol` times the largest, (…, 1)."""
    share = float(np.finfo(kind).eps * max(shape[-2:])) if rtol is None else rtol
    share = share if np.ndim(share) == 0 else expand_dims(Array(node(share)), axis=-1)
    return statistical.max(values, axis=-1, keepdims=True) * share


def _inverted(values: Array, cutoff: Array) -> Array:
    is_kept = values > cutoff
    return where(is_kept, 1 / where(is_kept, values, 1.0), 0.0)


def pinv(x: Operand, /, *, rtol: Operand | None = None) -> Array:
    """The pseudo-inverses (Moore, Penrose) of matrices (…, m, n): (…, n, m), by singular values above `rtol` times the
    largest; by default eps·max(m, n). I/O: as `svd` without full matrices, and one write.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.pinv(np.asarray([[2.0, 0.0], [0.0, 0.0]])).compute()
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    array, kind, _ = widened("pinv", x)
    if is_empty(array):
        return empty((*array.shape[:-2], array.shape[-1], array.shape[-2]), dtype=kind)
    left, values, right = svd(array, full_matrices=False)
    scaled = adjoint(right) * expand_dims(_inverted(values, _cutoff(values, rtol, array.shape, kind)), axis=-2)
    return matmul(scaled, adjoint(left)).astype(kind)


def matrix_rank(x: Operand, /, *, rtol: Operand | None = None) -> Array:
    """How many singular values of matrices (…, m, n) are above `rtol` times the largest: (…), int64.

    I/O: one read.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.matrix_rank(np.asarray([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    array, kind, _ = widened("matrix_rank", x)
    if is_empty(array):
        return zeros(array.shape[:-2], dtype=np.int64)
    values = svdvals(array)
    return statistical.sum(values > _cutoff(values, rtol, array.shape, kind), axis=-1, dtype=np.int64)


def cond(x: Operand, /) -> Array:
    """The condition numbers of matrices (…, m, n): the largest singular value over the smallest, (…). I/O: one read.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.cond(np.asarray([[2.0, 0.0], [0.0, 4.0]])).item()
    2.0
    """
    values = svdvals(x)
    return statistical.max(values, axis=-1) / statistical.min(values, axis=-1)


def lstsq(a: Operand, b: Operand, /, *, rcond: float | None = None) -> LstsqResult:
    """The X with the least |A X − B|², and the shortest one of those: A (m, n), B (m,) or (m, k) → X (n,) or (n, k).

    Singular values below `rcond` times the largest count as zero (by default eps·max(m, n)). Residuals are given
    whenever m > n, also where the rank is less than n. I/O: one read of both for any number of rows, by R of [A B]
    (Golub and Van Loan, section 5.3.3); matrices with more columns than rows as `svd`.

    >>> import numpy as np, outcore as oc
    >>> line = np.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> oc.linalg.lstsq(line, np.asarray([1.0, 3.0, 5.0])).x.compute().round(9)
    array([1., 2.])
    """
    matrix, kind, real_dtype = widened("lstsq", a)
    target = Array(node(b))
    if matrix.ndim != 2 or target.ndim not in (1, 2) or target.shape[0] != matrix.shape[0]:
        raise ShapeError(f"lstsq: {matrix.shape} and {target.shape} do not go together")
    kind = np.result_type(kind, mean_dtype(target.dtype))
    wide = np.dtype(np.complex128 if kind.kind == "c" else np.float64)
    m, n = matrix.shape
    right = (expand_dims(target, axis=1) if target.ndim == 1 else target).astype(wide)
    if m == 0 or n == 0 or right.shape[1] == 0:
        raise ShapeError(f"lstsq: {matrix.shape} and {target.shape} have no elements")
    if m > n:
        triangle = qr(concat([matrix.astype(wide), right], axis=1), mode="r")
        tail = abs(triangle[n:, n:])
        matrix, right = triangle[:n, :n], triangle[:n, n:]
    left, values, adjoint_right = svd(matrix.astype(wide), full_matrices=False)
    cutoff = _cutoff(values, rcond, (m, n), kind)
    solution = matmul(
        adjoint(adjoint_right), expand_dims(_inverted(values, cutoff), axis=-1) * matmul(adjoint(left), right)
    )
    residuals = empty((0,), dtype=np.float64)
    if m > n:
        missed = abs(right - matmul(matrix, solution))
        residuals = statistical.sum(tail * tail, axis=0) + statistical.sum(missed * missed, axis=0)
    solution = solution.squeeze(1) if target.ndim == 1 else solution
    rank = statistical.sum(values > cutoff, axis=-1, dtype=np.int64)
    return LstsqResult(solution.astype(kind), residuals.astype(real_dtype), rank, values.astype(real_dtype))


__all__ = [
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "det",
    "inv",
    "lstsq",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "svd",
    "svdvals",
]
