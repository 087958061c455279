"""Direct solvers of sparse systems, with the names of SciPy and scikit-sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from outcore._base.types import NDArray, PathLike
from outcore._lazy.node import Operand
from outcore._run.factors import opened_factor
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.linalg._factor import Solution, factor_dtype
from outcore.linalg._mixed import Precision, checked_precision, checked_tolerance, single_of
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._factorization import Factorization, RequestedOrder, analyzed
from outcore.sparse.linalg._given import FactorizableMatrix, real_where_it_is, stored_matrix
from outcore.sparse.linalg._pivoting import KINDS, Kind, kind_of, of_dtype

OrderingName = Literal["auto", "nd", "amd", "natural"]

_NAMES = ("auto", "nd", "amd", "natural")


def analyze(
    A: FactorizableMatrix,
    kind: Kind = "auto",
    *,
    ordering: OrderingName | npt.ArrayLike = "auto",
    precision: Precision = "double",
    low_rank: float | None = None,
) -> Factorization:
    """Analyzes a square sparse matrix (n, n) for a direct solver; nothing is factorized yet.

    `A` is a sparse matrix on disk, a lazy one (stored in scratch for it), or SciPy's. `kind` is "spd" for symmetric
    (Hermitian) positive definite matrices, "sym" for symmetric and "her" for Hermitian ones, which may be indefinite
    and are the same of real ones, "lu" for any, or "auto": by the values, and a matrix that turns out not to be
    positive definite is taken as indefinite. `ordering` is "amd" (approximate minimum degree: Amestoy, Davis, Duff
    1996), "nd" (nested dissection: Karypis, Kumar 1998), "natural", a permutation, or "auto": minimum degree, and
    nested dissection where the factorization would take longer than that. Of kinds but "lu", entries right of the
    diagonal count; a matrix that is not symmetric shows in the residual of `solve`. A complex matrix whose imaginary
    part is 0 has a real factor, and complex solutions.

    With `precision="mixed"`, of positive definite matrices, the factor is of single precision: half of the bytes, and
    of large three-dimensional systems two thirds of the time. Solutions have double precision all the same, by
    corrections, and conjugate gradients with the factor as their preconditioner where these do not converge; `logdet`,
    `rcond` and elements of the inverse have not the digits and are refused.

    With `low_rank` a tolerance, as 1e-8, tiles of the factor below its diagonal are products of few columns wherever
    that is as good: each row of a tile to the tolerance in the mean, of the matrix scaled to a diagonal of about 1
    (block low rank: Amestoy and others 2015). Columns of separators are ordered by what they are near to. The factor
    has fewer bytes and operations, the fewer the larger a three-dimensional system; its forecast is a bound. Solutions
    are those of mixed precision, with which it goes together (a tolerance of at least 1e-5), and the same methods are
    refused; a tolerance that is too large may make the matrix appear not to be positive definite, of kind "auto" too.

    I/O: one read of A, with pivoting two, of mixed precision or low rank one more, of "auto" three more, of complex
    ones up to five. Memory: the graph of A + Aᵀ (8 bytes a row, 4 an entry off the diagonal) beside what the ordering
    takes, with pivoting 20 bytes an entry and 90 a row, in the session's memory; the analysis itself stays as long as
    the result does. Raises ShapeError for a matrix that is not square, ArgumentError for what is no kind, ordering or
    precision and for an approximate factor of another kind than "spd", MemoryLimitError where the graph does not fit.

    >>> import outcore as oc, scipy.sparse
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr"))
    >>> oc.sparse.linalg.analyze(A)
    <Factorization of 3 x 3, float64, spd, auto: amd, analyzed>
    """
    stored = stored_matrix(A, "analyze")
    matrix = real_where_it_is(stored)
    if not isinstance(kind, str) or (kind != "auto" and kind not in KINDS):
        raise ArgumentError(f"analyze: kind={kind!r} is none of 'auto', {', '.join(map(repr, KINDS))}")
    if kind == "her" and factor_dtype(matrix.dtype).kind != "c":
        kind = "sym"
    if isinstance(ordering, str):
        if ordering not in _NAMES:
            raise ArgumentError(f"analyze: ordering={ordering!r} is none of {', '.join(_NAMES)}, or a permutation")
        requested: RequestedOrder = ordering, None
    else:
        requested = "given", _permutation(np.asarray(ordering), matrix.shape[0])
    low_rank = checked_tolerance("analyze", low_rank, checked_precision("analyze", precision))
    approximate = _approximate(precision, low_rank)
    chosen = kind_of(matrix) if kind == "auto" else of_dtype(KINDS[kind], factor_dtype(matrix.dtype))
    if approximate is not None and chosen != "definite":
        reason = (
            f"kind={kind!r}" if kind != "auto" else "the matrix is not symmetric (Hermitian) with a positive diagonal"
        )
        raise ArgumentError(f'analyze: {approximate} is for positive definite matrices, kind="spd", and {reason}')
    made = analyzed(matrix, chosen, requested, low_rank)
    if approximate is not None:
        made._be_approximate(precision)
    made._is_guessed = kind == "auto" and chosen == "definite"
    made._is_complex = stored.dtype.kind == "c"
    return made


def open_factor(path: PathLike, A: SparseMatrix | Any) -> Factorization:
    """The factor that `Factorization.factorize(path)` made, in this or another process, with the matrix that it is of.

    The analysis is in the file; `A` gives residuals. I/O: the file's directory and its record (4 bytes a row and for
    each row of fronts); of a factor of mixed precision or low rank one read of A. Raises FormatError for a file that is
    no factor, or damaged, ShapeError for a matrix of another shape.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocf"
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr") * 4.0)
    >>> _ = oc.sparse.linalg.analyze(A).factorize(path)
    >>> oc.sparse.linalg.open_factor(path, A).solve([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    matrix = stored_matrix(A, "open_factor")
    analysis, factor, kind = opened_factor(path)
    if analysis.rows != matrix.shape[0]:
        raise ShapeError(f"open_factor: {path} is of {analysis.rows} rows, the matrix of {matrix.shape[0]}")
    real = matrix if factor.dtype in ("complex64", "complex128") else real_where_it_is(matrix)
    opened = Factorization(real, analysis, "given", kind)
    opened._is_complex = matrix.dtype.kind == "c"
    is_single = kind == "definite" and factor.dtype == single_of(opened.dtype).name
    if is_single or (analysis.low_rank is not None and factor.dtype == opened.dtype.name):
        opened._be_approximate("mixed" if is_single else "double")
    elif factor.dtype != opened.dtype.name:
        raise DTypeError(
            f"open_factor: {path} has {factor.dtype}, a factor of a matrix of {matrix.dtype} {opened.dtype}"
        )
    opened._factor, opened._is_opened = factor, True
    return opened


def _approximate(precision: Precision, low_rank: float | None) -> str | None:
    """The argument that asks for a factor of fewer digits, where one does."""
    if low_rank is None:
        return 'precision="mixed"' if precision == "mixed" else None
    return f"low_rank={low_rank:g}"


def _permutation(order: NDArray, rows: int) -> npt.NDArray[np.uint32]:
    if order.shape != (rows,) or order.dtype.kind not in "iu":
        raise ArgumentError(
            f"analyze: an ordering of shape {order.shape} and type {order.dtype}; {rows} integers are a permutation of "
            "the rows"
        )
    if rows and (order.min() < 0 or order.max() >= rows):
        raise ArgumentError(f"analyze: the ordering has rows from {order.min()} to {order.max()}, the matrix {rows}")
    return order.astype(np.uint32)


def cholesky(
    A: FactorizableMatrix,
    *,
    ordering: OrderingName | npt.ArrayLike = "auto",
    precision: Precision = "double",
    low_rank: float | None = None,
) -> Factorization:
    """Analyzes and factorizes a symmetric positive definite matrix, as scikit-sparse's function of this name.

    The result has `solve(b)` and `logdet()`. Arguments, I/O and errors as `analyze` and `Factorization.factorize`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.cholesky(scipy.sparse.eye(3, format="csr") * 4.0).solve([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    return analyze(A, "spd", ordering=ordering, precision=precision, low_rank=low_rank).factorize()


def splu(A: FactorizableMatrix, *, ordering: OrderingName | npt.ArrayLike = "auto") -> Factorization:
    """Analyzes and factorizes any square matrix as L U, as `scipy.sparse.linalg.splu`.

    The result has `solve(b, trans)` and `slogdet()`. A singular matrix is no error here but of `solve`, where SciPy's
    function raises; `ordering` is what `permc_spec` is there. Arguments, I/O and errors as `analyze` and
    `Factorization.factorize`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.splu(scipy.sparse.csr_array([[0.0, 2.0], [4.0, 0.0]])).solve([4.0, 8.0])
    array([2., 2.])
    """
    return analyze(A, "lu", ordering=ordering).factorize()


def factorized(A: FactorizableMatrix) -> Callable[[Operand], Solution]:
    """The function that solves A x = b for a square matrix, as `scipy.sparse.linalg.factorized`.

    I/O and errors as `analyze` and `Factorization.solve`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.factorized(scipy.sparse.eye(3, format="csr") * 4.0)([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    return analyze(A).factorize().solve


def spsolve(A: FactorizableMatrix, b: Operand) -> Solution:
    """X of A X = B for a square matrix, as `scipy.sparse.linalg.spsolve`, by the factor that its values are for.

    `b`, (n,) or (n, k), may be SciPy's sparse matrix; the result is dense and has the shape of `b`, also where that
    is (n, 1), of which SciPy makes (n,). I/O and errors as `analyze` and
    `Factorization.solve`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.spsolve(scipy.sparse.eye(3, format="csr") * 4.0, [4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    return analyze(A).solve(b)


__all__ = ["analyze", "cholesky", "factorized", "open_factor", "splu", "spsolve"]
