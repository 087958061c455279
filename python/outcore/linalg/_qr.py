"""Dense QR factors larger than memory, of matrices of any shape: Householder reflectors by tiles."""

from __future__ import annotations

import numpy as np

from outcore import _core
from outcore._base.types import NDArray, PathLike
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.run import compute
from outcore._standard.creation import asarray, ones
from outcore._standard.statistical import max, sum
from outcore.elementwise import abs, conj
from outcore.errors import DTypeError, LinAlgError, ShapeError
from outcore.linalg._factor import Solution, SolvingFactor, factored_matrix
from outcore.linalg.products import diagonal


class QRFactor(SolvingFactor):
    """The factors of a dense matrix, A = Q R, on disk in tiles: R, and Q as reflectors.

    Made by `qr_factor`.

    >>> import numpy as np, outcore as oc
    >>> F = oc.linalg.qr_factor(np.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]))
    >>> F.solve([1.0, 3.0, 5.0]).round(9)
    array([1., 2.])
    """

    _judges_share = True
    _SHARE_LEAST = float(np.finfo(np.float64).eps)  # by the rows

    def __init__(self, matrix: Array, cut: _core.DenseQr, result: _core.Expr | None) -> None:
        super().__init__(matrix)
        self._cut, self._result = cut, result
        self._diagonal: NDArray | None = None  # sizes of that of R

    def _applied(self, tiles: _core.Expr, b: Array) -> Array:
        return Array(self._cut.least_squares(tiles, b.astype(self.dtype)._expr)[0])

    def _unfit(self) -> str | None:
        least, share = self._own_share()
        if share > self._SHARE_LEAST * self.shape[0]:
            return None
        return (
            f"columns of the matrix depend on each other: of column {least} a share of {share:.2g} is its own; `lstsq` "
            "takes such"
        )

    def _own_share(self) -> tuple[int, float]:
        """The column whose element of R's diagonal is the least, and its share of the largest."""
        if self._diagonal is None:
            self._diagonal = np.abs(np.asarray(diagonal(self.R).compute()))
        least = int(self._diagonal.argmin())
        largest = self._diagonal.max()
        return least, float(self._diagonal[least] / largest) if largest > 0 else 0.0

    @property
    def R(self) -> Array:
        """The triangle (k, n), k = min(m, n), as a lazy array. I/O: one read of its tiles, less than half of the
        factor of a square matrix."""
        return Array(self._cut.triangle(self._tiles()))

    @property
    def Q(self) -> Array:
        """The orthonormal columns (m, k), k = min(m, n), as a lazy array. I/O: one read of the factor for all bands of
        256 columns that memory holds."""
        return Array(self._cut.basis(self._tiles(), min(*self.shape)))

    def q_multiply(self, x: Operand, *, adjoint: bool = False) -> Array:
        """Q X, or Qᴴ X (`adjoint`), lazily, by all m columns of Q: (m,) or (m, r) to the same shape.

        I/O: one read of the factor for all bands of 256 columns that memory holds. Raises ShapeError for another number
        of rows, DTypeError for complex columns of a real factor: multiply their parts.

        >>> import numpy as np, outcore as oc
        >>> F = oc.linalg.qr_factor(np.asarray([[3.0], [4.0]]))
        >>> np.abs(F.q_multiply(np.asarray([3.0, 4.0]), adjoint=True).compute()).round(9)
        array([5., 0.])
        """
        columns = asarray(x)
        if columns.dtype.kind not in "biufc" or (columns.dtype.kind == "c" and self.dtype.kind != "c"):
            raise DTypeError(f"q_multiply: a factor of {self.dtype} and columns of {columns.dtype}")
        if columns.ndim not in (1, 2) or columns.shape[0] != self.shape[0]:
            raise ShapeError(f"q_multiply: a factor of {self.shape} and columns of shape {columns.shape}")
        wide = columns if columns.ndim == 2 else columns[:, None]
        if 0 in wide.shape:
            return columns.astype(self.dtype)
        product = Array(self._cut.product(self._tiles(), wide.astype(self.dtype)._expr, adjoint))
        return product if columns.ndim == 2 else product[:, 0]

    def solve(self, b: Operand) -> Solution:
        """The X of the least |A X − B|, for A (m, n) of full column rank with m ≥ n and B (m,) or (m, k): (n,) or
        (n, k). NumPy's arrays give NumPy's; a lazy array gives a lazy array whose value is held, in memory or in
        scratch.

        The solution is corrected by that of its residual up to three times, and the scaled residual kept as `residual`:
        of a square matrix the largest |b − Ax| ÷ (|A| |x| + |b|) in the largest norm, else the largest |Aᴴ (b − Ax)| ÷
        (|Aᴴ| (|A| |x| + |b|)). Above 1e-12 it is an error. I/O: one read of the factor for all bands of 256 columns
        that memory holds, one or two of A, and again for each correction; the first time one of R.

        Raises ShapeError for another number of rows and for matrices with more columns than rows, LinAlgError as said,
        for right-hand sides that are not finite, and for columns of A that depend on each other: where an element of
        R's diagonal is m eps of the largest or less.

        >>> import numpy as np, outcore as oc
        >>> F = oc.linalg.qr_factor(np.asarray([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
        >>> F.solve([4.0, 1.0, 3.0]).round(9)
        array([2., 2.])
        """
        rows, columns = self.shape
        if rows < columns:
            raise ShapeError(f"solve: {self.shape} has more columns than rows: `lstsq` gives the shortest solution")
        x = super().solve(b)
        unfit = self._unfit()
        if unfit is not None:
            raise LinAlgError(f"solve: {unfit}")
        return x

    def _scaled_residual(self, b: Array, x: Array) -> tuple[float, Array]:
        rows, columns = self.shape
        if rows == columns:
            return super()._scaled_residual(b, x)
        matrix = self._matrix
        difference = b - matrix @ x
        adjoint = conj(matrix.T) if matrix.dtype.kind == "c" else matrix.T
        sizes = abs(matrix)
        most, largest, right, norm, across = (
            np.asarray(part)
            for part in compute(
                *(max(abs(array), axis=0) for array in (adjoint @ difference, x, b)),
                max(sizes @ ones((columns,))),
                max(sum(sizes, axis=0)),
            )
        )
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scale = across * (norm * largest + right)
            scaled = np.where((most == 0) & (scale == 0), 0.0, most / scale)
            # |A| |x| by |b| is a condition that the matrix has at least: so large a share of b is rounding.
            share = np.where(largest == 0, 0.0, np.finfo(np.float64).eps * norm * largest / right)
        self._share = float(share.max(initial=0.0))
        return float(scaled.max(initial=0.0)), difference


