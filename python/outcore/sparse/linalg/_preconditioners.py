"""Approximate inverses for the solvers: by the diagonal, by blocks of it, by incomplete factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.errors import ArgumentError, LinAlgError
from outcore.sparse._along import check_room
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._incomplete import factors_of
from outcore.sparse.linalg._operators import Operator, floating_dtype


class Preconditioner(Operator):
    """An approximate inverse that `M` of the solvers takes: made by `jacobi`, `block_jacobi`, `ic0`, `ilu0`,
    `incomplete_lu`.

    `M @ x` is a lazy array for a vector or matrix x.
    """

    def __matmul__(self, x: Operand) -> Array:
        return self._applied(oc.asarray(x))

    def _applied(self, x: Array) -> Array:
        raise NotImplementedError


class _Blocks(Preconditioner):
    """Inverses of diagonal blocks, (count, side, side)."""

    def __init__(self, order: int, inverses: NDArray) -> None:
        super().__init__((order, order), inverses.dtype)
        self._inverses = oc.asarray(inverses)

    def _by(self, inverses: Array, x: Array) -> Array:
        count, side, _ = inverses.shape
        wide = x if x.ndim == 2 else x[:, None]
        short = count * side - wide.shape[0]
        if short:
            wide = oc.concat([wide, oc.zeros((short, wide.shape[1]), dtype=wide.dtype)], axis=0)
        product = (inverses @ wide.reshape((count, side, wide.shape[1]))).reshape((count * side, wide.shape[1]))
        product = product[: x.shape[0]]
        return product if x.ndim == 2 else product[:, 0]

    def _applied(self, x: Array) -> Array:
        if self._inverses.shape[1] == 1:
            scale = self._inverses[:, 0, 0]
            return scale * x if x.ndim == 1 else scale[:, None] * x
        return self._by(self._inverses, x)

    def adjoint(self, x: Array) -> Array:
        if self._inverses.shape[1] == 1:
            scale = oc.conj(self._inverses[:, 0, 0])
            return scale * x if x.ndim == 1 else scale[:, None] * x
        return self._by(oc.conj(self._inverses.mT), x)


class _Factors(Preconditioner):
    """Factors in memory with a method `solve(x, way)`, ours or SciPy's, applied to whole vectors."""

    def __init__(self, factors: Any, dtype: DTypeLike) -> None:
        super().__init__(factors.shape, dtype)
        self._factors = factors

    def _solved(self, x: Array, way: str) -> Array:
        dtype, factors = np.result_type(x.dtype, self.dtype), self._factors

        def solve(tile: NDArray) -> NDArray:
            solution = factors.solve(np.ascontiguousarray(tile.astype(dtype)), way)
            return np.asarray(solution, dtype=dtype)

        room = 5 * x.size * dtype.itemsize
        return oc.map_blocks(solve, x, dtype=dtype, workspace=room, whole=tuple(range(x.ndim)))

    def _applied(self, x: Array) -> Array:
        return self._solved(x, "N")

    def adjoint(self, x: Array) -> Array:
        return self._solved(x, "H")


