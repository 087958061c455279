"""Python's operators of dates and durations: each is NumPy's function of the same meaning."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from outcore._lazy.array import Array


class DateOperators:
    """Operators by what `_applied` makes of NumPy's functions; it gives NotImplemented for strangers."""

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]  # `==` is element-wise, as in NumPy

    def _applied(self, ufunc: np.ufunc, *inputs: object) -> Any:
        raise NotImplementedError

    def _timed(self, ufunc: np.ufunc, *inputs: object) -> Self:
        """Dates or durations of dates and durations."""
        result: Self = self._applied(ufunc, *inputs)
        return result

    def _compared(self, ufunc: np.ufunc, *inputs: object) -> Array:
        flags: Array = self._applied(ufunc, *inputs)
        return flags

    def __neg__(self) -> Self:
        return self._timed(np.negative, self)

    def __pos__(self) -> Self:
        return self._timed(np.positive, self)

    def __abs__(self) -> Self:
        return self._timed(np.absolute, self)

    def __add__(self, other: object) -> Self:
        return self._timed(np.add, self, other)

    def __radd__(self, other: object) -> Self:
        return self._timed(np.add, other, self)

    def __sub__(self, other: object) -> Self:
        return self._timed(np.subtract, self, other)

    def __rsub__(self, other: object) -> Self:
        return self._timed(np.subtract, other, self)

    def __mul__(self, other: object) -> Self:
        return self._timed(np.multiply, self, other)

    def __rmul__(self, other: object) -> Self:
        return self._timed(np.multiply, other, self)

    def __truediv__(self, other: object) -> Any:
        return self._applied(np.divide, self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._applied(np.divide, other, self)

    def __floordiv__(self, other: object) -> Any:
        return self._applied(np.floor_divide, self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return self._applied(np.floor_divide, other, self)

    def __mod__(self, other: object) -> Self:
        return self._timed(np.remainder, self, other)

    def __rmod__(self, other: object) -> Self:
        return self._timed(np.remainder, other, self)

    def __lt__(self, other: object) -> Array:
        return self._compared(np.less, self, other)

    def __le__(self, other: object) -> Array:
        return self._compared(np.less_equal, self, other)

    def __gt__(self, other: object) -> Array:
        return self._compared(np.greater, self, other)

    def __ge__(self, other: object) -> Array:
        return self._compared(np.greater_equal, self, other)

    def __eq__(self, other: object) -> Any:
        return self._applied(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return self._applied(np.not_equal, self, other)
