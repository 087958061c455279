"""Labels: a column of few distinct strings, as the numbers of these."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Self, SupportsIndex

import numpy as np

from outcore._base.types import NDArray
from outcore._lazy.array import Array, oc
from outcore._lazy.hooks import above
from outcore._lazy.node import node
from outcore._lazy.typed import Typed
from outcore.errors import ArgumentError, DTypeError

_CODE = np.dtype(np.int32)


class Categorical(Typed):
    """A lazy row of labels: int32 codes, each the place of a string among the distinct ones; -1 where none is.

    **Invariant.** Labels are distinct and ascend, so codes compare as their strings do. A missing label is before,
    behind and equal to nothing, and comes last in order; it is one group of `groupby`. `compute` gives NumPy's objects:
    the strings, shared, and None.

    >>> import numpy as np, outcore as oc
    >>> city = oc.Categorical(oc.asarray(np.asarray([1, 0, 1], dtype="int32")), ["oslo", "rome"])
    >>> (city == "rome").compute()
    array([ True, False,  True])
    >>> city.compute()
    array(['rome', 'oslo', 'rome'], dtype=object)
    """

    __slots__ = ("_labels",)
    __array_priority__ = 1.0

    def __init__(self, codes: Array, labels: Sequence[str]) -> None:
        names = tuple(labels)
        if any(before >= after for before, after in pairwise(names)):
            raise ArgumentError(f"Categorical: labels {list(names[:8])} do not ascend; sort them, each once")
        if codes.dtype != _CODE:
            raise DTypeError(f"Categorical: codes of {codes.dtype}; they are int32")
        super().__init__(codes, np.dtype(object))
        self._labels = names

    def _like(self, carrier: Array) -> Self:
        made = object.__new__(type(self))
        made._carrier, made._dtype, made._labels = carrier, self._dtype, self._labels
        return made

    def _later(self, make: Callable[[], Self]) -> Self:
        return self._like(above.Chosen(lambda: make()._carrier._expr))

    @property
    def codes(self) -> Array:
        """The place of each label among `labels`, int32; -1 where none is."""
        return self._carrier

    @property
    def labels(self) -> tuple[str, ...]:
        """The distinct strings, ascending; not all need be there."""
        return self._labels

    def _decoded(self, numbers: NDArray) -> NDArray:
        strings = np.empty(len(self._labels) + 1, dtype=object)
        strings[:-1] = self._labels
        elements = np.empty(numbers.shape, dtype=object)
        elements[...] = strings[numbers]
        return elements

    def _columns(self, descending: bool = False) -> list[Array]:
        codes, count = self._carrier, len(self._labels)
        order = _whole(count - 1) - codes if descending else codes
        return [oc.where(codes < 0, _whole(count), order)]

    def _of_columns(self, columns: list[Array], descending: bool = False) -> Self:
        count = len(self._labels)
        order = columns[0].astype(_CODE)
        codes = _whole(count - 1) - order if descending else order
        return self._like(oc.where(order == count, _whole(-1), codes))

    def _missing(self, columns: list[Array]) -> Array | None:
        return columns[0] == len(self._labels)

    def isnull(self) -> Array:
        """Where no label is. I/O: fused with what reads it."""
        return self._carrier < 0

    def with_labels(self, labels: Sequence[str]) -> Categorical:
        """The same strings as codes of other labels; those that are not among them become missing.

        I/O: fused with what reads it.
        """
        places = {label: place for place, label in enumerate(labels)}
        # The last one stands for -1, which counts from the end.
        numbers = np.asarray([*(places.get(label, -1) for label in self._labels), -1], dtype=_CODE)
        codes = oc.where(self._carrier < 0, _whole(len(self._labels)), self._carrier)
        return Categorical(oc.take(Array(node(numbers)), codes), labels)

    def isin(self, values: object) -> Array:
        """Which labels are among some strings. I/O: one read."""
        if not isinstance(values, Iterable) or isinstance(values, str):
            raise DTypeError(f"isin: {values!r} is no list of strings")
        strings = {str(value) for value in values}
        codes = [place for place, label in enumerate(self._labels) if label in strings]
        return oc.isin(self._carrier, np.asarray(codes, dtype=_CODE))

    def _place(self, label: str) -> int:
        """The code of a string; -2, which no element has, where it is no label."""
        place = bisect_left(self._labels, label)
        return place if self._labels[place : place + 1] == (label,) else -2

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        if isinstance(other, str):
            return self._carrier == self._place(other)
        if isinstance(other, Categorical):
            return (self._carrier == other.with_labels(self._labels).codes) & (self._carrier >= 0)
        return NotImplemented

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else oc.logical_not(equal)

    def _before(self, count: int) -> Array:
        return (self._carrier >= 0) & (self._carrier < count)

    def __lt__(self, other: object) -> Array:
        return self._before(bisect_left(self._labels, other)) if isinstance(other, str) else NotImplemented

    def __le__(self, other: object) -> Array:
        return self._before(bisect_right(self._labels, other)) if isinstance(other, str) else NotImplemented

    def __gt__(self, other: object) -> Array:
        return self._carrier >= bisect_right(self._labels, other) if isinstance(other, str) else NotImplemented

    def __ge__(self, other: object) -> Array:
        return self._carrier >= bisect_left(self._labels, other) if isinstance(other, str) else NotImplemented

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        raise DTypeError(f"numpy.{ufunc.__name__} of labels is not supported; give it .codes")

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        return Categorical, (self._carrier, self._labels)


def _whole(number: int) -> Array:
    return Array(node(np.int32(number)))


__all__ = ["Categorical"]
