"""Arrays that xarray has wrapped for lazy indexing and decoding, as expressions over what they wrap.

Nothing is read: wrappers that are known become nodes, any other array is read in blocks while a program runs.
"""

from __future__ import annotations

import numpy as np
from xarray.backends.common import BackendArray
from xarray.backends.zarr import ZarrArrayWrapper
from xarray.coding import common, variables
from xarray.core import indexing

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.foreign import check_room
from outcore._xarray.decoding import decoded
from outcore._xarray.foreign import Foreign

_NUMERIC = "biufc"
# Wrappers that hold another array as it is.
_SHELLS = (
    indexing.ImplicitToExplicitIndexingAdapter,
    indexing.CopyOnWriteArray,
    indexing.MemoryCachedArray,
    indexing.NumpyIndexingAdapter,
    indexing.ArrayApiIndexingAdapter,
)
_CASTS = (variables.NativeEndiannessArray, variables.BoolTypeArray)


class LazyVariable(BackendArray):
    """A lazy array under xarray's lazy indexing: a variable of a file that the backend opened.

    An index makes a node; `numpy.asarray` of what xarray makes of it reads the part that is asked for.
    """

    def __init__(self, array: Array) -> None:
        self.lazy = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> NDArray:
        """The values of a part, computed. Raises MemoryLimitError where it has no room."""
        part = self.part(key)
        result: NDArray = part.compute() if isinstance(part, Array) else part
        return result

    def part(self, key: indexing.ExplicitIndexer) -> Array:
        """A part as a lazy array."""
        return indexed(self.lazy, key)


def indexed(array: Array, key: indexing.ExplicitIndexer) -> Array:
    """A part by xarray's index: basic, one index for each axis apart from the others, or points."""
    if isinstance(key, indexing.OuterIndexer):
        # From the last axis on: integers drop theirs, and those before keep their places.
        for axis in reversed(range(len(key.tuple))):
            part = key.tuple[axis]
            if not (isinstance(part, slice) and part == slice(None)):
                array = array[(slice(None),) * axis + (part,)]
        return array
    if isinstance(key, indexing.VectorizedIndexer):
        return points_of(array, key.tuple)
    return array[key.tuple]


def points_of(array: Array, key: tuple[Foreign, ...]) -> Array:
    """The elements that positions along several axes name together; their axes come first, then those of slices."""
    named = [axis for axis, part in enumerate(key) if not isinstance(part, slice)]
    others = [axis for axis in range(array.ndim) if axis not in named]
    lengths = [len(np.broadcast_shapes(np.shape(key[axis]))) for axis in named]
    moved = oc.permute_dims(array, (*named, *others)) if named != list(range(len(named))) else array
    points = moved[tuple(key[axis] for axis in named)]
    depth = max(lengths, default=0)
    return points[(slice(None),) * depth + tuple(key[axis] for axis in others)]


class _WrappedBlocks:
    """An array of xarray's with the shape, type and slices that outcore reads other libraries' arrays by."""

    def __init__(self, array: Foreign) -> None:
        self.array: Foreign = array
        self.shape, self.dtype = array.shape, np.dtype(array.dtype)
        self.name, self.chunks = type(array).__name__, _chunks_of(array)

    def __getitem__(self, block: tuple[slice, ...]) -> NDArray:
        key, is_file = indexing.BasicIndexer(block), isinstance(self.array, BackendArray)
        array: Foreign = self.array
        return np.asarray(array[key] if is_file else indexing.apply_indexer(array, key))

    def __array__(self, dtype: Foreign = None, copy: bool | None = None) -> NDArray:
        return np.asarray(self[(slice(None),) * len(self.shape)], dtype)


def _array_of(wrapper: Foreign) -> Foreign:
    """The array of another library that a wrapper of xarray's is of."""
    return wrapper.get_array()


def _chunks_of(array: Foreign) -> tuple[int, ...] | None:
    """How the file cuts a variable, where its library (h5netcdf, netCDF4) says so."""
    if not hasattr(array, "get_array"):
        return None
    variable = array.get_array()
    chunks = getattr(variable, "chunks", None) or getattr(variable, "chunking", lambda: None)()
    return tuple(chunks) if isinstance(chunks, (tuple, list)) else None


def lazy_of(data: Foreign) -> Foreign:
    """The lazy array of what xarray gives a chunk manager: NumPy's, its own wrappers, other libraries' arrays.

    Text, dates and objects are no numbers, and stay NumPy arrays in memory: MemoryLimitError where they have no room.
    """
    if isinstance(data, Array):
        return data
    kind = np.dtype(data.dtype)
    if kind.kind not in _NUMERIC:
        check_room(f"chunks of an array of {kind}", int(np.prod(data.shape)) * kind.itemsize, "open it without chunks")
        return np.asarray(data)
    if isinstance(data, np.ndarray):
        return oc.asarray(data)
    return _expression(data)


def _expression(data: Foreign) -> Array:
    if isinstance(data, Array):
        return data
    if isinstance(data, LazyVariable):
        return data.lazy
    if isinstance(data, _SHELLS):
        return _expression(data.array)
    if isinstance(data, indexing.LazilyIndexedArray):
        return indexed(_expression(data.array), data.key)
    if isinstance(data, indexing.LazilyVectorizedIndexedArray):
        return points_of(_expression(data.array), data.key.tuple)
    if isinstance(data, common._ElementwiseFunctionArray):
        return decoded(data.func, _expression(data.array), data.dtype)
    if isinstance(data, _CASTS):
        return oc.astype(_expression(data.array), data.dtype)
    if isinstance(data, ZarrArrayWrapper):
        return oc.asarray(_array_of(data))
    if isinstance(data, np.ndarray):
        return oc.asarray(data)
    if isinstance(data, (indexing.ExplicitlyIndexed, BackendArray)):
        return oc.asarray(_WrappedBlocks(data))
    return oc.asarray(data)


__all__ = ["LazyVariable", "indexed", "lazy_of", "points_of"]
