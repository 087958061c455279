"""Matrices made by rule: R-MAT graphs, stencils of three-dimensional grids, bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Literal, Unpack

import numpy as np
import numpy.typing as npt

from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType, NDArray, PathLike
from outcore._lazy.array import Array
from outcore._session.session import current
from outcore._standard.creation import arange
from outcore._standard.searching import where
from outcore.errors import ArgumentError
from outcore.sparse._convert import SIDE
from outcore.sparse._ingest import Options, Settings, stored
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._places import keys_of, order_of
from outcore.sparse._stream import File
from outcore.sparse._writer import Writer

# The quadrant of each level is drawn with 16 bits, four of them from each number.
_BITS, _EACH = 16, 4
# A row and a column of up to 32 bits stand in one number while they are made.
_LEVELS_MAX = 32
_ROW = np.uint64(1 << 32)


def _mixed(x: Array) -> Array:
    """Numbers that look random, of counted ones (SplitMix64: Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def rmat_edges(
    vertices: int, edges: int, a: float = 0.57, b: float = 0.19, c: float = 0.19, seed: int = 0
) -> tuple[Array, Array]:
    """The rows and columns of an R-MAT graph as lazy arrays, uint64. No I/O; errors as `rmat`.

    >>> import outcore as oc
    >>> rows, columns = oc.sparse.rmat_edges(1024, 5, seed=1)
    >>> rows.shape, int(columns.max()) < 1024
    ((5,), True)
    """
    levels = vertices.bit_length() - 1
    if vertices < 1 or vertices != 1 << levels or levels > _LEVELS_MAX:
        raise ArgumentError(f"rmat: {vertices} vertices; a power of two up to 2³² is right")
    if edges < 0 or min(a, b, c) < 0 or a + b + c > 1:
        raise ArgumentError(f"rmat: {edges} edges with a={a}, b={b}, c={c}; none is below 0, and the sum is at most 1")
    number = arange(edges, dtype=np.uint64)
    words = np.uint64(-(-levels // _EACH))
    # The key of a graph keeps the numbers of two seeds apart.
    with np.errstate(over="ignore"):
        key = np.uint64(seed & (2**64 - 1)) * np.uint64(0xD1342543DE82EF95) + np.uint64(0x9E3779B97F4A7C15)
    first, second, third = (np.uint64(round(cut * (1 << _BITS))) for cut in (a, a + b, a + b + c))
    packed, drawn = number * np.uint64(0), number
    for level in range(levels):
        if level % _EACH == 0:
            drawn = _mixed(_mixed(number * words + np.uint64(level // _EACH)) + key)
        u = (drawn >> np.uint64(_BITS * (level % _EACH))) & np.uint64((1 << _BITS) - 1)
        above = where(u < first, np.uint64(0), np.uint64(1))
        below = where(u < third, _ROW, _ROW | np.uint64(1))
        packed = (packed << np.uint64(1)) | where(u < second, above, below)
    return packed >> np.uint64(32), packed & np.uint64(2**32 - 1)


def rmat(
    vertices: int,
    edges: int,
    path: PathLike | None = None,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    seed: int = 0,
    **options: Unpack[Settings],
) -> SparseMatrix:
    """Stores an R-MAT graph: each edge descends through quadrants, chosen with probabilities a, b, c and the rest.

    An edge depends on its number and the seed only, so the graph is the same whatever the threads and the memory. The
    probabilities count in steps of 2⁻¹⁶. Edges that are drawn again are one entry. `path` and `options` are those of
    `from_entries`. Raises ArgumentError for a number of vertices that is no power of two, for probabilities that are
    none. I/O: as `from_entries`, without a read. Chakrabarti, Zhan, Faloutsos: R-MAT (SDM 2004).

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> oc.sparse.rmat(1024, 5000, path, seed=1).shape
    (1024, 1024)
    """
    entries = rmat_edges(vertices, edges, a, b, c, seed)
    return stored(entries, path, None, Options(**options, shape=(vertices, vertices)))


# Bytes of the temporary arrays for an entry while a band of rows is made.
_BAND_BYTES = 100
OfRows = Callable[[npt.NDArray[np.int64]], tuple[NDArray, NDArray]]


def _write_bands(
    path: PathLike | None, length: int, width: int, dtype: DTypeLike, side: int, overwrite: bool, of_rows: OfRows
) -> SparseMatrix:
    """Stores a square matrix of which `of_rows(rows)` gives columns and values: up to `width` of each for a row, with
    columns outside the matrix for those that are not there.

    Tile rows are sorted in memory, one after the other, where the limit allows; else all entries are on disk.
    """
    kind, shape = dtype_of(dtype), (length, length)
    fitting = current().counters()["budget_bytes"] // (_BAND_BYTES * width)
    if fitting < min(side, length):
        options = Options(shape=shape, duplicates="refuse", side=side, overwrite=overwrite)
        return stored(_bands(length, max(fitting, 1), kind, of_rows), path, None, options)
    file = File(path)
    with Writer(file.path, shape, kind, side, "refuse", overwrite) as writer:
        for rows, columns, values in _bands(length, side, kind, of_rows):
            keys = keys_of(rows, columns, shape, side)
            order = order_of(keys)
            writer.add(tuple(key[order] for key in keys), values[order])
        writer.finish()
    made: SparseMatrix = file.opened()
    return made


def _bands(length: int, height: int, kind: DType, of_rows: OfRows) -> Iterator[tuple[NDArray, ...]]:
    """The entries of so many rows after the other."""
    for begin in range(0, length, height):
        rows = np.arange(begin, min(begin + height, length), dtype=np.int64)
        columns, values = of_rows(rows)
        inside = (columns >= 0) & (columns < length)
        every = np.broadcast_to(rows[:, None], columns.shape)
        yield every[inside], columns[inside], np.broadcast_to(values.astype(kind), columns.shape)[inside]


def grid3d(
    n: int,
    path: PathLike | None = None,
    *,
    points: Literal[7, 27] = 27,
    center: float | None = None,
    neighbour: float = -1.0,
    dtype: DTypeLike = np.float64,
    side: int = SIDE,
    overwrite: bool = False,
) -> SparseMatrix:
    """Stores the stencil of a grid of n × n × n points: each has an entry for itself and for its 6 or 26 neighbours.

    The point (x, y, z) is row x n² + y n + z. `center` is the value on the diagonal: `points` - 1 unless given;
    neighbours beyond the faces have no entry. `path` is that of `from_entries`. Raises ArgumentError for other
    stencils.

    I/O: one write; as `from_entries` of an iterator where a tile row in the making does not fit into memory.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> oc.sparse.grid3d(3, path, points=7).sum(axis=1).compute().reshape(3, 3, 3)[1]
    array([[2., 1., 2.],
           [1., 0., 1.],
           [2., 1., 2.]])
    """
    if points not in (7, 27) or n < 1:
        raise ArgumentError(f"grid3d: {points} points on a grid of {n}³; 7 or 27 are, on at least one")
    steps = np.asarray([step for step in product((-1, 0, 1), repeat=3) if points == 27 or np.abs(step).sum() <= 1])
    values = np.where((steps == 0).all(axis=1), points - 1 if center is None else center, neighbour)

    def of_rows(rows: npt.NDArray[np.int64]) -> tuple[NDArray, NDArray]:
        places = np.stack([rows // (n * n), rows // n % n, rows % n])[:, :, None] + steps.T[:, None, :]
        outside = ((places < 0) | (places >= n)).any(axis=0)
        return np.where(outside, -1, (places[0] * n + places[1]) * n + places[2]), values

    return _write_bands(path, n**3, points, dtype, side, overwrite, of_rows)


def banded(
    n: int,
    diagonals: Mapping[int, float],
    path: PathLike | None = None,
    *,
    dtype: DTypeLike = np.float64,
    side: int = SIDE,
    overwrite: bool = False,
) -> SparseMatrix:
    """Stores an n × n matrix with one value on each of some diagonals: those above the main one have offsets above 0.

    `path` is that of `from_entries`. Raises ArgumentError where there are no diagonals. I/O: as `grid3d`.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> oc.sparse.banded(3, {-1: 1.0, 0: 2.0}, path).to_scipy().toarray()
    array([[2., 0., 0.],
           [1., 2., 0.],
           [0., 1., 2.]])
    """
    if not diagonals or n < 0:
        raise ArgumentError(f"banded: {len(diagonals)} diagonals of a matrix of {n} rows; at least one is right")
    offsets = np.asarray(sorted(diagonals), dtype=np.int64)
    values = np.asarray([diagonals[int(offset)] for offset in offsets])

    def of_rows(rows: npt.NDArray[np.int64]) -> tuple[NDArray, NDArray]:
        return rows[:, None] + offsets, values

    return _write_bands(path, n, len(offsets), dtype, side, overwrite, of_rows)


__all__ = ["banded", "grid3d", "rmat", "rmat_edges"]
