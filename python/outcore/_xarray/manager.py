"""The chunk manager `outcore`: xarray's arrays in chunks are lazy arrays of outcore.

Tiles are the planner's choice, so chunks that a user asks for change nothing but what `chunks` tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module

import numpy as np
from xarray.core import nputils
from xarray.namedarray.parallelcompat import ChunkManagerEntrypoint

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._lazy.array import Array
from outcore._lazy.chunks import Chunks, lengths_of, tile_of
from outcore._lazy.node import axes_of
from outcore._xarray import generalized
from outcore._xarray.decoding import decoded
from outcore._xarray.dispatch import teach
from outcore._xarray.foreign import Foreign, Function
from outcore._xarray.packed import extreme_number
from outcore._xarray.storing import store_into
from outcore._xarray.unwrapped import lazy_of
from outcore.errors import ArgumentError

_ENDS: dict[Foreign, bool] = {
    nputils.nanfirst: False,
    nputils.nanlast: True,
}  # reductions of xarray's that one read is enough for
_AUTO_BYTES = 128 << 20  # Dask's


class _Namespace:
    """The functions of outcore, of which those that create arrays take chunks, which change nothing."""

    def __getattr__(self, name: str) -> Foreign:
        return getattr(oc, name)

    @staticmethod
    def full(
        shape: Foreign, fill_value: Foreign, *, dtype: DTypeLike = None, chunks: object = None, **_: object
    ) -> Array:
        """As `outcore.full`."""
        return oc.full(shape, fill_value, dtype=dtype)

    @staticmethod
    def arange(*bounds: Foreign, dtype: DTypeLike = None, chunks: object = None, **_: object) -> Array:
        """As `outcore.arange`."""
        return oc.arange(*bounds, dtype=dtype)

    @staticmethod
    def from_array(data: Foreign, chunks: object = None, **_: object) -> Foreign:
        """As `Manager.from_array`."""
        return lazy_of(data)


class Manager(ChunkManagerEntrypoint[Foreign]):
    """xarray's interface to lazy arrays: see `xarray.namedarray.parallelcompat.ChunkManagerEntrypoint`.

    Installed with the package; `xr.set_options(chunk_manager="outcore")`, or `chunked_array_type="outcore"` of a call,
    chooses it where Dask is installed too.
    """

    array_cls: type[Foreign]

    def __init__(self) -> None:
        self.array_cls = Array
        teach()

    def is_chunked_array(self, data: object) -> bool:
        """Whether it is an array of outcore."""
        return isinstance(data, Array)

    def chunks(self, data: Array) -> Chunks:
        """Lengths of the tiles along each axis."""
        return data.chunks

    def normalize_chunks(
        self,
        chunks: Foreign,
        shape: tuple[int, ...] | None = None,
        limit: int | None = None,
        dtype: Foreign = None,
        previous_chunks: Foreign = None,
    ) -> Chunks:
        """Chunks of any of Dask's notations as lengths along each axis. Raises ArgumentError for others."""
        return _normalized(chunks, shape, limit or self.get_auto_chunk_size(), dtype, previous_chunks)

    def from_array(self, data: Foreign, chunks: Foreign = None, **options: Foreign) -> Foreign:
        """The lazy array of NumPy's, of a file that xarray opened, or of another library's array. No I/O."""
        array = lazy_of(data)
        if not isinstance(array, Array) or chunks is None:
            return array
        return chunked(array, self.normalize_chunks(chunks, array.shape, dtype=array.dtype))

    def rechunk(self, data: Array, chunks: Foreign, **options: Foreign) -> Array:
        """The array under another name, with `chunks` that files are written in and no plan goes by."""
        return chunked(data, self.normalize_chunks(chunks, data.shape, dtype=data.dtype, previous_chunks=data.chunks))

    def compute(self, *data: Foreign, **options: Foreign) -> tuple[Foreign, ...]:
        """The values of all arrays of outcore by one program; all else as it is. Raises MemoryLimitError."""
        lazy = [array for array in data if isinstance(array, Array)]
        values = iter(oc.compute(*lazy) if len(lazy) > 1 else [array.compute() for array in lazy])
        return tuple(next(values) if isinstance(array, Array) else array for array in data)

    def persist(self, *data: Foreign, **options: Foreign) -> tuple[Foreign, ...]:
        """The arrays with their values held in memory, by one program. Raises MemoryLimitError."""
        lazy = [array for array in data if isinstance(array, Array)]
        held = iter(oc.persist(*lazy) if len(lazy) > 1 else [array.persist() for array in lazy])
        return tuple(next(held) if isinstance(array, Array) else array for array in data)

    @property
    def array_api(self) -> Foreign:
        """The functions of outcore; those that create arrays take `chunks` too."""
        return _Namespace()

    def reduction(
        self,
        arr: Array,
        func: Function,
        combine_func: Function | None = None,
        aggregate_func: Function | None = None,
        axis: int | Sequence[int] | None = None,
        dtype: Foreign = None,
        keepdims: bool = False,
    ) -> Array:
        """A reduction by functions of NumPy arrays, each call of which gets the axes whole. I/O: one read."""
        axes = axes_of("reduction", axis, arr.ndim)
        end = _ENDS.get(func.keywords.get("op")) if isinstance(func, partial) else None
        if end is not None and len(axes) == 1 and arr.dtype.kind == "f" and not keepdims:
            return extreme_number(arr, axes[0], is_last=end)
        reduced = partial(_reduced, func, aggregate_func, tuple(range(-len(axes), 0)))
        moved = oc.moveaxis(arr, tuple(axes), tuple(range(-len(axes), 0)))
        names = ",".join(f"i{axis}" for axis in axes)
        kind = arr.dtype if dtype is None else dtype
        result: Array = generalized.apply_gufunc(reduced, f"({names})->()", moved, output_dtypes=[kind])
        return oc.expand_dims(result, axis=tuple(axes)) if keepdims else result

    def scan(
        self,
        func: Function,
        binop: Function,
        ident: float,
        arr: Array,
        axis: int | None = None,
        dtype: Foreign = None,
        **options: Foreign,
    ) -> Array:
        """A cumulative function of NumPy arrays, each call of which gets the axis whole. I/O: one read."""
        place = axes_of("scan", -1 if axis is None else axis, arr.ndim)[0]
        kind = arr.dtype if dtype is None else dtype
        moved = oc.moveaxis(arr, place, -1)
        scanned = generalized.apply_gufunc(partial(func, axis=-1), "(i)->(i)", moved, output_dtypes=[kind])
        return oc.moveaxis(scanned, -1, place)

    def apply_gufunc(
        self,
        func: Function,
        signature: str,
        *args: Foreign,
        axes: Sequence[tuple[int, ...]] | None = None,
        keepdims: bool = False,
        output_dtypes: Foreign = None,
        vectorize: bool | None = None,
        **options: Foreign,
    ) -> Foreign:
        """A function over whole axes: see `generalized.apply_gufunc`. Raises ArgumentError for axes and keepdims."""
        if axes is not None or keepdims:
            raise ArgumentError("apply_gufunc: axes= and keepdims= are not supported; whole axes come last")
        for name in ("allow_rechunk", "meta", "axis"):
            options.pop(name, None)
        return generalized.apply_gufunc(
            func, signature, *args, output_dtypes=output_dtypes, vectorize=vectorize, **options
        )

    def map_blocks(
        self,
        func: Function,
        *args: Foreign,
        dtype: Foreign = None,
        chunks: Foreign = None,
        drop_axis: Foreign = None,
        new_axis: Foreign = None,
        **options: Foreign,
    ) -> Array:
        """An element-wise function of NumPy tiles: CF decoders are expressions. Raises ArgumentError for other axes."""
        if drop_axis is not None or new_axis is not None:
            raise ArgumentError("map_blocks: drop_axis= and new_axis= are not supported; use apply_ufunc")
        for name in ("meta", "name", "token"):
            options.pop(name, None)
        if len(args) == 1 and not options and dtype is not None:
            return decoded(func, args[0], dtype)
        return oc.map_blocks(partial(func, **options) if options else func, *args, dtype=dtype)

    def blockwise(
        self,
        func: Function,
        out_ind: Iterable[Foreign],
        *args: Foreign,
        dtype: Foreign = None,
        adjust_chunks: Mapping[Foreign, Foreign] | None = None,
        new_axes: Mapping[Foreign, int] | None = None,
        **options: Foreign,
    ) -> Array:
        """A function of blocks whose axes have letters: those that the result lacks are whole, as are new ones.

        Raises ArgumentError for `adjust_chunks`: the lengths of blocks are the planner's.
        """
        if adjust_chunks:
            raise ArgumentError("blockwise: adjust_chunks= is not supported; use apply_gufunc with output_sizes=")
        for name in ("name", "token", "align_arrays", "concatenate", "meta"):
            options.pop(name, None)
        outer = tuple(out_ind)
        return generalized.blockwise(partial(func, **options), outer, args, dtype, dict(new_axes or {}))

    def unify_chunks(self, *args: Foreign, **options: Foreign) -> tuple[dict[Foreign, Foreign], list[Foreign]]:
        """The arrays as they are, and the lengths of tiles along each of their axes: no array needs another's tiles."""
        arrays, indices = args[::2], args[1::2]
        lengths: dict[Foreign, Foreign] = {}
        for array, index in zip(arrays, indices, strict=True):
            lengths.update(dict(zip(index or (), getattr(array, "chunks", ()), strict=False)))
        return lengths, list(arrays)

    def store(self, sources: Foreign, targets: Foreign, **options: Foreign) -> Foreign:
        """Writes arrays to what takes `target[region] = block`: see `store_into`. With compute=False an object of
        `dask.delayed`, as xarray makes further ones of it, that does so when it is computed.
        """
        several = isinstance(sources, (list, tuple))
        listed = list(sources) if several else [sources]
        regions = options.get("regions")
        asked = list(regions) if isinstance(regions, list) else [regions] * len(listed)
        places = list(targets) if several else [targets]
        if options.get("compute", True):
            return store_into(listed, places, asked)
        return import_module("dask").delayed(partial(store_into, listed, places, asked))()

    def get_auto_chunk_size(self) -> int:
        """Bytes of a chunk where a user leaves the size open; work is cut by the memory limit, not by this."""
        return _AUTO_BYTES


