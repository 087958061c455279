"""Sorting functions of the array API standard, for arrays larger than memory (Vengroff, Vitter: TPIE, 4.2)."""

from __future__ import annotations

from typing import NamedTuple

from outcore import _core
from outcore._array import Array
from outcore._node import Operand, axis_of, expr_dtype, node
from outcore.errors import DTypeError, IndexingError, ShapeError
from outcore.manipulation import moveaxis, reshape, stack


def _keys(name: str, x: Operand) -> _core.Expr:
    expr = node(x)
    if expr_dtype(expr).kind == "c":
        raise DTypeError(f"{name}: {expr_dtype(expr)} has no order")
    return expr


def sort_by(keys: Operand, *values: Operand, descending: bool = False) -> tuple[Array, ...]:
    """One-dimensional keys sorted, and any number of columns of the same length in the order of their keys.

    The sort is stable: equal keys keep their order. NaN comes last, in both directions; -0 equals +0. Returns the keys
    and the columns, lazy. Raises ShapeError for columns of other lengths, DTypeError for keys without an order.
    I/O: one program where everything fits the memory at once; else two, which read and write every column once each,
    plus a page for each piece that a run and a part of the result share.

    >>> import numpy as np, outcore as oc
    >>> keys, names = oc.sort_by(np.asarray([3, 1, 2]), np.asarray([30, 10, 20]))
    >>> names.compute()
    array([10, 20, 30])
    """
    columns = [node(value) for value in values]
    return tuple(Array(expr) for expr in _core.sort_by(_keys("sort_by", keys), columns, descending))


# Longer lanes are sorted one by one with as many programs' worth of I/O; shorter ones whole, within a pass.
_LANE_BYTES_MAX = 32 << 20


def _lanes(name: str, x: Operand, axis: int, descending: bool, positions: bool) -> Array:
    expr = _keys(name, x)
    if len(expr.shape) == 0:
        raise ShapeError(f"{name}: a number has no axis to sort along")
    place = axis_of(name, axis, len(expr.shape))
    if len(expr.shape) == 1:
        return Array(_sorted_row(expr, descending, positions))
    array = moveaxis(Array(expr), place, -1)
    if array.shape[-1] * array.dtype.itemsize <= _LANE_BYTES_MAX:
        return moveaxis(Array(_core.sort_lanes(array._expr, descending, positions)), -1, place)
    rows = reshape(array, (-1, array.shape[-1])) if array.ndim != 2 else array
    lanes = [Array(_sorted_row(rows[row]._expr, descending, positions)) for row in range(rows.shape[0])]
    return moveaxis(reshape(stack(lanes), array.shape), -1, place)


def _sorted_row(row: _core.Expr, descending: bool, positions: bool) -> _core.Expr:
    if not positions:
        return _core.sort_by(row, [], descending)[0]
    return _core.sort_by(row, [_core.arange(0, 1, row.shape[0], "int64")], descending)[1]


def sort(x: Operand, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis: NaN last, -0 equal to +0, always stable.

    I/O: a row as `sort_by` without columns. Along an axis of several, lanes of up to 32 MiB are sorted whole within the
    pass that makes them: one read, no write; longer ones each as a row.

    >>> import numpy as np, outcore as oc
    >>> oc.sort(np.asarray([[3, 1, 2], [0, 5, 4]]), axis=1).compute()
    array([[1, 2, 3],
           [0, 4, 5]])
    """
    del stable  # it always is
    return _lanes("sort", x, axis, descending, positions=False)


def argsort(x: Operand, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Where the elements of the sorted array are in `x`, int64. I/O: as `sort`, a row as `sort_by` with one column."""
    del stable
    return _lanes("argsort", x, axis, descending, positions=True)


def partition(x: Operand, kth: int, /, *, axis: int = -1) -> Array:
    """An order along an axis in which the element at `kth` is where a sort puts it: the sorted one. I/O: as `sort`.

    Raises IndexingError for a place that the axis has not.
    """
    expr = node(x)
    place = axis_of("partition", axis, len(expr.shape))
    length = expr.shape[place]
    if not -length <= kth < length:
        raise IndexingError(f"partition: kth={kth} is out of bounds for axis {place} with length {length}")
    return sort(Array(expr), axis=place)


class TopK(NamedTuple):
    """What `top_k` gives."""

    values: Array
    indices: Array


def top_k(x: Operand, k: int, /, *, largest: bool = True) -> TopK:
    """The `k` largest elements of a row (or smallest), in order, and their positions (int64); of equal ones the first.

    NaN comes last: it is taken only where there are fewer than `k` numbers. Raises ShapeError for more than there are.

    I/O: as `argsort`.

    >>> import numpy as np, outcore as oc
    >>> oc.top_k(np.asarray([3, 9, 1, 9]), 2).indices.compute()
    array([1, 3])
    """
    expr = _keys("top_k", x)
    if len(expr.shape) != 1 or not 0 <= k <= expr.shape[0]:
        raise ShapeError(
            f"top_k: k={k} of an array of shape {tuple(expr.shape)}; it takes a row of at least k elements"
        )
    values, places = sort_by(Array(expr), Array(_core.arange(0, 1, expr.shape[0], "int64")), descending=largest)
    return TopK(values[:k], places[:k])


__all__ = ["TopK", "argsort", "partition", "sort", "sort_by", "top_k"]
