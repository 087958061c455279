"""Factorizations of the array API's `linalg` extension, and what follows from them.

Each matrix along the last two axes is a task of its own and must fit the memory limit, with the workspace that its
factorization says (by `faer`): a plan that cannot fit is refused with the number. Tall matrices of any length go by
tiles instead: QR in two reads, R, singular values and least squares in one (Demmel and others 2012, section 3). So do
systems, inverses and determinants of one matrix of more than 2048 rows, by slabs of its LU factor (`lu_factor`), QR of
one with more than 2048 rows and columns (`qr_factor`), and eigenvalues and vectors of one Hermitian matrix of more than
2048 rows.

float32 and complex64 are factorized in double precision and rounded once at the end; integers count as float64.
"""

from __future__ import annotations

import operator
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from outcore import _core
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import mean_dtype
from outcore._standard import statistical
from outcore._standard.creation import empty, eye, ones, zeros
from outcore._standard.linear_algebra import matmul, matrix_transpose
from outcore._standard.manipulation import broadcast_shapes, broadcast_to, concat, expand_dims
from outcore._standard.searching import where
from outcore.elementwise import abs, clip, conj, floor
from outcore.errors import ArgumentError, DTypeError, ShapeError


class QRResult(NamedTuple):
    """Factors of A = Q R."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Factors of A = U diag(S) Vh."""

    U: Array
    S: Array
    Vh: Array