def chunked(array: Array, chunks: Chunks) -> Array:
    """The same array with chunks of its own."""
    other = Array(array._expr)
    other._chunks = chunks
    return other


def _reduced(function: Function, aggregate: Function | None, axes: tuple[int, ...], tile: Foreign) -> Foreign:
    """A reduction in its two steps, on all there is."""
    axis = axes[0] if len(axes) == 1 else axes
    first = function(tile, axis=axis, keepdims=aggregate is not None)
    return first if aggregate is None else aggregate(first, axis=axis, keepdims=False)


def _normalized(
    chunks: Foreign, shape: tuple[int, ...] | None, limit: int, dtype: Foreign, previous: Foreign
) -> Chunks:
    if shape is None:
        if not all(isinstance(part, (tuple, list)) for part in chunks):
            raise ArgumentError(f"normalize_chunks: {chunks!r} without a shape")
        shape = tuple(sum(part) for part in chunks)
    if isinstance(chunks, Mapping):
        before = previous or (None,) * len(shape)
        chunks = tuple(chunks.get(axis, before[axis]) for axis in range(len(shape)))
    if not isinstance(chunks, (tuple, list)):
        chunks = (chunks,) * len(shape)
    if len(chunks) != len(shape) and len(shape) == 1:
        chunks = (tuple(chunks),)
    if len(chunks) != len(shape):
        raise ArgumentError(f"normalize_chunks: {chunks!r} does not have the axes of {shape}")
    room = max(limit // (np.dtype(dtype).itemsize if dtype is not None else 8), 1)
    parts: list[int] = []
    for length, part in zip(shape, chunks, strict=True):
        if isinstance(part, (tuple, list)):
            if sum(part) != length:
                raise ArgumentError(f"normalize_chunks: chunks {part} do not add up to {length}")
            parts.append(max(part, default=0))
        else:
            parts.append(length if part in (-1, None) or isinstance(part, str) else min(int(part), length))
    lengths = list(lengths_of(shape, _automatic(shape, chunks, parts, room, previous)))
    for axis, part in enumerate(chunks):
        if isinstance(part, (tuple, list)):
            lengths[axis] = tuple(map(int, part))
    return Chunks(lengths)


def _automatic(
    shape: tuple[int, ...], chunks: Sequence[Foreign], parts: list[int], room: int, previous: Foreign
) -> tuple[int, ...]:
    """The parts, with those that are left open halved until a chunk has no more elements than there is room for."""
    open_axes = [axis for axis, part in enumerate(chunks) if isinstance(part, str)]
    if previous:
        before = [part if isinstance(part, int) else tile_of([part])[0] for part in previous]
        for axis in open_axes:
            parts[axis] = max(min(before[axis], shape[axis]), 1)
    while math.prod(parts) > room and any(parts[axis] > 1 for axis in open_axes):
        widest = max(open_axes, key=lambda axis: parts[axis])
        parts[widest] = -(-parts[widest] // 2)
    return tuple(parts)


__all__ = ["Manager"]
