"""Vectors of solvers: products, safe quotients, and bases."""

from __future__ import annotations

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._run.holding import Holder

_COLUMNS = 8  # vectors side by side that are copied when one more joins them
_COPIED_BYTES = 1 << 22  # of a vector, beyond which it joins no others: to copy them would cost more than it saves


def dot(a: Array, b: Array) -> Array:
    """aᴴ·b, lazily."""
    return oc.sum((oc.conj(a) if a.dtype.kind == "c" else a) * b)


def real_dot(a: Array, b: Array) -> Array:
    """The real part of aᴴ·b: for what is real but for rounding."""
    product = dot(a, b)
    return oc.real(product) if product.dtype.kind == "c" else product


def norm(a: Array) -> Array:
    """|a|₂, lazily."""
    return oc.sqrt(real_dot(a, a))


def ratio(above: Array, below: Array) -> Array:
    """above / below, and 0 for a divisor of 0: a method that breaks down stands still, and its caller sees it."""
    nothing = below == 0
    return oc.where(nothing, 0, above / oc.where(nothing, 1, below))


def where_broken(broken: Array, size: Array) -> Array:
    """`size`, or NaN after a breakdown, which ends the loop."""
    return oc.where(broken, np.nan, size)


def scalar(value: complex, dtype: DTypeLike) -> Array:
    """A number as an array of no axes."""
    return oc.asarray(np.asarray(value, dtype=dtype))


class Basis:
    """Orthonormal vectors, held side by side: matrices of a few columns, of which only the last is copied to grow; long
    vectors are not copied until all are replaced."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._parts: list[Array] = []

    def __len__(self) -> int:
        return sum(part.shape[1] for part in self._parts)

    def append(self, block: Array) -> None:
        """Adds held vectors (n, b)."""
        is_small = block.shape[0] * block.dtype.itemsize <= _COPIED_BYTES
        if is_small and self._parts and self._parts[-1].shape[1] + block.shape[1] <= _COLUMNS:
            wide = oc.concat([self._parts.pop(), block], axis=1)
            self._parts.append(self._holder.held([wide])[0][0])
        else:
            self._parts.append(block)

    def product(self, weights: NDArray, dtype: DType) -> Array:
        """V · weights, lazily; of the first vectors, where weights are fewer."""
        total, begin = None, 0
        for part in self._parts:
            rows = weights[begin : begin + part.shape[1]]
            begin += part.shape[1]
            if len(rows):
                term = part[:, : len(rows)] @ oc.asarray(np.ascontiguousarray(rows, dtype=dtype))
                total = term if total is None else total + term
        assert total is not None
        return total

    def orthogonalized(self, block: Array) -> tuple[Array, list[Array]]:
        """Vectors (n, b) less their parts in the span of the basis, and these parts' coordinates, lazily.

        Classical Gram–Schmidt, twice, which is as good as can be (Giraud, Langou, Rozložník 2005). Two sweeps over the
        basis and one more over the vectors.
        """
        weights: list[Array] = []
        for _ in range(2 if self._parts else 0):
            projections = [(oc.conj(part.T) if part.dtype.kind == "c" else part.T) @ block for part in self._parts]
            for part, weight in zip(self._parts, projections, strict=True):
                block = block - part @ weight
            weights = [old + new for old, new in zip(weights, projections, strict=True)] if weights else projections
        return block, weights

    def whole(self) -> Array:
        """All vectors side by side, lazily."""
        return oc.concat(self._parts, axis=1)

    def replace(self, block: Array) -> None:
        """Other vectors, held, in the place of all."""
        self._parts = [block]


__all__ = ["Basis", "dot", "norm", "ratio", "real_dot", "scalar", "where_broken"]
