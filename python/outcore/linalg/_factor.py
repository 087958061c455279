"""Solutions by a factor on disk: with their scaled residual, corrected by it, or an error."""

from __future__ import annotations

import builtins
import os
from abc import ABC, abstractmethod
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.shortened import angle_text
from outcore._base.sizes import format_size
from outcore._base.types import DType, PathLike
from outcore._lazy.array import Array
from outcore._lazy.carded import Carded, NamedFact
from outcore._lazy.node import Operand, node
from outcore._run import factors
from outcore._run.holding import Holder
from outcore._run.run import compute
from outcore._standard.creation import arange, asarray, ones, zeros
from outcore._standard.indexing import take
from outcore._standard.searching import where
from outcore._standard.statistical import max, sum
from outcore._standard.utility import all
from outcore.elementwise import abs, conj, imag, isfinite, real, sin
from outcore.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from outcore.linalg._condition import FactoredMatrix, reciprocal_condition
from outcore.linalg._mixed import Approximation, Scales, powers_of_two, refined, swept_scaled

TakenSymmetry: TypeAlias = Literal["hermitian", "symmetric"]
Solution: TypeAlias = Any  # of a lazy right-hand side a lazy array, else NumPy's

# A solution whose scaled residual is larger is an error.
_RESIDUAL_MOST = 1e-12
# Corrections of a solution: each is a solve, and made while the residual is above the first number and falls to a half.
_RESIDUAL_GOOD, _CORRECTIONS = 1e-14, 3
# The same of each element by the sizes that make it, which solutions of mixed precision are corrected by.
_ELEMENTS_GOOD, _ELEMENTS_MOST = 1e-14, 1e-9
# The share of |b| in |b - Ax| from which a solution is none: that of a matrix of condition 1e15 and more.
_SHARE_MOST = 0.1
# Differences of xᴴAy and (Ax)ᴴy, by the number of elements of a matrix whose elements are at most 1, above which it is
# not Hermitian.
_HERMITIAN_MOST = 1e-14
# The same by the root of their number, above which a solution by a factor of one triangle is doubted, and the residual
# of an element by the sizes that make it, above which it is none then. Corrections reach solutions where triangles
# differ little.
_DOUBTED_MOST, _DOUBTED_ELEMENTS_MOST = 1e-12, 1e-10
_SINGULAR = "the matrix is too near to a singular one"
_OTHER = ", or is not the one that the factor was made of"
_UNSYMMETRIC = (
    "the matrix is not symmetric (Hermitian). Both of its triangles must be there; unsymmetric matrices have splu "
    "where they are sparse, lu_factor where they are dense"
)


