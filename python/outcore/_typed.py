"""Arrays whose elements are no numbers: what dates and text share. Numbers carry them, and NumPy's type says what they
are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

import outcore as oc
from outcore._array import Array
from outcore._sizes import format_size
from outcore.errors import DTypeError, ShapeError


class Distinct(NamedTuple):
    """What `unique` gives of dates or text that it is asked to count."""

    values: Any
    counts: Array


class Typed:
    """A lazy array of elements that outcore's kernels do not know, held as numbers that they know.

    **Invariant.** `_keys()` are numbers, one for each element, in the elements' own order; `_of_keys` is their inverse.
    So whatever orders or groups elements orders or groups keys.
    """

    __slots__ = ("_carrier", "_dtype")
    __hash__: ClassVar[None]  # type: ignore[assignment]  # `==` is element-wise, as in NumPy

    def __init__(self, carrier: Array, dtype: np.dtype[Any]) -> None:
        self._carrier = carrier
        self._dtype = dtype

    def _like(self, carrier: Array) -> Self:
        """The same type of elements, carried by other numbers."""
        return type(self)(carrier, self._dtype)

    def _decoded(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The elements that computed numbers stand for, as NumPy has them."""
        raise NotImplementedError

    def _keys(self) -> Array:
        raise NotImplementedError

    def _of_keys(self, keys: Array) -> Self:
        raise NotImplementedError

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
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

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"outcore.{name}(shape={self.shape}, dtype={self._dtype}, {format_size(self.nbytes)})"

    # -- results ------------------------------------------------------------------------------------------------

    def compute(self) -> npt.NDArray[Any]:
        """The value as a NumPy array of `dtype`, which must fit the memory limit. I/O: as that of the numbers."""
        return self._decoded(self._carrier.compute())

    def persist(self) -> Self:
        """The same array with its value computed and held in memory."""
        return self._like(self._carrier.persist())

    def _only(self, asked: str) -> npt.NDArray[Any]:
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

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an outcore array has no NumPy array to share; it must be computed (copy=None or True)")
        result = self.compute()
        return result if dtype is None else result.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise DTypeError("iteration over a 0-d array")
        return (self[position] for position in range(self.shape[0]))

    def __getitem__(self, key: Any) -> Self:
        return self._like(self._carrier[key])

    def copy(self) -> Self:
        """The same value behind another name. No I/O."""
        return self._like(self._carrier.copy())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self._carrier, self._dtype)

    # -- order --------------------------------------------------------------------------------------------------

    def sort(self, axis: int = -1) -> Self:
        """The elements in order along an axis, as a new array: this one stays as it is. I/O: as `outcore.sort`."""
        return self._of_keys(oc.sort(self._keys(), axis=axis))

    def argsort(self, axis: int = -1) -> Array:
        """The positions that put the elements in order along an axis, stable, int64. I/O: as `outcore.argsort`."""
        return oc.argsort(self._keys(), axis=axis)

    def unique(self) -> Self:
        """The distinct elements, in order. I/O: as `outcore.unique`."""
        return self._of_keys(oc.unique_values(self._keys()))

    def unique_counts(self) -> Distinct:
        """The distinct elements, in order, and how often each is there. I/O: as `outcore.unique_counts`."""
        values, counts = oc.unique_counts(self._keys())
        return Distinct(self._of_keys(values), counts)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """First of the elements along the given axes, in their order. I/O: one read."""
        return self._of_keys(oc.min(self._keys(), axis=axis, keepdims=keepdims))

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """Last of the elements along the given axes, in their order. I/O: one read."""
        return self._of_keys(oc.max(self._keys(), axis=axis, keepdims=keepdims))


def carried(value: Any) -> Any:
    """The numbers that carry a typed array; any other value as it is."""
    return value._carrier if isinstance(value, Typed) else value


def decoded(value: Any, numbers: Any) -> Any:
    """What was computed of `carried(value)`, as elements of `value`'s type."""
    return value._decoded(numbers) if isinstance(value, Typed) else numbers


__all__ = ["Distinct", "Typed", "carried", "decoded"]
