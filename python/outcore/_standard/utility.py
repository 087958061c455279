"""Utility functions of the array API standard: all, any, diff."""

from __future__ import annotations

import builtins

from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axis_of, node
from outcore._lazy.reduction import reduced
from outcore._standard.manipulation import concat, part_along
from outcore.elementwise import not_equal, subtract
from outcore.errors import ShapeError


def all(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Whether every element is not zero; True where there are none. Gives bool.

    Shape and errors as `sum`. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.all(oc.asarray([[1, 2], [0, 3]]), axis=1).compute()
    array([ True, False])
    """
    return reduced("all", node(x), axis, keepdims)


def any(x: Operand, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
    """Whether any element is not zero; False where there are none. Gives bool.

    Shape and errors as `sum`. I/O: one read of `x`.

    >>> import outcore as oc
    >>> oc.any(oc.asarray([[1, 2], [0, 0]]), axis=1).compute()
    array([ True, False])
    """
    return reduced("any", node(x), axis, keepdims)


def diff(
    x: Operand, /, *, axis: int | str = -1, n: int = 1, prepend: Operand | None = None, append: Operand | None = None
) -> Array:
    """Differences of neighbours along an axis, `n` times over; the axis loses `n` elements.

    `prepend` and `append` are put before and behind. Type of `x`; of bool, whether neighbours differ. Raises ShapeError
    for `n` below 0. I/O: one read of each.

    >>> import outcore as oc
    >>> oc.diff(oc.asarray([1, 4, 9, 16])).compute()
    array([3, 5, 7])
    """
    parts = [Array(node(part)) for part in (prepend, x, append) if part is not None]
    place = axis_of("diff", axis, node(x))
    if n < 0:
        raise ShapeError(f"diff: cannot take differences {n} times")
    array = concat(parts, axis=place)
    for _ in range(n):
        later, earlier = part_along(array, place, 1, None), part_along(array, place, None, -1)
        array = not_equal(later, earlier) if array.dtype.kind == "b" else subtract(later, earlier)
    return array


def ediff1d(x: Operand, /, *, to_end: Operand | None = None, to_begin: Operand | None = None) -> Array:
    """Differences of neighbours in C order, between what is put at the begin and at the end. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.ediff1d(np.asarray([1, 4, 9]), to_begin=0).compute()
    array([0, 3, 5])
    """
    array = Array(node(x))
    ends = [None if part is None else Array(node(part)).astype(array.dtype).ravel() for part in (to_begin, to_end)]
    parts = [ends[0], diff(array.ravel()), ends[1]]
    return concat([part for part in parts if part is not None])


__all__ = ["all", "any", "diff", "ediff1d"]