def qr_factor(
    x: Operand, /, *, path: PathLike | None = None, overwrite: bool = False, resume: bool = False
) -> QRFactor:
    """The factors of a matrix (m, n) of any shape, A = Q R, larger than memory or not: R and the reflectors of Q.

    They are stored in a file whose name ends in `.ocf`, or in scratch: m n elements of float64 or complex128, and an
    eighth to a quarter more. Tiles of 512 × 512 are eliminated one below the other (Buttari and others 2009), by
    columns, squares or rows of tiles, whichever moves the fewest bytes, with the same bits at every limit. Six tiles of
    2 MiB are enough memory.

    With `resume=True` and a path, the same call goes on with a run that was killed or interrupted, as
    `outcore.store` does.

    I/O: one read of the matrix and one write of the factor; with S elements of memory about n⁴ / (3 S) elements of a
    square matrix more are read, of one with many more rows than columns none while R fits. Raises ShapeError for an
    array that is no matrix, MemoryLimitError where tiles do not fit. Elements that are not finite make such factors.

    >>> import numpy as np, outcore as oc
    >>> F = oc.linalg.qr_factor(np.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> (F.Q @ F.R).compute().round(9)
    array([[3., 1.],
           [4., 2.]])
    """
    wide = factored_matrix("qr_factor", x, is_square=False)
    cut, factor = _core.dense_qr(wide._expr)
    made = QRFactor(wide, cut, factor)
    made._factor = made._made(path, overwrite, resume)
    return made


__all__ = ["QRFactor", "qr_factor"]
