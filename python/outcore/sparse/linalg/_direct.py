"""Direct solvers of sparse systems: an analysis, a factor on disk by tiles of fronts, solutions with their residual."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.types import NDArray, PathLike
from outcore._lazy.absent import missing_name
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._session.session import Session, current
from outcore._show.explanation import Explanation
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError
from outcore.linalg._factor import Factor, Solution, factor_dtype
from outcore.sparse._convert import from_scipy
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._operators import Operator

Kind = Literal["auto", "spd"]
OrderingName = Literal["auto", "nd", "amd", "natural"]
FactorizableMatrix: TypeAlias = Any  # a sparse matrix of outcore, stored or lazy, or one of SciPy's

_NAMES = ("auto", "nd", "amd", "natural")
# Names of scikit-sparse's and SciPy's factors.
_NEAREST = {
    **dict.fromkeys(("solve_A", "cho_solve"), "F.solve(b)"),
    **dict.fromkeys(("det", "slogdet"), "F.logdet()"),
    **dict.fromkeys(("P", "perm", "perm_r", "perm_c", "get_perm"), "F.order"),
    **dict.fromkeys(("L", "D", "LD", "L_D", "U"), "F.factorize(path), whose file holds the factor by tiles of fronts"),
    **dict.fromkeys(("cholesky_inplace", "update_inplace"), "F.refactorize(A)"),
    "nnz": "F.explain().factor_entries",
}


@dataclasses.dataclass(frozen=True)
class FactorForecast:
    """The forecast of a factorization, before anything is computed; `str()` lays it out.

    `ordering` names the ordering, of "auto" the one that was taken too: "auto: nd". `factor_entries` are those of L with
    the zeros that larger supernodes cost, `operations` multiplications and additions, `plan` is the explanation of the
    program under the current limit.
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


@dataclasses.dataclass(frozen=True)
class LimitCost:
    """The bytes that a factorization moves under a memory limit; all numbers are bytes."""

    memory_limit: int
    bytes_read: int
    bytes_written: int
    peak_bytes: int


class _Inverse(Operator):
    """The inverse of a factorized matrix: products are solutions, whose residuals are held against their limit."""

    def __init__(self, factor: Factor) -> None:
        super().__init__(factor.shape, factor.dtype)
        self._factor = factor

    def __matmul__(self, x: Array) -> Array:
        solution: Array = self._factor.solve(x)
        return solution

    def adjoint(self, x: Array) -> Array:
        return self @ x

    def pair(self, x: Array) -> tuple[Array, Array]:
        held = oc.persist(x)
        return held, self @ held


