"""Sorting functions of the array API standard, for arrays larger than memory (Vengroff, Vitter: TPIE, 4.2)."""

from __future__ import annotations

from typing import NamedTuple, get_args

from outcore import _core
from outcore._base.shortened import record_text
from outcore._lazy.array import Array, oc
from outcore._lazy.hooks import above
from outcore._lazy.node import Operand, axis_of, expr_dtype, node
from outcore._lazy.typed import SortMethod, Typed, typed_of
from outcore._standard.manipulation import moveaxis, reshape, stack
from outcore.errors import DTypeError, IndexingError, ShapeError


def _method(name: str, method: SortMethod | None) -> SortMethod | None:
    if method is not None and method not in get_args(SortMethod):
        raise ValueError(f"{name}: method={method!r} is none of {', '.join(map(repr, get_args(SortMethod)))}")
    return method


def _keys(name: str, x: Operand | Typed) -> _core.Expr:
    expr = node(x)
    if expr_dtype(expr).kind == "c":
        raise DTypeError(f"{name}: {expr_dtype(expr)} has no order")
    return expr


def sort_by(
    keys: Operand | Typed, *values: Operand | Typed, descending: bool = False, method: SortMethod | None = None
) -> tuple[Array, ...]:
    """One-dimensional keys sorted, and any number of columns of the same length in the order of their keys.

    The sort is stable: equal keys keep their order. NaN comes last, in both directions; -0 equals +0. Keys and columns
    may be dates and text, which come back as such. Returns the keys and the columns, lazy. Raises ShapeError for
    columns of other lengths, DTypeError for keys without an order, ValueError for an unknown method.

    I/O: one program where everything fits the memory at once; else two, which read and write every column once each,
    plus a page for each piece that a run and a part of the result share. `method="distribution"` cuts runs into buckets
    by a sample of the keys (at most 4 MiB) and sorts those; it is chosen for keys that are stored row by row.
    `method="merge"` merges sorted runs; it is chosen for others. The results are the same to the bit. A distribution
    falls back to merging, with one read and one write more, where the sample has misled it so far that a bucket of
    different keys exceeds its share of memory.

    >>> import numpy as np, outcore as oc
    >>> keys, names = oc.sort_by(np.asarray([3, 1, 2]), np.asarray([30, 10, 20]))
    >>> names.compute()
    array([10, 20, 30])
    """
    if any(typed_of(part) is not None for part in (keys, *values)):
        ordered: tuple[Array, ...] = above.sort_typed_by(keys, values, descending, _method("sort_by", method))
        return ordered
    columns = [node(value) for value in values]
    sorted_columns = _core.sort_by(_keys("sort_by", keys), columns, descending, _method("sort_by", method))
    return tuple(Array(expr) for expr in sorted_columns)


# Longer lanes are sorted as rows; shorter ones whole.
_LANE_BYTES_MAX = 32 << 20
# More of them are sorted as one row, by value and then by lane.
_LANES_MAX = 64


def _lanes(
    name: str, x: Operand, axis: int | str, descending: bool, method: SortMethod | None, positions: bool
) -> Array:
    expr = node(x)
    method = _method(name, method)
    if len(expr.shape) == 0:
        raise ShapeError(f"{name}: a number has no axis to sort along")
    place = axis_of(name, axis, expr)
    if expr_dtype(expr).kind == "c":
        return _complex_lanes(Array(expr), place, descending, positions)
    if len(expr.shape) == 1:
        return Array(_sorted_row(expr, descending, method, positions))
    if expr.shape[place] * expr_dtype(expr).itemsize <= _LANE_BYTES_MAX:
        if place == len(expr.shape) - 1:
            return Array(_core.sort_lanes(expr, descending, positions))
        columns = moveaxis(Array(expr), place, 0)
        return moveaxis(Array(_core.sort_columns(columns._expr, descending, positions)), 0, place)
    array = moveaxis(Array(expr), place, -1)
    rows = reshape(array, (-1, array.shape[-1])) if array.ndim != 2 else array
    if rows.shape[0] > _LANES_MAX:
        return moveaxis(reshape(_together(rows, descending, method, positions), array.shape), -1, place)
    lanes = [Array(_sorted_row(rows[row]._expr, descending, method, positions)) for row in range(rows.shape[0])]
    return moveaxis(reshape(stack(lanes), array.shape), -1, place)


