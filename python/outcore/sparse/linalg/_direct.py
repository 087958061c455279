"""Direct solvers of sparse systems: an analysis, a factor on disk by tiles of fronts, solutions with their residual."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.types import DType, NDArray, PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.running import plan_and_run
from outcore._session.session import current
from outcore._show.explanation import Explanation
from outcore.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from outcore.sparse._convert import from_scipy
from outcore.sparse._matrix import SparseMatrix

Kind = Literal["auto", "spd"]
OrderingName = Literal["auto", "nd", "amd", "natural"]

# A solution whose scaled residual is larger is an error.
_RESIDUAL_MOST = 1e-12
# Corrections of a solution: each is a solve, and made while the residual is above the first number and falls to a half.
_RESIDUAL_GOOD, _CORRECTIONS = 1e-14, 3
_NAMES = ("auto", "nd", "amd", "natural")


@dataclasses.dataclass(frozen=True)
class FactorForecast:
    """What a factorization will take, before anything is computed; `str()` lays it out.

    `factor_entries` are those of L with the zeros that larger supernodes cost, `operations` multiplications and additions,
    `plan` is the explanation of the program under the current limit.
    """

    rows: int
    entries: int
    ordering: str
    factor_entries: int
    factor_bytes: int
    operations: float
    largest_front: int
    plan: Explanation

    def __str__(self) -> str:
        lines = [
            ("rows", f"{self.rows:,}, {self.entries:,} entries"),
            ("ordering", self.ordering),
            ("factor", f"{self.factor_entries:,} entries, {format_size(self.factor_bytes)}"),
            ("operations", f"{self.operations:.4g} multiplications and additions"),
            ("largest front", f"{self.largest_front:,} rows"),
        ]
        return "\n".join(f"{name:<16}{value}" for name, value in lines) + f"\n\n{self.plan}"


class Factorization:
    """The analysis of a symmetric positive definite sparse matrix, and its factor once `factorize` has made it.

    Made by `analyze`. The factor is that of P A Pᵀ = L Lᴴ, P the order of elimination: multifrontal over tiles of fronts
    (Duff, Reid 1983; Liu 1992), which are placed in memory like the tiles of any program, so the same bits come at every
    limit.
    """

    def __init__(self, matrix: SparseMatrix, analysis: _core.Analysis, ordering: str) -> None:
        self._matrix, self._analysis, self._ordering = matrix, analysis, ordering
        self._factor: _core.Factor | None = None
        self._residual: float | None = None
        self._permuted: SparseMatrix | None = None
        order = analysis.order.astype(np.int64)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        self._order, self._places = order, places

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self._matrix.shape

    @property
    def dtype(self) -> DType:
        """The type of the factor: float64 or complex128."""
        return np.dtype(np.complex128 if self._matrix.dtype.kind == "c" else np.float64)

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The row that is eliminated as each: `A[order][:, order]` is what is factorized."""
        return self._order

    @property
    def nbytes(self) -> int:
        """Bytes of the factor's file; 0 before `factorize`."""
        return 0 if self._factor is None else self._factor.nbytes

    @property
    def residual(self) -> float | None:
        """The scaled residual of the last `solve`: the largest |b − Ax| ÷ (|A| |x| + |b|) of its columns in the largest
        norm; None before."""
        return self._residual

    def __repr__(self) -> str:
        done = "analyzed" if self._factor is None else f"factor of {format_size(self.nbytes)}"
        return f"<Factorization of {self.shape[0]} x {self.shape[1]}, {self.dtype}, {self._ordering}, {done}>"

    def _node(self) -> _core.Expr:
        """The factor as a result; the rows in the order of elimination are stored in scratch for it."""
        if self._permuted is None:
            wide = self._matrix if self._matrix.dtype == self.dtype else self._matrix.astype(self.dtype)
            self._permuted = wide.permute(self._order, self._order)
        # Of a Hermitian matrix the transpose has the conjugate entries.
        return self._analysis.cholesky(self._permuted._core)

    def explain(self) -> FactorForecast:
        """What the factorization takes under the current limit, exactly, before it runs. I/O: the first time, a copy of A with
        rows and columns in the order of elimination is made in scratch: two reads, one write and a sort of its entries.

        Raises MemoryLimitError where it cannot fit, with the smallest limit that works.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> oc.sparse.linalg.analyze(A).explain().factor_entries
        4
        """
        analysis = self._analysis
        path = current()._core.unused_path() + ".ocf"
        program = current().plan([self._node()], [{"path": path, "overwrite": False, "chunks": None}])
        return FactorForecast(
            rows=analysis.rows,
            entries=self._matrix.nnz,
            ordering=self._ordering,
            factor_entries=analysis.entries,
            factor_bytes=analysis.entries * self.dtype.itemsize,
            operations=analysis.operations,
            largest_front=analysis.largest_front,
            plan=Explanation.from_json(program.explain(), current().rates),
        )

    def factorize(self, path: PathLike | None = None, *, overwrite: bool = False) -> Factorization:
        """Makes the factor, in a file whose name ends in `.ocf`, or in scratch. Gives itself.

        I/O: that of `explain`, one read of the copy, one write of the factor, and of contribution blocks what does not fit. Raises LinAlgError for a matrix that is not positive definite, naming the row of A whose pivot is not;
        MemoryLimitError where it cannot fit, with the smallest limit that works.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(4, 4)))
        >>> F = oc.sparse.linalg.analyze(A).factorize()
        >>> F.solve([1.0, 0.0, 0.0, 1.0]).round(12)
        array([1., 1., 1., 1.])
        """
        self._factor = self._made(path, overwrite)
        return self

    def refactorize(
        self, matrix: SparseMatrix | Any, path: PathLike | None = None, *, overwrite: bool = False
    ) -> Factorization:
        """The factor of another matrix with entries at the same places, or at fewer; the analysis is kept.

        Raises ShapeError for another shape. I/O and errors else as `factorize`.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> F = oc.sparse.linalg.analyze(A).factorize()
        >>> F.refactorize(A * 2.0).solve([8.0, 8.0, 8.0, 8.0])
        array([1., 1., 1., 1.])
        """
        matrix = _matrix(matrix, "refactorize")
        if matrix.shape != self.shape:
            raise ShapeError(f"refactorize: a matrix of shape {matrix.shape}, and the analysis is of {self.shape}")
        self._matrix, self._permuted = matrix, None
        return self.factorize(path, overwrite=overwrite)

    def _made(self, path: PathLike | None, overwrite: bool) -> _core.Factor:
        core = current()._core
        name = core.unused_path() + ".ocf" if path is None else str(path)
        if not name.endswith(".ocf"):
            raise ArgumentError(f"factorize: {name!r} does not end in .ocf, as a factor's file does")
        plan_and_run([self._node()], [{"path": name, "overwrite": overwrite, "chunks": None}])
        return _core.open_factor_tiles(core, name, path is None)

    def _tiles(self) -> _core.Expr:
        if self._factor is None:
            self.factorize()
        assert self._factor is not None
        return self._factor.tiles

    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        """The solution for right-hand sides (n, k), lazily."""
        permuted = oc.take(b.astype(self.dtype), self._order, axis=0)
        x = Array(self._analysis.solve(tiles, self.dtype.name, permuted._expr))
        return oc.take(x, self._places, axis=0)

    def solve(self, b: Operand) -> Any:
        """X of A X = B: (n,) or (n, k). NumPy's arrays give NumPy's; of a lazy array the result is a lazy array whose value is
        held, in memory or in scratch.

        Where the factor is not there yet, it is made first. The scaled residual is computed, the solution corrected by it
        up to three times (iterative refinement), and the residual kept as `residual`: above 1e-12 it is an error, as for a
        matrix that is not symmetric. I/O: two reads of the factor for each band of columns, one of A, and again for each
        correction.

        Raises ShapeError for another number of rows, LinAlgError as said.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr") * 4.0)
        >>> oc.sparse.linalg.analyze(A).solve([4.0, 8.0, 12.0])
        array([1., 2., 3.])
        """
        right = oc.asarray(b)
        if right.ndim not in (1, 2) or right.shape[0] != self.shape[0]:
            rows = right.shape[0] if right.ndim else 1
            raise ShapeError(
                f"solve: {self.shape} and right-hand sides of shape {right.shape}: {self.shape[0]} and {rows} rows differ"
            )
        if right.dtype.kind == "c" and self.dtype.kind != "c":
            parts = [self.solve(part) for part in (oc.real(right), oc.imag(right))]
            joined = parts[0] + 1j * parts[1]
            return joined if isinstance(b, Array) else joined.compute()
        wide = right if right.ndim == 2 else right[:, None]
        x = self._refined(wide) if 0 not in wide.shape else oc.zeros(wide.shape, dtype=self.dtype)
        x = x if right.ndim == 2 else x[:, 0]
        return x if isinstance(b, Array) else x.compute()

    def _refined(self, b: Array) -> Array:
        tiles = self._tiles()
        x = oc.persist(self._applied(tiles, b))
        worst, rest = self._rest(b, x)
        for _ in range(_CORRECTIONS):
            if worst <= _RESIDUAL_GOOD or not np.isfinite(worst):
                break
            corrected = oc.persist(x + self._applied(tiles, rest))
            better, rest = self._rest(b, corrected)
            if not better <= worst / 2:
                break
            x, worst = corrected, better
        self._residual = worst
        if not worst <= _RESIDUAL_MOST:
            raise LinAlgError(
                f"solve: the scaled residual is {worst:.2g}, more than {_RESIDUAL_MOST:.0g}: the matrix is not symmetric, "
                "or too near to a singular one"
            )
        return x

    def _rest(self, b: Array, x: Array) -> tuple[float, Array]:
        """The largest scaled residual of the columns, and the residual itself."""
        rest = b - self._matrix @ x
        size = oc.max(abs(self._matrix) @ oc.ones((self.shape[1],)))
        of = [oc.max(oc.abs(array), axis=0) for array in (rest, x, b)]
        most, largest, right, norm = oc.compute(*of, size)
        scale = np.asarray(norm) * largest + right
        scaled = np.divide(most, scale, out=np.zeros_like(most), where=(scale != 0) | (most != 0))
        return float(scaled.max(initial=0.0)), rest

    def logdet(self) -> float:
        """The logarithm of the determinant. I/O: one read of the factor's tiles with pivots.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr") * 4.0)
        >>> round(oc.sparse.linalg.analyze(A).logdet(), 9)
        4.158883083
        """
        pivots = Array(self._analysis.log_pivots(self._tiles(), self.dtype.name))
        return 2.0 * float(pivots.compute()[0])