def block_jacobi(A: SparseMatrix, size: int) -> Preconditioner:
    """The inverse of A's diagonal blocks of `size` rows, as a preconditioner: M in `cg` and the other solvers.

    Memory: n · size values, held for as long as it is used; MemoryLimitError where they take more than a third. Raises
    LinAlgError for a singular block. I/O: one read of A.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]), path)
    >>> (oc.sparse.linalg.block_jacobi(A, 2) @ np.asarray([3.0, 2.0, 8.0])).compute()
    array([1., 1., 2.])
    """
    rows, columns = A.shape
    if rows != columns or not 1 <= size <= max(rows, 1):
        raise ArgumentError(f"block_jacobi: blocks of {size} in a matrix {A.shape}")
    count = -(-rows // size)
    dtype = floating_dtype(A.dtype)
    check_room(
        "block_jacobi", 3 * count * size * size * dtype.itemsize, f"blocks of {size} of {rows} rows, three times"
    )
    blocks = np.zeros((count, size, size), dtype=dtype)
    for r, c, values in A.blocks():
        inside = r // size == c // size
        r, c = r[inside].astype(np.int64), c[inside].astype(np.int64)
        blocks[r // size, r % size, c % size] = values[inside]
    # Rows beyond the matrix, in its last block, stand alone.
    beyond = np.arange(rows, count * size)
    blocks[beyond // size, beyond % size, beyond % size] = 1
    try:
        return _Blocks(rows, 1 / blocks if size == 1 and blocks.all() else np.linalg.inv(blocks))
    except np.linalg.LinAlgError:
        raise LinAlgError(f"block_jacobi: a diagonal block of {size} rows of {A!r} is singular") from None


def jacobi(A: SparseMatrix) -> Preconditioner:
    """The inverse of A's diagonal, as a preconditioner: `block_jacobi` of single rows.

    Memory: a vector. Raises LinAlgError for a 0 on the diagonal. I/O: one read of A.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.diags_array([1.0, 2.0, 4.0]), path)
    >>> (oc.sparse.linalg.jacobi(A) @ np.ones(3)).compute()
    array([1.  , 0.5 , 0.25])
    """
    return block_jacobi(A, 1)


def ic0(A: SparseMatrix, shift: float = 0.0) -> Preconditioner:
    """The inverse of A's incomplete Cholesky factors without fill, IC(0), of a Hermitian matrix that fits into memory.

    A ≈ L·D·Lᴴ where L has entries only where A has (Meijerink, van der Vorst 1977); for `cg` and `minres`. Only A's
    lower half is used. `shift` adds so much of the diagonal to it, which makes pivots positive that are not (A + αD:
    Manteuffel 1980). Raises LinAlgError for a pivot that is not positive, and names its row; ShapeError for what is not
    square; MemoryLimitError where A and its factors do not fit.

    Memory: 72 bytes and 5 values for each of A's entries on and below the diagonal while factors are made, 4 bytes and
    a value for each and 16 for each row from then on, beside the limit until the next plan finds them there. Factors
    are made and solved with row after row, by one thread. I/O: one read of A.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[2.0, 1.0], [1.0, 1.0]]), path)
    >>> (oc.sparse.linalg.ic0(A) @ np.asarray([3.0, 2.0])).compute()
    array([1., 1.])
    """
    factors = factors_of("ic0", A, hermitian=True, shift=shift)
    return _Factors(factors, factors.dtype)


def ilu0(A: SparseMatrix) -> Preconditioner:
    """The inverse of A's incomplete LU factors without fill, ILU(0), of a matrix that fits into memory.

    A ≈ LU where both have entries only where A has (Saad 2003, 10.3.2), without pivoting; for `gmres` and `bicgstab`.
    Raises LinAlgError for a pivot that is 0, and names its row; other errors, memory and I/O as `ic0`, of all entries.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[2.0, 1.0], [4.0, 1.0]]), path)
    >>> (oc.sparse.linalg.ilu0(A) @ np.asarray([3.0, 5.0])).compute()
    array([1., 1.])
    """
    factors = factors_of("ilu0", A, hermitian=False)
    return _Factors(factors, factors.dtype)


def incomplete_lu(A: Any, drop_tol: float | None = None, fill_factor: float | None = None) -> Preconditioner:
    """SciPy's incomplete LU factors (`scipy.sparse.linalg.spilu`) of a matrix that fits into memory, to precondition.

    With fill and pivoting, unlike `ilu0`. Needs SciPy. Memory: A as
    SciPy's, and `fill_factor` times that, which SciPy allocates beside the limit; MemoryLimitError where A alone does
    not fit. Raises LinAlgError for an exactly singular matrix. I/O: one read of A.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array([[2.0, 1.0], [1.0, 1.0]]), path)
    >>> (oc.sparse.linalg.incomplete_lu(A) @ np.asarray([3.0, 2.0])).compute()
    array([1., 1.])
    """
    from scipy.sparse.linalg import spilu

    matrix = (A.to_scipy() if isinstance(A, SparseMatrix) else A).tocsc()
    try:
        factors = spilu(matrix.astype(floating_dtype(matrix.dtype)), drop_tol=drop_tol, fill_factor=fill_factor)
    except RuntimeError as error:
        raise LinAlgError(f"incomplete_lu: {error} ({matrix.shape[0]} rows)") from None
    return _Factors(factors, floating_dtype(matrix.dtype))


def factored(matrix: object, singular: Callable[[], LinAlgError]) -> Any:
    """SciPy's complete LU factors of a matrix in memory, by columns. Raises what `singular` makes."""
    from scipy.sparse.linalg import splu

    try:
        return splu(matrix)
    except RuntimeError:
        raise singular() from None


def factored_operator(factors: object, dtype: DTypeLike) -> Preconditioner:
    """The inverse that factors in memory solve with."""
    return _Factors(factors, dtype)


__all__ = [
    "Preconditioner",
    "block_jacobi",
    "factored",
    "factored_operator",
    "ic0",
    "ilu0",
    "incomplete_lu",
    "jacobi",
]
