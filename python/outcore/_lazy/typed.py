"""Arrays whose elements are no numbers: what dates and text share. Numbers carry them, and NumPy's type says what they
are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Self, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from outcore._base.shortened import record_text
from outcore._base.types import DType, NDArray
from outcore._lazy.annotated import Annotation, Annotations
from outcore._lazy.array import Array, Categories, oc
from outcore._lazy.hooks import above, functions
from outcore._lazy.indexing import Index
from outcore._lazy.node import Axis, Operand, axes_of, axis_of
from outcore._lazy.preview import FirstValues, first_rows
from outcore._lazy.shown import array_card, array_text, pending_card, pending_text
from outcore.errors import DTypeError, ShapeError

Item: TypeAlias = "Operand | Typed"  # an array of numbers, dates or text
SortMethod = Literal["merge", "distribution"]


class Distinct(NamedTuple):
    """The result of `unique` of dates or text with counts."""

    values: object
    counts: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)


class Typed:
    """A lazy array of elements that outcore's kernels do not know, held as numbers that they know.

    **Invariant.** `_columns()` are arrays of numbers, the first deciding, in the elements' own order; `_of_columns` is
    their inverse. So whatever orders or groups elements orders or groups numbers. With `descending` the columns ascend
    where elements descend. `_keys()` is the only column, refused where there are more.
    """

    __slots__ = ("_carrier", "_dtype")
    __hash__: ClassVar[None]  # type: ignore[assignment]  # `==` is element-wise, as in NumPy

    def __init__(self, carrier: Array, dtype: DType) -> None:
        self._carrier = carrier
        self._dtype = dtype

    def _like(self, carrier: Array) -> Self:
        """The same type of elements, carried by other numbers."""
        return type(self)(carrier, self._dtype)

    def _decoded(self, numbers: NDArray) -> NDArray:
        """The elements that computed numbers stand for, as NumPy has them."""
        raise NotImplementedError

    def _columns(self, descending: bool = False) -> list[Array]:
        raise NotImplementedError

    def _of_columns(self, columns: list[Array], descending: bool = False) -> Self:
        raise NotImplementedError

    def _missing(self, columns: list[Array]) -> Array | None:
        """Which elements that stand in columns are NaT; None where none can be."""
        return None

    def _keys(self) -> Array:
        return self._columns()[0]

    def _of_keys(self, keys: Array) -> Self:
        return self._of_columns([keys])

    def _later(self, make: Callable[[], Self]) -> Self:
        """The array that a function makes when something needs it, of this type."""
        made = object.__new__(type(self))
        made._carrier, made._dtype = above.Chosen(lambda: make()._carrier._expr), self._dtype
        return made

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """NumPy's type of the elements."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._carrier.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        result = 1
        for length in self.shape:
            result *= length
        return result

    @property
    def nbytes(self) -> int:
        """Bytes the whole array would take in memory."""
        return self.size * self._dtype.itemsize

    @property
    def dims(self) -> tuple[str | None, ...]:
        """The name of each axis; None for an axis without one."""
        return self._carrier.dims[: self.ndim]

    @property
    def attrs(self) -> Annotations:
        """Attributes by name, as those of `Array`."""
        return self._carrier.attrs

    @property
    def name(self) -> str | None:
        """The name of the array in its file, or as `annotate` gave it."""
        return self._carrier.name

    def annotate(
        self,
        *,
        dims: Iterable[str | None] | None = None,
        attrs: Mapping[str, Annotation] | None = None,
        name: str | None = None,
    ) -> Self:
        """The same array with other names of axes, attributes, or another name, as `Array.annotate`. I/O: none."""
        names = None if dims is None else [*dims, *self._carrier.dims[self.ndim :]]
        return self._like(self._carrier.annotate(dims=names, attrs=attrs, name=name))

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._carrier._is_pending():
            return pending_text(name, str(self._dtype), self._carrier._maker())
        return array_text(name, self._carrier._expr, self.shape, self._dtype, self._first_values())

    def _repr_html_(self) -> str:
        name = type(self).__name__
        if self._carrier._is_pending():
            return pending_card(name, str(self._dtype), self._carrier._maker())
        return array_card(name, self._carrier._expr, self.shape, self._dtype, self._first_values())

    def _first_values(self) -> FirstValues | None:
        """The first elements of a row whose numbers are in memory."""
        first = first_rows(self._carrier._expr) if self.ndim == 1 else None
        return None if first is None else first._replace(values=self._decoded(first.values))

    # -- results ------------------------------------------------------------------------------------------------

    def compute(self) -> NDArray:
        """The value as a NumPy array of `dtype`, which must fit the memory limit. I/O: as that of the numbers."""
        return self._decoded(self._carrier.compute())

    def persist(self) -> Self:
        """The same array with its value computed and held in memory."""
        return self._like(self._carrier.persist())

    def _only(self, asked: str) -> NDArray:
        if self.size != 1:
            raise ShapeError(f"{asked} of an array with shape {self.shape} is ambiguous; it needs exactly one element")
        return self.compute().reshape(())

    def item(self) -> Any:
        """The only element, as NumPy's `item` gives it. Computes."""
        return self._only("item()").item()

    def __bool__(self) -> bool:
        return bool(self._only("bool()"))

    def tolist(self) -> Any:
        """The elements as nested lists, as NumPy's `tolist` gives them. Computes."""
        return self.compute().tolist()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("an outcore array has no NumPy array to share; it must be computed (copy=None or True)")
        result = self.compute()
        return result if dtype is None else result.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise DTypeError("iteration over a 0-d array")
        return (self[position] for position in range(self.shape[0]))

    def __getitem__(self, key: Index) -> Self:
        return self._like(self._carrier[key])

    def copy(self) -> Self:
        """The same value behind another name. No I/O."""
        return self._like(self._carrier.copy())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self.copy()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self._carrier, self._dtype)

    # -- order --------------------------------------------------------------------------------------------------

    def sort(self, axis: int | str = -1, *, descending: bool = False, method: SortMethod | None = None) -> Self:
        """The elements in order along an axis, as a new array: this one stays as it is. I/O: as `outcore.sort`."""
        columns = self._columns(descending)
        if len(columns) == 1:
            return self._of_columns([oc.sort(columns[0], axis=axis, method=method)], descending)
        if self.ndim == 1:
            axis_of("sort", axis, 1)
            return self._of_columns(above.in_order(above.Elements(columns, self.shape), method=method), descending)
        order = self.argsort(axis, descending=descending)
        return self._of_columns([oc.take_along_axis(part, order, axis=axis) for part in columns], descending)

    def argsort(self, axis: int | str = -1, *, descending: bool = False, method: SortMethod | None = None) -> Array:
        """The positions that put the elements in order along an axis, stable, int64. I/O: as `outcore.argsort`."""
        columns = self._columns(descending)
        if len(columns) == 1:
            return oc.argsort(columns[0], axis=axis, method=method)
        return oc.lexsort(columns[::-1], axis=axis)

    def unique(self) -> Self:
        """The distinct elements, in order; NaT once. I/O: as `outcore.unique`."""
        distinct: Self = functions.unique(self)
        return distinct

    def unique_counts(self) -> Distinct:
        """The distinct elements, in order, and how often each is there; NaT once. I/O: as `outcore.unique_counts`."""
        return Distinct(*functions.unique(self, return_counts=True))

    def categories(self) -> Categories:
        """Codes of the elements, and the distinct elements that these number, in order: see `outcore.categories`."""
        result: Categories = functions.categories(self)
        return result

    def isin(self, values: object) -> Array:
        """Which elements are among some values."""
        raise NotImplementedError

    def searchsorted(self, values: object, side: str = "left") -> Array:
        """Where values belong in a row that is in order."""
        raise NotImplementedError

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        """First of the elements along the given axes, in their order. I/O: one read for each number of an element."""
        return self._extreme("min", axis, keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        """Last of the elements along the given axes, in their order. I/O: one read for each number of an element."""
        return self._extreme("max", axis, keepdims)

    def _extreme(self, name: str, axis: Axis, keepdims: bool) -> Self:
        """The extreme of the first column, of the second among those that have it, and so on."""
        columns, fold = self._columns(), getattr(oc, name)
        if len(columns) == 1:
            return self._of_columns([fold(columns[0], axis=axis, keepdims=keepdims)])
        last, extremes = (np.iinfo(columns[0].dtype).max if name == "min" else 0), []
        chosen: Array | None = None
        for column in columns:
            kept = column if chosen is None else oc.where(chosen, column, last)
            extreme = fold(kept, axis=axis, keepdims=True)
            equal = column == extreme
            chosen = equal if chosen is None else chosen & equal
            extremes.append(extreme)
        axes = axes_of(name, axis, self)
        return self._of_columns(extremes if keepdims else [oc.squeeze(part, tuple(axes)) for part in extremes])


def typed_of(value: object) -> Typed | None:
    """A typed array, or one made of NumPy's or Python's dates or strings; None for all else."""
    if isinstance(value, Typed) or type(value) is Array:
        return value if isinstance(value, Typed) else None
    typed: Typed | None = above.as_typed(value, None, None)
    return typed


def carried(value: object) -> Any:
    """The numbers that carry a typed array; any other value as it is."""
    return value._carrier if isinstance(value, Typed) else value


def decoded(value: Any, numbers: Any) -> Any:
    """Values computed of `carried(value)`, as elements of `value`'s type."""
    return value._decoded(numbers) if isinstance(value, Typed) else numbers


__all__ = ["Distinct", "Item", "Typed", "carried", "decoded", "typed_of"]