class EigResult(NamedTuple):
    """Eigenvalues (…, n) and eigenvectors (…, n, n), which are columns."""

    eigenvalues: Array
    eigenvectors: Array


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of determinants."""

    sign: Array
    logabsdet: Array


class LstsqResult(NamedTuple):
    """A least-squares solution, its sums of squared residuals (one for each right-hand side), rank and singular values
    of the matrix."""

    x: Array
    residuals: Array
    rank: Array
    singular_values: Array


def _wide(name: str, x: Operand) -> tuple[Array, DType, DType]:
    """The array in double precision, and the types of its own and of real results."""
    array = Array(node(x))
    if array.dtype == np.float16:
        raise DTypeError(f"{name}: float16 has too few digits to factorize; cast to float32")
    kind = mean_dtype(array.dtype)
    if array.ndim < 2:
        raise ShapeError(f"{name}: an array of shape {array.shape} has no rows and columns")
    wide = np.dtype(np.complex128 if kind.kind == "c" else np.float64)
    return array.astype(wide), kind, np.dtype(f"f{kind.itemsize // (2 if kind.kind == 'c' else 1)}")


def _square(name: str, array: Array) -> None:
    if array.shape[-1] != array.shape[-2]:
        raise ShapeError(f"{name}: {array.shape} is not square along its last two axes")


def _factors(name: str, array: Array, right: Array | None = None) -> list[Array]:
    factors = _core.factorize(name, array._expr, None if right is None else right._expr)
    return [Array(factor) for factor in factors]


# A single matrix of more rows has its LU factor in slabs. By the rows alone, so the bits are the same at every limit.
_WHOLE_ROWS = 2048


def _goes_by_slabs(array: Array) -> bool:
    return array.ndim == 2 and array.shape[0] > _WHOLE_ROWS


def _goes_by_tiles(array: Array) -> bool:
    return array.ndim == 2 and min(array.shape) > _WHOLE_ROWS


def _has_small_triangle(array: Array) -> bool:
    """Whether R of a matrix by tiles is so much smaller than the matrix that singular values are those of R first."""
    m, n = array.shape[-2:]
    return _goes_by_tiles(array) and 2 * m >= 3 * n


def _solved_by_slabs(left: Array, right: Array) -> Array:
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


def _is_empty(array: Array) -> bool:
    return 0 in array.shape[-2:]


def _identities(batch: tuple[int, ...], side: int, dtype: DType) -> Array:
    return broadcast_to(eye(side, dtype=dtype), (*batch, side, side))


def adjoint(x: Array) -> Array:
    """The conjugate transpose of the last two axes."""
    transposed = matrix_transpose(x)
    return conj(transposed) if x.dtype.kind == "c" else transposed


def cholesky(x: Operand, /, *, upper: bool = False) -> Array:
    """The lower triangle L of L Lᴴ = A (or the upper one, U of Uᴴ U) of Hermitian positive definite matrices (…, n,
    n).

    Only the lower triangle of `x` is looked at (the upper one, if `upper`). Raises ShapeError unless square; when
    computed, LinAlgError where a matrix is not positive definite. I/O: one read.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.cholesky(np.asarray([[4.0, 2.0], [2.0, 5.0]])).compute()
    array([[2., 0.],
           [1., 2.]])
    """
    array, kind, _ = _wide("cholesky", x)
    _square("cholesky", array)
    if _is_empty(array):
        return empty(array.shape, dtype=kind)
    lower = _factors("cholesky", adjoint(array) if upper else array)[0].astype(kind)
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
    array, kind, _ = _wide("qr", x)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode {mode!r} is not 'reduced', 'complete' or 'r'")
    (*batch, m, n), k = array.shape, min(array.shape[-2:])
    if _is_empty(array):
        side = m if mode == "complete" else k
        basis = _identities(tuple(batch), m, kind)[..., :side]
        triangle = zeros((*batch, side, n), dtype=kind)
        return triangle if mode == "r" else QRResult(basis, triangle)
    if _goes_by_tiles(array):
        cut, factor = _core.dense_qr(array._expr)
        triangle = Array(cut.triangle(factor)).astype(kind)
        if mode == "r":
            return triangle
        side = m if mode == "complete" else k
        below = zeros((side - k, n), dtype=kind)
        triangle = concat([triangle, below]) if side > k else triangle
        return QRResult(Array(cut.basis(factor, side)).astype(kind), triangle)
    if mode == "r":
        return _factors("triangle", array)[0].astype(kind)
    basis, triangle = _factors("qr" if mode == "reduced" else "qr_complete", array)[:2]
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
    one read.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.svd(np.asarray([[3.0, 0.0], [0.0, 4.0]])).S.compute()
    array([4., 3.])
    """
    array, kind, real_dtype = _wide("svd", x)
    if not compute_uv:
        return svdvals(x)
    (*batch, m, n), k = array.shape, min(array.shape[-2:])
    if _is_empty(array):
        left, right = _identities(tuple(batch), m, kind), _identities(tuple(batch), n, kind)
        if not full_matrices:
            left, right = left[..., :k], right[..., :k, :]
        return SVDResult(left, empty((*batch, k), dtype=real_dtype), right)
    if full_matrices:
        left, values, right = _factors("svd_complete", array)
    elif m < n:
        turned = svd(adjoint(array), full_matrices=False)
        left, values, right = adjoint(turned.Vh), turned.S, adjoint(turned.U)
    elif _has_small_triangle(array) or _core.is_tall(array._expr):
        # A = Q R, R = U S Vh: singular vectors of the triangle, turned by Q.
        basis, triangle = qr(array)
        left, values, right = _factors("svd", triangle)
        left = matmul(basis, left)
    else:
        left, values, right = _factors("svd", array)
    return SVDResult(left.astype(kind), values.astype(real_dtype), right.astype(kind))


def svdvals(x: Operand, /) -> Array:
    """The singular values of matrices (…, m, n) in descending order: (…, min(m, n)). I/O: one read.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.svdvals(np.asarray([[3.0, 0.0], [0.0, 4.0]])).compute()
    array([4., 3.])
    """
    array, _, real_dtype = _wide("svdvals", x)
    (*batch, m, n) = array.shape
    if _is_empty(array):
        return empty((*batch, min((m, n))), dtype=real_dtype)
    upright = adjoint(array) if m < n else array
    if _has_small_triangle(upright) or _core.is_tall(upright._expr):
        upright = qr(upright, mode="r")
    return _factors("svdvals", upright)[0].astype(real_dtype)


