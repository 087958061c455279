"""Indexing functions of the array API standard: positions known when the expression is written, or lazy and large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, node
from outcore._run.checks import places, within
from outcore._standard.creation import arange, asarray
from outcore._standard.manipulation import broadcast_shapes, broadcast_to, expand_dims, moveaxis, reshape
from outcore._standard.sorting import sort_by
from outcore.errors import IndexingError, ShapeError

_RUNS_MAX = 4096
# More runs than these, of few elements each, are taken element by element.
_PICKED_RUNS = 64
# More indices than these are not looked through for runs.
_EAGER_MAX = 1 << 20
# Indices that are looked at together for a run.
_WINDOW_MAX = 1 << 13


def _runs(indices: NDArray, length: int) -> list[slice] | None:
    """The indices as slices of constant step; None where more than `_RUNS_MAX` would be needed.

    Looks at a window at a time: the caller's indices may be a good part of the memory.
    """
    runs: list[slice] = []
    start, count = 0, len(indices)
    while start < count:
        if len(runs) == _RUNS_MAX:
            return None
        first, end, window = int(indices[start]) % length, start + 1, 16
        step = int(indices[end]) % length - first if end < count else 1
        while step != 0 and end < count:
            goes_on = np.diff(indices[end - 1 : end + window].astype(np.int64) % length) == step
            if not goes_on.all():
                end += int(goes_on.argmin())
                break
            end += len(goes_on)
            window = min(2 * window, _WINDOW_MAX)
        last = first + (end - start) * (step or 1)
        runs.append(slice(first, last if last >= 0 else None, step or 1))
        start = end
    return runs


def _is_fixed(array: NDArray) -> bool:
    """Whether nobody can change the elements, so that they need no copy."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


def counted_from_front(name: str, indices: Operand, length: int, axis: int = 0) -> Array:
    """Integers of any type as int64, those below zero counted from the end. Few that are known stay known.

    Places outside are refused by their own number: at once where they are known, else by the run that meets them.
    """
    if isinstance(indices, np.ndarray) and indices.dtype.kind in "iu" and indices.size <= _EAGER_MAX:
        if indices.dtype.kind == "u":
            largest = int(indices.max()) if indices.size else -1
            if largest >= length:
                raise IndexingError(f"{name}: index {largest} is out of bounds for axis {axis} with length {length}")
            return asarray(indices.astype(np.int64))
        known = indices.astype(np.int64, copy=not _is_fixed(indices))
        outside = known[(known < -length) | (known >= length)]
        if outside.size:
            raise IndexingError(f"{name}: index {outside[0]} is out of bounds for axis {axis} with length {length}")
        if known.size and known.min() < 0:
            known = np.where(known < 0, known + length, known)
        return asarray(known)
    array = Array(node(indices))
    if array.dtype.kind == "u":
        if array.dtype.itemsize == 8:
            array = Array(_core.binary("minimum", array._expr, node(np.uint64(np.iinfo(np.int64).max))))
        return places(name, array.astype(np.int64), axis, length)
    if array.dtype.kind != "i":
        raise IndexingError(f"{name}: indices are integers, not {array.dtype}")
    array = places(name, array.astype(np.int64), axis, length)
    return Array(_core.where((array < 0)._expr, (array + length)._expr, array._expr))


def _gathered(array: Array, indices: Operand, place: int, name: str = "take") -> Array:
    """The elements that `indices`, lazy or large, name along an axis."""
    shape = indices.shape if isinstance(indices, np.ndarray) else tuple(node(indices).shape)
    row = indices.reshape(-1) if isinstance(indices, np.ndarray) else reshape(indices, (math.prod(shape),))
    index = counted_from_front(name, row, array.shape[place], place)
    rows = Array(_core.take(moveaxis(array, place, 0)._expr, index._expr))
    if len(shape) != 1:
        rows = reshape(rows, (*shape, *rows.shape[1:]))
    count = len(shape)
    return moveaxis(rows, tuple(range(count)), tuple(range(place, place + count))) if place and count else rows


