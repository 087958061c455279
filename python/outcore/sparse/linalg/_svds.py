"""`svds`: some singular values by eigenvalues of AᴴA, or by a single pass over random products."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.holding import Holder
from outcore.errors import ArgumentError
from outcore.sparse.linalg._eigenvalues import Search, columns_of, some_eigenvalues
from outcore.sparse.linalg._operators import MatrixLike, Normal, floating_dtype, operator


def svds(
    A: MatrixLike,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Operand | None = None,
    maxiter: int | None = None,
    return_singular_vectors: bool = True,
    *,
    block_size: int = 1,
    seed: int = 0,
    checkpoint: int | None = None,
) -> Any:
    """The k largest singular values of a matrix (m, n), or the smallest (`which="SM"`), with their vectors.

    As SciPy's: u (m, k), s ascending, vh (k, n); only s without `return_singular_vectors`. s is NumPy's, vectors are
    lazy arrays whose values are held.

    Eigenvectors V of AᴴA (of AAᴴ for wide matrices) by `eigsh`; then the QR factors of AV, one of which is small: its
    singular values are A's to rounding of the largest, where square roots of eigenvalues would lose half the digits.
    Memory: as `eigsh`, of vectors of the shorter side; k of each side beside. Errors and `checkpoint`, which holds for
    the eigenvectors, as `eigsh`. I/O: two reads of A per product, a forward one and a transposed one, and one more.

    >>> import numpy as np, outcore as oc
    >>> u, s, vh = oc.sparse.linalg.svds(np.diag([3.0, 2.0, 1.0]), k=2)
    >>> s.round(6), (u @ np.diag(s) @ vh).compute().round(6)[0, 0]
    (array([2., 3.]), np.float64(3.0))
    """
    if which not in ("LM", "SM"):
        raise ArgumentError(f"svds: which={which!r} is neither LM nor SM")
    a = operator(A, "svds")
    normal = Normal(a)
    end = "LA" if which == "LM" else "SA"
    search = Search(k, end, v0, tol, ncv, block_size, maxiter, seed, checkpoint)
    values, vectors = some_eigenvalues("svds", normal, search)
    vectors = columns_of(vectors, np.argsort(values))
    far = a @ vectors if normal.tall else a.adjoint(vectors)
    q, small, turns = _factored(far)
    if not return_singular_vectors:
        return small
    near = vectors @ oc.asarray(turns)
    (q, near), _ = Holder(max(a.shape) * k * 16, 2).held([q, near])
    return (q, small, oc.conj(near.T)) if normal.tall else (near, small, oc.conj(q.T))


def _factored(tall: Array) -> tuple[Array, NDArray, NDArray]:
    """Left vectors, singular values (ascending) and right vectors (k, k) of a matrix of few columns."""
    q, r = oc.linalg.qr(tall)
    (q,), (small,) = Holder(tall.nbytes, 2).held([q], [r])
    u, s, vh = np.linalg.svd(small)
    order = np.argsort(s)
    return q @ oc.asarray(np.ascontiguousarray(u[:, order])), s[order], np.ascontiguousarray(vh[order].conj().T)


def randomized_svd(
    A: MatrixLike, k: int = 6, *, oversamples: int | None = None, seed: int = 0
) -> tuple[Array, NDArray, Array]:
    """An approximation of the k largest singular values and vectors from two reads of A: u, s (ascending), vh.

    The sketch Y = AΩ of a random matrix Ω (n, r), with r = k + `oversamples` (k + 10 unless told), spans most of the
    range of A. With Y = QR: A ≈ Q (QᴴA), cut to k (Halko, Martinsson, Tropp 2011, algorithm 5.1), which is never worse
    than the zero matrix. Its error is that of the best approximation of rank k to a small factor where the spectrum
    falls quickly; `svds` is exact. Memory: Ω and the sketch, some 3 (m + n) r values, in scratch where they do not fit.
    I/O: one read of A forwards, and one transposed.

    >>> import numpy as np, outcore as oc
    >>> u, s, vh = oc.sparse.linalg.randomized_svd(np.outer(np.arange(4.0), np.ones(3)), k=1)
    >>> s.round(6)
    array([6.480741])
    """
    a = operator(A, "randomized_svd")
    rows, columns = a.shape
    if not 1 <= k <= min(rows, columns):
        raise ArgumentError(f"randomized_svd: k={k} of a matrix {a.shape}")
    r = min(k + (k + 10 if oversamples is None else oversamples), rows, columns)
    dtype = floating_dtype(a.dtype)
    holder = Holder(max(rows, columns) * r * dtype.itemsize, 4)
    (omega,), _ = holder.held([oc.random.normal((columns, r), seed=seed).astype(dtype)])
    (q,), _ = holder.held([oc.linalg.qr(a @ omega)[0]])
    right, s, turns = _factored(a.adjoint(q))
    chosen = oc.asarray(np.ascontiguousarray(turns[:, -k:]))
    (u, v), _ = holder.held([q @ chosen, right[:, -k:]])
    return u, s[-k:], oc.conj(v.T)


__all__ = ["randomized_svd", "svds"]
