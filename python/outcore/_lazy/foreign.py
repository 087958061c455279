"""Arrays that lie in files or belong to other libraries: which file holds them, else how their blocks are read.

Nothing here loads an array. An array that is mapped from a file, or stored by zarr-python in a folder, becomes a source
of that path; an array that only its own library can read is read one block at a time while a program runs.
"""

from __future__ import annotations

import mmap
import operator
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outcore import _core
from outcore._base.element_types import dtype_of
from outcore._base.sizes import format_size
from outcore._base.types import DType, NDArray
from outcore._lazy.hooks import above
from outcore._session.session import current
from outcore.errors import DTypeError, FormatError, MemoryLimitError, PlanError, ShapeError

_IN_MEMORY = ("__array_interface__", "__array_struct__", "__dlpack__", "iloc")  # the last: pandas
_READING = threading.local()  # whether the thread is in a read of another library
_MEMORY_FILES = ("/dev/shm/", "/memfd:", "/dev/zero", "/SYSV")


def _session() -> _core.Session:
    """The session in use, whose I/O opens files."""
    return current()._core


def check_room(what: str, size: int, instead: str) -> None:
    """Refuses to bring `size` bytes into memory where the session in use has no room for them."""
    session = current()
    room = session.counters()["budget_bytes"]
    if size > room:
        raise MemoryLimitError(
            f"{what}: {size} bytes ({format_size(size)}) would be loaded into memory, and the limit of "
            f"{format_size(session.options['memory_limit'])} leaves {room}; {instead}",
            {"operator": what, "need": size, "limit": room},
        )


# -- mapped files -----------------------------------------------------------------------------------------------------


def mapped(array: NDArray, dtype: DType) -> _core.Expr | None:
    """The source of a NumPy array whose bytes are a mapping of a file (`np.memmap`, `np.load(mmap_mode=)`, a view of
    either, `np.frombuffer` of a mapping); None for arrays in memory. `dtype` is the array's, in native byte order.

    A slice of a mapped array is that slice of the file's source. A view that cannot be read from the file (a private
    mapping, which may have been written to, a file that is gone, a view whose elements lie across those of the file)
    stays borrowed; raises MemoryLimitError where all of it could not be resident.
    """
    root = _mapping(array)
    if root is None or array.size == 0:
        return None
    repeated = [not stride and length > 1 for stride, length in zip(array.strides, array.shape, strict=True)]
    if any(repeated):
        # The one element of each axis that repeats it without taking room, broadcast.
        inner = mapped(array[tuple(slice(0, 1) if again else slice(None) for again in repeated)], dtype)
        return None if inner is None else _core.broadcast_to(inner, array.shape)
    low, high = _byte_bounds(root)
    place = _file_range(low, high)
    if place is None:
        return None
    path, start = place
    if path:
        made = _slices_of(array, root, path, start, dtype) or _contiguous(array, path, start - low, dtype)
        if made is not None:
            return made
    check_room("asarray of a mapped file", array.nbytes, "store it with numpy.save and open the file with outcore.open")
    return None


def _mapping(array: NDArray) -> NDArray | None:
    """The array nearest to the mapping that `array` is a view of, if it is one."""
    root, base = array, array.base
    while isinstance(base, np.ndarray):
        root, base = base, base.base
    if isinstance(base, memoryview):
        base = base.obj
    return root if isinstance(base, mmap.mmap) else None


def _address(array: NDArray) -> int:
    return int(array.__array_interface__["data"][0])


