"""Seeded random arrays whose values depend on seed and position only, never on tiles, threads or memory.

Counter-based: generated where they are used, again at each use, without I/O. Without a seed one is drawn from the
system when the array is made, so the array itself is still one fixed value.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

import numpy as np

from outcore import _core
from outcore._array import Array
from outcore._node import DTypeLike, dtype_of, shape_of
from outcore.errors import ArgumentError, DTypeError


def _seed(seed: int | None) -> int:
    return secrets.randbits(63) if seed is None else int(seed) & (2**64 - 1)


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
    low, high = int(low), int(high)
    if not low < high:
        raise DTypeError(f"random.integers: no integer lies in {low} ≤ x < {high}")
    _check_range(low, high, kind)
    return Array(_core.random("integers", list(shape_of(shape)), _seed(seed), low, high, kind.name))


def _check_range(low: int, high: int, kind: np.dtype[Any]) -> None:
    bounds, drawn = np.iinfo(kind), np.iinfo(np.int64)
    if low < bounds.min or high - 1 > bounds.max:
        raise ArgumentError(
            f"random.integers: {low} ≤ x < {high} is not within {kind}, {bounds.min} ≤ x ≤ {bounds.max}"
        )
    if high > drawn.max:  # the core draws in int64, and counts up to a bound that is one itself
        raise ArgumentError(f"random.integers: the upper bound {high} is above {drawn.max}, the largest outcore takes")


__all__ = ["integers", "normal", "uniform"]