class SolvingFactor(Carded, ABC):
    """A matrix, sparse or dense, and its factor once it is made."""

    # Whether a residual as large as a share of |b| is an error. Next to an eigenvalue it may be, and is right.
    _judges_share = False

    def __init__(self, matrix: FactoredMatrix) -> None:
        self._matrix = matrix
        self._factor: _core.Factor | None = None
        self._residual: float | None = None
        self._share = 0.0  # of |b| in the last residual
        self._is_fit = False  # known to be symmetric, as its factor takes for granted
        self._means: Array | None = None  # of the sizes of the elements of each row
        self._result: _core.Expr | None = None  # the factor that is asked for, of a dense matrix
        self._is_opened = False

    def __repr__(self) -> str:
        rows, columns = self.shape
        kinds = (value for _, value in self._kinds())
        done = "analyzed" if self._factor is None else f"factor of {format_size(self.nbytes)}"
        return angle_text(f"{type(self).__name__} of {rows} x {columns},", [str(self.dtype), *kinds, done])

    def _card_title(self) -> str:
        room = "sparse.linalg" if type(self).__module__.startswith("outcore.sparse") else "linalg"
        return f"outcore.{room}.{type(self).__name__}"

    def _card_facts(self) -> list[NamedFact]:
        """The facts that the text in a terminal has, by name."""
        rows, columns = self.shape
        residual = [] if self._residual is None else [("residual", f"{self._residual:.3g} of the last solution")]
        return [
            ("matrix", f"{rows:,} × {columns:,}"),
            *self._kinds(),
            ("dtype", str(self.dtype)),
            ("factor", "not made yet" if self._factor is None else format_size(self.nbytes)),
            *residual,
        ]

    def _kinds(self) -> list[tuple[str, str]]:
        return []

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows, columns = self._matrix.shape
        return rows, columns

    @property
    def dtype(self) -> DType:
        """The type of solutions, float64 or complex128; that of the factor too, unless its precision is mixed."""
        return factor_dtype(self._matrix.dtype)

    @property
    def _solution_dtype(self) -> DType:
        return self.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that the factor's file takes; 0 before it is made."""
        return 0 if self._factor is None else self._factor.nbytes

    @property
    def residual(self) -> float | None:
        """The scaled residual of the last `solve`: the largest |b − Ax| ÷ (|A| |x| + |b|) of its columns in the largest
        norm; None before."""
        return self._residual

    def __reduce__(self) -> NoReturn:
        """Raises DTypeError: a factor in memory of its file is known to this process only."""
        raise DTypeError(
            f"a {type(self).__name__} is known to this process only and cannot be pickled: give it a path, and open "
            "that in the other with open_factor"
        )

    @property
    def _symmetry(self) -> TakenSymmetry | None:
        """The symmetry that the factor takes for granted, whose absence large rows hide from the residual."""
        return None

    def _node(self) -> _core.Expr:
        """The factor as a result."""
        assert self._result is not None, "a factor that was opened is made"
        return self._result

    def _made(self, path: PathLike | None, overwrite: bool, resume: bool = False) -> _core.Factor:
        return factors.stored(self._node(), path, overwrite, resume)

    def _tiles(self) -> _core.Expr:
        if self._factor is None:
            self._factor = self._made(None, False)
        return self._factor.tiles

    @abstractmethod
    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        """The solution for right-hand sides (n, k), lazily."""

    def _begun(self, _b: Array) -> Array | None:
        """The solution where the factor is made with it."""
        return None

    def _unfit(self) -> str | None:
        """Why the matrix has no such factor, where it can be told. I/O: two reads of A."""
        symmetry = self._symmetry
        fits = symmetry is None or is_symmetric(self._matrix, symmetry, self._unit_scales())
        return None if fits else _UNSYMMETRIC

    def solve(self, b: Operand) -> Solution:
        """X of A X = B: (n,) or (n, k). NumPy's arrays give NumPy's; a lazy array gives a lazy array whose value is
        held, in memory or in scratch.

        `b` may be SciPy's sparse matrix. Where the factor is not there yet, it is made first. The scaled residual is
        computed, the solution corrected by it up to three times (iterative refinement; of mixed precision as often as
        it takes), and the residual kept as `residual`: above 1e-12 it is an error, as for a Cholesky factor of a matrix
        that is not symmetric. I/O: two reads of the factor for each band of columns, one of A, and again for each
        correction; the first time up to three of A more.

        Raises ShapeError for another number of rows, LinAlgError as said and for right-hand sides that are not finite.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr") * 4.0)
        >>> oc.sparse.linalg.analyze(A).solve([4.0, 8.0, 12.0])
        array([1., 2., 3.])
        """
        right = asarray(b.toarray() if hasattr(b, "toarray") else b)
        if not isinstance(right, Array) or right.dtype.kind not in "biufc":
            raise DTypeError(f"solve: right-hand sides of {right.dtype} are no numbers")
        if right.ndim not in (1, 2):
            raise ShapeError(f"solve: right-hand sides of shape {right.shape}; (n,) or (n, k) with n = {self.shape[0]}")
        if right.shape[0] != self.shape[0]:
            rows = right.shape[0]
            raise ShapeError(
                f"solve: {self.shape} and right-hand sides of shape {right.shape}: "
                f"{self.shape[0]} and {rows} rows differ"
            )
        if right.dtype.kind == "c" and self.dtype.kind != "c":
            parts, residuals = [], []
            for part in (real(right), imag(right)):
                parts.append(self.solve(part))
                residuals.append(self._residual or 0.0)
            self._residual = builtins.max(residuals)
            joined = parts[0] + 1j * parts[1]
            return joined if isinstance(b, Array) else joined.compute()
        wide = right if right.ndim == 2 else right[:, None]
        shape = self.shape[1], wide.shape[1]
        x = self._refined(wide) if 0 not in wide.shape else zeros(shape, dtype=self._solution_dtype)
        x = x if right.ndim == 2 else x[:, 0]
        return x if isinstance(b, Array) else x.compute()

    def _refined(self, b: Array) -> Array:
        begun = self._begun(b) if self._factor is None else None
        tiles = self._tiles()
        holder = Holder(b.size * self.dtype.itemsize, 2)
        x = holder.held([self._applied(tiles, b) if begun is None else begun])[0][0]
        x, worst = self._corrected(tiles, b, x)
        self._residual = worst
        if not worst <= _RESIDUAL_MOST:
            raise LinAlgError(
                f"solve: the scaled residual is {worst:.2g}, more than {_RESIDUAL_MOST:.0g}: {self._cause(b, worst)}"
            )
        if self._symmetry is not None and not self._is_fit:
            error, _ = self._error_of_elements(b, x)
            if error > _DOUBTED_ELEMENTS_MOST:
                raise LinAlgError(f"solve: {_UNSYMMETRIC}")
        if self._judges_share and self._share > _SHARE_MOST:
            raise LinAlgError(
                f"solve: {self._unfit() or 'the matrix is singular to working precision'}: rounding of the residual is "
                f"{self._share:.2g} of the right-hand side, by the sizes of rows of A"
            )
        return x

    def _corrected(self, tiles: _core.Expr, b: Array, x: Array) -> tuple[Array, float]:
        """A better solution and its scaled residual."""
        holder = Holder(b.size * self.dtype.itemsize, 2)
        worst, difference = self._scaled_residual(b, x)
        for _ in range(_CORRECTIONS):
            if worst <= _RESIDUAL_GOOD or not np.isfinite(worst):
                break
            corrected = holder.held([x + self._applied(tiles, difference)])[0][0]
            better, difference = self._scaled_residual(b, corrected)
            if not better <= worst / 2:
                break
            x, worst = corrected, better
        return x, worst

    def _cause(self, b: Array, worst: float) -> str:
        """Why a solution is none. I/O: two reads of A."""
        if not bool(all(isfinite(b)).compute()):
            return "the right-hand sides have NaN or infinite elements"
        if not self._is_finite():
            return "the matrix has elements that are not finite"
        unfit = self._unfit()
        if unfit is not None:
            return unfit
        if not np.isfinite(worst):
            return "the solution is too large for its type"
        other = _OTHER if self._is_opened else ""
        return f"{_SINGULAR}, or its rows are scaled too differently{other}"

    def _scaled_residual(self, b: Array, x: Array) -> tuple[float, Array]:
        """The largest scaled residual of the columns, and the residual itself."""
        difference = b - self._matrix @ x
        sizes = self._mean_sizes() * self.shape[1]
        of = [max(abs(array), axis=0) for array in (difference, x, b)]
        # Whatever rows are scaled by, the solution is the same, and so is the share.
        scales = where(sizes > 0, sizes, 1.0)[:, None]
        asked = None if self._is_fit else self._symmetry
        shared = [max(abs(array) / scales, axis=0) for array in (difference, b)] if self._judges_share else of[:2]
        forms = () if asked is None else symmetry_forms(self._matrix, self._unit_scales(), asked)
        most, largest, right, norm, gap, target, *seen = compute(*of, max(sizes), *shared, *forms)
        if asked is not None:
            self._is_fit = are_same_forms(seen[0], seen[1], _DOUBTED_MOST * elements_of(self._matrix) ** 0.5)
        norm = np.asarray(norm)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scale = norm * largest + right
            scaled = np.where(np.isinf(scale), most / norm / largest, most / scale)
            share = np.where(gap == 0, 0.0, gap / target)
        # Nothing by nothing is no residual; where a size is not finite, neither is the residual.
        scaled = np.where((most == 0) & (scale == 0), 0.0, scaled)
        self._share = float(share.max(initial=0.0))
        return float(scaled.max(initial=0.0)), difference

    def _check_fit(self, name: str) -> None:
        """Raises LinAlgError where pivots say nothing of the matrix: it is not finite, or not symmetric as its factor
        takes for granted. I/O: up to two reads of A, once."""
        if self._is_fit:
            return
        unfit = self._unfit() if self._is_finite() else "the matrix has elements that are not finite"
        if unfit is not None:
            raise LinAlgError(f"{name}: {unfit}")
        self._is_fit = True

    def _error_of_elements(self, b: Array, x: Array) -> tuple[float, Array]:
        """The largest |b − Ax| ÷ (|A| |x| + |b|), element by element (Oettli, Prager 1964), so that no large row hides
        a small one; and the residual."""
        difference = b - self._matrix @ x
        sizes = builtins.abs(self._matrix.astype(self.dtype)) @ abs(x) + abs(b)
        error = where(difference == 0, 0.0, abs(difference) / where(sizes > 0, sizes, 1.0))
        return float(np.asarray(max(error).compute())), difference

    def _unit_scales(self) -> Array:
        """By what rows and columns are multiplied so that elements are at most about 1. I/O: one read of A, or less."""
        return row_scales(self._mean_sizes(), self.shape[1])

    def _mean_sizes(self) -> Array:
        """The mean size of the elements of each row. I/O: one read of A, once."""
        if self._means is None:
            self._means = mean_sizes(self._matrix)
        return self._means

    def _is_finite(self) -> bool:
        return bool(all(isfinite(self._mean_sizes())).compute())


