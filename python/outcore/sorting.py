"""Sorting functions of the array API standard, for arrays larger than memory (Vengroff and Vitter, TPIE, section 4.2)."""

from __future__ import annotations

from outcore import _core
from outcore._array import Array
from outcore._node import Operand, axis_of, expr_dtype, node
from outcore.errors import DTypeError, ShapeError


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


def sort(x: Operand, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis: NaN last, -0 equal to +0, always stable.

    I/O: as `sort_by` without columns.
    """
    del stable  # it always is
    expr = _keys("sort", x)
    if len(expr.shape) == 0:
        raise ShapeError("sort: a number has no axis to sort along")
    axis_of("sort", axis, len(expr.shape))
    if len(expr.shape) != 1:
        raise ShapeError(f"sort: of shape {tuple(expr.shape)}: only one-dimensional arrays so far")
    return Array(_core.sort_by(expr, [], descending)[0])


def argsort(x: Operand, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Where the elements of the sorted array are in `x`, int64. I/O: as `sort_by` with one column."""
    del stable
    expr = _keys("argsort", x)
    axis_of("argsort", axis, len(expr.shape))
    positions = _core.arange(0, 1, expr.shape[0], "int64")
    return Array(_core.sort_by(expr, [positions], descending)[1])


__all__ = ["argsort", "sort", "sort_by"]
