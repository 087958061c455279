"""TIFF, BigTIFF and OME-TIFF: tifffile says where strips and tiles lie, and outcore reads and decodes them.

After TIFF 6.0, sections 13 (LZW), 14 (differences) and 15 (tiles); axes are those of tifffile's series.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore import _core
from outcore._base.element_types import dtype_of
from outcore._base.files import refuse_stub
from outcore._base.system_errors import refusing
from outcore._lazy.array import Array
from outcore._opening.chunk_lists import ChunkList, ChunkRows, listed
from outcore._opening.group import Group
from outcore._opening.places import FilePlace, file_place, head_of
from outcore._session.session import current, leave_room
from outcore.errors import DTypeError, FormatError, OutcoreError, UnsupportedFormatError

if TYPE_CHECKING:
    import tifffile

_MAGIC = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
# Memory that tifffile takes when it is loaded.
_LOADED_BYTES = 24 << 20
_CODECS: dict[int, tuple[str, ...]] = {
    1: (),
    5: ("imagecodecs_lzw",),
    8: ("numcodecs.zlib",),
    32946: ("numcodecs.zlib",),
    34926: ("zstd",),
    50000: ("zstd",),
    50013: ("numcodecs.zlib",),
}
_NO_PREDICTOR, _DIFFERENCES = 1, 2


class _Layout(NamedTuple):
    """How all pages of a series are cut: lengths of axes, and of chunks along them."""

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    per_page: int
    row: int  # elements whose differences go on from one to the next
    samples: int


def tiff_place(name: str) -> FilePlace | None:
    """Where a path leads to in a TIFF file, by first bytes; None for other paths."""
    place = file_place(name)
    return place if place is not None and head_of(place.path, 4) in _MAGIC else None


def open_tiff(place: FilePlace) -> Array | Group:
    """The series of a file, or the group of all of them where there are several; "0/1" is level 1 of series 0.

    Raises FormatError for a damaged file, UnsupportedFormatError for compression that is not read, by name, ImportError
    without tifffile. I/O: directories of pages, by tifffile.
    """
    path, member = place
    refuse_stub(path, "open")
    with _reading(path) as file:
        series = file.series
        if not series:
            raise FormatError(f"{path}: a TIFF file without images", {"path": path})
        if not member and len(series) > 1:
            names = {str(number): False for number in range(len(series))}
            return Group(path, {}, names, lambda name: open_tiff(FilePlace(path, name)))
        number, _, level = (member or "0").partition("/")
        if not _is_below(number, len(series)) or not _is_below(level or "0", len(series[int(number)].levels)):
            shown = ", ".join(f"{at} ({one.axes} {one.shape})" for at, one in enumerate(series[:12]))
            raise FormatError(f"{path}: no series {member!r}; the series are {shown}", {"path": path})
        return _of_series(place, series[int(number)].levels[int(level or 0)])


def _is_below(number: str, count: int) -> bool:
    return number.isascii() and number.isdigit() and int(number) < count


@contextmanager
def _reading(path: str) -> Iterator[tifffile.TiffFile]:
    """A file as tifffile has it. Any failure over damaged bytes is a FormatError."""
    leave_room(_LOADED_BYTES, unless="tifffile")
    try:
        import tifffile
    except ImportError:
        raise ImportError(f"{path}: TIFF files need tifffile: pip install outcore[tiff]") from None
    try:
        with refusing(path, "open"), tifffile.TiffFile(path) as file:
            yield file
    except (OutcoreError, ImportError, MemoryError):
        raise
    except Exception as error:  # of any kind, where bytes are no directory
        raise FormatError(f"{path}: cannot be read: {type(error).__name__}: {error}", {"path": path}) from None


def _of_series(place: FilePlace, series: tifffile.TiffPageSeries) -> Array:
    dtype = _dtype(place.path, series)
    start = None if series.is_multifile else series.dataoffset
    if start is not None:
        name = dtype_of(dtype).name
        shape = list(series.shape)
        made = Array(_core.open_raw(current()._core, place.path, start, shape, name, not dtype.isnative))
    else:
        layout = _layout(place.path, series)
        made = _with_axes(listed(place, _chunks(place.path, series, layout, dtype)), tuple(series.shape))
    axes = series.axes
    if len(axes) != made.ndim:
        return made
    return made.annotate(dims=[axis if axis != "Q" and axes.count(axis) == 1 else None for axis in axes])


def _dtype(path: str, series: tifffile.TiffPageSeries) -> np.dtype[Any]:
    """The type of elements, in the byte order of the file. Raises UnsupportedFormatError for what is not read."""
    page = series.keyframe

    def refused(what: str) -> UnsupportedFormatError:
        return UnsupportedFormatError(f"{path}: {what}, which outcore does not read", {"path": path})

    if page.compression not in _CODECS:
        name = getattr(page.compression, "name", str(page.compression))
        raise refused(f"compression {name} ({int(page.compression)})")
    if page.predictor not in (_NO_PREDICTOR, _DIFFERENCES):
        raise refused(f"predictor {getattr(page.predictor, 'name', page.predictor)} ({int(page.predictor)})")
    if page.dtype is None or series.transform is not None or page.bitspersample != 8 * page.dtype.itemsize:
        raise refused(f"samples of {page.bitspersample} bits, of sample format {int(page.sampleformat)}")
    if page.fillorder != 1:
        raise refused("bits of bytes in reversed order (FillOrder 2)")
    if page.is_subsampled:
        raise refused("colours at fewer places than brightness (YCbCrSubSampling)")
    dtype = np.dtype(page.dtype).newbyteorder(page.parent.byteorder)
    try:
        dtype_of(dtype)
    except DTypeError:
        raise refused(f"elements of {dtype}") from None
    if page.predictor == _DIFFERENCES and dtype.kind not in "iu":
        raise refused(f"differences (predictor 2) of {dtype}")
    return dtype


def _layout(path: str, series: tifffile.TiffPageSeries) -> _Layout:
    """Axes of the series, and how its pages are cut along those; page axes of length 1 are left out where chunks are
    no longer.
    """
    page, shape = series.keyframe, tuple(series.shape)
    lengths = tuple(page.shaped)
    length, width, inner = lengths[2:]
    if page.is_tiled:
        chunk = (1, max(page.tiledepth, 1), page.tilelength, page.tilewidth, inner)
    else:
        chunk = (1, 1, min(page.rowsperstrip, length), width, inner)
    elements = math.prod(lengths)
    behind = next((at for at in range(len(shape), -1, -1) if math.prod(shape[at:]) == elements), 0)
    if min(*lengths, *chunk) < 1 or _longer(shape[behind:]) != _longer(lengths):
        raise UnsupportedFormatError(f"{path}: a series of shape {shape} of pages {page.shape}", {"path": path})
    kept = [axis for axis in range(len(lengths)) if max(lengths[axis], chunk[axis]) > 1]
    stack = shape[:behind]
    return _Layout(
        shape=(*stack, *(lengths[axis] for axis in kept)),
        chunk=(*(1 for _ in stack), *(chunk[axis] for axis in kept)),
        per_page=math.prod(-(-of // by) for of, by in zip(lengths, chunk, strict=True)),
        row=chunk[3] * inner,
        samples=inner,
    )


def _longer(shape: tuple[int, ...]) -> list[int]:
    return [length for length in shape if length > 1]


def _with_axes(array: Array, shape: tuple[int, ...]) -> Array:
    """The same array with the axes of length 1 that a shape has."""
    if array.shape == shape:
        return array
    ones = [axis for axis, length in enumerate(array.shape) if length == 1]
    missing = [axis for axis, length in enumerate(shape) if length == 1]
    return Array(_core.expand_dims(_core.squeeze(array._expr, ones), missing))


def _chunks(path: str, series: tifffile.TiffPageSeries, layout: _Layout, dtype: np.dtype[Any]) -> ChunkList:
    page = series.keyframe
    codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "big" if dtype.byteorder == ">" else "little"}}]
    if page.predictor == _DIFFERENCES:
        numbers = {"row": layout.row, "distance": layout.samples}
        codecs.append({"name": "outcore.differences", "configuration": numbers})
    codecs += [{"name": name, "configuration": {}} for name in _CODECS[page.compression]]
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": layout.shape,
        "data_type": dtype_of(dtype).name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": layout.chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": [0.0, 0.0] if dtype.kind == "c" else 0,
        "codecs": codecs,
    }
    pages = math.prod(layout.shape) // math.prod(page.shaped)
    if len(series) != pages:
        raise FormatError(f"{path}: {len(series)} pages of {pages} that shape {series.shape} has", {"path": path})
    files: dict[str, int] = {}
    parts: list[ChunkRows] = []
    for number, one in enumerate(series):
        if one is None:  # a file of the series that is not there
            continue
        file = files.setdefault(os.fspath(one.parent.filehandle.path), len(files))
        parts.append(_rows(path, one, number * layout.per_page, layout.per_page, file))
    rows = np.concatenate(parts) if parts else np.zeros((0, 5), np.uint64)
    return ChunkList(document, list(files), rows, cut=not page.is_tiled)


def _rows(path: str, page: tifffile.TiffPage | tifffile.TiffFrame, first: int, count: int, file: int) -> ChunkRows:
    """Strips or tiles of a page; those of no bytes hold zeros."""
    offsets, lengths = (np.array(of, np.uint64) for of in (page.dataoffsets, page.databytecounts))
    if len(offsets) != count or len(lengths) != count:
        reason = f"page {page.index} has {len(offsets)} offsets and {len(lengths)} lengths for {count} chunks"
        raise FormatError(f"{path}: {reason}", {"path": path})
    rows = np.zeros((count, 5), np.uint64)
    rows[:, 0], rows[:, 1] = np.arange(first, first + count, dtype=np.uint64), file
    rows[:, 2], rows[:, 3] = offsets, lengths
    return rows[(offsets > 0) & (lengths > 0)]


__all__ = ["open_tiff", "tiff_place"]
