"""Seeded random arrays whose values depend on seed and position only, never on tiles, threads or memory.

Counter-based: generated where they are used, again at each use, without I/O. Without a seed one is drawn from the
system when the array is made, so the array itself is still one fixed value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType
from outcore._lazy.absent import hinted
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, node, shape_of
from outcore._standard.creation import arange
from outcore._standard.indexing import take
from outcore.errors import ArgumentError, DTypeError, ShapeError

_Places = npt.NDArray[np.int64]


def _seed(seed: int | None) -> int:
    return int.from_bytes(os.urandom(8), "big") >> 1 if seed is None else int(seed) & (2**64 - 1)


def _real(name: str, dtype: DTypeLike) -> str:
    kind = dtype_of(dtype or float)
    if kind.kind != "f":
        raise DTypeError(f"random.{name}: gives floating-point numbers, not {kind}")
    return kind.name


def uniform(
    shape: int | Iterable[int],
    low: float = 0.0,
    high: float = 1.0,
    *,
    seed: int | None = None,
    dtype: DTypeLike = None,
) -> Array:
    """Numbers drawn evenly from low ≤ x < high, of any shape, float64 unless told.

    Raises DTypeError for types that are not floating. No I/O.

    >>> import outcore as oc
    >>> oc.random.uniform((1000, 3), seed=7).mean(axis=0).compute().round(1)
    array([0.5, 0.5, 0.5])
    """
    kind = _real("uniform", dtype)
    return Array(_core.random("uniform", list(shape_of(shape)), _seed(seed), float(low), float(high), kind))


def normal(
    shape: int | Iterable[int],
    mean: float = 0.0,
    deviation: float = 1.0,
    *,
    seed: int | None = None,
    dtype: DTypeLike = None,
) -> Array:
    """Numbers from the normal distribution, of any shape, float64 unless told.

    Raises DTypeError for types that are not floating. No I/O.

    >>> import outcore as oc
    >>> x = oc.random.normal(10_000, mean=5.0, deviation=2.0, seed=7)
    >>> x.mean().compute().round(1), x.std().compute().round(1)
    (np.float64(5.0), np.float64(2.0))
    """
    kind = _real("normal", dtype)
    return Array(_core.random("normal", list(shape_of(shape)), _seed(seed), float(mean), float(deviation), kind))


def integers(
    shape: int | Iterable[int], low: int, high: int, *, seed: int | None = None, dtype: DTypeLike = None
) -> Array:
    """Integers drawn evenly from low ≤ x < high, of any shape, int64 unless told.

    Raises ArgumentError for bounds outside the type, or above the 2⁶³ − 1 that `high` may be for every type; DTypeError
    for types that are not integers, or where nothing lies between the bounds. No I/O.

    >>> import outcore as oc
    >>> dice = oc.random.integers(1000, 1, 7, seed=7)
    >>> dice.min().item(), dice.max().item()
    (1, 6)
    """
    kind = dtype_of(dtype or "int64")
    if kind.kind not in "iu":
        raise DTypeError(f"random.integers: gives integers, not {kind}")
    try:
        low, high = int(low), int(high)
    except TypeError:
        raise DTypeError(f"random.integers: bounds {low!r} and {high!r}; the shape comes first") from None
    if not low < high:
        raise DTypeError(f"random.integers: no integer lies in {low} ≤ x < {high}")
    _check_range(low, high, kind)
    return Array(_core.random("integers", list(shape_of(shape)), _seed(seed), low, high, kind.name))


def _check_range(low: int, high: int, kind: DType) -> None:
    bounds, drawn = np.iinfo(kind), np.iinfo(np.int64)
    if low < bounds.min or high - 1 > bounds.max:
        raise ArgumentError(
            f"random.integers: {low} ≤ x < {high} is not within {kind}, {bounds.min} ≤ x ≤ {bounds.max}"
        )
    if high > drawn.max:  # the core draws in int64, and counts up to a bound that is one itself
        raise ArgumentError(f"random.integers: the upper bound {high} is above {drawn.max}, the largest outcore takes")


def choice(
    x: Operand | int, size: int | None = None, replace: bool = True, *, axis: int | str = 0, seed: int | None = None
) -> Array:
    """A sample of `size` rows of `x` (of one row, without its axis, unless told), each as likely as any other.

    An integer stands for `arange` of so many. Without `replace` no row is drawn twice. Rows are those along `axis`, in
    the order drawn. Which are drawn follows from `seed`, the number of rows and `size` alone.

    Raises ArgumentError for more rows than there are without `replace`, and for none to draw from; ShapeError for a
    number. Memory: some numbers for each row drawn. I/O: when the sample is computed, pages of the rows drawn; of more
    than some thousand as `take`, one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> x = oc.arange(20).reshape((10, 2))
    >>> oc.random.choice(x, 3, replace=False, seed=7).shape
    (3, 2)
    """
    array = arange(int(x)) if isinstance(x, (int, np.integer)) else Array(node(x))
    if not array.ndim:
        raise ShapeError("random.choice: a number has no rows; pass an array, or an integer n for arange(n)")
    place = axis_of("random.choice", axis, array)
    rows, count = array.shape[place], 1 if size is None else int(size)
    if count < 0:
        raise ArgumentError(f"random.choice: size must be at least 0, not {count}")
    if count and not rows:
        raise ArgumentError(f"random.choice: axis {place} of {array.shape} has no rows to draw from")
    if not replace and count > rows:
        raise ArgumentError(f"random.choice: size={count} of {rows} rows; pass replace=True, or at most {rows}")
    drawn = _Draws(rows, _seed(seed))
    places = drawn.take(count) if replace else drawn.distinct(count)
    return take(array, places, axis=place) if size is not None else take(array, int(places[0]), axis=place)


class _Draws:
    """Whole numbers below `bound`, all alike likely, from a generator whose bits NumPy guarantees."""

    def __init__(self, bound: int, seed: int) -> None:
        self._bound, self._bits = bound, np.random.PCG64(seed)

    def take(self, count: int) -> _Places:
        """The next `count` of them."""
        places: list[_Places] = []
        # The last numbers of 64 bits, which would make some remainders likelier, are passed over.
        last = 2**64 - 2**64 % self._bound if count else 0
        missing = count
        while missing:
            bits = self._bits.random_raw(missing)
            bits = bits if last == 2**64 else bits[bits < np.uint64(last)]
            places.append((bits % np.uint64(self._bound)).astype(np.int64))
            missing -= len(bits)
        return np.concatenate([np.empty(0, dtype=np.int64), *places])

    def distinct(self, count: int) -> _Places:
        """The first `count` different ones as drawn; of more than half, those that a shuffle puts first."""
        if 2 * count > self._bound:
            order: _Places = np.argsort(self._bits.random_raw(self._bound), kind="stable")[:count]
            return order
        drawn = self.take(count)
        while True:
            _, first = np.unique(drawn, return_index=True)
            if len(first) >= count:
                return drawn[np.sort(first)[:count]]
            drawn = np.concatenate([drawn[np.sort(first)], self.take(count - len(first))])


__getattr__ = hinted(__name__)

__all__ = ["choice", "integers", "normal", "uniform"]
