"""Creation functions of the array API standard. Generated arrays are recomputed tile by tile and cost no I/O."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from outcore import _core
from outcore._base.arguments import check_device
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import Keywords, Scalar
from outcore._lazy.array import Array
from outcore._lazy.foreign import check_room, is_stored
from outcore._lazy.hooks import above
from outcore._lazy.node import Operand, as_numpy, axis_of, constant, default_dtype, is_weak, node, shape_of
from outcore._standard.manipulation import broadcast_arrays, reshape
from outcore.elementwise import floor
from outcore.errors import DTypeError, ShapeError


def asarray(obj: Any, /, *, dtype: DTypeLike = None, device: str | None = None, copy: bool | None = None) -> Array:
    """The lazy array of a NumPy array, nested sequence, Python scalar, lazy array or another library's array.

    A NumPy array in memory is borrowed, not copied (any strides), and must not change while expressions use it;
    `copy=True` copies it, as happens to a bool array that views bytes other than 0 and 1. It counts as memory the
    process already has. Dates and times, or a `dtype` of them, give `Dates`; fixed-length strings give `Text`. Raises
    DTypeError for types outcore has no kernels for and for masked arrays. Sequences and scalars are read as by
    `np.asarray`: RangeError, ArgumentError or DTypeError for numbers that `dtype` cannot hold.

    An array that is not in memory is not loaded. An `np.memmap` and any view of one is that part of its file, as `open`
    would give it; nothing is read through the mapping, so its pages do not become resident. A mapping made with
    `mode="c"` (whose changes are in memory only), one of a deleted file, or a view that is no slice of the file stays
    borrowed, and is refused with MemoryLimitError where it could not be resident as a whole. A Zarr array of
    zarr-python in a folder, and a dataset of h5py in a file that is open with mode "r", are opened there, as by `open`.
    Others with a shape, a NumPy type and basic indexing (xarray, whose names of axes become `dims`, Dask, and netCDF4,
    which hands over what its `scale` makes of stored numbers) are read in blocks of tiles while a program runs, one
    call of theirs per tile: bytes are counted as they are handed over, and what the library holds beside them is its
    own. `copy=True` of any of these must fit the memory limit. I/O: none; what is not in memory is read when a result
    needs it.

    >>> import numpy as np, outcore as oc
    >>> x = oc.asarray(np.arange(4))
    >>> (x + 0.5).compute()
    array([0.5, 1.5, 2.5, 3.5])
    """
    check_device(device)
    typed = above.as_typed(obj, dtype, copy)
    if typed is not None:
        return cast(Array, typed)  # annotated as what nearly everything is
    if copy and (isinstance(obj, np.ndarray) or is_stored(obj)):
        check_room("asarray with copy=True", obj.nbytes, "without it nothing is loaded")
        obj = as_numpy(obj).copy()
    if dtype is None:
        return _with_axes(Array(node(obj)), obj)
    kind = dtype_of(dtype)
    if is_weak(obj):
        return Array(constant((), as_numpy(obj, kind).item(), kind))
    if not isinstance(obj, (Array, np.ndarray, np.generic)) and not is_stored(obj):
        obj = as_numpy(obj, kind)
    return _with_axes(Array(node(obj)), obj).astype(kind)


def _with_axes(array: Array, source: Any) -> Array:
    """The array with the names that xarray's array has for its axes."""
    dims = getattr(source, "dims", None) if type(source).__module__.partition(".")[0] == "xarray" else None
    if not isinstance(dims, tuple) or not all(isinstance(name, str) for name in dims) or len(set(dims)) < len(dims):
        return array
    return array.annotate(dims=dims)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """The lazy array of any object that speaks DLPack, in the CPU's memory; borrowed as by `asarray`.

    `copy=True` copies it, `copy=False` is a BufferError where the producer would have to. So is an object in another
    device's memory, unless `device="cpu"` has its producer bring it here. Same shape and type. I/O: none.

    >>> import numpy as np, outcore as oc
    >>> oc.from_dlpack(np.arange(3)).compute()
    array([0, 1, 2])
    """
    check_device(device)
    if isinstance(x, (Array, np.ndarray)):
        return asarray(x, copy=copy)
    # Producers older than DLPack 1.0 know neither name, so what is not asked for is not passed.
    asked: Keywords = {name: value for name, value in (("device", device), ("copy", copy)) if value is not None}
    return asarray(np.from_dlpack(x, **asked))