class Factorization(Factor):
    """The analysis of a symmetric positive definite sparse matrix, and its factor once `factorize` has made it.

    Made by `analyze`. The factor is that of P A Pᵀ = L Lᴴ, P the order of elimination: multifrontal over tiles of
    fronts (Duff, Reid 1983; Liu 1992), which are placed in memory like the tiles of any program, so the same bits come
    at every limit.
    """

    def __init__(self, matrix: SparseMatrix, analysis: _core.Analysis, ordering: str) -> None:
        super().__init__(matrix, analysis)
        self._ordering = ordering
        self._permuted: SparseMatrix | None = None
        self._order, self._places = analysis.orders()
        # Whoever takes rows by them needs no copy.
        self._order.flags.writeable = self._places.flags.writeable = False

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The row that is eliminated as each: `A[order][:, order]` is what is factorized. Read-only."""
        return self._order

    def __repr__(self) -> str:
        done = "analyzed" if self._factor is None else f"factor of {format_size(self.nbytes)}"
        return f"<Factorization of {self.shape[0]} x {self.shape[1]}, {self.dtype}, {self._ordering}, {done}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name in _NEAREST:
            raise AttributeError(f"a Factorization has no attribute {name!r}; use {_NEAREST[name]}")
        raise missing_name("outcore.sparse.linalg.Factorization", name)

    def __call__(self, b: Operand) -> Solution:
        """`solve(b)`, as a factor of scikit-sparse is called."""
        return self.solve(b)

    @property
    def outcore_operator(self) -> Operator:
        """The inverse of the matrix as solvers of this room take it: `eigsh(A, sigma=0, OPinv=F)`, `cg(B, b, M=F)`."""
        return _Inverse(self)

    def __reduce__(self) -> NoReturn:
        """Raises DTypeError: analysis and factor are known to this process only."""
        raise DTypeError(
            "a Factorization is known to this process only and cannot be pickled: analyze the matrix in the other, "
            "with ordering=F.order for the same factor"
        )

    def __copy__(self) -> Factorization:
        made = object.__new__(Factorization)
        made.__dict__.update(self.__dict__)
        return made

    def _reordered(self, matrix: SparseMatrix) -> SparseMatrix:
        """Rows and columns in the order of elimination, which are stored in scratch when they are first read."""
        dtype = factor_dtype(matrix.dtype)
        wide = matrix if matrix.dtype == dtype else matrix.astype(dtype)
        return wide.permute(self._order, self._order)

    def _node(self) -> _core.Expr:
        """The factor as a result."""
        if self._permuted is None:
            self._permuted = self._reordered(self._matrix)
        # Of a Hermitian matrix the transpose has the conjugate entries.
        return self._analysis.cholesky(self._permuted._core)

    def explain(self) -> FactorForecast:
        """The forecast of the factorization under the current limit, exact, before it runs.

        I/O: the first time, a copy of A with rows and columns in the order of elimination is made in scratch: two
        reads, one write and a sort of its entries.

        Raises MemoryLimitError where it cannot fit, with the smallest limit that works.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> oc.sparse.linalg.analyze(A).explain().factor_entries
        4
        """
        analysis = self._analysis
        path = current()._core.unused_path().removesuffix(".npy") + ".ocf"
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

    def curve(self) -> list[LimitCost]:
        """The cost of the factorization under the smallest limit that works and each double of it, up to the first that
        spills nothing. I/O: as `explain`.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> len(oc.sparse.linalg.analyze(A).curve())
        1
        """
        node, costs = self._node(), []
        path = current()._core.unused_path().removesuffix(".npy") + ".ocf"
        options = {key: value for key, value in current().options.items() if key not in ("memory_limit", "progress")}

        def planned(limit: int) -> Explanation:
            with Session(**options, memory_limit=limit, progress=False) as session:
                program = session.plan([node], [{"path": path, "overwrite": False, "chunks": None}])
                return Explanation.from_json(program.explain())

        try:
            limit = planned(1 << 20).memory_limit
        except MemoryLimitError as refused:
            if refused.smallest is None:
                raise
            limit = refused.smallest
        while True:
            plan = planned(limit)
            costs.append(LimitCost(limit, plan.bytes_read, plan.bytes_written, plan.peak_bytes))
            if not plan.bytes_spilled:
                return costs
            limit *= 2

    def factorize(self, path: PathLike | None = None, *, overwrite: bool = False) -> Factorization:
        """Makes the factor, in a file whose name ends in `.ocf`, or in scratch. Gives itself.

        I/O: that of `explain`, one read of the copy, one write of the factor, and of contribution blocks what does not
        fit. Raises LinAlgError for a matrix that is not positive definite, naming the row of A whose pivot is not;
        MemoryLimitError where it cannot fit, with the smallest limit that works. After an error the factor is the one
        before, if there was one.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(4, 4)))
        >>> F = oc.sparse.linalg.analyze(A).factorize()
        >>> F.solve([1.0, 0.0, 0.0, 1.0]).round(12)
        array([1., 1., 1., 1.])
        """
        self._factor = self._made(path, overwrite)
        return self

    def refactorize(
        self, matrix: FactorizableMatrix, path: PathLike | None = None, *, overwrite: bool = False
    ) -> Factorization:
        """Makes the factor of another matrix with entries at the same places, or at fewer; the analysis is kept.

        Gives itself: the factor before is gone, unless an error comes. Raises ShapeError for another shape,
        ArgumentError for entries that the factor has no place for. I/O and errors else as `factorize`.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> F = oc.sparse.linalg.analyze(A).factorize()
        >>> F.refactorize(A * 2.0).solve([8.0, 8.0, 8.0, 8.0])
        array([1., 1., 1., 1.])
        """
        matrix = _matrix(matrix, "refactorize")
        if matrix.shape != self.shape:
            raise ShapeError(f"refactorize: a matrix of shape {matrix.shape}, and the analysis is of {self.shape}")
        made = self.__copy__()
        made._matrix, made._permuted, made._residual = matrix, None, None
        made.factorize(path, overwrite=overwrite)
        self.__dict__.update(made.__dict__)
        return self

    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        permuted = oc.take(b.astype(self.dtype), self._order, axis=0)
        return oc.take(super()._applied(tiles, permuted), self._places, axis=0)


def _matrix(matrix: FactorizableMatrix, name: str) -> SparseMatrix:
    """The matrix on disk, one of SciPy's stored in scratch."""
    stored = matrix if isinstance(matrix, SparseMatrix) else None
    if stored is None and hasattr(matrix, "tocoo"):
        stored = from_scipy(matrix)
    if stored is None:
        raise ArgumentError(f"{name}: {type(matrix).__name__} is no sparse matrix; {_nearest(matrix)}")
    if stored.shape[0] != stored.shape[1]:
        raise ShapeError(f"{name}: a matrix of shape {stored.shape} is not square; lsmr solves least squares")
    if stored.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: a matrix of {stored.dtype} has no factor")
    return stored


def _nearest(matrix: FactorizableMatrix) -> str:
    if isinstance(matrix, (str, os.PathLike)):
        return "outcore.sparse.open(path) opens one, outcore.sparse.from_mtx converts Matrix Market's"
    if isinstance(matrix, (np.ndarray, Array)):
        return "outcore.linalg.solve solves dense systems, scipy.sparse.csr_array(A) makes it one"
    return "outcore.sparse.from_scipy stores one of SciPy's"


