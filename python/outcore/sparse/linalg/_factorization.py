"""Factors of sparse matrices: an analysis, its forecast, a factor on disk by tiles of fronts, solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore import _core
from outcore._base.types import DType, PathLike
from outcore._lazy.absent import missing_name
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run import factors
from outcore._run.holding import Holder
from outcore._session.reached import tentative
from outcore._session.session import current
from outcore._session.whole import whole_run
from outcore._show.explanation import Explanation
from outcore.errors import ArgumentError, DTypeError, LinAlgError, MemoryLimitError, ShapeError
from outcore.linalg._factor import Factor, Solution, TakenSymmetry, factor_dtype
from outcore.linalg._mixed import Approximation, Precision, Scales, named_approximation, single_of, single_scales
from outcore.linalg._pivots import (
    FactorKind,
    Inertia,
    PivotFacts,
    PivotScales,
    check_determined,
    inertia_of,
    pivot_facts,
    slogdet_of,
)
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._forecast import FactorForecast, LimitCost, costs_of, factor_target
from outcore.sparse.linalg._given import FactorizableMatrix, real_where_it_is, stored_matrix
from outcore.sparse.linalg._null_space import null_space_of
from outcore.sparse.linalg._operators import Inverse, Operator
from outcore.sparse.linalg._pivoting import (
    KINDS,
    SystemLetter,
    diagonal_of,
    pairing_of,
    scaled_rows,
)

# A name of an ordering, and the rows of one that is given.
RequestedOrder: TypeAlias = tuple[str, npt.NDArray[np.uint32] | None]
_AUTO: RequestedOrder = ("auto", None)
# Names of scikit-sparse's and SciPy's factors.
_NEAREST = {
    **dict.fromkeys(("solve_A", "cho_solve"), "F.solve(b)"),
    "det": "F.slogdet()",
    **dict.fromkeys(("inv", "spinv"), "F.inverse_entries(rows, columns), or F.inverse_diagonal()"),
    **dict.fromkeys(("P", "perm", "perm_r", "get_perm"), "F.order"),
    "perm_c": "F.column_order",
    **dict.fromkeys(("L", "D", "LD", "L_D", "U"), "F.factorize(path), whose file holds the factor by tiles of fronts"),
    **dict.fromkeys(("cholesky_inplace", "update_inplace"), "F.refactorize(A)"),
    "nnz": "F.explain().factor_entries",
}


class Factorization(Factor):
    """The analysis of a sparse matrix, and its factor once `factorize` has made it.

    Made by `analyze`. `kind` says which factor: "spd" P A Pᵀ = L Lᴴ of positive definite matrices, "sym" and "her"
    P A Pᵀ = L D Lᵀ and L D Lᴴ of symmetric and Hermitian ones with pivots of one and of two rows, "lu" P A Q = L U of
    any. All are multifrontal over tiles of fronts (Duff, Reid 1983; Liu 1992), which are placed in memory like the
    tiles of any program, so the same bits come at every limit. With pivoting, rows and columns are scaled, and large
    entries put where pivots are looked for (Duff, Koster 2001; Duff, Pralet 2005); a column whose pivot is less than
    0.01 of its largest element waits for its parent's front, in slots whose number the analysis fixes.
    """

    def __init__(
        self, matrix: SparseMatrix, analysis: _core.Analysis, ordering: str, kind: FactorKind = "definite"
    ) -> None:
        super().__init__(matrix, analysis)
        self._ordering, self._kind = ordering, kind
        self._trans: SystemLetter = "N"
        self._is_guessed, self._requested = False, _AUTO
        self._is_other = False  # of values that were not analyzed
        self._is_complex = matrix.dtype.kind == "c"  # or was, where its imaginary part is 0
        self._permuted: SparseMatrix | None = None
        self._transposed: SparseMatrix | None = None
        self._facts: PivotFacts | None = None
        self._order, self._places = analysis.orders()
        scaling = analysis.scaling()
        self._scales = None if scaling is None else PivotScales(*scaling)
        self._columns = self._places
        if self._scales is not None and kind == "unsymmetric":
            self._columns = np.empty_like(self._order)
            self._columns[self._scales.order] = np.arange(len(self._order))
            self._columns.flags.writeable = False
        # Whoever takes rows by them needs no copy.
        self._order.flags.writeable = self._places.flags.writeable = False

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The row that is eliminated as each: `A[order][:, order]` is what is factorized, of kind "lu" with
        `column_order`. Read-only."""
        return self._order

    @property
    def column_order(self) -> npt.NDArray[np.int64]:
        """The column that is eliminated as each; `order` but of kind "lu". Read-only."""
        if self._scales is None or self._kind != "unsymmetric":
            return self._order
        columns = self._scales.order
        columns.flags.writeable = False
        return columns

    @property
    def kind(self) -> str:
        """The factor that it is: "spd", "sym", "her" or "lu"."""
        if self._kind == "hermitian" and self.dtype.kind != "c":
            return "sym"
        return next(name for name, kind in KINDS.items() if kind == self._kind)

    def _kinds(self) -> list[tuple[str, str]]:
        digits = named_approximation(self._approximation, self.dtype, self._analysis.low_rank)
        return [("kind", self.kind + digits), ("ordering", self._ordering)]

    def __getattr__(self, name: str) -> NoReturn:
        if name in _NEAREST:
            raise AttributeError(f"a Factorization has no attribute {name!r}; use {_NEAREST[name]}")
        raise missing_name("outcore.sparse.linalg.Factorization", name)

    def __call__(self, b: Operand) -> Solution:
        """`solve(b)`, as a factor of scikit-sparse is called."""
        return self.solve(b)

    @property
    def outcore_operator(self) -> Operator:
        """The inverse of the matrix as solvers of this room take it: `eigsh(A, sigma=0, OPinv=F)`."""
        return Inverse(self.shape, self.dtype, self.solve, lambda b: self.solve(b, "H"))

    @property
    def outcore_preconditioner(self) -> Operator:
        """The factor alone, which `cg(A, b, M=F)` applies once a step: no residual is looked at, nothing corrected."""

        def held(by: Callable[[_core.Expr, Array], Array]) -> Callable[[Array], Array]:
            return lambda x: Holder(x.nbytes, 1).held([by(self._tiles(), x[:, None])[:, 0]])[0][0]

        return Inverse(self.shape, self.dtype, held(self._applied), held(self._applied_adjoint))

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

    def _tiles(self) -> _core.Expr:
        if self._factor is None:
            self.factorize()
        return super()._tiles()

    def _node(self) -> _core.Expr:
        """The factor as a result. Rows and columns in the order of elimination are stored in scratch when they are
        first read."""
        matrix = _wide(self._matrix)
        if self._permuted is None:
            self._permuted = matrix.permute(self._order, self.column_order)
        if self._kind == "definite":
            # Of a Hermitian matrix the transpose has the conjugate entries.
            of = self._approximation
            dtype, scales = (self.dtype, None) if of is None else (of.dtype, of.scales)
            return self._analysis.cholesky(self._permuted._core, dtype.name, scales)
        if self._kind == "unsymmetric" and self._transposed is None:
            self._transposed = matrix.T.permute(self.column_order, self._order)
        transpose = None if self._transposed is None else self._transposed._core
        return self._analysis.pivoted(self._permuted._core, self._kind, transpose)

    def explain(self) -> FactorForecast:
        """The forecast of the factorization under the current limit, exact or (pivoting, low rank) a bound.

        I/O: the first time, a copy of A with rows and columns in the order of elimination is made in scratch: two
        reads, one write and a sort of its entries.

        Raises MemoryLimitError where it cannot fit, with the smallest limit that works.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> oc.sparse.linalg.analyze(A).explain().factor_entries
        4
        """
        analysis = self._analysis
        both = 2 if self._kind == "unsymmetric" else 1
        program = current().plan([self._node()], [factor_target()])
        return FactorForecast(
            rows=analysis.rows,
            entries=self._matrix.nnz,
            ordering=self._ordering,
            factor_entries=(entries := analysis.entries * both - (both - 1) * analysis.rows),
            factor_bytes=entries * (self.dtype if self._approximation is None else self._approximation.dtype).itemsize,
            operations=analysis.operations * both,
            largest_front=analysis.largest_front,
            plan=Explanation.of(program),
        )

    def curve(self) -> list[LimitCost]:
        """The cost of the factorization under the smallest limit that works and each double of it, up to the first that
        spills nothing. I/O: as `explain`.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> len(oc.sparse.linalg.analyze(A).curve())
        1
        """
        return costs_of(self._node())

    def factorize(
        self, path: PathLike | None = None, *, overwrite: bool = False, resume: bool = False
    ) -> Factorization:
        """Makes the factor, in a file whose name ends in `.ocf`, or in scratch. Gives itself.

        With `resume=True` and a path, the same call goes on with a run that was killed or interrupted, also in another
        process and under another limit, with the same bits; so does one whose `A` has the same values at the same
        places. Tiles of the factor are recorded when they are durable, and contribution blocks of some fronts are kept
        in a file in scratch until the factor is complete, so that at most about an eighth of the operations and
        those of a front at work are done again. A file that is complete, by the same call, is the result.

        I/O: that of `explain`, one read of the copy, one write of the factor, and of contribution blocks what does not
        fit. Raises LinAlgError of kind "spd" for a matrix that is not positive definite, naming the row of A whose
        pivot is not (with pivoting, a singular matrix shows in `perturbed`, and in the residual of `solve`);
        MemoryLimitError where it cannot fit, with the smallest limit that works. After an error the factor is the one
        before, if there was one.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(4, 4)))
        >>> F = oc.sparse.linalg.analyze(A).factorize()
        >>> F.solve([1.0, 0.0, 0.0, 1.0]).round(12)
        array([1., 1., 1., 1.])
        """
        if resume and path is not None and self._is_guessed and self._approximation is None:
            self._go_on_indefinite(path)
        try:
            made = self._made(path, overwrite, resume)
        except LinAlgError:
            if not self._is_guessed or self._approximation is not None:
                raise
            self._be_indefinite()
            return self.factorize(path, overwrite=overwrite, resume=resume)
        self._factor, self._facts = made, None
        return self

    def refactorize(
        self,
        matrix: FactorizableMatrix,
        path: PathLike | None = None,
        *,
        overwrite: bool = False,
        resume: bool = False,
    ) -> Factorization:
        """Makes the factor of another matrix with entries at the same places, or at fewer; the analysis is kept.

        With pivoting the scales and the order of the analysis are those of its matrix: values of other sizes, as by
        several powers of ten from entry to entry, have more pivots that wait (`delayed`) or are perturbed, and a
        residual above the limit is an error of `solve`. `analyze` of the new matrix is the way then.

        Gives itself: the factor before is gone, unless an error comes. Raises ShapeError for another shape,
        ArgumentError for entries that the factor has no place for. I/O and errors else as `factorize`.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(4, format="csr") * 4.0)
        >>> F = oc.sparse.linalg.analyze(A).factorize()
        >>> F.refactorize(A * 2.0).solve([8.0, 8.0, 8.0, 8.0])
        array([1., 1., 1., 1.])
        """
        stored = stored_matrix(matrix, "refactorize")
        matrix = stored if self.dtype.kind == "c" else real_where_it_is(stored)
        if matrix.shape != self.shape:
            raise ShapeError(f"refactorize: a matrix of shape {matrix.shape}, and the analysis is of {self.shape}")
        made = self.__copy__()
        made._matrix, made._permuted, made._transposed, made._residual, made._means = matrix, None, None, None, None
        made._is_fit, made._is_other, made._is_complex = False, True, stored.dtype.kind == "c"
        if self._approximation is not None:
            made._be_approximate("double" if self._approximation.dtype == self.dtype else "mixed")
        made.factorize(path, overwrite=overwrite, resume=resume)
        self.__dict__.update(made.__dict__)
        return self

    def solve(self, b: Operand, trans: SystemLetter = "N") -> Solution:
        """X of A X = B, of Aᵀ X = B (`trans="T"`) or Aᴴ X = B (`trans="H"`): (n,) or (n, k). NumPy's arrays give
        NumPy's; a lazy array gives a lazy array whose value is held, in memory or in scratch.

        Where the factor is not there yet, it is made first. The scaled residual is computed, the solution corrected by
        it up to three times (iterative refinement), and the residual kept as `residual`: above 1e-12 it is an error, as
        for a factor of kind "spd" or "sym" of a matrix that is not symmetric. I/O: two reads of the factor for each
        band (one less where the factor is made with it), one of A, each correction again; at first three of A more.

        Raises ShapeError for another number of rows, ArgumentError for another `trans`, LinAlgError as said and for
        right-hand sides that are not finite.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[2.0, 1.0], [0.0, 4.0]]))
        >>> F = oc.sparse.linalg.analyze(A)
        >>> F.solve([4.0, 8.0]), F.solve([4.0, 10.0], trans="T")
        (array([1., 2.]), array([2., 2.]))
        """
        if str(trans) not in ("N", "T", "H"):
            raise ArgumentError(f"solve: trans={trans!r} is none of 'N' (A), 'T' (the transpose), 'H' (the adjoint)")
        if trans == "N":
            return super().solve(b)
        self._tiles()
        if trans == "T" and self._kind == "symmetric":
            return super().solve(b)
        if self._kind == "unsymmetric":
            turned = self.__copy__()
            transpose = self._matrix.T
            turned._matrix, turned._trans = (transpose if trans == "T" else transpose.conj()), trans
            x = super(Factorization, turned).solve(b)
            self._residual = turned._residual
            return x
        if self.dtype.kind != "c" or (trans == "H" and self._kind in ("definite", "hermitian")):
            return super().solve(b)
        # conj(A) X = B is A conj(X) = conj(B).
        x = super().solve(oc.conj(b) if isinstance(b, Array) else np.asarray(b).conj())
        return oc.conj(x) if isinstance(x, Array) else x.conj()

    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        return self._ordered_back(self._swept(tiles, self._ordered(b)))

    def _applied_adjoint(self, tiles: _core.Expr, b: Array) -> Array:
        if self._kind == "symmetric":
            return oc.conj(self._applied(tiles, oc.conj(b)))
        if self._kind != "unsymmetric":
            return self._applied(tiles, b)
        turned = self.__copy__()
        turned._trans = "H"
        return turned._applied(tiles, b)

    def _ordered(self, b: Array) -> Array:
        """Right-hand sides in the order of elimination, scaled."""
        if self._scales is None:
            return oc.take(b.astype(self.dtype), self._order, axis=0)
        is_plain = self._trans == "N"
        scales = self._scales.rows if is_plain else self._scales.columns
        return scaled_rows(b.astype(self.dtype), self._order if is_plain else self.column_order, scales, self.dtype)

    def _swept(self, tiles: _core.Expr, ordered: Array) -> Array:
        if self._scales is None:
            return super()._applied(tiles, ordered)
        number = ("N", "T", "H").index(self._trans)
        return Array(self._analysis.pivoted_solve(tiles, self.dtype.name, ordered._expr, self._kind, number))

    def _ordered_back(self, solved: Array) -> Array:
        if self._scales is None:
            return oc.take(solved, self._places, axis=0)
        is_plain = self._trans == "N"
        scales = self._scales.columns if is_plain else self._scales.rows
        scaled = (solved * oc.asarray(scales)[:, None]).astype(self.dtype)
        return oc.take(scaled, self._columns if is_plain else self._places, axis=0)

    def _begun(self, b: Array) -> Array | None:
        try:
            with tentative():
                ordered = Holder(b.size * self.dtype.itemsize, 2).held([self._ordered(b)])[0][0]
                node = self._node()
                self._factor, solved = factors.stored_with(node, self._swept(node, ordered))
        except MemoryLimitError:
            return None  # one after the other they may fit
        except LinAlgError:
            if not self._is_guessed or self._approximation is not None:
                raise
            self._be_indefinite()
            return self._begun(b)
        self._facts = None
        return self._ordered_back(solved)

    def _be_approximate(self, precision: Precision) -> None:
        """Takes a factor of the matrix with rows and columns scaled. I/O: one read of A."""
        scales = single_scales(self._diagonal())[self._order]
        self._approximation = Approximation(scales, single_of(self.dtype) if precision == "mixed" else self.dtype)

    def _elimination_places(self) -> npt.NDArray[np.int64]:
        return self._places

    def _check_invertible(self, name: str) -> None:
        self._tiles()  # a matrix taken as definite may turn out not to be
        if self._kind == "definite":
            super()._check_invertible(name)
        elif name == "rcond":
            self._check_fit(name)
        else:
            raise LinAlgError(f'{name}: elements are known from a factor of kind "spd", and this is {self.kind!r}')

    @property
    def rcond(self) -> float:
        """An estimate of 1 ÷ (|A|₁ |A⁻¹|₁), as LAPACK's: not below the true value, seldom three times as large; 0 where
        a pivot is 0 to rounding, and of a matrix nearby where pivots were `perturbed`.

        I/O: one read of A, up to 12 solves, the first time up to two reads of A. Raises LinAlgError for a matrix that
        is not symmetric as its kind says, or not finite, and of a factor that is approximate.

        >>> import outcore as oc, scipy.sparse
        >>> oc.sparse.linalg.analyze(scipy.sparse.diags_array([1.0, 4.0], format="csr")).rcond
        0.25
        """
        self._tiles()  # a matrix taken as definite may turn out not to be
        if self._kind != "definite":
            self._check_fit("rcond")
            if self._pivot_facts().zero:
                return 0.0
        return super().rcond

    def _row_scales(self) -> Scales:
        return super()._row_scales()[self._places]

    def _be_indefinite(self) -> None:
        """The diagonal is positive and the matrix is not: pivots of two rows are what it takes."""
        indefinite = analyzed(self._matrix, "hermitian", self._requested)
        indefinite._is_complex, indefinite._is_fit = self._is_complex, self._is_fit
        self.__dict__.update(indefinite.__dict__)

    def _go_on_indefinite(self, path: PathLike) -> None:
        """Where an earlier run found out that the matrix is not definite, and had begun the other factor."""
        if factors.is_begun_for(self._node(), path) is not False:
            return
        other = self.__copy__()
        other._be_indefinite()
        if factors.is_begun_for(other._node(), path):
            self.__dict__.update(other.__dict__)

    def _refined(self, b: Array) -> Array:
        x = super()._refined(b)
        return x if x.dtype == self._solution_dtype else x.astype(self._solution_dtype)

    @property
    def _solution_dtype(self) -> DType:
        return np.dtype(np.complex128 if self._is_complex else np.float64)

    @property
    def _symmetry(self) -> TakenSymmetry | None:
        if self._kind == "unsymmetric":
            return None
        return "symmetric" if self._kind == "symmetric" else "hermitian"

    def _unit_scales(self) -> Array:
        if self._scales is None:
            return super()._unit_scales()
        scales = np.empty(self.shape[0])
        scales[self._order] = self._scales.rows
        return oc.asarray(scales)

    def _diagonal(self) -> npt.NDArray[np.float64]:
        return np.asarray(oc.real(diagonal_of(self._matrix)).compute())

    def _cause(self, b: Array, worst: float) -> str:
        cause, perturbed = super()._cause(b, worst), self.perturbed
        if not perturbed:
            return cause
        other = ". Scales are those of the matrix that was analyzed: analyze this one" if self._is_other else ""
        pivots = "1 of its pivots is" if perturbed == 1 else f"{perturbed} of its pivots are"
        return f"{cause}; {pivots} 0 or nearly so, first that of row {self._weak_row()}{other}"

    def _weak_row(self) -> int:
        """The row of A whose pivot is the first that was replaced."""
        return int(self._order[self._pivot_facts().first_weak - 1])

    def _pivot_facts(self) -> PivotFacts:
        if self._facts is None:
            self._facts = pivot_facts(self._analysis, self._tiles(), self.dtype, self._kind)
        return self._facts

    def _determined(self, name: str) -> PivotFacts:
        """Facts of pivots that are all the matrix's own."""
        facts = self._pivot_facts()
        check_determined(name, facts, self._weak_row() if facts.perturbed else 0)
        return facts

    @property
    def perturbed(self) -> int:
        """Pivots that were 0 or nearly so where none could wait, and that were taken as 1.5e-8 in the scaled matrix.

        The refinement of `solve` makes up for them where the matrix is not singular. I/O: one read of tiles with
        pivots."""
        return 0 if self._kind == "definite" else self._pivot_facts().perturbed + self._pivot_facts().zero

    @property
    def delayed(self) -> int:
        """Columns whose pivot failed its test and waited for another front. I/O: one read of tiles with pivots."""
        return 0 if self._kind == "definite" else self._pivot_facts().delayed

    @property
    def inertia(self) -> Inertia:
        """The signs of the eigenvalues of a symmetric (Hermitian) matrix: positive, negative, zero (Sylvester's law).

        I/O: one read of tiles with pivots, the first time two of A. Raises LinAlgError of kind "lu", of complex
        symmetric matrices, whose eigenvalues have no sign, of matrices that are not symmetric (Hermitian) or not
        finite, and where it is not determined: a pivot was replaced because rows below it had much larger elements
        and all slots of its front were taken, or pivots fall off to 0 without a gap.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]))
        >>> oc.sparse.linalg.analyze(A).inertia
        Inertia(positive=1, negative=1, zero=0)
        """
        if self._kind in ("unsymmetric", "symmetric"):
            raise LinAlgError(f"inertia: eigenvalues have no signs known from a factor of kind {self.kind!r}")
        self._tiles()  # a matrix taken as definite may turn out not to be
        self._check_fit("inertia")
        if self._kind == "definite":
            return Inertia(self.shape[0], 0, 0)
        return inertia_of(self._determined("inertia"))

    def null_space(self, *, tol: float = 1e-12) -> Array:
        """Orthonormal columns x, (n, k), with |A x| ≤ tol |A|₁: the null space. A lazy array whose value is held.

        Inverse iteration with the factor, in which pivots of 0 were replaced by small ones, by as many vectors as it
        takes that some are none of the null space. I/O: up to 12 solves; where A is singular, about 14 reads of the
        factor and 5 of A more, and again for each doubling beyond 8 vectors. Raises LinAlgError of kind "spd", whose
        pivots are all positive: a semidefinite matrix is of kind "sym" or "her".

        >>> import numpy as np, outcore as oc, scipy.sparse
        >>> A = scipy.sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
        >>> np.abs(oc.sparse.linalg.analyze(A, "sym").null_space().compute()).round(6)
        array([[0.57735],
               [0.57735],
               [0.57735]])
        """
        if self._kind == "definite":
            raise LinAlgError(
                'null_space: a factor of kind "spd" has none; analyze a semidefinite matrix with kind="sym"'
            )
        tiles = self._tiles()
        self._check_fit("null_space")
        if not self.perturbed and self.rcond > tol:
            return oc.zeros((self.shape[0], 0), dtype=self.dtype)
        solved, adjoint = (lambda b: self._applied(tiles, b)), (lambda b: self._applied_adjoint(tiles, b))
        return null_space_of(self._matrix, self.dtype, self.perturbed, tol, solved, adjoint)

    def slogdet(self) -> tuple[complex, float]:
        """Sign and logarithm of the size of the determinant, which do not overflow. I/O: one read of tiles with pivots,
        the first time up to two of A.

        Raises LinAlgError for a matrix that is not symmetric as its kind says, or not finite, and where it is not
        determined, as `inertia`.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 2.0], [4.0, 0.0]]))
        >>> sign, logarithm = oc.sparse.linalg.analyze(A).slogdet()
        >>> sign, round(logarithm, 9)
        (-1.0, 2.079441542)
        """
        self._tiles()
        if self._kind == "definite":
            return 1.0, super().logdet()
        self._check_fit("slogdet")
        facts, scales = self._determined("slogdet"), self._scales
        assert scales is not None, "factors with pivoting are scaled"
        exchanged = scales.sign(self._order) if self._kind == "unsymmetric" and not facts.zero else 1.0
        return slogdet_of(facts, scales, self.dtype, exchanged)

    def logdet(self) -> float:
        """The logarithm of the determinant, where that is positive. I/O: one read of tiles with pivots, and up to
        two of A.

        Raises LinAlgError for a determinant that is not positive, whose sign `slogdet` has, and as `slogdet`.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr") * 4.0)
        >>> round(oc.sparse.linalg.analyze(A).logdet(), 9)
        4.158883083
        """
        self._tiles()
        if self._kind == "definite":
            return super().logdet()
        sign, logarithm = self.slogdet()
        if abs(sign - 1.0) > 1e-6:
            raise LinAlgError(f"logdet: the determinant has the sign {sign}; slogdet gives both")
        return logarithm


def _wide(matrix: SparseMatrix) -> SparseMatrix:
    """The matrix in the type of its factor."""
    dtype = factor_dtype(matrix.dtype)
    return matrix if matrix.dtype == dtype else matrix.astype(dtype)


def analyzed(
    matrix: SparseMatrix, kind: FactorKind, requested: RequestedOrder, low_rank: float | None = None
) -> Factorization:
    name, permutation = requested
    wide = matrix if kind == "definite" else _wide(matrix)
    with whole_run("analysis of a sparse matrix"):
        analysis = _core.analyze(current()._core, wide._core, name, permutation, pairing_of(kind), low_rank)
    made = Factorization(matrix, analysis, f"auto: {analysis.ordering}" if name == "auto" else name, kind)
    made._requested = requested
    return made


__all__ = ["FactorForecast", "Factorization", "LimitCost"]