def _byte_bounds(array: NDArray) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def _file_range(low: int, high: int) -> tuple[str, int] | None:
    """The file that is mapped at these addresses and the position of the first in it; None where that is memory.

    No path is given for a file that does not have what the addresses show: changes to a private mapping are not in it,
    and a file that was removed or replaced cannot be opened.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            # A process has a thousand mappings, so little is done for those that it is not.
            span = line[: line.index(" ")]
            begin, end = span.split("-")
            if int(end, 16) < high or int(begin, 16) > low:
                continue
            rights, offset, _, inode, *names = line[len(span) :].rstrip("\n").split(maxsplit=4)
            path = names[0].replace("\\012", "\n") if names else ""
            if not path.startswith("/") or path.startswith(_MEMORY_FILES):
                return None
            try:
                same = rights[3] == "s" and os.stat(path).st_ino == int(inode)
            except OSError:
                same = False
            return (path if same else "", int(offset, 16) + low - int(begin, 16))
    return "", 0


def _raw(path: str, start: int, shape: Sequence[int], dtype: DType, swapped: bool) -> _core.Expr | None:
    try:
        return _core.open_raw(_session(), path, start, list(shape), dtype.name, swapped)
    except FormatError:
        return None  # the mapping reaches past the end of the file


def _slices_of(array: NDArray, root: NDArray, path: str, start: int, dtype: DType) -> _core.Expr | None:
    """`array` as integers and slices of `root`, which lies in the file from `start` on, in C or Fortran order."""
    if not root.flags.c_contiguous:
        if not root.flags.f_contiguous:
            return None
        made = _slices_of(array.T, root.T, path, start, dtype)
        return None if made is None else _core.permute_dims(made, list(reversed(range(array.ndim))))
    item = array.itemsize
    pieces, remainder = divmod(root.itemsize, item)  # a field of records, or a view as a narrower type
    position, odd = divmod(_address(array) - _address(root), item)
    if remainder or odd or not pieces:
        return None
    shape = (*root.shape, pieces) if pieces > 1 else root.shape
    strides = [item] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    starts = [int(place) for place in np.unravel_index(position, shape)] if shape else []
    steps, counts = [1] * len(shape), [1] * len(shape)
    order: list[int] = []  # the axis of the file that each longer axis of the array runs along
    long = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
    for axis in long:
        stride, last = array.strides[axis], array.shape[axis] - 1
        for place, unit in enumerate(strides):
            step, across = divmod(stride, unit)
            if place not in order and not across and step and 0 <= starts[place] + step * last < shape[place]:
                steps[place], counts[place] = step, last + 1
                order.append(place)
                break
        else:
            return None
    made = _raw(path, start, shape, dtype, not array.dtype.isnative)
    if made is None:
        return None
    if counts != list(shape) or any(step != 1 for step in steps):
        made = _core.slice(made, starts, steps, counts)
    dropped = [place for place in range(len(shape)) if place not in order]
    made = _core.squeeze(made, dropped) if dropped else made
    ranks = [sorted(order).index(place) for place in order]
    made = _core.permute_dims(made, ranks) if ranks != sorted(ranks) else made
    added = [axis for axis in range(array.ndim) if axis not in long]
    return _core.expand_dims(made, added) if added else made


def _contiguous(array: NDArray, path: str, shift: int, dtype: DType) -> _core.Expr | None:
    """An array without gaps, wherever it lies in the file: `shift` takes addresses to positions."""
    swapped = not array.dtype.isnative
    if array.flags.c_contiguous:
        return _raw(path, _address(array) + shift, array.shape, dtype, swapped)
    if array.flags.f_contiguous:
        made = _raw(path, _address(array) + shift, array.shape[::-1], dtype, swapped)
        return None if made is None else _core.permute_dims(made, list(reversed(range(array.ndim))))
    return None


# -- other libraries' arrays ------------------------------------------------------------------------------------------


def stored(value: object) -> _core.Expr | None:
    """The source of another library's array that is not in memory; None for everything else.

    An array of zarr-python in a folder, and one of h5py in a file that is open to be read, are opened there. Others
    with a shape, a NumPy type and basic indexing (xarray, Dask, netCDF4, Zarr in other stores, codecs and filters that
    outcore does not read) are read in blocks.
    """
    kind = _stored_type(value)
    if kind is None:
        return None
    return lying(value, kind) or _lazy_within(value) or _in_blocks(value, kind)


def _lazy_within(value: Any) -> _core.Expr | None:
    """The node of an array of xarray's that holds a lazy array of ours; None for others."""
    if type(value).__module__.partition(".")[0] != "xarray":
        return None
    data: Any = getattr(getattr(value, "variable", value), "_data", None)
    inner = data
    while hasattr(inner, "array") and not isinstance(getattr(inner, "_expr", None), _core.Expr):
        inner = inner.array
    if type(inner).__module__.partition(".")[0] != "outcore":
        return None
    made: _core.Expr | None = getattr(above.lazy_of_xarray(data), "_expr", None)
    return made


def check_not_reading() -> None:
    """Raises PlanError in a read of another library, which a computation would wait for and hold up."""
    if getattr(_READING, "is_on", False):
        raise PlanError("a computation was started inside a running one, by an array that is read in blocks")


def lying(value: object, kind: DType) -> _core.Expr | None:
    """The source of an array of zarr-python or h5py by its path; None where it is no file's that outcore reads."""
    path = _zarr_folder(value) or _hdf5_member(value)
    if path is None:
        return None
    try:
        made = _core.open(_session(), str(path))
    except FormatError:
        return None  # what their library reads and we do not
    return made if (made.shape, made.dtype) == (value.shape, dtype_of(kind).name) else None  # type: ignore[attr-defined]


