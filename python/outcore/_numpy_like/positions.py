"""Positions along axes and in C order, what lies at them, and open meshes: NumPy's functions of those names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, integers, node
from outcore._run.checks import within
from outcore._standard.creation import arange, ones, tril, triu
from outcore._standard.manipulation import broadcast_arrays, each_of, reshape
from outcore._standard.searching import nonzero, where
from outcore.elementwise import clip
from outcore.errors import ArgumentError, DTypeError, ShapeError

Mode = Literal["raise", "wrap", "clip"]


def _whole(name: str, x: Operand) -> Array:
    array = Array(node(x))
    if array.dtype.kind not in "biu":
        raise DTypeError(f"{name}: positions are integers, not {array.dtype}")
    return array.astype(np.int64)


def _inside(name: str, numbers: Array, length: int, mode: str) -> Array:
    """Positions within a length; those outside are refused when computed, wrapped around, or put to the ends."""
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"{name}: mode {mode!r} is none of 'raise', 'wrap', 'clip'")
    if mode == "wrap":
        return numbers % length
    if mode == "clip":
        return clip(numbers, 0, max(length - 1, 0))
    return within(numbers, 0, length - 1, f"{name}: index {{}} is out of bounds for a length of {length}")


def ravel_multi_index(
    multi_index: Sequence[Operand], dims: Sequence[int], /, *, mode: Mode | Sequence[Mode] = "raise", order: str = "C"
) -> Array:
    """Positions along several axes as positions in C order (Fortran's if `order` is "F") of an array of shape `dims`.

    Positions broadcast together, int64. Positions outside raise IndexingError when they are computed, or `mode` (one,
    or one for each axis) wraps them around or clips them. I/O: one read of each.

    >>> import numpy as np, outcore as oc
    >>> oc.ravel_multi_index((np.asarray([0, 1]), np.asarray([2, 0])), (2, 3)).compute()
    array([2, 3])
    """
    lengths = integers(dims)
    if len(multi_index) != len(lengths):
        raise ShapeError(f"ravel_multi_index: {len(multi_index)} rows of positions for the shape {lengths}")
    modes: Sequence[str] = [mode] * len(lengths) if isinstance(mode, str) else list(mode)
    if len(modes) != len(lengths):
        raise ArgumentError(f"ravel_multi_index: {len(modes)} modes for the shape {lengths}")
    parts = [
        _inside("ravel_multi_index", _whole("ravel_multi_index", part), length, how)
        for part, length, how in zip(multi_index, lengths, modes, strict=True)
    ]
    flat = Array(node(0))
    for part, length in _from_the_outermost(list(zip(parts, lengths, strict=True)), order):
        flat = flat * length + part
    return flat


def _from_the_outermost(axes: list[Any], order: str) -> list[Any]:
    if order not in ("C", "F"):
        raise ArgumentError(f"positions are counted in the order 'C' or 'F', not {order!r}")
    return axes if order == "C" else axes[::-1]


def unravel_index(indices: Operand, shape: Sequence[int], /, *, order: str = "C") -> tuple[Array, ...]:
    """Positions in C order (Fortran's if `order` is "F") of an array of some shape as positions along its axes.

    Positions outside raise IndexingError when they are computed. I/O: one read of the positions.

    >>> import numpy as np, outcore as oc
    >>> [part.compute().tolist() for part in oc.unravel_index(np.asarray([2, 3]), (2, 3))]
    [[0, 1], [2, 0]]
    """
    lengths = integers(shape)
    remainder = _inside("unravel_index", _whole("unravel_index", indices), math.prod(lengths), "raise")
    by_place: dict[int, Array] = {}
    places = _from_the_outermost(list(range(len(lengths))), order)
    for place in reversed(places):
        length = max(lengths[place], 1)
        by_place[place], remainder = remainder % length, remainder // length
    return tuple(by_place[place] for place in range(len(lengths)))


def choose(a: Operand, choices: Sequence[Operand] | Operand, /, *, mode: Mode = "raise") -> Array:
    """For each element the one in its place in `choices[a]`; all arrays broadcast together.

    `choices`: a sequence of arrays, or one whose first axis lists them. Numbers beyond them: as `ravel_multi_index`.
    I/O: one read of each; all are fused in one pass.

    >>> import numpy as np, outcore as oc
    >>> oc.choose(np.asarray([1, 0]), [np.asarray([1, 2]), np.asarray([10, 20])]).compute()
    array([10,  2])
    """
    numbers = _whole("choose", a)
    rows = each_of(choices)
    if not rows:
        raise ArgumentError("choose: there is nothing to choose from")
    dtype = np.result_type(*(row.dtype for row in rows))
    which, *parts = broadcast_arrays(_inside("choose", numbers, len(rows), mode), *rows)
    chosen = parts[-1].astype(dtype)
    for number in reversed(range(len(parts) - 1)):
        chosen = where(which == number, parts[number].astype(dtype), chosen)
    # With one choice alone the numbers decide nothing, but must be within it.
    return where(which >= 0, chosen, chosen) if len(parts) == 1 else chosen


def ix_(*args: Operand) -> tuple[Array, ...]:
    """Rows of positions as an open mesh: `x[oc.ix_(i, j)]` is each of `i` with each of `j`. A mask is its positions.

    I/O: as `nonzero` for masks, none else.

    >>> import numpy as np, outcore as oc
    >>> oc.asarray(np.arange(6).reshape(2, 3))[oc.ix_([1, 0], [0, 2])].compute()
    array([[3, 5],
           [0, 2]])
    """
    rows = [Array(node(part)) for part in args]
    if any(row.ndim != 1 for row in rows):
        raise ShapeError(f"ix_: arrays of shapes {', '.join(str(row.shape) for row in rows)} are not all rows")
    flat = [nonzero(row)[0] if row.dtype.kind == "b" else row for row in rows]
    return tuple(
        reshape(row, (1,) * place + (row.shape[0],) + (1,) * (len(flat) - place - 1)) for place, row in enumerate(flat)
    )


def diag_indices_from(x: Operand, /) -> tuple[Array, ...]:
    """The positions of the main diagonal of an array whose axes are of one length, for each axis: int64 rows.

    Raises ShapeError for other shapes. No I/O.

    >>> import outcore as oc
    >>> [part.compute().tolist() for part in oc.diag_indices_from(oc.zeros((2, 2)))]
    [[0, 1], [0, 1]]
    """
    array = Array(node(x))
    if array.ndim < 2 or len(set(array.shape)) != 1:
        raise ShapeError(f"diag_indices_from: shape {array.shape} is not of two or more axes of one length")
    return (arange(array.shape[0]),) * array.ndim


def tril_indices_from(x: Operand, /, *, k: int = 0) -> tuple[Array, ...]:
    """The positions of a matrix's elements on and below the k-th diagonal, in C order. No I/O.

    Raises ShapeError where that is no matrix.

    >>> import outcore as oc
    >>> [part.compute().tolist() for part in oc.tril_indices_from(oc.zeros((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    return nonzero(tril(_ones_like_matrix("tril_indices_from", x), k=k))


def triu_indices_from(x: Operand, /, *, k: int = 0) -> tuple[Array, ...]:
    """The positions of a matrix's elements on and above the k-th diagonal, in C order: an int64 row for each axis.

    No I/O. Raises ShapeError where that is no matrix.

    >>> import outcore as oc
    >>> [part.compute().tolist() for part in oc.triu_indices_from(oc.zeros((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(triu(_ones_like_matrix("triu_indices_from", x), k=k))


def _ones_like_matrix(name: str, x: Operand) -> Array:
    shape = tuple(node(x).shape)
    if len(shape) != 2:
        raise ShapeError(f"{name}: an array of shape {shape} is not a matrix")
    return ones(shape, dtype=np.bool_)


__all__ = [
    "choose",
    "diag_indices_from",
    "ix_",
    "ravel_multi_index",
    "tril_indices_from",
    "triu_indices_from",
    "unravel_index",
]