def take(x: Operand, indices: Operand | Sequence[int], /, *, axis: int | str | None = None) -> Array:
    """The elements at the given positions of an axis. `indices`: integers, those below zero counted from the end.

    Indices may be an array of any shape, lazy and larger than memory: their axes take the place of the axis. Raises
    IndexingError for a position out of bounds: at once where the indices are a NumPy array in few even runs, else when
    it is computed.

    I/O: few even runs read the tiles the positions fall in, or the positions' own pages where those are fewer bytes; so
    do single elements of a stored array of one axis, each page once. Else one read of `x` and of the indices while `x`
    fits a third of the memory; beyond that, rows of more than 8 elements are met in sweeps over `x`, one for each half
    of the memory that the result takes, and shorter ones by sorting the indices, and sorting back (external memory
    model, Vitter 2001, section 5).

    >>> import numpy as np, outcore as oc
    >>> oc.take(np.asarray([10, 20, 30]), oc.asarray([2, 0, -1])).compute()
    array([30, 10, 30])
    """
    array = Array(node(x))
    if axis is None and array.ndim != 1:
        raise IndexingError(f"take: an array of {array.ndim} dimensions needs axis=")
    place = axis_of("take", axis or 0, array)
    if isinstance(indices, Array):
        return _named_as(array, _gathered(array, indices, place), place, indices)
    positions = np.asarray(indices)
    if positions.size and positions.dtype.kind not in "iu":
        raise IndexingError(f"take: indices must be integers, not {positions.ndim}-D {positions.dtype}")
    if positions.size == 0:
        positions = positions.astype(np.int64)
    length = array.shape[place]
    outside = positions[(positions < -length) | (positions >= length)]
    if outside.size:
        raise IndexingError(f"take: index {outside[0]} is out of bounds for axis {place} with length {length}")
    if positions.ndim != 1:
        return _named_as(array, _gathered(array, positions, place), place, positions)
    before = (slice(None),) * place
    runs = _runs(positions, length) if positions.size <= _EAGER_MAX else None
    if runs is None or _are_apart(array, positions, len(runs)):
        return _named_as(array, _gathered(array, positions, place), place, positions)
    if not runs:
        return array[(*before, slice(0))]
    numbered = [range(length)[run] for run in runs]
    return Array(_core.take_runs(array._expr, place, [(run.start, run.step, len(run)) for run in numbered]))


def _are_apart(array: Array, positions: NDArray, runs: int) -> bool:
    """Whether positions are single elements of a stored array, for which a run each is too much."""
    is_stored = not array._expr.inputs and _core.is_made_of_stored(array._expr)
    return array.ndim == 1 and is_stored and runs > _PICKED_RUNS and positions.size < 4 * runs


def take_along_axis(x: Operand, indices: Operand, /, *, axis: int | str = -1) -> Array:
    """For each lane of `x` along an axis the elements that the lane of `indices` names; the other axes broadcast.

    Raises IndexingError for a position out of bounds when it is computed. I/O: as `take` from `x` in one row.

    >>> import numpy as np, outcore as oc
    >>> oc.take_along_axis(np.asarray([[3, 1, 2]]), np.asarray([[1, 0]]), axis=1).compute()
    array([[1, 3]])
    """
    array, lanes = Array(node(x)), Array(node(indices))
    if array.ndim != lanes.ndim:
        raise ShapeError(f"take_along_axis: indices of shape {lanes.shape} for {array.shape}: numbers of axes differ")
    place = axis_of("take_along_axis", axis, array)
    array, lanes = moveaxis(array, place, -1), moveaxis(lanes, place, -1)
    outer = np.broadcast_shapes(array.shape[:-1], lanes.shape[:-1])
    array, lanes = broadcast_to(array, (*outer, array.shape[-1])), broadcast_to(lanes, (*outer, lanes.shape[-1]))
    length, count = array.shape[-1], math.prod(array.shape)
    positions = counted_from_front("take_along_axis", lanes, length, place)
    first = expand_dims(reshape(arange(math.prod(outer)) * length, outer), axis=len(outer))
    flat = positions + first
    taken = reshape(_gathered(reshape(array, (count,)), reshape(flat, (math.prod(flat.shape),)), 0), flat.shape)
    return moveaxis(taken, -1, place)


def taken(array: Array, parts: list[Any], places: list[int]) -> Array:
    """`array[parts]`, where at `places` are arrays of integers, and integers, that broadcast together.

    As in NumPy their axes take the place of the ones they index where those are neighbours, and lead the others where
    not. I/O: of one array as `take`; several are positions in C order, taken from `array` in one row. Where those name
    single elements of a stored array and are known, the pages or chunks that hold them are read, each once, if that is
    half of the array or less.
    """
    sliced = array[tuple(slice(None) if place in places else part for place, part in enumerate(parts))]
    if len(places) == 1:
        return take(sliced, parts[places[0]], axis=places[0])
    lengths = tuple(sliced.shape[place] for place in places)
    flat = flat_positions("index", [parts[place] for place in places], lengths)
    kept = tuple(length for place, length in enumerate(sliced.shape) if place not in places)
    rows = reshape(moveaxis(sliced, tuple(places), tuple(range(len(places)))), (math.prod(lengths), *kept))
    elements = _gathered(rows, flat, 0)
    if places[-1] - places[0] + 1 > len(places) or places[0] == 0:
        return elements
    axes = tuple(range(len(flat.shape)))
    return moveaxis(elements, axes, tuple(places[0] + axis for axis in axes)) if axes else elements


