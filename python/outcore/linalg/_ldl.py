"""Dense L D Lᴴ factors larger than memory: symmetric matrices that are not definite, by tiles of one triangle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.factors import dense_ldl, is_begun_for
from outcore._standard.creation import asarray
from outcore._standard.indexing import take
from outcore._standard.statistical import max
from outcore.elementwise import abs, conj
from outcore.errors import LinAlgError
from outcore.linalg._condition import reciprocal_condition
from outcore.linalg._factor import SolvingFactor, TakenSymmetry, factored_matrix
from outcore.linalg._mixed import Scales, single_scales
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

# Columns among which pivots are sought.
_TILE = 512


class LDLFactor(SolvingFactor):
    """The factors of a dense symmetric or Hermitian matrix, P S A S Pᵀ = L D Lᵀ (L D Lᴴ), on disk in tiles.

    D has pivots of one and of two rows, S powers of two. Made by `ldl_factor`.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.ldl_factor(np.asarray([[0.0, 2.0], [2.0, 0.0]])).solve([4.0, 8.0])
    array([4., 2.])
    """

    _judges_share = True

    def __init__(self, matrix: Array, analysis: _core.Analysis, kind: FactorKind, result: _core.Expr | None) -> None:
        super().__init__(matrix)
        scaling = analysis.scaling()
        assert scaling is not None, "factors with pivoting are scaled"
        self._analysis, self._kind, self._result, self._scales = analysis, kind, result, PivotScales(*scaling)
        self._facts: PivotFacts | None = None
        # Where each row is among those that are eliminated, unless in its own place.
        self._places = None if _is_ordered(self._scales.order) else np.argsort(self._scales.order)

    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        by_row, right = asarray(self._scales.rows)[:, None], b.astype(self.dtype)
        scaled = (right if self._places is None else take(right, self._scales.order, axis=0)) * by_row
        solved = Array(self._analysis.pivoted_solve(tiles, self.dtype.name, scaled._expr, self._kind, 0)) * by_row
        return solved if self._places is None else take(solved, self._places, axis=0)

    @property
    def _symmetry(self) -> TakenSymmetry | None:
        return "symmetric" if self._kind == "symmetric" else "hermitian"

    def _unit_scales(self) -> Array:
        scales = np.empty(self.shape[0])
        scales[self._scales.order] = self._scales.rows
        return asarray(scales)

    def _pivot_facts(self) -> PivotFacts:
        if self._facts is None:
            self._facts = pivot_facts(self._analysis, self._tiles(), self.dtype, self._kind)
        return self._facts

    def _determined(self, name: str) -> PivotFacts:
        self._check_fit(name)
        facts = self._pivot_facts()
        check_determined(name, facts, int(self._scales.order[facts.first_weak - 1]))
        return facts

    @property
    def perturbed(self) -> int:
        """Pivots that were 0 or nearly so where none could wait, and that were taken as 1.5e-8 in the scaled matrix.

        I/O: one read of tiles with pivots."""
        return self._pivot_facts().perturbed + self._pivot_facts().zero

    @property
    def inertia(self) -> Inertia:
        """The signs of the eigenvalues of a symmetric (Hermitian) matrix: positive, negative, zero (Sylvester's law).

        I/O: one read of tiles with pivots, the first time two of A. Raises LinAlgError of complex symmetric matrices,
        whose eigenvalues have no sign, of matrices that are not symmetric, and where pivots were replaced or fall off
        to 0 without a gap.

        >>> import numpy as np, outcore as oc
        >>> oc.linalg.ldl_factor(np.asarray([[0.0, 1.0], [1.0, 0.0]])).inertia
        Inertia(positive=1, negative=1, zero=0)
        """
        if self._kind == "symmetric":
            raise LinAlgError("inertia: eigenvalues of a complex symmetric matrix have no signs")
        return inertia_of(self._determined("inertia"))

    @property
    def rcond(self) -> float:
        """An estimate of 1 ÷ (|A|₁ |A⁻¹|₁), as LAPACK's: not below the true value, seldom three times as large.

        I/O: one read of A and up to 12 solves.

        >>> import numpy as np, outcore as oc
        >>> oc.linalg.ldl_factor(np.diag([1.0, -4.0])).rcond
        0.25
        """
        tiles = self._tiles()

        def solved_adjoint(b: Array) -> Array:
            return self._applied(tiles, b) if self._kind == "hermitian" else conj(self._applied(tiles, conj(b)))

        return reciprocal_condition(self._matrix, lambda b: self._applied(tiles, b), solved_adjoint)

    def slogdet(self) -> tuple[complex, float]:
        """Sign and logarithm of the size of the determinant, which do not overflow. I/O: one read of tiles with pivots,
        the first time two of A.

        Raises LinAlgError for a matrix that is not symmetric, and where pivots were replaced.

        >>> import numpy as np, outcore as oc
        >>> sign, logarithm = oc.linalg.ldl_factor(np.asarray([[0.0, 2.0], [2.0, 0.0]])).slogdet()
        >>> sign, round(logarithm, 9)
        (-1.0, 1.386294361)
        """
        return slogdet_of(self._determined("slogdet"), self._scales, self.dtype)


def ldl_factor(
    x: Operand,
    /,
    *,
    hermitian: bool = True,
    path: PathLike | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> LDLFactor:
    """The L D Lᴴ factors of a Hermitian matrix (n, n) that need not be definite, larger than memory or not; with
    `hermitian=False` the L D Lᵀ factors of a complex symmetric one.

    They are stored in a file whose name ends in `.ocf`, or in scratch: the lower triangle in tiles of 512 × 512, 4 n²
    bytes of float64, half of what `lu_factor` takes, with half of the operations. Elements on and below the diagonal
    count, and `solve` says where the others differ. Pivots of one and of two rows are sought among the 512 columns of a
    tile, over the whole height of the matrix (Duff, Reid 1983, with a threshold of 0.01); a column without waits until
    the end. Where too many wait, as of a block of zeros, the factor is made again with rows in a random order. Columns
    of tiles are made left to right, as many at once as memory holds, and the same bits come at every limit.

    With `resume=True` and a path, the same call goes on with a run that was killed or interrupted, as
    `outcore.store` does.

    I/O: two reads of the matrix, the first for scales, and one write of the factor; with S elements of memory about
    n⁴ / (6 S) elements more are read. Raises ShapeError for a matrix that is not square, MemoryLimitError where three
    columns of tiles do not fit. A singular matrix is an error of `solve`.

    >>> import numpy as np, outcore as oc
    >>> F = oc.linalg.ldl_factor(np.asarray([[1.0, 2.0], [2.0, 1.0]]))
    >>> F.solve([3.0, 3.0]), F.inertia
    (array([1., 1.]), Inertia(positive=1, negative=1, zero=0))
    """
    wide = factored_matrix("ldl_factor", x, is_square=True)
    kind: FactorKind = "hermitian" if hermitian or wide.dtype.kind != "c" else "symmetric"
    scales = single_scales(np.asarray(max(abs(wide), axis=0).compute()))
    rows = np.arange(wide.shape[0], dtype=np.uint32)
    made = _begun(wide, kind, scales, rows)
    shuffled = np.random.default_rng(0).permutation(rows)
    if resume and path is not None and is_begun_for(made._node(), path) is False:
        other = _begun(wide, kind, scales, shuffled)
        if is_begun_for(other._node(), path):
            other._factor = other._made(path, overwrite, resume)
            return other
    made._factor = made._made(path, overwrite, resume)
    if made.perturbed and len(rows) > _TILE:
        # Rows without pivots among each other may lie together, as those of a block of zeros.
        other = _begun(wide, kind, scales, shuffled)
        made._factor = None
        other._factor = other._made(path, overwrite or path is not None, resume)
        made = other
    return made


def _begun(wide: Array, kind: FactorKind, scales: Scales, order: npt.NDArray[np.uint32]) -> LDLFactor:
    """The factor of a matrix with rows and columns in an order, not yet made."""
    ordered = wide if _is_ordered(order) else take(take(wide, order, axis=0), order, axis=1)
    analysis, factor = dense_ldl(ordered._expr, scales[order], order, kind)
    return LDLFactor(wide, analysis, kind, factor)


def _is_ordered(order: npt.NDArray[np.integer]) -> bool:
    return bool(np.array_equal(order, np.arange(len(order))))


__all__ = ["LDLFactor", "ldl_factor"]
