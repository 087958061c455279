"""Null spaces of singular matrices by the factor of a matrix nearby."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outcore import _api as oc
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._run.holding import Holder
from outcore.linalg._condition import one_norm
from outcore.sparse._matrix import SparseMatrix

# Steps of inverse iteration, corrections, and vectors at least.
_STEPS, _CORRECTIONS, _LEAST = 2, 2, 8


def null_space_of(
    matrix: SparseMatrix,
    dtype: DType,
    expected: int,
    tol: float,
    solved: Callable[[Array], Array],
    solved_adjoint: Callable[[Array], Array],
) -> Array:
    """Orthonormal columns x with |A x| ≤ tol |A|₁, of which as many are expected: by inverse iteration with the factor,
    in which pivots that are 0 were replaced by small ones."""
    rows, count = matrix.shape[0], max(_LEAST, expected + 1)
    norm = one_norm(matrix) or 1.0
    while True:
        count = min(count, rows)
        x = _small_vectors(matrix, dtype, count, expected > 0, solved, solved_adjoint)
        holder = Holder(rows * count * dtype.itemsize, 2)
        product = holder.held([(matrix @ x) / norm])[0][0]
        values, adjoint = (np.asarray(part) for part in oc.compute(*oc.linalg.svd(product, full_matrices=False)[1:]))
        is_null = values <= tol
        if count == rows or not is_null.all():
            turned = np.ascontiguousarray(adjoint[is_null].conj().T)
            return holder.held([x @ oc.asarray(turned)])[0][0] if turned.shape[1] else oc.zeros((rows, 0), dtype=dtype)
        count *= 2


def _small_vectors(
    matrix: SparseMatrix,
    dtype: DType,
    count: int,
    is_perturbed: bool,
    solved: Callable[[Array], Array],
    solved_adjoint: Callable[[Array], Array],
) -> Array:
    """Orthonormal vectors that the matrix makes smallest."""
    rows = matrix.shape[0]
    holder = Holder(rows * count * dtype.itemsize, 4)

    def orthonormal(x: Array) -> Array:
        largest = oc.max(oc.abs(x), axis=0)
        return holder.held([oc.linalg.qr(x / oc.where(largest > 0, largest, 1.0))[0]])[0][0]

    draws = [oc.random.normal((rows, count), seed=seed) for seed in range(1 + (dtype.kind == "c"))]
    x = holder.held([draws[0] + 1j * draws[1] if dtype.kind == "c" else draws[0]])[0][0]
    for _ in range(_STEPS):
        x = orthonormal(holder.held([solved_adjoint(x)])[0][0])
        x = orthonormal(holder.held([solved(x)])[0][0])
    # The factor is that of a matrix nearby; of its small vectors this leaves the part that A makes 0.
    for _ in range(_CORRECTIONS if is_perturbed else 0):
        product = holder.held([matrix @ x])[0][0]
        x = orthonormal(holder.held([x - solved(product)])[0][0])
    return x


__all__: list[str] = []
