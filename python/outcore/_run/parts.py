"""Parts of stored arrays as outputs: whole chunks around what changes, made of the array as it is and of new values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from outcore import _core
from outcore._base.types import DType, PathLike
from outcore._lazy.array import Array
from outcore._lazy.hooks import above, functions
from outcore._lazy.indexing import Index, expanded, position_of
from outcore._lazy.node import Operand, axis_of, expr_dtype, is_weak, node, put_as
from outcore._lazy.typed import Item, Typed
from outcore._session.session import current
from outcore.errors import ArgumentError, DTypeError, IndexingError, OutcoreError, ShapeError, UnsupportedFormatError


class Region(NamedTuple):
    """A region of a stored array, as a key of a mapping: slices have a hash from Python 3.12 on only."""

    path: PathLike
    place: Index

    def __hash__(self) -> int:
        return hash((os.fspath(self.path), repr(self.place)))


class PartUpdate(NamedTuple):
    """The chunks of an array that are written, and where."""

    expr: _core.Expr
    target: _core.Target


def region_update(name: str, key: Index, part: Item) -> PartUpdate:
    """The update of a region by values that are broadcast to its shape.

    Raises IndexingError for a region that is no part of the array, ShapeError for values that do not go into it.
    """
    array, chunks = _opened(name)
    put = _cast("store", name, part, array.dtype)
    around, within = [], []
    for axis, index in enumerate(expanded(key, array.ndim)):
        length, chunk = array.shape[axis], chunks[axis]
        chosen = _chosen(name, index, axis, array.shape)
        first = chosen.start // chunk * chunk
        last = min(-(-chosen.stop // chunk) * chunk, length) if chosen else first
        around.append(slice(first, last))
        is_slice = isinstance(index, slice)
        within.append(slice(chosen.start - first, chosen.stop - first) if is_slice else chosen.start - first)
        if not chosen:
            within[-1] = slice(0, 0)
    hull = array[tuple(around)] if around else array
    try:
        expr = above.updated(hull, tuple(within), put)._expr
    except ShapeError:
        region = tuple(index.stop - index.start for index in within if isinstance(index, slice))
        raise ShapeError(f"store: values of shape {put.shape} for a region of shape {region} of {name}") from None
    return PartUpdate(expr, _target(name, chunks, array.shape, array.shape, [index.start for index in around]))


def _chosen(name: str, index: Any, axis: int, shape: tuple[int, ...]) -> range:
    """The places along an axis that an integer or a slice names. Raises IndexingError."""
    length = shape[axis]
    if not isinstance(index, slice):
        if not isinstance(index, SupportsIndex) or getattr(index, "ndim", 0) != 0:
            raise IndexingError(f"store: a region of {name} is slices of step 1 and integers, not {index!r}")
        at = position_of(index, axis, length)
        return range(at, at + 1)
    try:
        chosen = range(length)[index]
    except (TypeError, ValueError) as error:
        raise IndexingError(f"store: slice of axis {axis} of {name}: {error}") from None
    if chosen.step != 1:
        raise IndexingError(f"store: a region of {name} has slices of step 1, not {index}")
    if any(bound is not None and not -length <= bound <= length for bound in (index.start, index.stop)):
        raise IndexingError(f"store: {index} of axis {axis} lies outside of {name}, of shape {shape}")
    return chosen if chosen else range(min(chosen.start, length), min(chosen.start, length))


def append_update(name: str, part: Item, axis: SupportsIndex | str | None) -> PartUpdate:
    """The update of an array that grows along an axis. Raises ShapeError, AxisError, DTypeError.

    Without an axis the array has one.
    """
    array, chunks = _opened(name)
    if axis is None and array.ndim != 1:
        raise ArgumentError(f"append: {name} has the shape {array.shape}; say by `axis` along which of them it grows")
    axis = 0 if axis is None else axis
    put, place = _cast("append", name, part, array.dtype), axis_of("append", axis, array)
    others = [length for at, length in enumerate(put.shape) if at != place]
    if put.ndim != array.ndim or others != [length for at, length in enumerate(array.shape) if at != place]:
        raise ShapeError(
            f"append: an array of shape {put.shape} does not go to {name}, of shape {array.shape}, along axis {place}"
        )
    length, chunk = array.shape[place], chunks[place]
    start = length // chunk * chunk
    hull = put
    if start < length:
        rim = (*[slice(None)] * place, slice(start, length))
        hull = functions.concat([array[rim], put], axis=place)
    grown = (*array.shape[:place], length + put.shape[place], *array.shape[place + 1 :])
    begin = [start if at == place else 0 for at in range(array.ndim)]
    return PartUpdate(hull._expr, _target(name, chunks, array.shape, grown, begin))


def _opened(name: str) -> tuple[Array, list[int]]:
    """The array as it is stored, and its chunks. Raises UnsupportedFormatError where parts of it cannot be written."""
    chunks = _core.updatable(name)[1]
    # A killed update left links to the files: removed later, these would look changed to whoever reads them by then.
    with suppress(OutcoreError):
        _core.clean(os.path.dirname(os.path.realpath(name)))
    return Array(_core.open(current()._core, name)), chunks


def _cast(function: str, name: str, part: Item, dtype: DType) -> Array:
    """Values in the type of the array that they go to. Raises DTypeError where that is another kind."""
    if isinstance(part, Typed):
        raise UnsupportedFormatError(
            f"{function}: dates and text are no part of {name}; dates are passed as numbers in the units of its "
            f"attributes (outcore.open(path, decode=False).attrs), as x.astype('datetime64[s]').integers"
        )
    if isinstance(part, above.SparseMatrix):
        raise ArgumentError(f"{function}: a sparse matrix is no part of {name}")
    value: Operand = part
    if not is_weak(value) and not isinstance(value, (list, tuple)):
        kind = expr_dtype(node(value))
        if not np.can_cast(kind, dtype, "same_kind"):
            raise DTypeError(
                f"{function}: {kind} does not go to {name}, which is {dtype}; cast with astype, and where its "
                f"attributes have scale_factor or add_offset, pack by these before: elements are stored as passed"
            )
    return Array(put_as(value, dtype))


def _target(
    name: str, chunks: Sequence[int], shape: Sequence[int], grown: Sequence[int], start: Sequence[int]
) -> _core.Target:
    update = {"shape": list(shape), "grown": list(grown), "start": list(start)}
    return {"path": name, "overwrite": True, "chunks": list(chunks), "update": update}


__all__ = ["Region", "PartUpdate", "append_update", "region_update"]
