"""Products, norms and what is picked from matrices: functions of the array API standard's `linalg`."""

from __future__ import annotations

import builtins
import math
import operator

from outcore import _core
from outcore._base.element_types import DTypeLike
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axes_of, axis_of, node
from outcore._lazy.reduction import floating
from outcore._standard.creation import eye
from outcore._standard.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from outcore._standard.manipulation import broadcast_to, expand_dims, moveaxis, reshape, stack
from outcore._standard.searching import where
from outcore._standard.statistical import max, min, sum
from outcore.elementwise import abs, multiply, not_equal, pow, sqrt, square
from outcore.errors import ShapeError
from outcore.linalg.factorizations import inv, svdvals


def outer(x1: Operand, x2: Operand, /) -> Array:
    """All products of two 1-D arrays: (m,), (n,) → (m, n). Types promote together.

    Raises ShapeError for other shapes. I/O: one read of each, fused with what comes before and after.

    >>> import outcore as oc
    >>> oc.linalg.outer(oc.asarray([1, 2]), oc.asarray([10, 20])).compute()
    array([[10, 20],
           [20, 40]])
    """
    left, right = Array(node(x1)), Array(node(x2))
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(f"outer: takes two 1-D arrays, not {left.shape} and {right.shape}")
    return multiply(left[:, None], right[None, :])


def diagonal(x: Operand, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices (…, m, n), `offset` above the main one: (…, k). I/O: reads what holds them.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.diagonal(np.asarray([[1, 2], [3, 4]])).compute()
    array([1, 4])
    """
    array = Array(node(x))
    if array.ndim < 2:
        raise ShapeError(f"diagonal: {array.shape} has no rows and columns")
    rows, columns = array.shape[-2:]
    (down, right), step = (builtins.max(-offset, 0), builtins.max(offset, 0)), columns + 1
    count = builtins.max(0, builtins.min(rows - down, columns - right))
    flat = reshape(array, (*array.shape[:-2], rows * columns))
    first = right + down * columns
    chosen = flat[..., first : first + count * step : step][..., :count]
    if flat.tile[-1] < flat.shape[-1] or chosen.tile[-1] >= count:
        return chosen
    # A tile as long as the steps that fit would be cut short of the end, and all that is made of it with it.
    return Array(_core.copy_tiled(chosen._expr, [*chosen.tile[:-1], count]))


def trace(x: Operand, /, *, offset: int = 0, dtype: DTypeLike = None) -> Array:
    """Sum of the diagonal of the last two axes: (…, m, n) → (…), in the types of `sum`.

    Raises ShapeError where there are no two. I/O: one read of `x`, all of it.

    >>> import outcore as oc
    >>> oc.linalg.trace(oc.asarray([[1, 2], [3, 4]])).item()
    5
    """
    array = Array(node(x))
    if array.ndim < 2:
        raise ShapeError(f"trace: {array.shape} has no rows and columns")
    diagonal = eye(*array.shape[-2:], k=offset, dtype=bool)
    return sum(where(diagonal, array, Array(node(array.dtype.type(0)))), axis=(-2, -1), dtype=dtype)


def cross(x1: Operand, x2: Operand, /, *, axis: int | str = -1) -> Array:
    """The vector product along an axis of length 3. The other axes broadcast, types promote together.

    Raises ShapeError for another length. I/O: one read of each, fused with what comes before and after.

    >>> import outcore as oc
    >>> oc.linalg.cross(oc.asarray([1, 0, 0]), oc.asarray([0, 1, 0])).compute()
    array([0, 0, 1])
    """
    left, right = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if left.shape[-1] != 3 or right.shape[-1] != 3:
        raise ShapeError(f"cross: axis {axis} must have length 3, not {left.shape[-1]} and {right.shape[-1]}")
    a, b = ([array[..., place] for place in range(3)] for array in (left, right))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    result = stack(parts, axis=-1)
    if isinstance(axis, str):  # the place in the first, counted from the end, as others broadcast
        axis = axis_of("cross", axis, Array(node(x1))) - len(Array(node(x1)).shape)
    return moveaxis(result, -1, axis)


def matrix_power(x: Operand, n: int, /) -> Array:
    """Square matrices (…, n, n) to a power, by repeated squaring; of the inverse, for negative powers.

    Type of `x`, or of its inverse. Raises ShapeError for matrices that are not square. I/O: up to two
    products for each bit of the power; see `matmul`.

    >>> import outcore as oc
    >>> oc.linalg.matrix_power(oc.asarray([[1, 1], [1, 0]]), 6).compute()
    array([[13,  8],
           [ 8,  5]])
    """
    array = Array(node(x))
    power = operator.index(n)
    if array.ndim < 2 or array.shape[-2] != array.shape[-1]:
        raise ShapeError(f"matrix_power: {array.shape} is not square along its last two axes")
    if power < 0:
        array, power = inv(array), -power
    result = broadcast_to(eye(array.shape[-1], dtype=array.dtype), array.shape) if power == 0 else None
    while power:
        if power & 1:
            result = array if result is None else matmul(result, array)
        power >>= 1
        array = matmul(array, array) if power else array
    assert result is not None
    return result


def vector_norm(x: Operand, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The vector norm of order `ord` over axes: (Σ |x|ᵖ)^(1/p), largest or smallest |x| for ±inf, count for 0.

    Floating point: float64 for integers and bool, otherwise the type of |x|. Shape and errors as `sum`. I/O: one read
    of `x`.

    >>> import outcore as oc
    >>> oc.linalg.vector_norm(oc.asarray([3, 4])).item()
    5.0
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


def matrix_norm(x: Operand, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    """Norms of the last two axes: "fro" (Σ x²)^½, 1 and -1 (column sums), inf and -inf (row sums); by singular values:
    2 (the largest), -2 (the smallest), "nuc" (their sum).

    Floating point, as `vector_norm`. Raises ShapeError for other orders. Shape: `x` without its last two axes. I/O: one
    read of `x`; by singular values as `svdvals`.

    >>> import outcore as oc
    >>> oc.linalg.matrix_norm(oc.asarray([[1, -2], [3, 4]]), ord=1).item()
    6.0
    """
    array = floating(x)
    rows, columns = axes_of("matrix_norm", (-2, -1), array)
    if ord == "fro":
        return vector_norm(array, axis=(rows, columns), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        finish = sum if ord == "nuc" else max if ord == 2 else min
        values = finish(svdvals(array), axis=-1)
        return expand_dims(values, axis=(-2, -1)) if keepdims else values
    if ord not in (1, -1, math.inf, -math.inf):
        raise ShapeError(f"matrix_norm: there is no order {ord!r}")
    along, over = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = sum(abs(array), axis=along, keepdims=True)
    extreme = (max if ord > 0 else min)(sums, axis=over, keepdims=True)
    return extreme if keepdims else extreme.squeeze((rows, columns))


__all__ = [
    "cross",
    "diagonal",
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