def _complex_lanes(x: Array, place: int, descending: bool, positions: bool) -> Array:
    """Complex numbers by their real parts, among equals by their imaginary parts; NaN last, as NumPy has it."""
    last, *parts = above.complex_keys(x)
    keys = [last, *(-part if descending else part for part in parts)]
    order = oc.lexsort(keys[::-1], axis=place)
    return order if positions else oc.take_along_axis(x, order, axis=place)


def _together(rows: Array, descending: bool, method: SortMethod | None, positions: bool) -> Array:
    """Rows in one, each in order: sorted by value, then by the number of the row, which keeps that order."""
    place = Array(_core.arange(0, 1, rows.size, "int64"))
    lane, within = place // rows.shape[1], place % rows.shape[1]
    values, lanes, *columns = sort_by(
        reshape(rows, (rows.size,)), lane, *([within] if positions else []), descending=descending, method=method
    )
    return sort_by(lanes, *(columns or [values]), method=method)[1]


def _sorted_row(row: _core.Expr, descending: bool, method: SortMethod | None, positions: bool) -> _core.Expr:
    if not positions:
        return _core.sort_by(row, [], descending, method)[0]
    return _core.sort_by(row, [_core.arange(0, 1, row.shape[0], "int64")], descending, method)[1]


def sort(
    x: Operand,
    /,
    *,
    axis: int | str = -1,
    descending: bool = False,
    stable: bool = True,
    method: SortMethod | None = None,
) -> Array:
    """The elements in order along an axis: NaN last, -0 equal to +0, always stable.

    Complex numbers go by their real parts, among equals by their imaginary parts: `lexsort` and `take_along_axis`.
    Dates and text are sorted too, and come back as such: NaT last, text by its bytes or code points.

    I/O: a row as `sort_by` without columns, by that `method`. Along an axis of several, lanes of up to 32 MiB are
    sorted whole: within the pass that makes them along the last, else in bands of as many as fit, which takes one read,
    or one read and write more where chunks cannot be read in such bands. Up to 64 longer ones are each a row, more of
    them are sorted together, by value and by lane.

    >>> import numpy as np, outcore as oc
    >>> oc.sort(np.asarray([[3, 1, 2], [0, 5, 4]]), axis=1).compute()
    array([[1, 2, 3],
           [0, 4, 5]])
    """
    del stable  # it always is
    typed = typed_of(x)
    if typed is not None:
        return typed.sort(axis, descending=descending, method=method)  # type: ignore[return-value]
    return _lanes("sort", x, axis, descending, method, positions=False)


def argsort(
    x: Operand,
    /,
    *,
    axis: int | str = -1,
    descending: bool = False,
    stable: bool = True,
    method: SortMethod | None = None,
) -> Array:
    """Where the elements of the sorted array are in `x`, int64; of dates and text too.

    I/O: as `sort`, a row as `sort_by` with one column.

    >>> import numpy as np, outcore as oc
    >>> oc.argsort(np.asarray([30, 10, 20])).compute()
    array([1, 2, 0])
    """
    del stable
    typed = typed_of(x)
    if typed is not None:
        return typed.argsort(axis, descending=descending, method=method)
    return _lanes("argsort", x, axis, descending, method, positions=True)


def partition(x: Operand, kth: int, /, *, axis: int | str = -1) -> Array:
    """An order along an axis in which the element at `kth` is where a sort puts it: the sorted one. I/O: as `sort`.

    Raises IndexingError for a place that the axis has not. Shape and type of `x`.

    >>> import outcore as oc
    >>> oc.partition(oc.asarray([5, 1, 3]), 1).compute()
    array([1, 3, 5])
    """
    expr = node(x)
    place = axis_of("partition", axis, expr)
    length = expr.shape[place]
    if not -length <= kth < length:
        raise IndexingError(f"partition: kth={kth} is out of bounds for axis {place} with length {length}")
    return sort(Array(expr), axis=place)


class TopK(NamedTuple):
    """The result of `top_k`."""

    values: Array
    indices: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


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
