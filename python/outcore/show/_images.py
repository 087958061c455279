"""Matrices as images: exact means and extremes of blocks."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal, SupportsIndex

import numpy as np

from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.typed import Typed
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.show._blocks import blocks
from outcore.show._drawing import Canvas, CellDrawing, Drawing, check_axes, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Size = SupportsIndex | tuple[SupportsIndex, SupportsIndex]

_SIDE_MAX = 4096


def matrix_of(name: str, x: Operand) -> Array:
    """The matrix to draw. Raises ShapeError and DTypeError."""
    if isinstance(x, Typed):
        raise DTypeError(f"show.{name}: elements of {x.dtype} are no numbers, which shades stand for")
    array = Array(node(x))
    if array.ndim != 2:
        hint = "; choose one: x[0], x[..., 0]" if array.ndim > 2 else ""
        raise ShapeError(f"show.{name}: draws arrays of 2 axes, and shape {array.shape} has {array.ndim}{hint}")
    if not all(array.shape):
        raise ShapeError(f"show.{name}: an array of shape {array.shape} has no elements")
    return array


def block_lengths(name: str, shape: tuple[int, ...], size: Size) -> tuple[int, int]:
    """Rows and columns of the blocks of which no more than `size`, (width, height), make the shape."""
    sides = size if isinstance(size, tuple) else (size, size)
    try:
        width, height = (operator.index(side) for side in sides)
    except (TypeError, ValueError):
        raise ArgumentError(f"show.{name}: size={size!r}; it is (width, height), or a number for both") from None
    if not (1 <= width <= _SIDE_MAX and 1 <= height <= _SIDE_MAX):
        raise ArgumentError(f"show.{name}: size={size!r}; sides are from 1 to {_SIDE_MAX} cells")
    return -(-shape[0] // height), -(-shape[1] // width)


def edges_of(length: int, block: int) -> NDArray:
    """Where blocks along an axis begin, and the end of the last."""
    return np.append(np.arange(0, length, block), length)


def titles_of(x: Array) -> tuple[str, str]:
    """Titles of the axes of a matrix: along its columns, and along its rows."""
    rows, columns = x.dims
    return columns or "column", rows or "row"


def image(
    x: Operand, size: Size = (800, 600), how: Literal["mean", "max", "min"] = "mean", *, ax: Canvas = None
) -> Axes | Drawing:
    """A matrix as an image of at most `size` (width, height) cells, each the exact mean (or "max", "min") of its rows
    and columns.

    Blocks of all cells have equally many rows and columns, and the last ones those that remain. Means are float64:
    integers of up to 32 bits are added exactly, all others in double precision. A cell with a NaN is NaN, as NumPy has
    it, which is drawn as no number and said, as infinite cells are. Of bool the mean is the part that is true.

    Draws on `ax` and returns it, or a `CellDrawing`: see `outcore.show`. Raises ShapeError for arrays that have not 2
    axes, or no elements, DTypeError for complex numbers, dates and text, ArgumentError for a size below 1. I/O: one
    read of `x`. (Of row-major files whose rows take more than 4 MiB in a tile, some per cent more: pages at the ends
    of bands of columns.) Memory: some tiles of the file, and the cells.

    >>> import numpy as np, outcore as oc
    >>> x = np.add.outer(np.arange(8), np.arange(60))
    >>> drawing = oc.show.image(x, (20, 4), ax=False)
    >>> drawing.cells.shape, drawing.cells[0, 0], x[:2, :3].mean()
    ((4, 20), np.float64(1.5), np.float64(1.5))
    """
    check_axes("image", ax)
    array = matrix_of("image", x)
    if array.dtype.kind == "c":
        raise DTypeError(f"show.image: {array.dtype} numbers have no shade; use abs(x), x.real or x.imag")
    if how not in ("mean", "max", "min"):
        raise ArgumentError(f"show.image: how={how!r}; it is 'mean', 'max' or 'min'")
    lengths = block_lengths("image", array.shape, size)
    y_edges, x_edges = (edges_of(length, block) for length, block in zip(array.shape, lengths, strict=True))
    if how == "mean":
        is_exact = array.dtype.kind == "b" or (array.dtype.kind in "iu" and array.dtype.itemsize <= 4)
        numbers = array.astype(np.uint8) if array.dtype.kind == "b" else array
        totals = blocks(numbers, lengths, "sum", np.int64 if is_exact else np.float64)
        cells = totals / np.outer(np.diff(y_edges), np.diff(x_edges))
    else:
        cells = blocks(array.astype(np.uint8) if array.dtype.kind == "b" else array, lengths, how)
    x_title, y_title = titles_of(array)
    rows, columns = array.shape
    block = "an element" if lengths == (1, 1) else f"the {how} of {lengths[0]:,} × {lengths[1]:,} elements"
    title = f"{array.name or 'image'}: {rows:,} × {columns:,} {array.dtype}, a cell is {block}"
    drawing = CellDrawing(title, (), cells, x_edges, y_edges, x_title, y_title, True, False, how)
    return shown(drawing, ax)


__all__ = ["image"]