def full(
    shape: int | Iterable[int], fill_value: Scalar | np.generic, *, dtype: DTypeLike = None, device: str | None = None
) -> Array:
    """An array of one value, of any shape; its type is the value's unless given.

    Raises RangeError where the type is too small, DTypeError for a value of another kind. No I/O.

    >>> import outcore as oc
    >>> oc.full((2, 3), 7, dtype="int8").compute()
    array([[7, 7, 7],
           [7, 7, 7]], dtype=int8)
    """
    check_device(device)
    value: Scalar = fill_value.item() if isinstance(fill_value, np.generic) else fill_value
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, np.generic) else default_dtype(value)
    return Array(constant(shape_of(shape), value, dtype_of(dtype)))


def zeros(shape: int | Iterable[int], *, dtype: DTypeLike = None, device: str | None = None) -> Array:
    """An array of zeros, of any shape, float64 unless told. Raises DTypeError for types outcore has no kernels for.

    No I/O.

    >>> import outcore as oc
    >>> oc.zeros((2, 3)).compute()
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    check_device(device)
    return Array(constant(shape_of(shape), 0, dtype_of(dtype or float)))


def ones(shape: int | Iterable[int], *, dtype: DTypeLike = None, device: str | None = None) -> Array:
    """An array of ones, of any shape, float64 unless told. Raises DTypeError for types outcore has no kernels for.

    No I/O.

    >>> import outcore as oc
    >>> oc.ones(3, dtype="int64").compute()
    array([1, 1, 1])
    """
    check_device(device)
    return Array(constant(shape_of(shape), 1, dtype_of(dtype or float)))


def empty(shape: int | Iterable[int], *, dtype: DTypeLike = None, device: str | None = None) -> Array:
    """The same as `zeros`, also in errors: a lazy array has no uninitialized memory to show. No I/O.

    >>> import outcore as oc
    >>> oc.empty(3).compute()
    array([0., 0., 0.])
    """
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Operand, /, fill_value: Scalar, *, dtype: DTypeLike = None, device: str | None = None) -> Array:
    """An array of one value with the shape and, unless told, the type of `x`. Errors as `full`.

    No I/O: only the shape of `x` is asked for.

    >>> import outcore as oc
    >>> oc.full_like(oc.asarray([1, 2, 3]), 9).compute()
    array([9, 9, 9])
    """
    like = asarray(x)
    return full(like.shape, fill_value, dtype=like.dtype if dtype is None else dtype, device=device)


def zeros_like(x: Operand, /, *, dtype: DTypeLike = None, device: str | None = None) -> Array:
    """Zeros with the shape and, unless told, the type of `x`. Errors as `zeros`.

    No I/O: only the shape of `x` is asked for.

    >>> import outcore as oc
    >>> oc.zeros_like(oc.asarray([1.5, 2.5])).compute()
    array([0., 0.])
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Operand, /, *, dtype: DTypeLike = None, device: str | None = None) -> Array:
    """Ones with the shape and, unless told, the type of `x`. Errors as `ones`.

    No I/O: only the shape of `x` is asked for.

    >>> import outcore as oc
    >>> oc.ones_like(oc.asarray([1.5, 2.5])).compute()
    array([1., 1.])
    """
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Operand, /, *, dtype: DTypeLike = None, device: str | None = None) -> Array:
    """The same as `zeros_like`, also in errors. No I/O.

    >>> import outcore as oc
    >>> oc.empty_like(oc.asarray([1, 2])).compute()
    array([0, 0])
    """
    return zeros_like(x, dtype=dtype, device=device)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: DTypeLike = None, device: str | None = None
) -> Array:
    """Evenly spaced values from `start` up to, not including, `stop`. int64 when all are integers, else float64.

    Shape: one axis. Raises ShapeError for a step of 0, DTypeError for bool and complex types. No I/O.

    >>> import outcore as oc
    >>> oc.arange(2, 10, 3).compute()
    array([2, 5, 8])
    """
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ShapeError("arange: the step cannot be 0")
    whole = all(isinstance(part, (int, np.integer)) for part in (start, stop, step))
    count = len(range(int(start), int(stop), int(step))) if whole else max(0, math.ceil((stop - start) / step))
    kind = dtype_of(dtype) if dtype is not None else np.dtype(np.int64 if whole else np.float64)
    if kind.kind in "bc":
        raise DTypeError(f"arange: no evenly spaced values of {kind}")
    number = int if whole else float
    return Array(_core.arange(number(start), number(step), count, kind.name))


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DTypeLike = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    """`num` evenly spaced values from `start` to `stop`, which is the last one unless `endpoint=False`. float64.

    Integer types get the values rounded down, as in NumPy. Shape: (num,). Raises DTypeError for complex bounds. No I/O.

    >>> import outcore as oc
    >>> oc.linspace(0.0, 1.0, 5).compute()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    check_device(device)
    if isinstance(start, complex) or isinstance(stop, complex):
        raise DTypeError("linspace: complex bounds are not supported")
    kind = dtype_of(dtype or float)
    made = kind.name if kind.kind == "f" else "float64"
    values = Array(_core.linspace(float(start), float(stop), shape_of(num)[0], endpoint, made))
    return (floor(values) if kind.kind in "iu" else values).astype(kind)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DTypeLike = None, device: str | None = None
) -> Array:
    """Ones on the k-th diagonal, zeros elsewhere; square and float64 unless told.

    Shape: (n_rows, n_cols). Raises ShapeError for lengths below 0. No I/O.

    >>> import outcore as oc
    >>> oc.eye(2, 3, k=1).compute()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    check_device(device)
    rows, columns = shape_of((n_rows, n_rows if n_cols is None else n_cols))
    return Array(_core.eye(rows, columns, operator.index(k), dtype_of(dtype or float).name))


