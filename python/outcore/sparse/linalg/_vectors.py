"""Vectors of solvers: products, safe quotients, and the place where vectors are held between steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.element_types import DTypeLike
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._run.holding import hold
from outcore._session.session import current
from outcore.errors import MemoryLimitError

_SHARE = 3  # a third of the budget for vectors that last; the matrix and the work have the rest
_COLUMNS = 8  # vectors side by side that are copied when one more joins them
_COPIED_BYTES = 1 << 22  # of a vector, beyond which it joins no others: to copy them would cost more than it saves
_SMALL_BYTES = 1 << 16  # vectors that are held in memory in any case


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


class Holder:
    """Holds vectors that outlast a program: in memory while all of them fit into a third of it, else in scratch files.

    Files go when nothing refers to their vector any more.
    """

    def __init__(self, bytes_each: int, count: int) -> None:
        room = int(current().counters()["budget_bytes"])
        self.on_disk = bytes_each > _SMALL_BYTES and bytes_each * count > room // _SHARE

    def held(self, vectors: Sequence[Array], beside: Sequence[Array] = ()) -> tuple[list[Array], list[Any]]:
        """The vectors with their values computed, and the values of other arrays, all by one program."""
        while True:
            try:
                held, values, _ = hold(vectors, [self.on_disk] * len(vectors), beside, progress=False)
                return held, values
            except MemoryLimitError:
                if self.on_disk:
                    raise
                self.on_disk = True


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


__all__ = ["Basis", "Holder", "dot", "norm", "ratio", "real_dot", "scalar", "where_broken"]
