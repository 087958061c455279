"""Where matrices have entries, and how many neighbours vertices have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from outcore._base.types import NDArray
from outcore._lazy.node import Operand
from outcore._run.run import compute
from outcore._standard.statistical import counted
from outcore.errors import DTypeError, ShapeError
from outcore.graph._graph import Graph
from outcore.show._blocks import blocks
from outcore.show._drawing import Canvas, CellDrawing, DegreeDrawing, Drawing, check_axes, shown
from outcore.show._images import Size, block_lengths, edges_of, matrix_of, titles_of
from outcore.sparse._directory import tile_entries
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._stream import columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (800, 600)


def spy(A: SparseMatrix | Operand, size: Size | None = None, *, ax: Canvas = None) -> Axes | Drawing:
    """Where a matrix has entries: how many there are in each cell of a grid over its rows and columns.

    Of a `SparseMatrix` a cell is a tile (of 16,384 rows and columns unless the file says otherwise), or some of them
    where there are more than 800 × 600, and their entries come from the directory of the file: no entry is read. With
    `size` (width, height) cells are as of `image`, and each entry is read once. Entries that are 0 count. Of an array
    cells have the elements that are not 0, NaN among them, and `size` is (800, 600) unless given.

    Draws on `ax` and returns it, or a `CellDrawing` with counts (int64): see `outcore.show`. Raises ShapeError for what
    has not 2 axes, or no elements, DTypeError for dates and text, ArgumentError for a size below 1, and without `size`
    for a sparse matrix that is not stored in tiles. I/O: of a sparse matrix the directory and a page or so for each
    tile row, with `size` one read of the entries; of an array one read. A sparse matrix that is not made yet is made.

    >>> import outcore as oc
    >>> A = oc.sparse.from_coo([0, 1, 2, 2], [0, 1, 0, 3], [1.0, 2.0, 3.0, 4.0], (3, 4))
    >>> oc.show.spy(A, ax=False).cells
    array([[4]])
    >>> oc.show.spy(A, (2, 3), ax=False).cells
    array([[1, 0],
           [1, 0],
           [1, 1]])
    """
    check_axes("spy", ax)
    if not isinstance(A, SparseMatrix):
        return shown(_dense(A, _SIZE if size is None else size), ax)
    rows, columns = A.shape
    if not (rows and columns):
        raise ShapeError(f"show.spy: a sparse matrix of shape {A.shape} has no elements")
    lengths = block_lengths("spy", A.shape, _SIZE if size is None else size)
    notes: tuple[str, ...]
    if size is None:
        side = A._content.side
        tiles = (rows + side - 1) // side, (columns + side - 1) // side
        tall, wide = block_lengths("spy", tiles, _SIZE)
        lengths = tall * side, wide * side
        at = tile_entries(A)
        cells = np.zeros(_grid(A.shape, lengths), np.int64)
        np.add.at(cells, (at.tile_rows // tall, at.tile_columns // wide), at.entries)
        each = "a tile" if (tall, wide) == (1, 1) else f"{tall:,} × {wide:,} tiles"
        notes = (
            f"a cell is {each} of {side:,} × {side:,}, and no entry was read",
            "size=(width, height) reads the entries, for other cells",
        )
    else:
        cells = _counted(A, lengths)
        notes = (f"a cell is {lengths[0]:,} × {lengths[1]:,}",)
    title = f"{A.path.name if A._is_lasting else 'sparse matrix'}: {rows:,} × {columns:,}, {int(cells.sum()):,} entries"
    return shown(_spied(title, notes, cells, A.shape, lengths, ("column", "row")), ax)


def _grid(shape: tuple[int, ...], lengths: tuple[int, int]) -> tuple[int, int]:
    rows, columns = (-(-length // block) for length, block in zip(shape, lengths, strict=True))
    return rows, columns


def _counted(A: SparseMatrix, lengths: tuple[int, int]) -> NDArray:
    """The entries of each cell, by one read of them."""
    grid = _grid(A.shape, lengths)
    rows, columns, _ = columns_of(A)
    place = rows // lengths[0] * grid[1] + columns // lengths[1]
    return compute(counted(place, None, grid[0] * grid[1])).reshape(grid)


def _dense(x: Operand, size: Size) -> Drawing:
    array = matrix_of("spy", x)
    rows, columns = array.shape
    lengths = block_lengths("spy", array.shape, size)
    cells = blocks((array != 0).astype(np.uint8), lengths, "sum", np.int64)
    title = f"{array.name or 'array'}: {rows:,} × {columns:,} {array.dtype}, {int(cells.sum()):,} not 0"
    notes = (f"a cell is {lengths[0]:,} × {lengths[1]:,}",)
    return _spied(title, notes, cells, array.shape, lengths, titles_of(array))


def _spied(
    title: str,
    notes: tuple[str, ...],
    cells: NDArray,
    shape: tuple[int, ...],
    lengths: tuple[int, int],
    titles: tuple[str, str],
) -> Drawing:
    y_edges, x_edges = (edges_of(length, block) for length, block in zip(shape, lengths, strict=True))
    return CellDrawing(title, notes, cells, x_edges, y_edges, *titles, True, True, "mean")


def degrees(G: Graph, direction: Literal["out", "in", "both"] = "both", *, ax: Canvas = None) -> Axes | Drawing:
    """How many vertices of a graph have no neighbour, 1, 2 to 3, 4 to 7 and so on, both axes by logarithm.

    Neighbours are those that edges lead to ("out"), come from ("in"), or "both" added up; a loop of an undirected graph
    counts once. Draws on `ax` and returns it, or a `DegreeDrawing`: see `outcore.show`. Raises DTypeError for what is
    no graph of outcore, ArgumentError for another direction, ShapeError for a graph without vertices, MemoryLimitError.
    I/O: one read of the degrees, about a byte for each vertex and direction, no list. Memory: 8 bytes for each vertex,
    16 for both directions of a directed graph.

    >>> import outcore as oc
    >>> G = oc.graph.from_arrays([0, 0, 0, 1], [1, 2, 3, 2], directed=False)
    >>> for line in repr(oc.show.degrees(G, ax=False)).splitlines()[1:]:
    ...     print(line)
      0  0
      1  1  ████████████████████
    2-3  3  ████████████████████████████████████████
    2 in the mean; bars by logarithm
    """
    check_axes("degrees", ax)
    if not isinstance(G, Graph):
        kind = type(G).__name__
        raise DTypeError(f"show.degrees: draws an outcore.graph.Graph, not {kind}; oc.graph.open and from_… make one")
    if not G.number_of_vertices:
        raise ShapeError("show.degrees: a graph of 0 vertices has no degrees")
    numbers = G.degrees(direction)
    counts = np.asarray(G.degree_counts(direction), dtype=np.int64)
    edges = np.append(0, 1 << np.arange(len(counts)))
    by = {"out": "neighbours that edges lead to", "in": "neighbours that edges come from", "both": "neighbours"}
    title = f"{G.path.name}: {len(numbers):,} vertices, up to {int(numbers.max()):,} neighbours"
    note = f"{float(numbers.mean()):.6g} in the mean; bars by logarithm"
    return shown(DegreeDrawing(title, (note,), counts, edges, by[direction], "vertices"), ax)


__all__ = ["degrees", "spy"]
