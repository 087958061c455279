"""Dense Cholesky factors larger than memory: the matrix as one front in tiles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.factors import dense_cholesky
from outcore.elementwise import real
from outcore.errors import ArgumentError
from outcore.linalg._factor import Factor, Solution, factored_matrix
from outcore.linalg._mixed import (
    Approximation,
    Precision,
    Scales,
    checked_precision,
    checked_tolerance,
    known_array,
    named_approximation,
    single_of,
    single_scales,
)
from outcore.linalg.products import diagonal


class CholeskyFactor(Factor):
    """The factor L of a dense Hermitian positive definite matrix, A = L Lᴴ, on disk in tiles of its lower triangle.

    Made by `cho_factor`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.cho_factor(np.eye(3) * 4.0).solve([4.0, 8.0, 12.0])
    array([1., 2., 3.])
    """

    def __init__(
        self,
        matrix: Array,
        analysis: _core.Analysis,
        factor: _core.Expr | None,
        approximation: Approximation | None = None,
    ) -> None:
        super().__init__(matrix, analysis)
        self._result, self._approximation = factor, approximation

    def _diagonal(self) -> npt.NDArray[np.float64]:
        return _diagonal_of(self._matrix)

    def _kinds(self) -> list[tuple[str, str]]:
        digits = named_approximation(self._approximation, self.dtype, self._analysis.low_rank)
        return [("digits", digits.strip())] if digits else []


def cho_factor(
    x: Operand,
    /,
    *,
    path: PathLike | None = None,
    overwrite: bool = False,
    resume: bool = False,
    precision: Precision = "double",
    low_rank: float | None = None,
) -> CholeskyFactor:
    """The Cholesky factor of a symmetric (Hermitian) positive definite matrix (n, n), larger than memory or not.

    The factor is stored in a file whose name ends in `.ocf`, or in scratch: the lower triangle in tiles of 512 × 512,
    4 n² bytes of float64. Elements on and below the diagonal count, as in NumPy's `cholesky`. Tiles are made left to
    right, by squares where a column of tiles is more than memory holds (Toledo, Gustavson 1996, section 3), and the
    same bits come at every limit.

    With `resume=True` and a path, the same call goes on with a run that was killed or interrupted, as
    `outcore.store` does.

    With `precision="mixed"` the factor is of single precision and has half of the bytes; solutions have double
    precision all the same, by corrections, and conjugate gradients where these do not converge. With `low_rank` a
    tolerance, as 1e-6, tiles below the diagonal are products of few columns wherever that is as good, as
    `outcore.sparse.linalg.analyze` says: of smooth kernels of points, in an order in which neighbours are near.

    I/O: one read of the lower triangle and one write of the factor; with S elements of memory about n³ / (3 √S)
    elements more are read; of mixed precision or low rank the diagonal first. Raises LinAlgError for a matrix that is
    not positive definite, naming the row, ShapeError for one that is not square, MemoryLimitError where a few tiles do
    not fit.

    >>> import numpy as np, outcore as oc
    >>> F = oc.linalg.cho_factor(np.asarray([[4.0, 2.0], [2.0, 5.0]]))
    >>> F.solve([8.0, 9.0])
    array([1.375, 1.25 ])
    >>> round(F.logdet(), 9)
    2.772588722
    """
    wide = factored_matrix("cho_factor", x, is_square=True)
    is_mixed = checked_precision("cho_factor", precision) == "mixed"
    low_rank = checked_tolerance("cho_factor", low_rank, precision)
    approximation, factored = None, wide
    if is_mixed or low_rank is not None:
        approximation = Approximation(dense_scales(wide), single_of(wide.dtype) if is_mixed else wide.dtype)
        by_row = known_array(approximation.scales)
        factored = (wide * by_row[:, None] * by_row).astype(approximation.dtype)
    analysis, factor = dense_cholesky(factored._expr, low_rank)
    made = CholeskyFactor(wide, analysis, factor, approximation)
    made._factor = made._made(path, overwrite, resume)
    return made


def _diagonal_of(matrix: Array) -> npt.NDArray[np.float64]:
    return np.asarray(real(diagonal(matrix)).compute())


def dense_scales(matrix: Array) -> Scales:
    """By what rows and columns are multiplied for a factor that is approximate. I/O: tiles with the diagonal."""
    return single_scales(_diagonal_of(matrix))


def cho_solve(factor: CholeskyFactor, b: Operand) -> Solution:
    """X of A X = B by the factor of `cho_factor`, as SciPy's function of this name: `factor.solve(b)`.

    I/O and errors: those of `CholeskyFactor.solve`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.cho_solve(oc.linalg.cho_factor(np.eye(2) * 4.0), [4.0, 8.0])
    array([1., 2.])
    """
    if not isinstance(factor, CholeskyFactor):
        name = type(factor).__name__
        raise ArgumentError(f"cho_solve: takes the CholeskyFactor that outcore.linalg.cho_factor gives, no {name}")
    return factor.solve(b)


__all__ = ["CholeskyFactor", "cho_factor", "cho_solve"]