def _matrix(matrix: Any, name: str) -> SparseMatrix:
    """The matrix on disk, one of SciPy's stored in scratch."""
    stored = matrix if isinstance(matrix, SparseMatrix) else None
    if stored is None and hasattr(matrix, "tocoo"):
        stored = from_scipy(matrix)
    if stored is None:
        kind = type(matrix).__name__
        raise ArgumentError(f"{name}: {kind} is no sparse matrix; outcore.sparse.from_scipy stores one of SciPy's")
    if stored.shape[0] != stored.shape[1]:
        raise ShapeError(f"{name}: a matrix of shape {stored.shape} is not square")
    if stored.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: a matrix of {stored.dtype} has no factor")
    return stored


def analyze(
    A: SparseMatrix | Any, kind: Kind = "auto", *, ordering: OrderingName | npt.ArrayLike = "auto"
) -> Factorization:
    """Analyzes a symmetric (Hermitian) positive definite sparse matrix (n, n) for a direct solver; nothing is computed yet.

    `A` is a sparse matrix on disk, a lazy one (stored in scratch for it), or SciPy's. `kind` is "spd" or "auto", which is the
    same until other factorizations are there. `ordering` is "amd" (approximate minimum degree: Amestoy, Davis, Duff 1996), "nd"
    (nested dissection: Karypis, Kumar 1998), "natural", a permutation, or "auto": minimum degree, and nested dissection where
    the factorization would take longer than that. Entries right of the diagonal count; a matrix that is not symmetric shows in
    the residual of `solve`.

    I/O: one read of A. Memory: the graph of A + Aᵀ (8 bytes a row, 4 an entry off the diagonal) beside what the ordering
    takes, in the session's memory; the analysis itself stays as long as the result does. Raises ShapeError for a matrix that
    is not square, ArgumentError for what is no ordering, MemoryLimitError where the graph does not fit.

    >>> import outcore as oc, scipy.sparse
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr"))
    >>> oc.sparse.linalg.analyze(A).order
    array([0, 1, 2])
    """
    matrix = _matrix(A, "analyze")
    if kind not in ("auto", "spd"):
        raise ArgumentError(f"analyze: kind={kind!r} is none of 'auto', 'spd'")
    given: npt.NDArray[np.uint32] | None = None
    if isinstance(ordering, str):
        name = ordering
        if name not in _NAMES:
            raise ArgumentError(f"analyze: ordering={ordering!r} is none of {', '.join(_NAMES)}, or a permutation")
    else:
        name, given = "given", _permutation(np.asarray(ordering), matrix.shape[0])
    core = matrix._core
    analysis = _core.analyze(current()._core, core, name, given)
    return Factorization(matrix, analysis, name)