def stored_dates(value: object) -> _core.Expr | None:
    """The integers of another library's array of dates that is not in memory; None for everything else."""
    kind = _stored_type(value)
    if kind is None or kind.kind not in "mM":
        return None
    return _in_blocks(value, np.dtype(np.int64))


def is_stored(value: object) -> bool:
    """Whether `stored` has a source for the value."""
    return _stored_type(value) is not None


def _stored_type(value: Any) -> DType | None:
    if isinstance(value, (np.ndarray, np.generic, list, tuple)) or not hasattr(type(value), "__getitem__"):
        return None
    if isinstance(getattr(value, "_core", None), _core.Sparse):
        raise DTypeError(f"{value!r} is no dense array; use its methods and A @ x, or A.toarray() where it is small")
    if not all(hasattr(value, name) for name in ("shape", "dtype", "__array__")):
        return None
    if any(hasattr(value, name) for name in _IN_MEMORY):
        return None
    try:
        kind: DType = np.dtype(value.dtype)
    except TypeError:
        return None
    return _unpacked_type(value, kind)


def _unpacked_type(value: Any, stored_kind: DType) -> DType:
    """The type that blocks of the array have: a variable of netCDF4 names the stored type, and hands numbers over that
    `scale_factor` and `add_offset` are applied to."""
    is_netcdf4 = type(value).__module__.partition(".")[0] == "netCDF4"
    if not is_netcdf4 or not getattr(value, "scale", False) or stored_kind.kind not in "iuf":
        return stored_kind
    if not {"scale_factor", "add_offset", "_Unsigned"} & set(value.ncattrs()):
        return stored_kind
    kind: DType = value[(slice(0, 1),) * len(value.shape) or ...].dtype
    return kind


def _zarr_folder(value: Any) -> Path | None:
    """Where an array of zarr-python lies, if that is a folder."""
    if type(value).__module__.partition(".")[0] != "zarr":
        return None
    place: Any = getattr(value, "store_path", None)
    store: Any = getattr(place, "store", None)
    return Path(store.root, place.path) if type(store).__name__ == "LocalStore" else None


def _hdf5_member(value: Any) -> str | None:
    """The path of a dataset of h5py, if its file is one that is open to be read, and not another by the same name."""
    if type(value).__module__.partition(".")[0] != "h5py" or not getattr(value, "name", None):
        return None
    file = value.file
    if file.mode != "r" or file.driver != "sec2" or not isinstance(file.filename, str):
        return None
    try:
        is_same = os.path.samestat(os.stat(file.filename), os.fstat(file.id.get_vfd_handle()))
    except OSError:
        return None
    return os.path.abspath(file.filename) + value.name if is_same else None


def _in_blocks(value: Any, kind: DType) -> _core.Expr:
    dtype = dtype_of(kind)
    label = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    name = getattr(value, "name", None)
    label = f"{label} {name}" if isinstance(name, str) and name else label
    try:
        shape = tuple(operator.index(length) for length in value.shape)
    except TypeError:
        raise ShapeError(f"asarray: {label} has the shape {value.shape}, and lengths must be known") from None
    return _core.from_blocks(_reader(value, label, dtype), shape, dtype.name, _chunk_shape(value, shape), label)


def _reader(value: Any, label: str, dtype: DType) -> Callable[[tuple[slice, ...]], NDArray]:
    def read(block: tuple[slice, ...]) -> NDArray:
        _READING.is_on = True
        try:
            return checked(value[block], block)
        finally:
            _READING.is_on = False

    def checked(part: Any, block: tuple[slice, ...]) -> NDArray:
        if isinstance(part, np.ma.MaskedArray):
            if np.ma.is_masked(part):
                raise DTypeError(
                    f"{label}: masked elements in {block}; outcore has no masks: fill them first, or open the "
                    f"file with outcore.open, which has NaN for them"
                )
            part = part.data
        array = np.asarray(part)
        if array.dtype.kind in "mM":
            return array.astype(array.dtype.newbyteorder("="), copy=False).view(np.int64)
        if not np.can_cast(array.dtype, dtype, "safe"):
            raise DTypeError(f"{label}: a block of {array.dtype} in an array of {dtype}")
        return array

    return read


def _chunk_shape(value: object, shape: tuple[int, ...]) -> list[int] | None:
    """How the library cuts the array, if it says so: `chunks` is a shape, or the lengths along each axis."""
    chunks = getattr(value, "chunks", None)
    if not isinstance(chunks, (tuple, list)) or len(chunks) != len(shape) or not shape:
        return None
    lengths = [max(part, default=1) if isinstance(part, (tuple, list)) else part for part in chunks]
    return [max(1, int(length)) for length in lengths]


__all__ = ["check_not_reading", "check_room", "is_stored", "lying", "mapped", "stored", "stored_dates"]
