"""The standard's `linalg` namespace, as far as it is element-wise work, sums and matrix products.

Factorizations (cholesky, qr, svd, eigh, solve, inv, det) are absent: they wait for operators of their own.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from outcore._array import Array
from outcore._node import DTypeLike, Operand, axes_of, node
from outcore._reduction import Axis, floating
from outcore.creation import eye
from outcore.elementwise import abs, multiply, not_equal, pow, sqrt, square
from outcore.errors import ShapeError
from outcore.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from outcore.manipulation import stack
from outcore.searching import where
from outcore.statistical import max, min, sum


def outer(x1: Operand, x2: Operand, /) -> Array:
    """All products of two 1-D arrays: (m,), (n,) → (m, n)."""
    left, right = Array(node(x1)), Array(node(x2))
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(f"outer: takes two 1-D arrays, not {left.shape} and {right.shape}")
    return multiply(left[:, None], right[None, :])


def trace(x: Operand, /, *, offset: int = 0, dtype: DTypeLike = None) -> Array:
    """Sum of the diagonal of the last two axes. Reads the whole array."""
    array = Array(node(x))
    if array.ndim < 2:
        raise ShapeError(f"trace: {array.shape} has no rows and columns")
    diagonal = eye(*array.shape[-2:], k=offset, dtype=bool)
    return sum(where(diagonal, array, Array(node(array.dtype.type(0)))), axis=(-2, -1), dtype=dtype)


def cross(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Array:
    """The vector product along an axis of length 3."""
    from outcore.manipulation import moveaxis

    left, right = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if left.shape[-1] != 3 or right.shape[-1] != 3:
        raise ShapeError(f"cross: axis {axis} must have length 3, not {left.shape[-1]} and {right.shape[-1]}")
    a, b = ([array[..., place] for place in range(3)] for array in (left, right))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return moveaxis(stack(parts, axis=-1), -1, axis)


def matrix_power(x: Operand, n: int, /) -> Array:
    """A square matrix to a power n ≥ 0, by repeated squaring."""
    array = Array(node(x))
    power = operator.index(n)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ShapeError(f"matrix_power: {array.shape} is not a square matrix")
    if power < 0:
        raise ShapeError("matrix_power: negative powers need an inverse, which outcore does not have")
    result = eye(array.shape[0], dtype=array.dtype) if power == 0 else None
    while power:
        if power & 1:
            result = array if result is None else matmul(result, array)
        power >>= 1
        array = matmul(array, array) if power else array
    assert result is not None
    return result


def vector_norm(x: Operand, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The vector norm of order `ord` over axes: (Σ |x|ᵖ)^(1/p), largest or smallest |x| for ±inf, count for 0.

    Floating point: float64 for integers and bool, otherwise the type of |x|.
    """
    array = floating(x)
    if ord == 2:
        squares = square(abs(array) if array.dtype.kind == "c" else array)
        return sqrt(sum(squares, axis=axis, keepdims=keepdims))
    sizes = abs(array)
    if math.isinf(ord):
        return (max if ord > 0 else min)(sizes, axis=axis, keepdims=keepdims)
    if ord == 0:
        return sum(not_equal(array, 0), axis=axis, dtype=sizes.dtype, keepdims=keepdims)
    if ord == 1:
        return sum(sizes, axis=axis, keepdims=keepdims)
    return pow(sum(pow(sizes, ord), axis=axis, keepdims=keepdims), 1 / ord)


def matrix_norm(x: Operand, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norms of the last two axes: "fro" (Σ x²)^½, 1 and -1 (column sums), inf and -inf (row sums).

    Floating point, as `vector_norm`. Raises ShapeError for orders that need singular values (2, -2, "nuc").
    """
    array = floating(x)
    rows, columns = axes_of("matrix_norm", (-2, -1), array.ndim)
    if ord == "fro":
        return vector_norm(array, axis=(rows, columns), keepdims=keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ShapeError(f"matrix_norm: order {ord!r} needs singular values, which outcore does not have")
    along, over = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = sum(abs(array), axis=along, keepdims=True)
    extreme = (max if ord > 0 else min)(sums, axis=over, keepdims=True)
    return extreme if keepdims else extreme.squeeze((rows, columns))


__all__ = [
    "cross",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