class Factor(SolvingFactor):
    """A Hermitian positive definite matrix, sparse or dense, and its factor once it is made."""

    def __init__(self, matrix: FactoredMatrix, analysis: _core.Analysis) -> None:
        super().__init__(matrix)
        self._analysis = analysis
        self._approximation: Approximation | None = None  # where the factor is none of all digits

    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        if self._approximation is not None:
            return swept_scaled(self._analysis, tiles, self.dtype, self._approximation, b)
        return Array(self._analysis.solve(tiles, self.dtype.name, b.astype(self.dtype)._expr))

    def _corrected(self, tiles: _core.Expr, b: Array, x: Array) -> tuple[Array, float]:
        if self._approximation is None:
            return super()._corrected(tiles, b, x)
        by_row = asarray(self._row_scales())
        # Of columns of size 1, whose products neither overflow nor underflow.
        sizes = asarray(powers_of_two(np.asarray(max(abs(b * by_row[:, None]), axis=0).compute())))
        of_size_one = b / sizes
        better, worst = refined(
            x / sizes,
            _ELEMENTS_GOOD,
            error_of=lambda x: self._error_of_elements(of_size_one, x),
            solved=lambda residual: self._applied(tiles, residual),
            multiplied=lambda direction: self._matrix @ direction,
        )
        x = Holder(x.nbytes, 1).held([better * sizes])[0][0]
        if worst > _ELEMENTS_MOST:
            raise LinAlgError(
                f"solve: the residual of an element is {worst:.2g} of the sizes that make it, more than "
                f"{_ELEMENTS_MOST:.0g}; the factor is approximate, and {self._approximation.remedy}"
                f"{_OTHER.replace(' is', ' the matrix is', 1) if self._is_opened else ''}"
            )
        return x, self._scaled_residual(b, x)[0]

    def _row_scales(self) -> Scales:
        """By what rows of the matrix, in their own order, are multiplied for a factor that is approximate."""
        assert self._approximation is not None, "the factor is approximate"
        return self._approximation.scales

    def _cause(self, b: Array, worst: float) -> str:
        cause, of = super()._cause(b, worst), self._approximation
        return f"{cause}; the factor is approximate, and {of.remedy}" if of and cause.startswith(_SINGULAR) else cause

    @property
    def _symmetry(self) -> TakenSymmetry | None:
        return "hermitian"

    def _unit_scales(self) -> Array:
        # Elements are at most the root of the product of their diagonal elements.
        return asarray(inverse_roots(self._diagonal()))

    @abstractmethod
    def _diagonal(self) -> npt.NDArray[np.float64]:
        """The real part of the diagonal of the matrix. I/O: one read of A, or of tiles with the diagonal."""

    def _applied_adjoint(self, tiles: _core.Expr, b: Array) -> Array:
        """As `_applied`, of the adjoint of the matrix."""
        return self._applied(tiles, b)

    @property
    def rcond(self) -> float:
        """An estimate of 1 ÷ (|A|₁ |A⁻¹|₁), as LAPACK's: not below the true value, seldom three times as large.

        I/O: three reads of A and up to 12 solves. Raises LinAlgError for a matrix that is not Hermitian, and of a
        factor that is approximate.

        >>> import numpy as np, outcore as oc
        >>> oc.linalg.cho_factor(np.diag([1.0, 4.0])).rcond
        0.25
        """
        tiles = self._tiles()
        self._check_invertible("rcond")
        return reciprocal_condition(
            self._matrix, lambda b: self._applied(tiles, b), lambda b: self._applied_adjoint(tiles, b)
        )

    def logdet(self) -> float:
        """The logarithm of the determinant. I/O: one read of the factor's tiles with pivots, the first time two of A.

        Raises LinAlgError for a matrix that is not Hermitian, and of a factor that is approximate.

        >>> import outcore as oc, scipy.sparse
        >>> A = oc.sparse.from_scipy(scipy.sparse.eye(3, format="csr") * 4.0)
        >>> round(oc.sparse.linalg.analyze(A).logdet(), 9)
        4.158883083
        """
        self._check_invertible("logdet")
        pivots = Array(self._analysis.log_pivots(self._tiles(), self.dtype.name))
        return 2.0 * float(pivots.compute()[0])

    def _elimination_places(self) -> npt.NDArray[np.int64] | None:
        """When each row is eliminated; None where that is its own order."""
        return None

    def inverse_diagonal(self) -> Array:
        """The diagonal of A⁻¹, (n,), lazily and without the other elements: variances, where A is a precision matrix.

        I/O: one read of the factor, and elements of the inverse at the places of the factor, as large as it, of which
        what does not fit is written and read. About twice the operations of the factorization. Raises LinAlgError as
        `inverse_entries`.

        >>> import numpy as np, outcore as oc
        >>> oc.linalg.cho_factor(np.asarray([[2.0, 1.0], [1.0, 2.0]])).inverse_diagonal().compute().round(6)
        array([0.666667, 0.666667])
        """
        places = np.arange(self.shape[0])
        return real(self.inverse_entries(places, places))

    def inverse_entries(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Array:
        """Elements of A⁻¹ at some places, (k,), lazily: at those of entries of A and of its factor.

        All elements that they need are made, from the roots of the elimination tree down, and no others (Erisman,
        Tinney 1975). I/O: as `inverse_diagonal`. Raises ArgumentError for places that the factor has not, LinAlgError
        for a factor of another kind than "spd", an approximate one, or of a matrix that is not Hermitian.

        >>> import outcore as oc, scipy.sparse
        >>> A = scipy.sparse.diags_array([[1.0, 1.0], [3.0, 3.0, 3.0], [1.0, 1.0]], offsets=[-1, 0, 1])
        >>> oc.sparse.linalg.cholesky(A).inverse_entries([0, 1], [1, 1]).compute().round(6)
        array([-0.142857,  0.428571])
        """
        at = [_indices(name, of, self.shape[0]) for name, of in (("rows", rows), ("columns", columns))]
        if at[0].shape != at[1].shape:
            raise ShapeError(f"inverse_entries: rows of shape {at[0].shape} and columns of shape {at[1].shape} differ")
        self._check_invertible("inverse_entries")
        if not at[0].size:
            return zeros((0,), dtype=self.dtype)
        places = self._elimination_places()
        row, column = at if places is None else (places[at[0]], places[at[1]])
        low, high = (
            np.ascontiguousarray(part, dtype=np.uint32) for part in (np.maximum(row, column), np.minimum(row, column))
        )
        elements, order = factors.selected_inverse(self._analysis, self._tiles(), self.dtype.name, low, high)
        values = take(Array(elements), order)
        return where(asarray(row < column), conj(values), values) if self.dtype.kind == "c" else values

    def _check_invertible(self, name: str) -> None:
        """Raises LinAlgError where the factor does not say enough of the inverse, or of the determinant."""
        if self._approximation is not None:
            raise LinAlgError(
                f"{name}: the factor is approximate; one of double precision and full rank has the digits"
            )
        self._check_fit(name)


def _indices(name: str, of: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    indices = np.asarray(of)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ArgumentError(f"inverse_entries: {name} of shape {indices.shape} and type {indices.dtype}; (k,) integers")
    if indices.size and (int(indices.min()) < -count or int(indices.max()) >= count):
        raise ArgumentError(f"inverse_entries: {name} from {indices.min()} to {indices.max()}, the matrix has {count}")
    indices = indices.astype(np.int64)
    return np.where(indices < 0, indices + count, indices)


def factored_matrix(name: str, x: Operand, *, is_square: bool) -> Array:
    """A dense matrix in the type of its factor."""
    if hasattr(x, "tocoo") or hasattr(x, "nnz"):
        raise ArgumentError(f"{name}: the matrix is sparse: outcore.sparse.linalg.analyze is for such")
    if isinstance(x, str | os.PathLike):
        raise ArgumentError(f"{name}: {x!r} is a path: outcore.open({x!r}) is the array in it")
    array = Array(node(x))
    if array.ndim != 2 or 0 in array.shape:
        raise ShapeError(f"{name}: an array of shape {array.shape} is no matrix with elements")
    if is_square and array.shape[0] != array.shape[1]:
        raise ShapeError(f"{name}: {array.shape} is no square matrix")
    if array.dtype.kind not in "biufc":
        raise DTypeError(f"{name}: a matrix of {array.dtype} has no factor")
    return array.astype(factor_dtype(array.dtype))


def factor_dtype(dtype: DType) -> DType:
    """The type of the factor of a matrix."""
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def mean_sizes(matrix: FactoredMatrix) -> Array:
    """The mean size of the elements of each row, held, which overflows for no finite ones. I/O: one read of A."""
    rows, columns = matrix.shape
    means = builtins.abs(matrix.astype(factor_dtype(matrix.dtype))) @ (ones((columns,)) / builtins.max(columns, 1))
    return Holder(rows * 8, 1).held([means])[0][0]


def row_scales(means: Array, columns: int) -> Array:
    """By what rows and columns are multiplied so that elements are at most 1, by the `mean_sizes` of rows."""
    return asarray(inverse_roots(np.asarray(means.compute())) / np.sqrt(builtins.max(columns, 1)))


def elements_of(matrix: FactoredMatrix) -> int:
    """The number of elements that are kept: of sparse matrices those that are not zero."""
    rows, columns = matrix.shape
    return int(getattr(matrix, "nnz", rows * columns))


def is_symmetric(matrix: FactoredMatrix, symmetry: TakenSymmetry, scales: Array) -> bool:
    """Whether `symmetry_forms` are those of a symmetric matrix, which has finite elements. I/O: one read of A."""
    left, right = compute(*symmetry_forms(matrix, scales, symmetry))
    return are_same_forms(left, right, _HERMITIAN_MOST * builtins.max(elements_of(matrix), 1))


def are_same_forms(left: npt.ArrayLike, right: npt.ArrayLike, most: float) -> bool:
    """Whether two values of one form are finite and differ by so much at most."""
    with np.errstate(invalid="ignore"):
        return bool(np.abs(np.asarray(left) - np.asarray(right)) <= most)


def symmetry_forms(matrix: FactoredMatrix, scales: Array, symmetry: TakenSymmetry) -> tuple[Array, Array]:
    """xᴴ A y and (A x)ᴴ y of x and y without a pattern, of symmetric matrices xᵀ A y and (A x)ᵀ y. I/O: one read of A.

    x and y are scaled so that elements of the scaled matrix are at most about 1: no part hides behind larger numbers.
    """
    places = arange(matrix.shape[0], dtype=np.float64)[:, None]
    both = sin(places * places * asarray([0.7, 1.3]) + asarray([0.7, 1.3])) * scales[:, None]
    products = matrix.astype(factor_dtype(matrix.dtype)) @ both
    turned = conj(products[:, 0]) if symmetry == "hermitian" else products[:, 0]
    return sum(both[:, 0] * products[:, 1]), sum(turned * both[:, 1])


def inverse_roots(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """1 ÷ √size, and 1 for sizes that are 0 or less, or not finite."""
    usable = np.isfinite(sizes) & (sizes > 0)
    roots: npt.NDArray[np.float64] = 1.0 / np.sqrt(np.where(usable, sizes, 1.0))
    return roots
