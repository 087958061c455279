"""Systems with dense triangular matrices, larger than memory or not."""

from __future__ import annotations

from typing import Literal

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._standard.creation import asarray, empty
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.linalg._whole import check_square, widened


def solve_triangular(
    a: Operand,
    b: Operand,
    /,
    *,
    trans: Literal[0, 1, 2, "N", "T", "C"] = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """X of A X = B, or of Aᵀ X = B (`trans=1`, "T") or Aᴴ X = B (2, "C"), lazily, for the upper triangle of a matrix A
    (n, n), or the `lower` one, and B (n,) or (n, k), as in SciPy.

    The other triangle is not looked at, nor with `unit_diagonal` the diagonal. Rows of tiles of 512 are read one after
    the other. I/O: one read of A for all bands of 256 columns that memory holds. Raises ShapeError for matrices that
    are not square or do not go with B, ArgumentError for another `trans`; when computed, LinAlgError for an element 0
    of the diagonal, naming it.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.solve_triangular(np.asarray([[2.0, 1.0], [0.0, 4.0]]), [4.0, 8.0]).compute()
    array([1., 2.])
    """
    left, kind, _ = widened("solve_triangular", a)
    check_square("solve_triangular", left)
    right = asarray(b)
    if left.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != left.shape[0]:
        raise ShapeError(f"solve_triangular: {left.shape} and {right.shape} do not go together")
    if right.dtype.kind not in "biufc":
        raise DTypeError(f"solve_triangular: right-hand sides of {right.dtype}")
    number = _TRANSPOSITIONS.get(trans)
    if number is None:
        raise ArgumentError(f"solve_triangular: trans={trans!r} is none of 0, 1, 2, 'N', 'T' and 'C'")
    _, other, _ = widened("solve_triangular", right if right.ndim == 2 else right[:, None])
    result = np.result_type(kind, other)
    if 0 in left.shape or 0 in right.shape:
        return empty(right.shape, dtype=result)
    wide = np.dtype(np.complex128 if result.kind == "c" else np.float64)
    columns = (right if right.ndim == 2 else right[:, None]).astype(wide)
    solved = Array(_core.triangular_solved(left.astype(wide)._expr, columns._expr, lower, unit_diagonal, number))
    solved = solved.astype(result)
    return solved if right.ndim == 2 else solved[:, 0]


_TRANSPOSITIONS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}

__all__ = ["solve_triangular"]