def _named_as(array: Array, result: Array, place: int, positions: Any) -> Array:
    """`result`, elements of `array` along an axis, with its names of axes: of that axis the positions' own, if any."""
    dims, dims_taken = list(array.dims), list(getattr(positions, "dims", ())) if isinstance(positions, Array) else []
    if not any(dims_taken):
        dims_taken = [dims[place]] if np.ndim(positions) == 1 else [None] * np.ndim(positions)
    names: list[str | None] = []
    for dim in (*dims[:place], *dims_taken, *dims[place + 1 :]):
        names.append(None if dim in names else dim)
    return result.annotate(dims=names, attrs=array.attrs) if any(names) or array.attrs else result


def flat_positions(name: str, indices: list[Any], lengths: tuple[int, ...]) -> Array | npt.NDArray[np.int64]:
    """Positions along several axes, counted from the end where below zero, as positions in C order.

    Raises IndexingError for those outside, at once for NumPy's, of which few stay NumPy's; else when it is computed.
    """
    for axis, (part, length) in enumerate(zip(indices, lengths, strict=True)):
        known = None if isinstance(part, Array) else np.asarray(part)
        if known is not None and known.size and known.dtype.kind in "iu":
            least, most = int(known.min()), int(known.max())
            if least < -length or most >= length:
                at = least if least < -length else most
                raise IndexingError(f"{name}: {at} is out of bounds for a length of {length} (index array {axis})")
    if not any(isinstance(part, Array) for part in indices):
        parts = [np.asarray(part) for part in indices]
        shape = broadcast_shapes(*(part.shape for part in parts))
        rows = [np.broadcast_to(part, shape) for part in parts]
        if rows[0].size <= _EAGER_MAX and all(row.dtype.kind in "iu" for row in rows) and 0 not in lengths:
            places = (row.astype(np.int64) % length for row, length in zip(rows, lengths, strict=True))
            return np.ravel_multi_index(tuple(places), lengths)
    pairs = enumerate(zip(indices, lengths, strict=True))
    numbers = [counted_from_front(name, part, length, axis) for axis, (part, length) in pairs]
    flat = Array(_core.full([], 0, "int64"))
    for part, length in zip(numbers, lengths, strict=True):
        flat = flat * length + part
    return broadcast_to(flat, broadcast_shapes(*(part.shape for part in numbers)))


def _permutation(name: str, x: Operand, index: Operand) -> tuple[Array, Array]:
    array, positions = Array(node(x)), Array(node(index))
    if array.ndim == 0 or positions.shape != array.shape[:1]:
        raise ShapeError(f"{name}: an index of shape {positions.shape} is no order of the rows of shape {array.shape}")
    return array, counted_from_front(name, positions, array.shape[0])


def permute(x: Operand, index: Operand, /) -> Array:
    """The rows of `x` moved: row `i` of `x` becomes row `index[i]`. `index` must be an order of all rows.

    I/O: as `sort_by` with one column for a row of numbers; else that of the positions, and a `take`.

    >>> import numpy as np, outcore as oc
    >>> oc.permute(np.asarray([10, 20, 30]), np.asarray([2, 0, 1])).compute()
    array([20, 30, 10])
    """
    array, positions = _permutation("permute", x, index)
    if array.ndim == 1:
        ordered, moved = sort_by(positions, array)
        return _in_order("permute", ordered, moved)
    ordered, places = sort_by(positions, arange(array.shape[0]))
    return take(array, _in_order("permute", ordered, places), axis=0)


def _in_order(name: str, ordered: Array, beside: Array) -> Array:
    """`beside`, if the sorted index is 0, 1, 2 …; the run ends where it is not, since it names a row twice then."""
    text = f"{name}: the index is no order of all {ordered.shape[0]} rows: it names one of them twice"
    apart = within(ordered - arange(ordered.shape[0]), 0, 0, text)
    return Array(_core.where((apart == 0)._expr, beside._expr, beside._expr))


def permute_inverse(x: Operand, index: Operand, /) -> Array:
    """The array of which `permute` with the same index makes `x`: row `index[i]` of `x` becomes row `i`. I/O: as
    `take`.

    >>> import numpy as np, outcore as oc
    >>> oc.permute_inverse(np.asarray([20, 30, 10]), np.asarray([2, 0, 1])).compute()
    array([10, 20, 30])
    """
    array, positions = _permutation("permute_inverse", x, index)
    return _gathered(array, positions, 0)


__all__ = ["permute", "permute_inverse", "take", "take_along_axis"]
