"""Vertices by their neighbours: labels that spread along edges, coordinates from the spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._run.iterate import iterate
from outcore.errors import ArgumentError, ShapeError
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._ranking import by_row_sums, of_usual_size, order_of
from outcore.sparse.linalg._eigenvalues import eigsh
from outcore.sparse.linalg._operators import Scaled, operator


def label_propagation(
    A: SparseMatrix,
    labels: Operand,
    iterations: int = 1000,
    tol: float = 1e-3,
    *,
    checkpoint: int | None = None,
) -> tuple[Array, Array]:
    """Labels of all vertices from those of a few (Zhu, Ghahramani 2002): a label each (n,), and the weights (n, k).

    `labels` (n,) are integers from 0, and −1 where unknown; k is one more than the largest. With D the row sums of A:

        F ← D⁻¹ A F, then the rows of known vertices as they were

    until Σ|F new − F| ≤ `tol`, or for so many steps. Rows of F add up to 1 where a known vertex is within reach, else
    they are 0 and the label stays −1. Memory: F old and new. Raises ShapeError for labels that do not go with A,
    ArgumentError where none is known, and for infinite entries. I/O: one read of A for its row sums, and one per
    step. Where a row sum is below 1e-150 or above 1e150 it is as for `pagerank`.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.diags_array([np.ones(3), np.ones(3)], offsets=[-1, 1]), path)
    >>> oc.sparse.label_propagation(A, np.asarray([0, -1, -1, 1]))[0].compute()
    array([0, 0, 1, 1])
    """
    order = order_of("label_propagation", A)
    known = Array(node(labels))
    if known.shape != (order,) or known.dtype.kind not in "iu":
        raise ShapeError(f"label_propagation: labels {known.shape} of {known.dtype}, and {order} vertices")
    count = int(oc.max(known).compute()) + 1 if order else 0
    if count < 1:
        raise ArgumentError(f"label_propagation: none of {order} labels is known")
    known = oc.persist(known)
    A, inverse = by_row_sums("label_propagation", A, order)
    start = (known[:, None] == oc.arange(count)[None, :]).astype(np.float64)

    def step(f: Array, inverse: Array, known: Array) -> tuple[Array, ...]:
        spread = inverse[:, None] * (A @ f)
        return oc.where((known >= 0)[:, None], f, spread), inverse, known

    loop = iterate(
        step,
        (start, inverse, known),
        until=lambda old, new, _: oc.sum(oc.abs(new[0] - old[0])) <= tol,
        max_iter=iterations,
        checkpoint=checkpoint,
    )
    weights = loop.state[0]
    return oc.where(oc.max(weights, axis=1) > 0, oc.argmax(weights, axis=1), -1), weights


def spectral_embedding(A: SparseMatrix, components: int = 8, *, drop_first: bool = True, **options: Any) -> Array:
    """Coordinates (n, components) of the vertices of an undirected graph by its normalized Laplacian (Belkin, Niyogi
    2003; Ng, Jordan, Weiss 2002).

    The eigenvectors of I − D^(−½) A D^(−½) with the least eigenvalues, divided by √D, as scikit-learn's function of
    this name gives them; the first, which is the same for all vertices of a component, is dropped unless told. A is
    symmetric, with weights that are not negative. Vertices without edges lie at 0. `options` are those of `eigsh`, of
    which `checkpoint` is of no use to another process: D is in memory.
    Memory and errors as `eigsh`. I/O: two reads of A for D, else as `eigsh`.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.diags_array([np.ones(3), np.ones(3)], offsets=[-1, 1]), path)
    >>> line = oc.sparse.spectral_embedding(A, 1).compute()[:, 0]
    >>> np.abs(np.diff(np.sign(line))).sum()
    np.float64(2.0)
    """
    order = order_of("spectral_embedding", A)
    A, exponent = of_usual_size("spectral_embedding", A)
    sums = A @ oc.ones(order)
    root = oc.persist(oc.where(sums == 0, 0.0, 1 / oc.sqrt(oc.where(sums == 0, 1.0, sums))))
    first = int(drop_first)
    # The least of I − S are the largest of S.
    inner = Scaled(root, operator(A, "spectral_embedding"), root)
    _, vectors = eigsh(inner, components + first, which="LA", **options)
    embedding: Array = (root[:, None] * vectors)[:, ::-1][:, first:]
    return embedding if exponent == 0 else embedding * 2.0 ** (exponent / 2)


__all__ = ["label_propagation", "spectral_embedding"]