def _diagonals(x: Array, k: int) -> Array:
    """Column number less row number less k, for the last two axes of `x`."""
    if x.ndim < 2:
        raise ShapeError(f"tril, triu: {x.shape} has no rows and columns")
    rows, columns = x.shape[-2:]
    return arange(columns) - arange(k, rows + k)[:, None]


def tril(x: Operand, /, *, k: int = 0) -> Array:
    """The last two axes with zeros above the k-th diagonal.

    Shape and type of `x`. Raises ShapeError where it has no two axes. I/O: one read of `x`, fused with what comes
    before and after.

    >>> import outcore as oc
    >>> oc.tril(oc.asarray([[1, 2], [3, 4]])).compute()
    array([[1, 0],
           [3, 4]])
    """
    array = asarray(x)
    return _kept(array, _diagonals(array, k) <= 0)


def triu(x: Operand, /, *, k: int = 0) -> Array:
    """The last two axes with zeros below the k-th diagonal.

    Shape and type of `x`. Raises ShapeError where it has no two axes. I/O: one read of `x`, fused with what comes
    before and after.

    >>> import outcore as oc
    >>> oc.triu(oc.asarray([[1, 2], [3, 4]])).compute()
    array([[1, 2],
           [0, 4]])
    """
    array = asarray(x)
    return _kept(array, _diagonals(array, k) >= 0)


def _kept(array: Array, mask: Array) -> Array:
    """The elements that a mask chooses, and zeros."""
    return Array(_core.where(mask._expr, array._expr, constant((), 0, array.dtype)))


def meshgrid(*arrays: Operand, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate matrices of 1-D arrays; `indexing` is "xy" (first two axes swapped) or "ij".

    One array for each, all of the shape that the lengths make, in its own type. Raises ShapeError for other indexing.
    No I/O of its own: they are views.

    >>> import outcore as oc
    >>> x, y = oc.meshgrid(oc.arange(3), oc.arange(2))
    >>> y.compute()
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    parts = [asarray(part) for part in arrays]
    places = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        places[:2] = 1, 0
    shaped = [
        reshape(part, tuple(-1 if axis == axis_of("meshgrid", place, len(parts)) else 1 for axis in range(len(parts))))
        for part, place in zip(parts, places, strict=True)
    ]
    return broadcast_arrays(*shaped)


__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]
