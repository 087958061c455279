"""A Krylov space that is built block by block and cut down by thick restarts: Krylov–Schur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._run.holding import Holder
from outcore.errors import LinAlgError
from outcore.sparse.linalg._operators import Operator
from outcore.sparse.linalg._vectors import Basis, dot, norm, ratio

_LOST = 1e-4  # a vector of which a block leaves less is made orthogonal to the basis once more
_SPENT = 64  # rounding errors, below which nothing is left of a vector


class Krylov:
    """Orthonormal vectors V with A V = V T + Q B, where Q is the next block (Stewart 2001; Zhou, Saad 2008).

    V and Q are held vectors (n, 1), all others small matrices: T (m, m), B (b, m). `reads` counts products, each
    of them one read of A. There is no block before `begin` or `resume`. The first `locked` vectors span a space of
    their own, which A does not leave, and the others go on beside it.
    """

    def __init__(self, name: str, a: Operator, width: int, capacity: int, dtype: DType, seed: int) -> None:
        self._name, self._a, self.dtype, self._seed = name, a, dtype, seed
        self._holder = Holder(a.shape[0] * dtype.itemsize, 2 * capacity)
        self.basis = Basis(self._holder)
        self.t: NDArray = np.zeros((0, 0), dtype=dtype)
        self.b: NDArray = np.zeros((width, 0), dtype=dtype)
        self.reads = self.locked = 0
        self.skew = 0.0  # part of a product by which xᴴ(Ay) and (Ax)ᴴy differed at most
        self.next: list[Array] = []

    def begin(self, first: Array | None = None) -> None:
        """The first block: of `first`, or a random vector, and of random ones beside it."""
        self.next = [self._fresh([], None if first is None else first[:, None])]
        for _ in range(1, len(self.b)):
            self.next.append(self._fresh(self.next))

    def state(self) -> tuple[list[Array], list[npt.ArrayLike]]:
        """After a restart, all that the space goes on from: V and Q, and beside them T, B, the seed of its last random
        vector and the number of vectors that are locked."""
        return [self.basis.whole(), *self.next], [self.t, self.b, self._seed, self.locked]

    def resume(self, arrays: Sequence[Array], values: Sequence[NDArray]) -> None:
        """Goes on from a `state`, which is copied: its files go with the next one that is stored."""
        basis, *self.next = (self._holder.held([array])[0][0] for array in arrays)
        self.basis.replace(basis)
        self.t, self.b = values[:2]
        self._seed, self.locked = (int(number) for number in values[2:])

    def _fresh(self, others: list[Array], start: Array | None = None) -> Array:
        """A vector of length 1 that is orthogonal to the basis and the others: a given one's part, or a random one."""
        if start is None:
            self._seed += 1
            start = oc.random.normal((self._a.shape[0], 1), seed=self._seed)
        orthogonal = start.astype(self.dtype)
        for _ in range(2):
            orthogonal = self.basis.orthogonalized(orthogonal)[0]
            orthogonal, _weights = _against(orthogonal, others)
        return self._holder.held([_unit(orthogonal)[0]])[0][0]

    def expand(self) -> None:
        """One product: the next block joins the basis, and what A makes of it, less its part in V, is the next."""
        block = self.next[0]
        if len(self.next) > 1:
            (block,), _ = self._holder.held([oc.concat(self.next, axis=1)])
        self.basis.append(block)
        self.reads += 1
        orthogonal, along = self.basis.orthogonalized(self._a @ block)
        units: list[Array] = []
        beside: list[Array] = []
        for place in range(len(self.next)):
            vector = orthogonal[:, place : place + 1]
            before = norm(vector)
            vector, within = _against(vector, units)
            unit, size = _unit(vector)
            units.append(unit)
            beside.append(oc.stack([*within, size, before]))
        self.next, numbers = self._holder.held(units, [*beside, *along])
        right = np.vstack(numbers[len(units) :]).astype(self.dtype)
        self._grow(right, [np.asarray(part) for part in numbers[: len(units)]])

    def _grow(self, right: NDArray, inner: list[NDArray]) -> None:
        """T and B of the basis with the block that joined it, from their inner products."""
        width, old, size = len(inner), len(self.t), len(self.basis)
        check_range(self._name, self.dtype, [right, *inner], is_first=old == 0)
        largest = max(np.abs(part).max(initial=0.0) for part in (self.t, right))
        if largest > 0:
            self.skew = max(self.skew, float(np.abs(right[:old] - self.b.conj().T).max(initial=0.0) / largest))
        r = np.zeros((width, width), dtype=self.dtype)
        for place, numbers in enumerate(inner):
            r[: place + 1, place] = numbers[:-1]
            last, before = abs(numbers[-2]), abs(numbers[-1])
            whole = np.hypot(np.linalg.norm(right[:, place]), before)
            if last <= _SPENT * np.finfo(self.dtype).eps * whole:
                # The space is invariant under A in this direction: any other goes on from here.
                r[place, place] = 0
                self.next[place] = self._fresh(self._others(place))
            elif last < _LOST * before:
                self.next[place] = self._fresh(self._others(place), self.next[place])
        t = np.zeros((size, size), dtype=self.dtype)
        t[:old, :old], t[:, old:], t[old:, :old] = self.t, right, self.b
        self.t = t
        self.b = np.hstack([np.zeros((width, old), dtype=self.dtype), r])

    def _others(self, place: int) -> list[Array]:
        return [vector for other, vector in enumerate(self.next) if other != place]

    def lock(self, vectors: Array, t: NDArray) -> None:
        """Keeps vectors that span an invariant space of A, on which it is `t`, and goes on from random ones beside."""
        self.basis.replace(vectors)
        self.locked = len(t)
        self.t, self.b = np.asarray(t, dtype=self.dtype), np.zeros((len(self.b), len(t)), dtype=self.dtype)
        self.begin()

    def unlock(self, hermitian: bool) -> None:
        """All vectors are equal again."""
        if hermitian:
            self.t[self.locked :, : self.locked] = self.t[: self.locked, self.locked :].conj().T
        self.locked = 0

    def vectors(self, weights: NDArray) -> Array:
        """V · weights, held; of the first vectors where weights are fewer."""
        return self._holder.held([self.basis.product(weights, self.dtype)])[0][0]

    def restart(self, weights: NDArray, t: NDArray) -> None:
        """V ← V · weights, for columns that span an invariant subspace of T, on which it is `t`."""
        self.basis.replace(self.vectors(weights))
        self.t, self.b = np.asarray(t, dtype=self.dtype), np.asarray(self.b @ weights, dtype=self.dtype)


def check_range(name: str, dtype: DType, products: list[NDArray], *, is_first: bool) -> None:
    """Raises LinAlgError for products that are not finite, and for first ones whose squares underflow."""
    largest = max((float(np.abs(part).max(initial=0.0)) for part in products), default=0.0)
    if not all(np.isfinite(part).all() for part in products):
        raise LinAlgError(
            f"{name}: products with the matrix are not finite: it has NaN or infinity, or numbers whose squares "
            f"{dtype} does not hold; scale it"
        )
    limits = np.finfo(dtype)
    if is_first and 0 < largest < float(np.sqrt(limits.tiny / limits.eps)):
        raise LinAlgError(
            f"{name}: products with the matrix are at most {largest}, whose squares {dtype} loses; scale it"
        )


def _against(vector: Array, others: list[Array]) -> tuple[Array, list[Array]]:
    """The vector less its part along each of some orthonormal ones, and what that is."""
    weights = [dot(other, vector) for other in others]
    for other, weight in zip(others, weights, strict=True):
        vector = vector - other * weight
    return vector, weights


def _unit(vector: Array) -> tuple[Array, Array]:
    size = norm(vector)
    return vector * ratio(oc.ones_like(size), size), size


__all__ = ["Krylov", "check_range"]
