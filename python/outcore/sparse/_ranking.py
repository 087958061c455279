"""Vertices ranked by the edges to them: PageRank and HITS."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._run.iterate import Loop, iterate
from outcore.errors import ArgumentError, ShapeError
from outcore.sparse._along import check_room
from outcore.sparse._matrix import SparseMatrix


def order_of(name: str, A: SparseMatrix) -> int:
    """The number of vertices. Raises ShapeError for a matrix that is not square."""
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"{name}: a matrix of shape {A.shape} is no graph")
    return A.shape[0]


def check_signs(name: str, A: SparseMatrix) -> None:
    """Raises ArgumentError for entries that are negative or NaN. I/O: two reads of A, where its type has such."""
    if A.is_pattern or A.dtype.kind in "bu" or 0 in A.shape:
        return
    kept = oc.ones(A.shape[1], dtype=np.float64)
    low, total = oc.compute(oc.min(A.product(kept, "min_first")), oc.sum(A.product(kept)))
    if float(low) < 0 or np.isnan(total):
        least = "one is NaN" if np.isnan(total) else f"the least is {float(low)}"
        raise ArgumentError(f"{name}: entries of {A!r} must not be negative or NaN; {least}")


# Sums that have an inverse, and by which a number from 0 to 1 may be divided and multiplied by an entry.
_USUAL = (1e-150, 1e150)


def _largest(name: str, A: SparseMatrix) -> Array:
    """The largest size of an entry of each row, 0 where there is none, in memory. Raises ArgumentError for infinity and
    NaN. I/O: one read of A."""
    rows = oc.ones(A.shape[1])
    extremes = oc.maximum(A.product(rows, "max_first"), -A.product(rows, "min_first"))
    largest = oc.persist(oc.maximum(extremes, 0.0))
    # NaN is passed over by extremes, and not by sums.
    if not np.isfinite(float(oc.max(largest).compute())) or bool(oc.any(oc.isnan(A @ (rows * 1e-160))).compute()):
        raise ArgumentError(f"{name}: entries of {A!r} must be finite")
    return oc.persist(oc.where(largest == -np.inf, 0.0, largest))


def _is_usual(sums: Array) -> bool:
    """Whether all sums but 0 may be divided by."""
    if sums.shape[0] == 0:
        return True
    sizes = oc.abs(sums)
    low, high = oc.compute(oc.min(oc.where(sizes == 0, 1.0, sizes)), oc.max(sizes))
    return bool(_USUAL[0] <= low and high <= _USUAL[1])


def _powered(A: SparseMatrix, exponents: npt.ArrayLike) -> SparseMatrix:
    """A with its rows multiplied by powers of two, which change no ratios; lazy."""
    by = np.asarray(exponents, np.int32).reshape(-1, 1)
    # In two steps, since a power may be beyond those that a number has.
    half = by // 2
    return A.multiply(np.ldexp(1.0, half)).multiply(np.ldexp(1.0, by - half)).astype(A.dtype)


def by_row_sums(name: str, A: SparseMatrix, order: int) -> tuple[SparseMatrix, Array]:
    """A, and 1 over each row's sum, 0 for rows without entries, held: A[i, j] times that of its row is its share.

    Where a sum has no inverse of usual size it is another A, whose rows are multiplied by powers of two. Raises
    ArgumentError for infinite entries. I/O: one read of A; where sums are not of usual size two more, and a write.
    """
    sums = oc.persist(A @ oc.ones(order))
    if not _is_usual(sums):
        check_room(name, 16 * order, f"{order} numbers and exponents")
        A = _powered(A, -np.frexp(_largest(name, A).compute())[1])
        sums = A @ oc.ones(order)
    return A, oc.persist(oc.where(sums == 0, 0.0, 1 / oc.where(sums == 0, 1.0, sums)))


def of_usual_size(name: str, A: SparseMatrix) -> tuple[SparseMatrix, int]:
    """A and 0, or where sums of its entries and products of such might not be numbers of their size, A times a power of
    two and the exponent of that.

    Raises ArgumentError for infinity and NaN. I/O: one read of A, where it has floating numbers.
    """
    if A.is_pattern or A.dtype.kind != "f" or 0 in A.shape:
        return A, 0
    largest = float(oc.max(_largest(name, A)).compute())
    if largest == 0 or _USUAL[0] <= largest <= _USUAL[1]:
        return A, 0
    exponent = -int(np.frexp(largest)[1])
    return _powered(A, exponent), exponent


def check_size(name: str, A: SparseMatrix) -> None:
    """Raises ArgumentError for entries whose squares are no numbers. I/O: one read of A, if it has such."""
    if A.is_pattern or A.dtype.kind != "f" or 0 in A.shape:
        return
    largest = float(oc.max(_largest(name, A)).compute())
    if largest > _USUAL[1]:
        raise ArgumentError(f"{name}: an entry of {A!r} is as large as {largest}; divide all, to {_USUAL[1]} at most")


def pagerank(
    A: SparseMatrix,
    damping: float = 0.85,
    iterations: int = 100,
    tol: float = 1e-9,
    personalization: Operand | None = None,
    *,
    checkpoint: int | None = None,
    full_output: bool = False,
) -> Any:
    """PageRank of each vertex (Page, Brin, Motwani, Winograd 1999): float64 (n,), with sum 1.

    A[i, j] is the weight of an edge i → j. With d = `damping`, p = `personalization` (its sum is made 1; equal parts
    unless given) and s the row sums of A:

        r ← d Aᵀ(r / s) + (d Σ_{s=0} r + 1 − d) p

    so the mass of dangling vertices is spread as p. It ends after `iterations` steps, or where Σ|r new − r| ≤ `tol`.
    `checkpoint` is that of `iterate`; with `full_output` the loop comes as well, with `history["change"]`.

    Memory: 4 vectors. Raises ShapeError for a matrix that is not square or another p, ArgumentError for a damping
    outside 0 to 1 and for negative, infinite or NaN in A or p. I/O: one read of A for its row sums, two for signs, and
    one per step, less what stays in memory. Where a row sum is below 1e-150 or above 1e150, A with rows multiplied by
    powers of two is stored in scratch before.

    >>> import numpy as np, outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_coo([0, 1, 2], [2, 2, 0], None, (3, 3), path)
    >>> oc.sparse.pagerank(A).compute().round(3)
    array([0.464, 0.05 , 0.486])
    """
    order = order_of("pagerank", A)
    if not 0 <= damping <= 1 or iterations < 1:
        raise ArgumentError(f"pagerank: damping={damping}, iterations={iterations}: 0 to 1, and at least 1")
    spread = oc.full(order, 1 / max(order, 1))
    if personalization is not None:
        spread = Array(node(personalization)).astype(np.float64)
        if spread.shape != (order,):
            raise ShapeError(f"pagerank: personalization {spread.shape} of {order} vertices")
        total, least = (float(part) for part in oc.compute(oc.sum(spread), oc.min(spread))) if order else (1.0, 0.0)
        if not (np.isfinite(total) and total > 0 and least >= 0):
            raise ArgumentError(
                f"pagerank: personalization adds up to {total}, with {least} as the least: from 0 on, not all 0"
            )
        spread = oc.persist(spread / total)
    check_signs("pagerank", A)
    if order == 0:
        return (spread, None) if full_output else spread

    A, inverse = by_row_sums("pagerank", A, order)

    # The vectors that do not change are part of the state, so that a loop of another process knows them.
    def step(r: Array, inverse: Array, p: Array) -> tuple[Array | dict[str, Array], ...]:
        dangling = oc.sum(oc.where(inverse == 0, r, 0.0))
        new = damping * (A.T @ (r * inverse)) + (damping * dangling + (1 - damping)) * p
        return new, inverse, p, {"change": oc.sum(oc.abs(new - r))}

    loop = iterate(
        step,
        (spread, inverse, spread),
        until=lambda old, new, _: oc.sum(oc.abs(new[0] - old[0])) <= tol,
        max_iter=iterations,
        checkpoint=checkpoint,
    )
    return (loop.state[0], loop) if full_output else loop.state[0]


def hits(
    A: SparseMatrix, iterations: int = 100, tol: float = 1e-8, *, checkpoint: int | None = None
) -> tuple[Array, Array]:
    """Hubs and authorities (Kleinberg 1999): float64 (n,) each, with sum 1.

        a ← Aᵀh / |Aᵀh|₁, h ← Aa / |Aa|₁

    from equal parts, until Σ|h new − h| ≤ `tol` or for so many steps. Of a graph without edges both are 0. Memory: 4
    vectors. Raises ShapeError for a matrix that is not square, ArgumentError for infinity and NaN. I/O: one read of A
    where it has floating numbers, and two per step, less what stays in memory.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> hubs, authorities = oc.sparse.hits(oc.sparse.from_coo([0, 1, 2], [2, 2, 0], None, (3, 3), path))
    >>> authorities.compute().round(6)
    array([0., 0., 1.])
    """
    order = order_of("hits", A)
    start = oc.full(order, 1 / max(order, 1))
    A, _ = of_usual_size("hits", A)

    def unit(x: Array) -> Array:
        size = oc.sum(oc.abs(x))
        return x / oc.where(size == 0, 1.0, size)

    def step(h: Array, a: Array) -> tuple[Array, ...]:
        a = unit(A.T @ h)
        return unit(A @ a), a

    loop: Loop = iterate(
        step,
        (start, start),
        until=lambda old, new, _: oc.sum(oc.abs(new[0] - old[0])) <= tol,
        max_iter=iterations,
        checkpoint=checkpoint,
    )
    return loop[0], loop[1]


__all__ = ["by_row_sums", "check_signs", "check_size", "hits", "of_usual_size", "order_of", "pagerank"]
