"""Dense LU factors larger than memory: exact partial pivoting by slabs of columns."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from outcore import _core
from outcore._base.types import NDArray, PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.run import compute
from outcore.elementwise import conj
from outcore.errors import ArgumentError
from outcore.linalg._condition import reciprocal_condition
from outcore.linalg._factor import Solution, SolvingFactor, factored_matrix

Transposition: TypeAlias = Literal[0, 1, 2]  # A, Aᵀ, Aᴴ


class LUFactor(SolvingFactor):
    """The factors of a dense matrix, P A = L U by partial pivoting, on disk in tiles of slabs of columns.

    Made by `lu_factor`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.lu_factor(np.asarray([[0.0, 2.0], [4.0, 0.0]])).solve([4.0, 8.0])
    array([2., 2.])
    """

    _judges_share = True

    def __init__(self, matrix: Array, cut: _core.DenseLu, result: _core.Expr | None) -> None:
        super().__init__(matrix)
        self._cut, self._result = cut, result
        self._trans: Transposition = 0
        self._sums: NDArray | None = None
        self._rows: NDArray | None = None

    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        return Array(self._cut.solve(tiles, b.astype(self.dtype)._expr, self._trans))

    def solve(self, b: Operand, trans: Transposition = 0) -> Solution:
        """X of A X = B, of Aᵀ X = B (`trans=1`) or Aᴴ X = B (`trans=2`): (n,) or (n, k). NumPy's arrays give NumPy's; a
        lazy array gives a lazy array whose value is held, in memory or in scratch.

        The scaled residual is computed, the solution corrected by it up to three times (iterative refinement), and the
        residual kept as `residual`: above 1e-12 it is an error. I/O: one read of the factor for all bands of 256
        columns that memory holds, one of A, and again for each correction; the first time one of A more.

        Raises ShapeError for another number of rows, LinAlgError as said and for right-hand sides that are not finite.

        >>> import numpy as np, outcore as oc
        >>> F = oc.linalg.lu_factor(np.asarray([[0.0, 2.0], [4.0, 1.0]]))
        >>> F.solve([2.0, 1.0]), F.solve([4.0, 3.0], trans=1)
        (array([0., 1.]), array([1., 1.]))
        """
        if trans not in (0, 1, 2):
            raise ArgumentError(f"lu_solve: trans={trans!r} is not 0 (A), 1 (the transpose) or 2 (the adjoint)")
        if trans == 0:
            return super().solve(b)
        turned = self._transposed(trans)
        x = super(LUFactor, turned).solve(b)
        self._residual = turned._residual
        return x

    def _transposed(self, trans: Transposition) -> LUFactor:
        """The same factor as one of the transpose, or of the adjoint."""
        matrix = self._matrix.T
        turned = LUFactor(conj(matrix) if trans == 2 else matrix, self._cut, self._result)
        turned._factor, turned._trans = self._factor, trans
        return turned

    def _pivots(self) -> tuple[NDArray, NDArray]:
        if self._sums is None or self._rows is None:
            sums, rows = (Array(part) for part in self._cut.pivots(self._tiles()))
            self._sums, self._rows = (np.asarray(part) for part in compute(sums, rows))
        return self._sums, self._rows

    @property
    def pivots(self) -> NDArray:
        """For each row the one that it was exchanged with, one after the other: SciPy's `piv`, (n,). I/O: 12 bytes a
        row of the factor."""
        return self._pivots()[1].copy()

    @property
    def growth(self) -> float:
        """The largest size in U by the largest in A: far above 1, the solution has lost as many digits."""
        _, _, _, _, _, _, largest, most = self._pivots()[0]
        return float(most / largest)

    @property
    def rcond(self) -> float:
        """An estimate of 1 ÷ (|A|₁ |A⁻¹|₁), as LAPACK's: not below the true value, seldom three times as large.

        I/O: one read of A and up to 12 of the factor.

        >>> import numpy as np, outcore as oc
        >>> oc.linalg.lu_factor(np.asarray([[0.0, 1.0], [4.0, 0.0]])).rcond
        0.25
        """
        tiles, adjoint = self._tiles(), self._transposed(2)
        return reciprocal_condition(
            self._matrix, lambda b: self._applied(tiles, b), lambda b: adjoint._applied(tiles, b)
        )

    def slogdet(self) -> tuple[complex, float]:
        """Sign and logarithm of the size of the determinant, which do not overflow. I/O: as `pivots`.

        >>> import numpy as np, outcore as oc
        >>> sign, logarithm = oc.linalg.lu_factor(np.asarray([[0.0, 2.0], [4.0, 0.0]])).slogdet()
        >>> sign, round(logarithm, 9)
        (-1.0, 2.079441542)
        """
        _, _, _, real, imaginary, logarithm, _, _ = self._pivots()[0].tolist()
        return (complex(real, imaginary) if self.dtype.kind == "c" else real), logarithm


def lu_factor(
    x: Operand, /, *, path: PathLike | None = None, overwrite: bool = False, resume: bool = False
) -> LUFactor:
    """The factors of a square matrix (n, n), P A = L U with the pivots of LAPACK, larger than memory or not.

    They are stored in a file whose name ends in `.ocf`, or in scratch: n² elements of float64 or complex128. Slabs of
    256 columns are made left to right, as many at once as memory holds, and the same bits come at every limit
    (D'Azevedo, Dongarra 1997). Of a limit, half must hold a slab: 2048 n bytes of float64.

    With `resume=True` and a path, the same call goes on with a run that was killed or interrupted, as
    `outcore.store` does.

    I/O: one read of the matrix and one write of the factor; with S elements of memory about n⁴ / (3 S) elements more
    are read. Raises LinAlgError for a matrix that is singular or has elements that are not finite, naming the column,
    ShapeError for one that is not square, MemoryLimitError where two slabs do not fit.

    >>> import numpy as np, outcore as oc
    >>> F = oc.linalg.lu_factor(np.asarray([[1.0, 2.0], [4.0, 5.0]]))
    >>> F.solve([5.0, 14.0])
    array([1., 2.])
    >>> F.pivots
    array([1, 1])
    """
    wide = factored_matrix("lu_factor", x, is_square=True)
    cut, factor = _core.dense_lu(wide._expr, False)
    made = LUFactor(wide, cut, factor)
    made._factor = made._made(path, overwrite, resume)
    return made


def lu_solve(factor: LUFactor, b: Operand, trans: Transposition = 0) -> Solution:
    """X of A X = B by the factors of `lu_factor`, as SciPy's function of this name: `factor.solve(b, trans)`.

    I/O and errors: those of `LUFactor.solve`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.lu_solve(oc.linalg.lu_factor(np.eye(2) * 4.0), [4.0, 8.0])
    array([1., 2.])
    """
    if not isinstance(factor, LUFactor):
        raise ArgumentError(
            f"lu_solve: takes the LUFactor that outcore.linalg.lu_factor gives, no {type(factor).__name__}"
        )
    return factor.solve(b, trans)


__all__ = ["LUFactor", "lu_factor", "lu_solve"]
