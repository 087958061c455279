"""The matrix of the NAS CG benchmark, entry by entry as its specification makes it (Bailey et al.: NPB 1.0, 1994; the
names are those of its code)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from outcore._base.types import PathLike
from outcore.errors import ArgumentError
from outcore.sparse._convert import SIDE
from outcore.sparse._ingest import Options, stored
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._spool import Chunk

_MULTIPLIER, _SEED, _MASK = 1220703125, 314159265, (1 << 46) - 1
_RCOND = 0.1
_BLOCK = 1 << 16  # random numbers that are drawn at once
_VECTORS = 1 << 10  # outer products that are stored at once


class NasClass(NamedTuple):
    """Rows, entries of a vector, outer iterations, shift and the zeta that must come out."""

    n: int
    nonzer: int
    iterations: int
    shift: float
    zeta: float


NAS_CLASSES = {
    "S": NasClass(1400, 7, 15, 10.0, 8.5971775078648),
    "W": NasClass(7000, 8, 15, 12.0, 10.362595087124),
    "A": NasClass(14000, 11, 15, 20.0, 17.130235054029),
    "B": NasClass(75000, 13, 75, 60.0, 22.712745482631),
    "C": NasClass(150000, 15, 75, 110.0, 28.973605592845),
}


def _randlc() -> Iterator[npt.NDArray[np.uint64]]:
    """The generator's states, x = 5¹³ x mod 2⁴⁶, in blocks: products wrap at 2⁶⁴, which 2⁴⁶ divides."""
    powers = np.full(_BLOCK, _MULTIPLIER, np.uint64)
    length = 1
    while length < _BLOCK:
        powers[length : 2 * length] = powers[:length] * powers[length - 1]
        length *= 2
    state = np.uint64(_SEED)
    while True:
        block = powers * state & np.uint64(_MASK)
        state = block[-1]
        yield block


def _drawn(n: int) -> Iterator[tuple[float, int]]:
    """Values and places of `sprnvc`, but for those beyond the matrix. The first number is the benchmark's own."""
    power = 1 << (n - 1).bit_length()
    drawn = np.zeros(0, np.uint64)
    for place, block in enumerate(_randlc()):
        numbers = np.concatenate([drawn, block[1:] if place == 0 else block]) * 2.0**-46
        even = len(numbers) // 2 * 2
        drawn = np.concatenate([drawn, block[1:] if place == 0 else block])[even:]
        places = (numbers[1:even:2] * power).astype(np.int64)
        inside = places < n
        yield from zip(numbers[0:even:2][inside].tolist(), places[inside].tolist(), strict=True)


def _vectors(n: int, nonzer: int) -> Iterator[tuple[list[int], list[float]]]:
    """The sparse vectors: `nonzer` places each, drawn until they differ, and 0.5 at its own place (`vecset`)."""
    drawn = _drawn(n)
    for number in range(n):
        entries: dict[int, float] = {}
        while len(entries) < nonzer:
            value, place = next(drawn)
            entries.setdefault(place, value)
        entries[number] = 0.5
        yield list(entries), list(entries.values())


def _outer_products(kind: NasClass) -> Iterator[Chunk]:
    """The entries of all outer products, the i-th times rcond^(i/n), and rcond - shift on the diagonal."""
    ratio = _RCOND ** (1.0 / kind.n)
    scale = 1.0
    parts: list[Chunk] = []
    for number, (places, values) in enumerate(_vectors(kind.n, kind.nonzer)):
        at, of = np.asarray(places), np.asarray(values)
        entries = np.outer(scale * of, of)
        last = places.index(number)
        entries[last, last] += _RCOND - kind.shift
        parts.append((np.repeat(at, len(at)), np.tile(at, len(at)), entries.ravel()))
        scale *= ratio
        if len(parts) == _VECTORS or number == kind.n - 1:
            yield [np.concatenate(columns) for columns in zip(*parts, strict=True)]
            parts = []


def nas_cg(
    name: Literal["S", "W", "A", "B", "C"], path: PathLike | None = None, *, side: int = SIDE, overwrite: bool = False
) -> SparseMatrix:
    """Stores the matrix of the NAS CG benchmark of class S, W, A, B or C: symmetric, of sums of sparse outer products.

    The benchmark's inverse power iterations over it, 25 steps of conjugate gradients each, give the published zeta.
    `path` is that of `from_entries`. Raises ArgumentError for other classes. I/O: as `from_entries` of an iterator.

    >>> import outcore as oc, tempfile, pathlib
    >>> A = oc.sparse.nas_cg("S", pathlib.Path(tempfile.mkdtemp()) / "a.ocs")
    >>> A.shape, A.nnz
    ((1400, 1400), 78148)
    """
    if name not in NAS_CLASSES:
        raise ArgumentError(f"nas_cg: class {name!r} is none of {', '.join(NAS_CLASSES)}")
    kind = NAS_CLASSES[name]
    options = Options(shape=(kind.n, kind.n), side=side, overwrite=overwrite)
    return stored(_outer_products(kind), path, f"nas-cg {name}", options)


__all__ = ["NAS_CLASSES", "nas_cg"]
