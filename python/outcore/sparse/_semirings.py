"""Operations that products are formed by beside + and ×: the sums of nothing, masks, and semirings of the user's own.

The words are those of GraphBLAS: a semiring is a monoid that adds and a function that multiplies; a mask says which
elements of the result are wanted, by its values or, where it is sparse, by its structure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from outcore import _core
from outcore._base.types import DType
from outcore._functions.generalized import Multiply, paired
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import sum_dtype
from outcore._standard.creation import eye, full, ones, zeros
from outcore._standard.indexing import take
from outcore._standard.searching import where
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.sparse._rowwise import ByRow
from outcore.sparse._stored import StoredMatrix


class Monoid(NamedTuple):
    """How terms are added up: by which scan (none takes any of them), and what none come to."""

    scan: str | None
    nothing: Callable[[DType], Any]


def _bound(dtype: DType, sign: int) -> Any:
    """The largest number of a type, or the smallest."""
    if dtype.kind == "f":
        return sign * np.inf
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


MONOIDS = {
    "plus": Monoid("sum", lambda dtype: 0),
    "times": Monoid("prod", lambda dtype: 1),
    "min": Monoid("min", lambda dtype: _bound(dtype, 1)),
    "max": Monoid("max", lambda dtype: _bound(dtype, -1)),
    "any": Monoid(None, lambda dtype: 0),
    "lor": Monoid("max", lambda dtype: False),
    "land": Monoid("min", lambda dtype: True),
}


def nothing(add: str, dtype: DType) -> Any:
    """The sum of no terms, as a NumPy scalar."""
    return dtype.type(MONOIDS[add].nothing(dtype))


def masked(product: Array, add: str, mask: Operand | StoredMatrix | None, complement: bool) -> Array:
    """A product where a mask is true, or where it is false, and the sum of nothing elsewhere."""
    if mask is None:
        if complement:
            raise ArgumentError("sparse product: complement=True, and there is no mask")
        return product
    shape = mask.shape if isinstance(mask, StoredMatrix) else tuple(node(mask).shape)
    if shape != product.shape:
        raise ShapeError(f"sparse product: a mask of shape {shape} for a result of shape {product.shape}")
    # A row of the mask times the identity is that row; what counts is that an entry is there.
    kept = (
        mask.product(eye(shape[1], dtype=np.int8), "plus_second") > 0
        if isinstance(mask, StoredMatrix)
        else Array(node(mask))
    )
    if kept.dtype != np.bool_:
        raise DTypeError(f"sparse product: a mask is bool, not {kept.dtype}")
    left_out = Array(node(nothing(add, product.dtype)))
    return where(kept, left_out, product) if complement else where(kept, product, left_out)


def by_functions(a: StoredMatrix, rows: Callable[[], ByRow], x: Array, add: str, multiply: Multiply) -> Array:
    """The product in a semiring of a monoid's name and a function of (value, x), over nodes that there are.

    Entries lie by rows: `x` is taken at their columns, the function pairs it with the values, a scan adds up each row,
    and of each row the last sum is chosen. Rows begin with the sum of nothing, so that none is without.
    """
    if add not in MONOIDS:
        raise ArgumentError(f"sparse product: add={add!r} is none of {', '.join(MONOIDS)}")
    dtype = _dtype(a, x, add, multiply)
    shape = (a.shape[0], *x.shape[1:])
    if a.nnz == 0 or 0 in shape:
        return full(shape, nothing(add, dtype).item(), dtype=dtype)
    entries = rows()
    values = ones(entries.first.shape, dtype=x.dtype) if entries.values is None else entries.values
    terms = _terms(multiply, values, take(x, entries.columns, axis=0)).astype(dtype)
    first = entries.first if x.ndim == 1 else entries.first[:, None]
    sums = where(first, Array(node(nothing(add, dtype))), terms)._expr
    scan = MONOIDS[add].scan
    if scan is not None:
        sums = _core.scan(scan, sums, 0, entries.first._expr)
    return Array(_core.compress(sums, *entries.lasts))


def _dtype(a: StoredMatrix, x: Array, add: str, multiply: Multiply) -> DType:
    """The type of the sums; found from formulas over one element, of which nothing is computed."""
    pairs = _terms(
        multiply, zeros(1, dtype=x.dtype if a.is_pattern else a.dtype), zeros((1, *x.shape[1:]), dtype=x.dtype)
    )
    if pairs.shape != (1, *x.shape[1:]):
        raise ShapeError(f"sparse product: multiply gives an array of shape {pairs.shape}; it must pair elements")
    dtype = pairs.dtype
    if add in ("lor", "land"):
        return np.dtype(bool)
    if add in ("min", "max") and dtype.kind == "c":
        raise DTypeError(f"sparse product: {dtype} has no {add}")
    return sum_dtype(dtype) if add in ("plus", "times") else dtype


def _terms(multiply: Multiply, values: Array, x: Array) -> Array:
    return paired("sparse product", multiply, values if x.ndim == 1 else values[:, None], x)


__all__ = ["MONOIDS", "Multiply", "by_functions", "masked", "nothing"]