def eigh(
    x: Operand,
    /,
    *,
    UPLO: Literal["L", "U"] = "L",  # noqa: N803 - NumPy's name
    subset_by_index: tuple[int, int] | None = None,
) -> EigResult:
    """Eigenvalues of Hermitian matrices (…, n, n) in ascending order, and orthonormal eigenvectors as columns; of
    `subset_by_index=(first, last)` those from one to the other, both counted, as in SciPy.

    Only the lower triangle is looked at, or the upper one. When computed, LinAlgError for elements that are not
    finite. Raises ShapeError unless square, ArgumentError for a subset that n has not.

    A matrix of more than 2048 rows goes by tiles of 512, whatever the memory limit, with the same bits (Bischof, Lang
    and Sun 2000; Gu and Eisenstat 1995): to a band, to a tridiagonal matrix, and its vectors back. I/O: one read of
    matrices that fit; of those that do not some n³ / 3072 elements each way, and for vectors 3 n² / 2 elements of
    reflectors for all columns that memory holds.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.eigh(np.asarray([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.compute()
    array([1., 3.])
    >>> oc.linalg.eigh(np.diag([3.0, 1.0, 2.0]), subset_by_index=(1, 2)).eigenvectors.shape
    (3, 2)
    """
    array, kind, real_dtype = _hermitian("eigh", x, UPLO)
    n = array.shape[-1]
    first, end = _subset("eigh", n, subset_by_index)
    if _is_empty(array):
        return EigResult(empty(array.shape[:-1], dtype=real_dtype), empty(array.shape, dtype=kind))
    if _goes_by_tiles(array):
        values, vectors = (Array(result) for result in _core.dense_hermitian(array._expr, (first, end)))
    else:
        values, vectors = _factors("eigh", array)
        vectors = vectors[..., first:end] if end - first < n else vectors
    values = values[..., first:end] if end - first < n else values
    return EigResult(values.astype(real_dtype), vectors.astype(kind))


