"""What the solvers do with vectors: products, safe quotients, and where those that last are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import outcore as oc
from outcore import _core
from outcore._array import Array
from outcore._run import plan_and_run
from outcore._session import current
from outcore.errors import MemoryLimitError

_SHARE = 3  # a third of the budget for vectors that last; the matrix and the work have the rest
_SMALL_BYTES = 1 << 16  # vectors that are held in memory in any case


def dot(a: Array, b: Array) -> Array:
    """aᴴ·b, lazily."""
    return oc.sum((oc.conj(a) if a.dtype.kind == "c" else a) * b)


def real_dot(a: Array, b: Array) -> Array:
    """The real part of aᴴ·b: for what is real but for rounding."""
    found = dot(a, b)
    return oc.real(found) if found.dtype.kind == "c" else found


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


def scalar(value: Any, dtype: Any) -> Array:
    """A number as an array of no axes."""
    return oc.asarray(np.asarray(value, dtype=dtype))


def combined(vectors: Sequence[Array], weights: Any) -> Array:
    """Σ wᵢ vᵢ, in one sweep over the vectors. Weights are NumPy's or lazy scalars."""
    total = vectors[0] * weights[0]
    for vector, weight in zip(vectors[1:], weights[1:], strict=True):
        total = total + vector * weight
    return total


def orthogonalized(vector: Array, basis: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The vector less its part in the span of an orthonormal basis, and that part's coordinates, lazily.

    Classical Gram–Schmidt, twice, which is as good as can be (Giraud, Langou, Rozložník 2005). Two sweeps over the
    basis and one more over the vector.
    """
    weights: list[Array] = []
    for _ in range(2 if basis else 0):
        found = [dot(member, vector) for member in basis]
        vector = vector - combined(basis, found)
        weights = [old + new for old, new in zip(weights, found, strict=True)] if weights else found
    return vector, weights


class Holder:
    """Holds vectors that outlast a program: in memory while all of them fit into a third of it, else in scratch files.

    Files go when nothing refers to their vector any more.
    """

    def __init__(self, bytes_each: int, count: int) -> None:
        room = int(current().counters()["budget_bytes"])
        self.on_disk = bytes_each > _SMALL_BYTES and bytes_each * count > room // _SHARE

    def held(self, vectors: Sequence[Array], beside: Sequence[Array] = ()) -> tuple[list[Array], list[Any]]:
        """The vectors with their values computed, and the values of other arrays, all by one program."""
        if not self.on_disk:
            try:
                return self._held(vectors, beside, False)
            except MemoryLimitError:
                self.on_disk = True
        return self._held(vectors, beside, True)

    @staticmethod
    def _held(vectors: Sequence[Array], beside: Sequence[Array], on_disk: bool) -> tuple[list[Array], list[Any]]:
        core = current()._core
        paths = [core.unused_path() if on_disk else None for _ in vectors]
        targets: list[_core.Target | None] = [
            None if path is None else {"path": path, "overwrite": False, "chunks": None} for path in paths
        ]
        exprs = [vector._expr for vector in vectors] + [value._expr for value in beside]
        found, _ = plan_and_run(exprs, targets + [None] * len(beside), progress=False)
        held = [
            Array(core.hold(path) if path is not None else _core.from_numpy(value))  # type: ignore[arg-type]
            for path, value in zip(paths, found, strict=False)
        ]
        return held, list(found[len(vectors) :])


__all__ = ["Holder", "combined", "dot", "norm", "orthogonalized", "ratio", "real_dot", "scalar", "where_broken"]