def open_factor(path: PathLike, A: SparseMatrix | Any) -> Factorization:
    """The factor that `Factorization.factorize(path)` made, in this or another process, with the matrix that it is of.

    The analysis is in the file; `A` gives residuals. I/O: the file's directory and its record (4 bytes a row and for each row
    of fronts). Raises FormatError for a file that is no factor, or damaged, ShapeError for a matrix of another shape.

    >>> import outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocf"
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr") * 4.0)
    >>> _ = oc.sparse.linalg.analyze(A).factorize(path)
    >>> oc.sparse.linalg.open_factor(path, A).solve([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    matrix = _matrix(A, "open_factor")
    analysis, factor = _core.open_factor_file(current()._core, str(path))
    if analysis.rows != matrix.shape[0]:
        raise ShapeError(f"open_factor: {path} is of {analysis.rows} rows, the matrix of {matrix.shape[0]}")
    opened = Factorization(matrix, analysis, "given")
    if factor.dtype != opened.dtype.name:
        raise DTypeError(f"open_factor: {path} has {factor.dtype}, a factor of a matrix of {matrix.dtype} {opened.dtype}")
    opened._factor = factor
    return opened


def _permutation(order: NDArray, rows: int) -> npt.NDArray[np.uint32]:
    if order.shape != (rows,) or order.dtype.kind not in "iu":
        raise ArgumentError(
            f"analyze: an ordering of shape {order.shape} and type {order.dtype}; {rows} integers are a permutation of the rows"
        )
    if rows and (order.min() < 0 or order.max() >= rows):
        raise ArgumentError(f"analyze: the ordering has rows from {order.min()} to {order.max()}, the matrix {rows}")
    return order.astype(np.uint32)


def cholesky(A: SparseMatrix | Any, *, ordering: OrderingName | npt.ArrayLike = "auto") -> Factorization:
    """Analyzes and factorizes a symmetric positive definite matrix, as scikit-sparse's function of this name; `F.solve(b)`,
    `F.logdet()`. Arguments, I/O and errors as `analyze` and `Factorization.factorize`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.cholesky(scipy.sparse.eye(3, format="csr") * 4.0).solve([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    return analyze(A, "spd", ordering=ordering).factorize()


def factorized(A: SparseMatrix | Any) -> Any:
    """The function that solves A x = b for a symmetric positive definite matrix, as `scipy.sparse.linalg.factorized` gives.
    I/O and errors as `cholesky` and `Factorization.solve`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.factorized(scipy.sparse.eye(3, format="csr") * 4.0)([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    return cholesky(A).solve


def spsolve(A: SparseMatrix | Any, b: Operand) -> Any:
    """X of A X = B for a symmetric positive definite matrix, as `scipy.sparse.linalg.spsolve`; `b` (n,) or (n, k) may be sparse.
    I/O and errors as `cholesky` and `Factorization.solve`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.spsolve(scipy.sparse.eye(3, format="csr") * 4.0, [4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    right = b.toarray() if hasattr(b, "toarray") else b
    return cholesky(A).solve(right)


__all__ = ["FactorForecast", "Factorization", "analyze", "cholesky", "factorized", "open_factor", "spsolve"]
