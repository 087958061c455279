"""Elements of any type by keys that sort: numbers, complex numbers, dates and text.

NaN and NaT are behind all other elements. A complex number goes by its real part, among equals by its imaginary part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import expr_dtype, node
from outcore._lazy.typed import Item, SortMethod, Typed, typed_of
from outcore._run import masks
from outcore._standard.sorting import sort_by
from outcore.elementwise import imag, isnan, real
from outcore.errors import ShapeError


class Elements:
    """The elements of an array in one row, C order, held by columns from which keys are made.

    **Invariant.** `keys(columns)` are rows of numbers that compare as the elements do, the first deciding, then the
    second, and so on; `made(columns)` are the elements again, and nothing that `make` runs is run before it is needed.
    """

    def __init__(self, columns: Sequence[Array], shape: tuple[int, ...]) -> None:
        self.columns = [Array(masks.flatten(column._expr)) for column in columns]
        self.shape = shape

    def keys(self, columns: list[Array]) -> list[Array]:
        return columns

    def missing(self, columns: list[Array]) -> Array | None:
        """Which elements are NaN or NaT; None for types that have neither."""
        return isnan(columns[0]) if columns[0].dtype.kind == "f" else None

    def differ(self, before: list[Array], after: list[Array]) -> Array:
        """Which elements are not those before them, key by key; NaN and NaT are not equal to themselves."""
        first, *others = (b != a for b, a in zip(self.keys(before), self.keys(after), strict=True))
        for apart in others:
            first = first | apart
        return first

    def made(self, make: Callable[[], list[Array]]) -> Array | Typed:
        return masks.Chosen(lambda: make()[0]._expr)


class _Complex(Elements):
    def keys(self, columns: list[Array]) -> list[Array]:
        return complex_keys(columns[0])

    def missing(self, columns: list[Array]) -> Array | None:
        return isnan(real(columns[0])) | isnan(imag(columns[0]))


class _Typed(Elements):
    def __init__(self, x: Typed) -> None:
        super().__init__(x._columns(), x.shape)
        self._x = x

    def missing(self, columns: list[Array]) -> Array | None:
        return self._x._missing(columns)

    def differ(self, before: list[Array], after: list[Array]) -> Array:
        apart, missing = super().differ(before, after), self.missing(after)
        return apart if missing is None else apart | missing

    def made(self, make: Callable[[], list[Array]]) -> Typed:
        return self._x._later(lambda: self._x._of_columns(make()))


def elements(x: object) -> Elements:
    """The elements of an array, or of what becomes one: NumPy's dates and text too."""
    typed = typed_of(x)
    if typed is not None:
        return _Typed(typed)
    array = Array(node(x))
    return (_Complex if array.dtype.kind == "c" else Elements)([array], array.shape)


def complex_keys(x: Array) -> list[Array]:
    """Which part is NaN, then the real and the imaginary part: NumPy's order of complex numbers."""
    first, second = real(x), imag(x)
    return [isnan(first).astype(np.uint8) * 2 + isnan(second).astype(np.uint8), first, second]


def key_columns(x: object, descending: bool = False) -> list[Array]:
    """The keys of elements, the first deciding, in the shape of `x`."""
    typed = typed_of(x)
    if typed is not None:
        return typed._columns(descending)
    return complex_keys(Array(node(x))) if expr_dtype(node(x)).kind == "c" else [Array(node(x))]


def in_order(of: Elements, *beside: Array, method: SortMethod | None = None) -> list[Array]:
    """The columns of elements in their order, and others of the same length beside them: a stable sort by each key."""
    columns, others = list(of.columns), list(beside)
    count = len(columns)
    for place in reversed(range(len(of.keys(columns)))):
        key = of.keys(columns)[place]
        is_column = place < count and key is columns[place]
        kept = [column for column in columns if column is not key]
        first, *ordered = sort_by(key, *kept, *others, method=method)
        columns, others = ordered[: len(kept)], ordered[len(kept) :]
        if is_column:
            columns.insert(place, first)
    return [*columns, *others]


def sort_typed_by(
    keys: Item, values: Sequence[Item], descending: bool, method: SortMethod | None
) -> tuple[Array | Typed, ...]:
    """As `sort_by`, where the keys or some columns are dates or text: those go as the numbers that order them."""
    typed = typed_of(keys)
    parts = [typed_of(value) for value in values]
    flat = [
        [Array(node(value))] if part is None else part._columns() for part, value in zip(parts, values, strict=True)
    ]
    beside = [column for columns in flat for column in columns]
    first: Array | Typed
    if typed is None:
        first, *remaining = sort_by(keys, *beside, descending=descending, method=method)
    else:
        if typed.ndim != 1:
            raise ShapeError(f"sort_by: keys of shape {typed.shape} are not one-dimensional")
        columns = typed._columns(descending)
        remaining = in_order(Elements(columns, typed.shape), *beside, method=method)
        first, remaining = typed._of_columns(remaining[: len(columns)], descending), remaining[len(columns) :]
    rows: list[Array | Typed] = [first]
    for part, columns in zip(parts, flat, strict=True):
        taken, remaining = remaining[: len(columns)], remaining[len(columns) :]
        rows.append(taken[0] if part is None else part._of_columns(taken))
    return tuple(rows)


__all__ = ["Elements", "complex_keys", "elements", "in_order", "key_columns", "sort_typed_by"]
