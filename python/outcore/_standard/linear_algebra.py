"""Linear algebra functions of the array API standard that are in its main namespace."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce as fold

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, node
from outcore._standard.manipulation import broadcast_arrays, moveaxis, permute_dims, reshape
from outcore._standard.statistical import sum
from outcore.elementwise import conj, multiply
from outcore.errors import ShapeError


def matmul(x1: Operand, x2: Operand, /) -> Array:
    """The matrix product: (…, m, k) @ (…, k, n) → (…, m, n), leading axes broadcast; 1-D operands as in NumPy.

    Raises ShapeError naming both shapes. I/O with memory for M elements: near 2mnk/√M elements when both operands are
    larger than memory, one read of the larger when the other fits. Chains of products are re-associated by cost. Types
    promote together.

    >>> import outcore as oc
    >>> (oc.asarray([[1, 2], [3, 4]]) @ oc.asarray([10, 1])).compute()
    array([12, 34])
    """
    left, right = node(x1), node(x2)
    shapes = tuple(left.shape), tuple(right.shape)
    if not shapes[0] or not shapes[1]:
        raise ShapeError(f"matmul: {shapes[0]} @ {shapes[1]}: a 0-d operand has no inner dimension; use *")
    inner = shapes[0][-1], shapes[1][-2 if len(shapes[1]) > 1 else 0]
    if inner[0] != inner[1]:
        raise ShapeError(f"matmul: {shapes[0]} @ {shapes[1]}: inner dimensions {inner[0]} and {inner[1]} differ")
    dropped: list[int] = []
    if len(shapes[1]) == 1:
        right = _core.expand_dims(right, [1])
        dropped.append(-1)
    if len(shapes[0]) == 1:
        left = _core.expand_dims(left, [0])
        dropped.append(-2)
    product = _core.matmul(left, right)
    ndim = len(product.shape)
    return Array(_core.squeeze(product, sorted(place % ndim for place in dropped)) if dropped else product)


def matrix_transpose(x: Operand, /) -> Array:
    """The last two axes swapped. Raises ShapeError where there are no two. No I/O: folded into reads.

    >>> import outcore as oc
    >>> oc.matrix_transpose(oc.asarray([[1, 2], [3, 4]])).compute()
    array([[1, 3],
           [2, 4]])
    """
    array = Array(node(x))
    if array.ndim < 2:
        raise ShapeError(f"matrix_transpose: {array.shape} has no rows and columns")
    return permute_dims(array, (*range(array.ndim - 2), array.ndim - 1, array.ndim - 2))


def tensordot(x1: Operand, x2: Operand, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Sum of products over the given axes, by one matrix product; the other axes of `x1` come before those of `x2`.

    `axes`: the last n of `x1` with the first n of `x2`, or two lists of axes. Types promote together. Raises ShapeError
    where lengths differ. I/O: as `matmul`.

    >>> import outcore as oc
    >>> oc.tensordot(oc.asarray([[1, 2], [3, 4]]), oc.asarray([10, 1]), axes=1).compute()
    array([12, 34])
    """
    left, right = Array(node(x1)), Array(node(x2))
    if isinstance(axes, (int, np.integer)):
        pairs: tuple[Sequence[int], Sequence[int]] = (range(left.ndim - int(axes), left.ndim), range(int(axes)))
    else:
        pairs = axes
    ours = [axis_of("tensordot", axis, left) for axis in pairs[0]]
    theirs = [axis_of("tensordot", axis, right) for axis in pairs[1]]
    lengths = [left.shape[axis] for axis in ours], [right.shape[axis] for axis in theirs]
    if lengths[0] != lengths[1]:
        raise ShapeError(f"tensordot: axes {tuple(ours)} of {left.shape} and {tuple(theirs)} of {right.shape} differ")
    free = [a for a in range(left.ndim) if a not in ours], [a for a in range(right.ndim) if a not in theirs]
    inner = fold(operator.mul, lengths[0], 1)
    outer = [left.shape[axis] for axis in free[0]], [right.shape[axis] for axis in free[1]]
    rows = reshape(permute_dims(left, (*free[0], *ours)), (fold(operator.mul, outer[0], 1), inner))
    columns = reshape(permute_dims(right, (*theirs, *free[1])), (inner, fold(operator.mul, outer[1], 1)))
    product = reshape(matmul(rows, columns), (*outer[0], *outer[1]))
    names = [left.dims[axis] for axis in free[0]] + [right.dims[axis] for axis in free[1]]
    return product.annotate(dims=[None if names.count(name) > 1 else name for name in names])


def vecdot(x1: Operand, x2: Operand, /, *, axis: int | str = -1) -> Array:
    """Sum of conj(x1) · x2 along one axis; the others broadcast, types promote together.

    Raises ShapeError for shapes that do not broadcast. I/O: one read of each, in one pass.

    >>> import outcore as oc
    >>> oc.vecdot(oc.asarray([[1, 2], [3, 4]]), oc.asarray([10, 1])).compute()
    array([12, 34])
    """
    left, right = (moveaxis(Array(node(x)), axis, -1) for x in (x1, x2))
    if left.shape[-1] != right.shape[-1]:
        raise ShapeError(f"vecdot: lengths {left.shape[-1]} and {right.shape[-1]} along axis {axis} differ")
    left, right = broadcast_arrays(left, right)
    product = multiply(conj(left) if left.dtype.kind == "c" else left, right)
    return sum(product, axis=-1, dtype=product.dtype)


__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]
