"""Histograms of one coordinate and of two."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias, cast

import numpy as np

from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._lazy.typed import Typed
from outcore._numpy_like.counting import histogram as counts_between
from outcore._numpy_like.counting import row_of
from outcore._numpy_like.histograms import histogram2d
from outcore._run.run import compute
from outcore._standard.creation import asarray
from outcore._standard.searching import where
from outcore._standard.statistical import counted, max, min, sum
from outcore.dates import Dates
from outcore.elementwise import isfinite, isinf, isnan
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.show._blocks import bands, computed, upright
from outcore.show._drawing import BarDrawing, Canvas, CellDrawing, Drawing, check_axes, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bound: TypeAlias = "float | str | np.datetime64 | np.timedelta64"
Bounds = tuple[float, float]

_BINS, _CELLS, _BINS_MAX = 50, 128, 1 << 16
# The integer of NaT, and the integers up to which those of 64 bits are exact as float64, with halves between them.
_NAT, _EXACT_MAX = -(2**63), 1 << 51


def histogram(
    x: Operand | Typed,
    bins: SupportsIndex | Sequence[float] | NDArray | None = None,
    *,
    range: tuple[Bound, Bound] | None = None,
    ax: Canvas = None,
) -> Axes | Drawing:
    """How often values occur: exact counts of any number of elements, of arrays of any shape.

    `bins` and `range` are as of `outcore.histogram` and NumPy: a number of bins of one width, between bounds or those
    of the data, or edges. By default there are 50, and for integers and bool at most 50 of equally many integers each,
    so that few integers have a bin each. Dates and durations are counted exactly in
    bins of whole steps of their unit, at most so many, and `range` is of dates. NaN, NaT, infinite numbers and those
    outside of a range are left out, and the drawing says how many.

    Draws on `ax` and returns it, or a `BarDrawing`: see `outcore.show`. Raises DTypeError for complex numbers and text,
    ShapeError for no elements, ArgumentError for bins and ranges that are none. I/O: one read of `x`, and one before it
    for the bounds of the data where neither edges nor a range are given; of bool one.

    >>> import numpy as np, outcore as oc
    >>> oc.show.histogram(np.asarray([1.0, 2.0, 2.5, np.nan, 6.0]), 5, ax=False).notes
    ('1 NaN left out',)
    """
    check_axes("histogram", ax)
    values = x if isinstance(x, Typed) else asarray(x)
    if isinstance(values, Dates):
        numbers, number = values.integers, _number_of("histogram", _BINS if bins is None else bins)
    else:
        numbers, number = _numbers("histogram", values), None
    size = math.prod(numbers.shape)
    if not size:
        raise ShapeError(f"show.histogram: an array of shape {numbers.shape} has no elements")
    name = numbers.name
    if isinstance(values, Dates):
        counts, edges, absent = _dates(values, cast(int, number), range)
        notes = [f"{absent:,} NaT left out"] if absent else []
        outside = size - int(counts.sum()) - absent
    else:
        edges = _edges(numbers, bins, range)
        counts, absent, infinite = _counts(numbers, edges)
        notes = [f"{absent:,} NaN left out"] if absent else []
        outside = size - int(counts.sum()) - absent
        if infinite and np.isfinite(edges).all():
            notes.append(f"{infinite:,} infinite left out")
            outside -= infinite
    if outside:
        notes.append(f"{outside:,} outside of {edges[0]} to {edges[-1]} left out")
    title = f"{name or 'histogram'}: {size:,} {values.dtype}, {len(counts):,} bins"
    return shown(BarDrawing(title, tuple(notes), counts, edges, name or "value", "elements"), ax)


def _numbers(name: str, values: object) -> Array:
    """Real numbers. Raises DTypeError."""
    if not isinstance(values, Array):
        kind = getattr(values, "dtype", type(values).__name__)
        raise DTypeError(f"show.{name}: elements of {kind} are no numbers, which bins are of")
    if values.dtype.kind == "c":
        raise DTypeError(f"show.{name}: {values.dtype} numbers have no order; use abs(x), x.real or x.imag")
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def _number_of(name: str, bins: object) -> int:
    """A number of bins. Raises ArgumentError."""
    try:
        number = operator.index(cast(SupportsIndex, bins))
    except TypeError:
        raise ArgumentError(f"show.{name}: bins={bins!r}; a number of them is taken here") from None
    if not 1 <= number <= _BINS_MAX:
        raise ArgumentError(f"show.{name}: bins={number}; there are from 1 to {_BINS_MAX}")
    return number


def _interval(name: str, interval: object) -> Bounds:
    """Bounds that are passed. Raises ArgumentError."""
    try:
        low, high = (float(bound) for bound in cast(Bounds, interval))
    except (TypeError, ValueError):
        raise ArgumentError(f"show.{name}: range={interval!r}; it is a lower and an upper bound") from None
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ArgumentError(f"show.{name}: range ({low}, {high}) is not finite, or falls")
    return low, high


def _edges(numbers: Array, bins: object, interval: object) -> NDArray:
    """Edges of bins of numbers, as float64. I/O: one read where the data has to be asked for its bounds."""
    if bins is not None and not hasattr(bins, "__index__"):
        if isinstance(bins, str):
            raise ArgumentError(f"show.histogram: bins={bins!r}; their number or their edges are taken")
        edges = np.asarray(bins, dtype=np.float64)
        if edges.ndim != 1 or edges.size < 2 or not (edges[:-1] <= edges[1:]).all():
            raise ArgumentError(f"show.histogram: edges of shape {edges.shape} are not two or more that never fall")
        return edges
    number = _number_of("histogram", _BINS if bins is None else bins)
    if interval is not None:
        return spaced(numbers.dtype, _interval("histogram", interval), number, False)
    low, high = bounds_of([numbers])[0]
    return spaced(numbers.dtype, (low, high), number, bins is None)


def bounds_of(arrays: Sequence[Array]) -> list[Bounds]:
    """The least and the most of arrays of one shape, where all of them are finite: one read. Of none it is (0, 1)."""
    whole: Array | None = None
    for array in arrays:
        if array.dtype.kind == "f":
            finite = isfinite(array)
            whole = finite if whole is None else whole & finite
    asked: list[Array] = []
    for array in arrays:
        low, high = array, array
        if whole is not None:
            floats = array if array.dtype.kind == "f" else array.astype(np.float64)
            low, high = where(whole, floats, np.inf), where(whole, floats, -np.inf)
        asked += [min(low), max(high)]
    values = [value.item() for value in compute(*asked)]
    pairs = list(zip(values[::2], values[1::2], strict=True))
    return [(0.0, 1.0) if low > high else (low, high) for low, high in pairs]


def spaced(dtype: DType, bounds: Bounds, number: int, is_whole: bool) -> NDArray:
    """Edges of so many bins of one width between bounds; of integers that are no more than so many and in whole steps,
    where `is_whole`. Raises ArgumentError for bounds so far apart that the width is not finite."""
    low, high = bounds
    if is_whole and dtype.kind in "iu" and low > -_EXACT_MAX and high < _EXACT_MAX:
        step = -(-(int(high) - int(low) + 1) // number)
        steps = -(-(int(high) - int(low) + 1) // step)
        return int(low) - 0.5 + step * np.arange(steps + 1, dtype=np.float64)
    low, high = float(low), float(high)
    if low == high:
        low, high = low - 0.5, high + 0.5
    if not math.isfinite(high - low):
        raise ArgumentError(f"show: the width from {low} to {high} is not finite in float64; give range=")
    return np.linspace(low, high, number + 1)


def _counts(numbers: Array, edges: NDArray) -> tuple[NDArray, int, int]:
    """Counts between edges, and how many are NaN and infinite."""

    def counting(part: Array) -> list[Array]:
        flat = row_of(part)
        counts = counts_between(flat, cast(Sequence[float], edges)).counts
        if flat.dtype.kind != "f":
            return [counts]
        return [counts, sum(isnan(flat).astype(np.int64)), sum(isinf(flat).astype(np.int64))]

    turned = upright(numbers)
    ways = [[counting(turned)]]
    if numbers.ndim > 1:
        ways.append([counting(turned[..., band]) for band in bands(turned)])
    parts = computed(*ways, least=[sum(turned)])
    counts, *beside = (np.sum(column, axis=0) for column in zip(*parts, strict=True))
    absent, infinite = (int(part) for part in beside) if beside else (0, 0)
    return counts, absent, infinite


def _dates(values: Dates, number: int, interval: tuple[Bound, Bound] | None) -> tuple[NDArray, NDArray, int]:
    """Counts of dates in bins of whole steps of their unit, the edges of bins, and how many are NaT."""
    integers = values.integers
    if interval is None:
        absent = integers == _NAT
        low, high = (int(bound) for bound in compute(min(where(absent, 2**63 - 1, integers)), max(integers)))
        low, high = (0, 0) if high == _NAT else (low, high)
    else:
        try:
            low, high = (int(np.asarray(bound, dtype=values.dtype).astype(np.int64)) for bound in interval)
        except (TypeError, ValueError):
            raise ArgumentError(f"show.histogram: range={interval!r} for elements of {values.dtype}") from None
        if low == _NAT or high == _NAT or low > high:
            raise ArgumentError(f"show.histogram: range {interval!r} is no interval of {values.dtype}")
    step = -(-(high - low + 1) // number)
    steps = -(-(high - low + 1) // step)
    ends = [low + step * place for place in (0, steps)]
    if ends[-1] - ends[0] >= 2**63 or ends[-1] >= 2**63:
        raise ArgumentError(f"show.histogram: {values.dtype} from {low} to {high} is too wide for bins; give range=")

    def counting(part: Array) -> list[Array]:
        flat = row_of(part)
        is_inside = (flat >= low) & (flat <= high)
        place = where(is_inside, (where(is_inside, flat, low) - low) // step, -1)
        return [counted(place, None, steps), sum((flat == _NAT).astype(np.int64))]

    turned = upright(integers)
    ways = [[counting(turned)]]
    if turned.ndim > 1:
        ways.append([counting(turned[..., band]) for band in bands(turned)])
    counts, absent_count = (
        np.sum(column, axis=0) for column in zip(*computed(*ways, least=[max(turned)]), strict=True)
    )
    edges = (low + step * np.arange(steps + 1)).astype(values.dtype)
    return counts, edges, int(absent_count)


def scatter(
    x: Operand,
    y: Operand,
    bins: SupportsIndex | tuple[SupportsIndex, SupportsIndex] = _CELLS,
    *,
    range: tuple[Bounds | None, Bounds | None] | None = None,
    ax: Canvas = None,
) -> Axes | Drawing:
    """Any number of points as a histogram of two coordinates: how many lie in each cell of a grid, exactly.

    `x` and `y` are rows of one length; `bins` is a number of cells for both axes or for each of them, `range` the
    bounds of each, or None for those of the data. Points with a NaN, an infinite coordinate, or outside of the range
    are left out, and the drawing says how many. Integers get cells of equally many of them.

    Draws on `ax` and returns it, or a `CellDrawing` with counts (int64), `y` upwards: see `outcore.show`. Raises
    ShapeError for other shapes or lengths that differ, DTypeError for complex numbers, dates and text, ArgumentError
    for bins and ranges that are none. I/O: one read of `x` and `y`, and one before it for bounds that are not given.

    >>> import numpy as np, outcore as oc
    >>> drawing = oc.show.scatter(np.asarray([0.0, 1.0, 4.0]), np.asarray([0.0, 4.0, 4.0]), 2, ax=False)
    >>> drawing.cells
    array([[1, 0],
           [1, 1]])
    """
    check_axes("scatter", ax)
    rows = [_numbers("scatter", part if isinstance(part, Typed) else asarray(part)) for part in (x, y)]
    if any(row.ndim != 1 for row in rows) or rows[0].shape != rows[1].shape:
        raise ShapeError(
            f"show.scatter: x of shape {rows[0].shape}, y of shape {rows[1].shape}; rows of one length are taken"
        )
    if not rows[0].shape[0]:
        raise ShapeError(f"show.scatter: x and y of shape {rows[0].shape} have no points")
    numbers = [_number_of("scatter", number) for number in (bins if isinstance(bins, tuple) else (bins, bins))]
    ranges = (None, None) if range is None else range
    if not isinstance(ranges, (tuple, list)):
        raise ArgumentError(f"show.scatter: range={range!r}; it is two pairs of bounds, either of which may be None")
    if len(numbers) != 2 or len(ranges) != 2:
        raise ArgumentError(f"show.scatter: {len(numbers)} bins and {len(ranges)} ranges for 2 coordinates")
    bounds = [None if part is None else _interval("scatter", part) for part in ranges]
    measured = bounds_of(rows) if None in bounds else [(0.0, 1.0)] * 2
    edges = [
        spaced(row.dtype, bound or data, number, bound is None)
        for row, bound, data, number in zip(rows, bounds, measured, numbers, strict=True)
    ]
    counts = histogram2d(rows[0], rows[1], edges).counts
    cells = compute(counts).astype(np.int64).T
    count, left = rows[0].shape[0], rows[0].shape[0] - int(cells.sum())
    notes = (f"{left:,} points left out: NaN, infinite, or outside",) if left else ()
    titles = rows[0].name or "x", rows[1].name or "y"
    title = f"{titles[1]} over {titles[0]}: {count:,} points, {cells.shape[1]} × {cells.shape[0]} cells"
    return shown(CellDrawing(title, notes, cells, edges[0], edges[1], *titles, False, True, "mean"), ax)


__all__ = ["histogram", "scatter"]