def eigvalsh(
    x: Operand,
    /,
    *,
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
    n = array.shape[-1]
    first, end = _subset("eigvalsh", n, subset_by_index)
    if _is_empty(array):
        return empty(array.shape[:-1], dtype=real_dtype)
    if _goes_by_tiles(array):
        values = Array(_core.dense_hermitian(array._expr, None)[0])
    else:
        values = _factors("eigvalsh", array)[0]
    return (values[..., first:end] if end - first < n else values).astype(real_dtype)


def _subset(name: str, n: int, of: tuple[int, int] | None) -> tuple[int, int]:
    """The first of the values that are asked for, and the end of them."""
    if of is None:
        return 0, n
    first, last = (operator.index(number) for number in of)
    if not 0 <= first <= last < n:
        raise ArgumentError(f"{name}: subset_by_index=({first}, {last}) of {n} eigenvalues")
    return first, last + 1


def _hermitian(name: str, x: Operand, triangle: str) -> tuple[Array, DType, DType]:
    array, kind, real_dtype = _wide(name, x)
    _square(name, array)
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
    if _is_empty(array):
        return EigResult(empty(array.shape[:-1], dtype=dtype), empty(array.shape, dtype=dtype))
    values, vectors = _factors("eig", array)
    return EigResult(values.astype(dtype), vectors.astype(dtype))


def eigvals(x: Operand, /) -> Array:
    """Eigenvalues of any square matrices (…, n, n), complex: (…, n). I/O: one read.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.eigvals(np.asarray([[2.0]])).compute()
    array([2.+0.j])
    """
    array, dtype = _general("eigvals", x)
    if _is_empty(array):
        return empty(array.shape[:-1], dtype=dtype)
    return _factors("eigvals", array)[0].astype(dtype)


def _general(name: str, x: Operand) -> tuple[Array, DType]:
    array, kind, _ = _wide(name, x)
    _square(name, array)
    return array, np.result_type(kind, np.complex64)


def inv(x: Operand, /) -> Array:
    """Inverses of square matrices (…, n, n). When computed, LinAlgError where one is singular. I/O: one read; of one
    matrix of more than 2048 rows, that and a write of `lu_factor`, and a solve with n right-hand sides.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.inv(np.asarray([[2.0, 0.0], [0.0, 4.0]])).compute()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    array, kind, _ = _wide("inv", x)
    _square("inv", array)
    if _is_empty(array):
        return empty(array.shape, dtype=kind)
    if _goes_by_slabs(array):
        return _solved_by_slabs(array, eye(array.shape[0], dtype=array.dtype)).astype(kind)
    return _factors("inv", array)[0].astype(kind)


def solve(x1: Operand, x2: Operand, /) -> Array:
    """X of A X = B for square A (…, n, n) and B (n,) or (…, n, k); leading axes broadcast.

    When computed, LinAlgError where a matrix is singular. I/O: one read of both; of one matrix of more than 2048 rows,
    larger than memory or not, that and a write of `lu_factor`, and a read of the factor. The residual is not looked at:
    `lu_factor(x1).solve(x2)` does.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.solve(np.asarray([[2.0, 0.0], [0.0, 4.0]]), np.asarray([2.0, 2.0])).compute()
    array([1. , 0.5])
    """
    left = _wide("solve", x1)[0]
    _square("solve", left)
    right = Array(node(x2))
    kind = np.result_type(mean_dtype(Array(node(x1)).dtype), mean_dtype(right.dtype))
    is_vector = right.ndim == 1
    if is_vector:
        right = expand_dims(right, axis=1)
    if right.ndim < 2 or right.shape[-2] != left.shape[-1]:
        raise ShapeError(f"solve: {left.shape} and {Array(node(x2)).shape} do not go together")
    wide = np.dtype(np.complex128 if kind.kind == "c" else np.float64)
    try:
        batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ShapeError:
        raise ShapeError(f"solve: {left.shape} and {right.shape}: leading axes do not broadcast") from None
    left, right = (broadcast_to(part.astype(wide), (*batch, *part.shape[-2:])) for part in (left, right))
    if _is_empty(left) or _is_empty(right):
        solution = empty(right.shape, dtype=kind)
    elif _goes_by_slabs(left):
        solution = _solved_by_slabs(left, right).astype(kind)
    else:
        solution = _factors("solve", left, right)[0].astype(kind)
    return solution.squeeze(-1) if is_vector else solution


def det(x: Operand, /) -> Array:
    """Determinants of square matrices (…, n, n): (…). I/O: one read; of one matrix of more than 2048 rows that and a
    write of `lu_factor`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.det(np.asarray([[2.0, 0.0], [0.0, 4.0]])).item()
    8.0
    """
    array, kind, _ = _wide("det", x)
    _square("det", array)
    if _is_empty(array):
        return ones(array.shape[:-2], dtype=kind)
    factors = _determinant_by_slabs(array) if _goes_by_slabs(array) else _factors("det", array)
    return factors[2].astype(kind)


def slogdet(x: Operand, /) -> SlogdetResult:
    """Sign and log |det| of square matrices (…, n, n), which do not overflow: 0 and −inf where singular. I/O: as `det`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.slogdet(np.asarray([[0.0, 1.0], [1.0, 0.0]])).sign.item()
    -1.0
    """
    array, kind, real_dtype = _wide("slogdet", x)
    _square("slogdet", array)
    if _is_empty(array):
        return SlogdetResult(ones(array.shape[:-2], dtype=kind), zeros(array.shape[:-2], dtype=real_dtype))
    sign, logarithm, _ = _determinant_by_slabs(array) if _goes_by_slabs(array) else _factors("det", array)
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
    array, kind, _ = _wide("pinv", x)
    if _is_empty(array):
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
    array, kind, _ = _wide("matrix_rank", x)
    if _is_empty(array):
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
    matrix, kind, real_dtype = _wide("lstsq", a)
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
    "EigResult",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
]
