"""Incomplete factors without fill, IC(0) and ILU(0), of a matrix that fits into memory: made and solved by levels.

Rows that do not depend on each other are a level, and are worked on at once (Anderson, Saad 1989; Saad 2003, 11.6). A
grid of n³ points has about 3n levels; a matrix with entries beside its whole diagonal has one level for each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore._session import current
from outcore.errors import LinAlgError, MemoryLimitError
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._operators import floating_dtype, square

Indices = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
_PAIRS_MAX = 1 << 20  # pairs of entries that meet in one step of elimination
STEP_MAX = 1 << 16  # entries of a step of a solve, unless one row has more


class Entries(NamedTuple):
    """Entries by rows and columns, ascending."""

    order: int
    rows: Indices
    columns: Indices
    values: Numbers


def _entries_of(name: str, A: SparseMatrix, *, lower: bool) -> Entries:
    """The entries of a square matrix in memory, without those above the diagonal where `lower`.

    Raises MemoryLimitError where they and the factors take more than there is. I/O: one read of A.
    """
    order = square(A, name).shape[0]
    dtype = floating_dtype(A.dtype)
    entries = A.nnz // 2 + order if lower else A.nnz
    need, room = entries * (72 + 5 * dtype.itemsize) + 64 * order, current().counters()["budget_bytes"]
    if need > room:
        raise MemoryLimitError(f"{name}: the factors of {A!r} take {need} bytes while they are made, there are {room}")
    parts = [_lower(*block) if lower else block for block in A.blocks()]
    r, c, v = (np.concatenate([part[which] for part in parts]) if parts else np.zeros(0) for which in range(3))
    rows, columns = r.astype(np.int64), c.astype(np.int64)
    by_row = np.lexsort((columns, rows))
    return Entries(order, rows[by_row], columns[by_row], v.astype(dtype)[by_row])


def _lower(rows: Any, columns: Any, values: Any) -> tuple[Any, Any, Any]:
    kept = columns <= rows
    return rows[kept], columns[kept], values[kept]


def _starts(sorted_numbers: Indices, order: int) -> Indices:
    """Where the entries of each row begin, and where the last ends."""
    return np.searchsorted(sorted_numbers, np.arange(order + 1))


def _spread(starts: Indices, counts: Indices) -> Indices:
    """starts[0], starts[0] + 1, … (counts[0] of them), starts[1], …"""
    ends = np.cumsum(counts)
    found: Indices = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return found


def levels_of(order: int, after: Indices, before: Indices) -> list[Indices]:
    """Rows by levels: each row `after` in a later one than the row `before` (Kahn's order, a level at a time)."""
    by_before = np.argsort(before, kind="stable")
    starts, after = _starts(before[by_before], order), after[by_before]
    counts = np.diff(starts)
    left = np.bincount(after, minlength=order)
    ready, found = np.flatnonzero(left == 0), []
    while len(ready):
        found.append(ready)
        reached, times = np.unique(after[_spread(starts[ready], counts[ready])], return_counts=True)
        left[reached] -= times
        ready = reached[left[reached] == 0]
    return found


class Triangle:
    """Solves with a triangular matrix with ones on its diagonal, of which only the other entries are stored."""

    def __init__(self, order: int, rows: Indices, columns: Indices, values: Numbers) -> None:
        by_row = np.argsort(rows, kind="stable")
        starts = _starts(rows[by_row], order)
        counts = np.diff(starts)
        wide = levels_of(order, rows, columns)[1:]  # rows of the first have no entries
        levels = [level[part] for level in wide for part in _cut(counts[level], STEP_MAX)]
        every = [_spread(starts[level], counts[level]) for level in levels]
        used = by_row[np.concatenate(every)] if every else by_row[:0]
        self._columns, self._values = columns[used], values[used]
        ends = np.cumsum([0, *(len(entries) for entries in every)])
        firsts = [np.cumsum(counts[level]) - counts[level] for level in levels]
        self._levels = list(zip(levels, firsts, ends[:-1], ends[1:], strict=True))

    def solve(self, x: Numbers) -> None:
        """Puts T⁻¹x in the place of x (n, columns)."""
        for rows, firsts, begin, end in self._levels:
            terms = self._values[begin:end, None] * x[self._columns[begin:end]]
            x[rows] -= np.add.reduceat(terms, firsts, axis=0)


class Incomplete:
    """L·D·U with ones on the diagonals of L and U, or L·D·Lᴴ without U: an approximate inverse."""

    def __init__(self, pivots: Numbers, lower: Entries, upper: Entries | None) -> None:
        self.shape, self.dtype = (len(pivots), len(pivots)), pivots.dtype
        self._pivots = pivots
        self._forward = Triangle(*lower), Triangle(*(_adjoint(lower) if upper is None else upper))
        self._factors = None if upper is None else (lower, upper)
        self._backward = self._forward if upper is None else None

    def prepare_adjoint(self) -> None:
        """Orders the factors' conjugate transposes by levels, which takes as much memory again."""
        if self._backward is None and self._factors is not None:
            lower, upper = self._factors
            self._backward = Triangle(*_adjoint(upper)), Triangle(*_adjoint(lower))

    def solve(self, x: Numbers, way: str) -> Numbers:
        """(LDU)⁻¹x, or with "H" the product of its conjugate transpose."""
        found = x.reshape(len(x), -1).astype(np.result_type(x.dtype, self.dtype))
        triangles = self._forward if way == "N" else self._backward
        assert triangles is not None
        triangles[0].solve(found)
        found /= (self._pivots if way == "N" else self._pivots.conj())[:, None]
        triangles[1].solve(found)
        return found.reshape(x.shape)


def _adjoint(of: Entries) -> Entries:
    return Entries(of.order, of.columns, of.rows, of.values.conj())


def factors_of(name: str, A: SparseMatrix, *, hermitian: bool, shift: float = 0.0) -> Incomplete:
    """The factors of a matrix. Raises MemoryLimitError, ShapeError, LinAlgError. I/O: one read of A."""
    # What elimination works on is gone before triangles are put in order.
    return Incomplete(*_eliminated(name, _entries_of(name, A, lower=hermitian), hermitian, 1 + shift))


def _eliminated(
    name: str, given: Entries, hermitian: bool, diagonal_scale: float
) -> tuple[Numbers, Entries, Entries | None]:
    """Gaussian elimination that leaves away what falls where no entry is (Meijerink, van der Vorst 1977).

    The rows of a level are pivots at once: entries (i, k) below pivots become those of L, and each pair of entries
    (i, k) and (k, j) is taken off the entry (i, j), if there is one: a_ij ← a_ij − (a_ik / a_kk) a_kj. Of a Hermitian
    matrix only the lower half is given, and a_kj is the conjugate of a_jk. Overwrites the values.
    """
    order, rows, columns, values = given
    keys = rows * order + columns
    diagonal = _diagonal(name, order, keys)
    values[diagonal] *= diagonal_scale
    below = np.flatnonzero(rows > columns)
    below = below[np.argsort(columns[below], kind="stable")]
    down = _starts(columns[below], order)
    above, far = (below, rows) if hermitian else (np.flatnonzero(rows < columns), columns)
    across = down if hermitian else _starts(rows[above], order)
    downs, acrosses = np.diff(down), np.diff(across)
    aside = np.flatnonzero(rows != columns)
    ends = rows[aside], columns[aside]
    for level in levels_of(order, np.maximum(*ends), np.minimum(*ends)):
        _check_pivots(name, level, values[diagonal[level]], hermitian)
        column, pivots = below[_spread(down[level], downs[level])], np.repeat(level, downs[level])
        lower = values[column] / values[diagonal[pivots]]
        met = acrosses[pivots]
        for part in _cut(met, _PAIRS_MAX):
            entries = np.repeat(np.arange(part.start, part.stop), met[part])
            partners = above[_spread(across[pivots[part]], met[part])]
            places, there = _found(keys, rows[column[entries]] * order + far[partners])
            right = values[partners].conj() if hermitian else values[partners]
            np.subtract.at(values, places, lower[entries[there]] * right[there])
        values[column] = lower
    pivots = values[diagonal]
    lower_part = Entries(order, rows[below], columns[below], values[below])
    if hermitian:
        return pivots.real.astype(values.dtype), lower_part, None
    upper_part = Entries(order, rows[above], columns[above], values[above] / pivots[rows[above]])
    return pivots, lower_part, upper_part


def _diagonal(name: str, order: int, keys: Indices) -> Indices:
    """Where the diagonal's entries are."""
    wanted = np.arange(order) * (order + 1)
    places, there = _found(keys, wanted)
    if len(there) < order:
        row = np.setdiff1d(np.arange(order), there)[0]
        raise LinAlgError(f"{name}: row {row} has no entry on the diagonal")
    return places


def _found(keys: Indices, wanted: Indices) -> tuple[Indices, Indices]:
    """Where some of the keys are, and which of those wanted they are."""
    places = np.searchsorted(keys, wanted)
    there = np.flatnonzero(keys[np.minimum(places, len(keys) - 1)] == wanted) if len(keys) else places[:0]
    return places[there], there


def _cut(met: Indices, most: int) -> Iterator[slice]:
    """Runs of what counts so much each, together `most` unless it is one that counts more."""
    total = np.cumsum(met)
    begin = 0
    while begin < len(met):
        done = total[begin - 1] if begin else 0
        end = max(int(np.searchsorted(total, done + most, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end


def _check_pivots(name: str, rows: Indices, pivots: Numbers, hermitian: bool) -> None:
    good = pivots.real > 0 if hermitian else pivots != 0
    bad = np.flatnonzero(~(good & np.isfinite(pivots)))
    if len(bad):
        row, pivot = rows[bad[0]], pivots[bad[0]]
        wanted = "positive; a shift may help" if hermitian else "another number than 0"
        raise LinAlgError(
            f"{name}: the pivot of row {row} is {pivot.real if hermitian else pivot}; it must be {wanted}"
        )


__all__ = ["STEP_MAX", "Incomplete", "factors_of"]
