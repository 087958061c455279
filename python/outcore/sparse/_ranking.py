"""Vertices ranked by the edges to them: PageRank and HITS."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._array import Array
from outcore._iterate import Loop, iterate
from outcore._node import node
from outcore.errors import ArgumentError, ShapeError
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


def inverse_sums(A: SparseMatrix, order: int) -> Array:
    """1 over each row's sum, 0 for rows without entries, held. I/O: one read of A."""
    sums = A @ oc.ones(order)
    return oc.persist(oc.where(sums == 0, 0.0, 1 / oc.where(sums == 0, 1.0, sums)))


def pagerank(
    A: SparseMatrix,
    damping: float = 0.85,
    iterations: int = 100,
    tol: float = 1e-9,
    personalization: Any = None,
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
    outside 0 to 1 and for negative or NaN in A or p. I/O: one read of A for its row sums, two for signs, and one per
    step, less what stays in memory.

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

    # The vectors that do not change are part of the state, so that a loop of another process knows them.
    def step(r: Array, inverse: Array, p: Array) -> Any:
        dangling = oc.sum(oc.where(inverse == 0, r, 0.0))
        new = damping * (A.T @ (r * inverse)) + (damping * dangling + (1 - damping)) * p
        return new, inverse, p, {"change": oc.sum(oc.abs(new - r))}

    loop = iterate(
        step,
        (spread, inverse_sums(A, order), spread),
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
    vectors. Raises ShapeError for a matrix that is not square. I/O: two reads of A per step, less what stays in memory.

    >>> import outcore as oc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> hubs, authorities = oc.sparse.hits(oc.sparse.from_coo([0, 1, 2], [2, 2, 0], None, (3, 3), path))
    >>> authorities.compute().round(6)
    array([0., 0., 1.])
    """
    order = order_of("hits", A)
    start = oc.full(order, 1 / max(order, 1))

    def unit(x: Array) -> Array:
        size = oc.sum(oc.abs(x))
        return x / oc.where(size == 0, 1.0, size)

    def step(h: Array, a: Array) -> Any:
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


__all__ = ["check_signs", "hits", "inverse_sums", "order_of", "pagerank"]