def analyze(
    A: FactorizableMatrix, kind: Kind = "auto", *, ordering: OrderingName | npt.ArrayLike = "auto"
) -> Factorization:
    """Analyzes a symmetric (Hermitian) positive definite sparse matrix (n, n) for a direct solver; nothing is computed.

    `A` is a sparse matrix on disk, a lazy one (stored in scratch for it), or SciPy's. `kind` is "spd" or "auto", which
    is the same until other factorizations are there. `ordering` is "amd" (approximate minimum degree: Amestoy, Davis,
    Duff 1996), "nd" (nested dissection: Karypis, Kumar 1998), "natural", a permutation, or "auto": minimum degree, and
    nested dissection where the factorization would take longer than that. Entries right of the diagonal count; a matrix
    that is not symmetric shows in the residual of `solve`.

    I/O: one read of A. Memory: the graph of A + Aᵀ (8 bytes a row, 4 an entry off the diagonal) beside what the
    ordering takes, in the session's memory; the analysis itself stays as long as the result does. Raises ShapeError for
    a matrix that is not square, ArgumentError for what is no ordering, MemoryLimitError where the graph does not fit.

    >>> import outcore as oc, scipy.sparse
    >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr"))
    >>> oc.sparse.linalg.analyze(A)
    <Factorization of 3 x 3, float64, auto: amd, analyzed>
    """
    matrix = _matrix(A, "analyze")
    if kind not in ("auto", "spd"):
        raise ArgumentError(
            f"analyze: kind={kind!r} is none of 'auto', 'spd'; there is no factorization of indefinite or unsymmetric "
            "matrices: use minres or gmres"
        )
    permutation: npt.NDArray[np.uint32] | None = None
    if isinstance(ordering, str):
        name = ordering
        if name not in _NAMES:
            raise ArgumentError(f"analyze: ordering={ordering!r} is none of {', '.join(_NAMES)}, or a permutation")
    else:
        name, permutation = "given", _permutation(np.asarray(ordering), matrix.shape[0])
    core = matrix._core
    analysis = _core.analyze(current()._core, core, name, permutation)
    return Factorization(matrix, analysis, f"auto: {analysis.ordering}" if name == "auto" else name)


def open_factor(path: PathLike, A: SparseMatrix | Any) -> Factorization:
    """The factor that `Factorization.factorize(path)` made, in this or another process, with the matrix that it is of.

    The analysis is in the file; `A` gives residuals. I/O: the file's directory and its record (4 bytes a row and for
    each row of fronts). Raises FormatError for a file that is no factor, or damaged, ShapeError for a matrix of another
    shape.

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
        raise DTypeError(
            f"open_factor: {path} has {factor.dtype}, a factor of a matrix of {matrix.dtype} {opened.dtype}"
        )
    opened._factor = factor
    return opened


def _permutation(order: NDArray, rows: int) -> npt.NDArray[np.uint32]:
    if order.shape != (rows,) or order.dtype.kind not in "iu":
        raise ArgumentError(
            f"analyze: an ordering of shape {order.shape} and type {order.dtype}; {rows} integers are a permutation of "
            "the rows"
        )
    if rows and (order.min() < 0 or order.max() >= rows):
        raise ArgumentError(f"analyze: the ordering has rows from {order.min()} to {order.max()}, the matrix {rows}")
    return order.astype(np.uint32)


def cholesky(A: FactorizableMatrix, *, ordering: OrderingName | npt.ArrayLike = "auto") -> Factorization:
    """Analyzes and factorizes a symmetric positive definite matrix, as scikit-sparse's function of this name.

    The result has `solve(b)` and `logdet()`. Arguments, I/O and errors as `analyze` and `Factorization.factorize`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.cholesky(scipy.sparse.eye(3, format="csr") * 4.0).solve([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    return analyze(A, "spd", ordering=ordering).factorize()


def factorized(A: FactorizableMatrix) -> Callable[[Operand], Solution]:
    """The function that solves A x = b for a symmetric positive definite matrix, as `scipy.sparse.linalg.factorized`.

    I/O and errors as `cholesky` and `Factorization.solve`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.factorized(scipy.sparse.eye(3, format="csr") * 4.0)([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    return cholesky(A).solve


def spsolve(A: FactorizableMatrix, b: Operand) -> Solution:
    """X of A X = B for a symmetric positive definite matrix, as `scipy.sparse.linalg.spsolve`.

    `b`, (n,) or (n, k), may be SciPy's sparse matrix; the result is dense. I/O and errors as `cholesky` and
    `Factorization.solve`.

    >>> import outcore as oc, scipy.sparse
    >>> oc.sparse.linalg.spsolve(scipy.sparse.eye(3, format="csr") * 4.0, [4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """
    right = b.toarray() if hasattr(b, "toarray") else b
    return cholesky(A).solve(right)


__all__ = [
    "FactorForecast",
    "Factorization",
    "LimitCost",
    "analyze",
    "cholesky",
    "factorized",
    "open_factor",
    "spsolve",
]
