"""Factors of a sparse matrix: without negative entries, and by alternating least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._run.iterate import Loop, iterate
from outcore.errors import ArgumentError
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._ranking import check_signs, check_size

_EPSILON = float(np.finfo(np.float32).eps)
# Squares of larger sums are no numbers.
_SUM_MAX = 1e150


def _factors(name: str, A: SparseMatrix, k: int, seed: int, scale: float) -> tuple[Array, Array]:
    """Random factors (m, k) and (n, k), not negative."""
    if k < 1 or A.dtype.kind == "c":
        raise ArgumentError(f"{name}: k={k} factors of a matrix of {A.dtype}; at least one, of real numbers")
    first, second = (oc.random.normal((A.shape[way], k), seed=seed + way) for way in (0, 1))
    return oc.abs(first) * scale, oc.abs(second) * scale


def nmf(
    A: SparseMatrix,
    k: int,
    iterations: int = 200,
    tol: float = 1e-4,
    *,
    seed: int = 0,
    checkpoint: int | None = None,
    full_output: bool = False,
) -> Any:
    """Non-negative W (m, k) and H (k, n) that make |A − WH| small, of a sparse matrix without negative entries.

        W ← W ∘ AHᵀ / WHHᵀ, then H ← H ∘ WᵀA / WᵀWH

    (Lee, Seung 2001; Zheng 2017, 4.4.3), from random factors, until a step changes |A|² − |A − WH|² by less than
    `tol` of it. Places without entries are 0, so |A − WH|² = |A|² − 2 tr(WᵀAHᵀ) + tr(WᵀW HHᵀ) needs no dense matrix.
    Zeros stay zeros. With `full_output` the loop comes as well, with `history["gain"]`. Memory: both factors, old and
    new, which go to scratch where they take more than a third. Raises ArgumentError for k below 1, complex matrices,
    and entries that are negative or NaN. I/O: three reads of A before, for signs and the mean, and two per step, and
    those of products with factors that do not fit.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array(np.outer([1.0, 2.0, 0.0], [3.0, 0.0, 1.0])), path)
    >>> W, H = oc.sparse.nmf(A, 1)
    >>> (W @ H).compute().round(6)[1]
    array([6., 0., 2.])
    """
    _factors("nmf", A, k, seed, 1.0)
    check_signs("nmf", A)
    total = float(A.sum().compute())
    if not total <= _SUM_MAX:
        raise ArgumentError(f"nmf: the entries of {A!r} add up to {total}; divide them, to {_SUM_MAX} at most")
    mean = total / max(A.shape[0] * A.shape[1], 1)
    start = _factors("nmf", A, k, seed, float(np.sqrt(mean / max(k, 1))))

    def ratio(above: Array, below: Array) -> Array:
        return above / oc.where(below == 0, _EPSILON, below)

    def step(w: Array, h: Array, _: Array) -> tuple[Array | dict[str, Array], ...]:
        w = w * ratio(A @ h, w @ (h.T @ h))
        across, gram = A.T @ w, w.T @ w
        h = h * ratio(across, h @ gram)
        # |A − WH|² less |A|², which no step changes.
        squared_error = oc.sum(gram * (h.T @ h)) - 2.0 * oc.sum(across * h)
        return w, h, squared_error, {"gain": -squared_error}

    loop: Loop = iterate(
        step,
        (*start, oc.zeros(())),
        until=lambda old, new, taken: (oc.abs(old[2] - new[2]) <= tol * oc.abs(new[2])) if taken > 1 else False,
        max_iter=iterations,
        checkpoint=checkpoint,
    )
    factors = loop[0], loop[1].T
    return (*factors, loop) if full_output else factors


def als(
    A: SparseMatrix,
    k: int,
    iterations: int = 15,
    regularization: float = 0.01,
    *,
    seed: int = 0,
    checkpoint: int | None = None,
) -> tuple[Array, Array]:
    """U (m, k) and V (n, k) that make |A − UVᵀ|² + λ(|U|² + |V|²) least in turn: alternating least squares.

        U ← AV (VᵀV + λI)⁻¹, then V ← AᵀU (UᵀU + λI)⁻¹

    with λ = `regularization` above 0 (Hu, Koren, Volinsky 2008, with equal confidence: what is not stored is 0).
    Memory: both factors, old and new. Raises ArgumentError for k below 1, complex matrices, λ of 0 or below, and
    entries that are not finite or above 1e150. I/O: one read of A for its largest, and two per step.

    >>> import numpy as np, outcore as oc, scipy.sparse, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
    >>> A = oc.sparse.from_scipy(scipy.sparse.csr_array(np.outer([1.0, 2.0, 0.0], [3.0, 0.0, 1.0])), path)
    >>> U, V = oc.sparse.als(A, 1, regularization=1e-9)
    >>> (U @ V.T).compute().round(6)[1]
    array([6., 0., 2.])
    """
    if not regularization > 0:
        raise ArgumentError(f"als: regularization={regularization}; it is above 0")
    check_size("als", A)
    start = _factors("als", A, k, seed, 1 / float(np.sqrt(max(k, 1))))
    ridge = regularization * oc.eye(k)

    def solved(product: Array, other: Array) -> Array:
        return oc.linalg.solve(other.T @ other + ridge, product.T).T

    def step(u: Array, v: Array) -> tuple[Array, ...]:
        u = solved(A @ v, v)
        return u, solved(A.T @ u, u)

    loop: Loop = iterate(step, start, max_iter=iterations, checkpoint=checkpoint)
    return loop[0], loop[1]


__all__ = ["als", "nmf"]
