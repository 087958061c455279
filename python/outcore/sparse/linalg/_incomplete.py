"""Incomplete factors without fill, IC(0) and ILU(0), of a matrix that fits into memory: made and solved row by row."""

from __future__ import annotations

import numpy as np

from outcore import _core
from outcore._base.types import DType, NDArray
from outcore.errors import LinAlgError, MemoryLimitError
from outcore.sparse._along import check_room
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._operators import floating_dtype, square

_ORDER_MAX = 1 << 32


class Incomplete:
    """L·U or L·D·Lᴴ with ones on the diagonal of L: an approximate inverse."""

    def __init__(self, factors: _core.IncompleteFactors, order: int, dtype: DType) -> None:
        self.shape, self.dtype = (order, order), dtype
        self._factors = factors

    def solve(self, x: NDArray, way: str) -> NDArray:
        """The approximate inverse times x, or with "H" its conjugate transpose."""
        solution = x.astype(np.result_type(x.dtype, self.dtype), order="C", copy=True)
        if solution.size:
            # Real and imaginary parts are columns of their own to real factors.
            parts = solution.real.dtype if self.dtype.kind == "f" else solution.dtype
            lanes = solution.reshape(-1).view(parts)
            is_wide = parts != self.dtype
            self._factors.solve(lanes.view(np.uint8), lanes.size // len(x), is_wide, way == "H")
        return solution


def factors_of(name: str, A: SparseMatrix, *, hermitian: bool, shift: float = 0.0) -> Incomplete:
    """The factors of a matrix. Raises MemoryLimitError, ShapeError, LinAlgError. I/O: one read of A."""
    order = square(A, name).shape[0]
    dtype = floating_dtype(A.dtype)
    entries = A.nnz // 2 + order if hermitian else A.nnz
    need = entries * (72 + 5 * dtype.itemsize) + 32 * order
    check_room(name, need, f"the factors of {A!r}, while they are made,")
    if order > _ORDER_MAX:
        raise MemoryLimitError(f"{name}: {A!r} has more than {_ORDER_MAX} rows, which factors in memory number")
    rows, columns, values = _by_row(A, dtype, lower=hermitian)
    starts = np.searchsorted(rows, np.arange(order + 1, dtype=np.uint64)).astype(np.uint64)
    made, broken = _core.incomplete_factors(
        starts, columns.astype(np.uint32), values.view(np.uint8), dtype.name, hermitian, 1 + shift
    )
    if made is None:
        assert broken is not None
        raise _broken(name, dtype, hermitian, *broken)
    return Incomplete(made, order, dtype)


def _by_row(A: SparseMatrix, dtype: DType, *, lower: bool) -> tuple[NDArray, NDArray, NDArray]:
    """The entries in memory by rows and columns, ascending, without those above the diagonal where `lower`."""
    parts = [_lower(*block) if lower else block for block in A.blocks()]
    rows, columns, values = (
        np.concatenate([part[which] for part in parts]) if parts else np.zeros(0, dtype=kind)
        for which, kind in enumerate((np.uint64, np.uint64, dtype))
    )
    by_row = np.lexsort((columns, rows))
    return rows[by_row], columns[by_row], values.astype(dtype)[by_row]


def _lower(rows: NDArray, columns: NDArray, values: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    kept = columns <= rows
    return rows[kept], columns[kept], values[kept]


def _broken(name: str, dtype: DType, hermitian: bool, row: int, pivot: tuple[float, float] | None) -> LinAlgError:
    if pivot is None:
        return LinAlgError(f"{name}: row {row} has no entry on the diagonal")
    value = complex(*pivot) if dtype.kind == "c" and not hermitian else pivot[0]
    right = "positive; a shift may help" if hermitian else "another number than 0"
    return LinAlgError(f"{name}: the pivot of row {row} is {value}; it must be {right}")


__all__ = ["Incomplete", "factors_of"]
