"""Systems of linear equations with dense matrices, by what is known of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import mean_dtype
from outcore._run.factors import dense_cholesky
from outcore._standard.creation import empty, eye, tril, triu
from outcore._standard.linear_algebra import matrix_transpose
from outcore._standard.manipulation import broadcast_shapes, broadcast_to, expand_dims
from outcore._standard.searching import where
from outcore.errors import ArgumentError, ShapeError
from outcore.linalg._triangular import solve_triangular
from outcore.linalg._whole import adjoint, check_square, factors_of, is_empty, widened
from outcore.linalg.factorizations import cholesky, goes_by_slabs, solved_by_slabs

_Structure: TypeAlias = Literal[
    "gen",
    "general",
    "sym",
    "symmetric",
    "her",
    "hermitian",
    "pos",
    "positive definite",
    "lower triangular",
    "upper triangular",
    "diagonal",
    "tridiagonal",
    "banded",
]
# Names of SciPy, and the method of each.
_METHODS = {
    **dict.fromkeys(("gen", "general", "tridiagonal", "banded"), "general"),
    **dict.fromkeys(("sym", "symmetric"), "symmetric"),
    **dict.fromkeys(("her", "hermitian"), "hermitian"),
    **dict.fromkeys(("pos", "positive definite"), "definite"),
    **{name: name for name in ("lower triangular", "upper triangular", "diagonal")},
}


def solve(x1: Operand, x2: Operand, /, *, assume_a: _Structure = "gen", lower: bool = False) -> Array:
    """X of A X = B for square A (…, n, n) and B (n,) or (…, n, k); leading axes broadcast.

    `assume_a` says what is known of A, with SciPy's names: "pos" is Hermitian positive definite, for half of the
    operations and bytes; "lower triangular", "upper triangular" and "diagonal" take that part of it; "sym" and "her"
    take one triangle, as "pos" does, the upper one or the `lower`, and have the factors of "gen", as "tridiagonal" and
    "banded" have.

    When computed, LinAlgError where a matrix is singular, or with "pos" not positive definite. Raises ArgumentError for
    another `assume_a`, ShapeError for shapes that do not go together. I/O: one read of both; of one matrix of more than
    2048 rows, larger than memory or not, that and a write of `lu_factor` (of "pos", of any size, of `cho_factor`), and
    two reads of the factor. The residual is not looked at: `lu_factor(x1).solve(x2)` does.

    >>> import numpy as np, outcore as oc
    >>> oc.linalg.solve(np.asarray([[2.0, 0.0], [0.0, 4.0]]), np.asarray([2.0, 2.0])).compute()
    array([1. , 0.5])
    >>> oc.linalg.solve(np.diag([4.0, 9.0]), np.asarray([8.0, 9.0]), assume_a="pos").compute()
    array([2., 1.])
    """
    method = _METHODS.get(assume_a) if isinstance(assume_a, str) else None
    if method is None:
        raise ArgumentError(f"solve: assume_a={assume_a!r} is none of {', '.join(map(repr, _METHODS))}")
    left = widened("solve", x1)[0]
    check_square("solve", left)
    right = Array(node(x2))
    kind = np.result_type(mean_dtype(Array(node(x1)).dtype), mean_dtype(right.dtype))
    is_vector = right.ndim == 1
    if is_vector:
        right = expand_dims(right, axis=1)
    if right.ndim < 2 or right.shape[-2] != left.shape[-1]:
        raise ShapeError(f"solve: {left.shape} and {Array(node(x2)).shape} do not go together")
    wide = np.dtype(np.complex128 if kind.kind == "c" else np.float64)
    try:
        batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ShapeError:
        raise ShapeError(f"solve: {left.shape} and {right.shape}: leading axes do not broadcast") from None
    left, right = (broadcast_to(part.astype(wide), (*batch, *part.shape[-2:])) for part in (left, right))
    if is_empty(left) or is_empty(right):
        solution = empty(right.shape, dtype=kind)
    else:
        solution = _solved(left, right, method, lower).astype(kind)
    return solution.squeeze(-1) if is_vector else solution


def _solved(left: Array, right: Array, method: str, lower: bool) -> Array:
    """X for matrices and right-hand sides of one type and equal leading axes."""
    if method == "definite":
        return _solved_definite(left if lower else adjoint(left), right)
    if method in ("symmetric", "hermitian"):
        turned = matrix_transpose if method == "symmetric" else adjoint
        kept, beside = (tril(left), tril(left, k=-1)) if lower else (triu(left), triu(left, k=1))
        left = kept + turned(beside)
    elif method == "diagonal":
        left, method = where(eye(left.shape[-1], dtype=bool), left, 0.0), "lower triangular"
    if method.endswith("triangular"):
        is_lower = method == "lower triangular"
        if left.ndim == 2:
            return solve_triangular(left, right, lower=is_lower)
        left = tril(left) if is_lower else triu(left)
    return solved_by_slabs(left, right) if goes_by_slabs(left) else factors_of("solve", left, right)[0]


def _solved_definite(left: Array, right: Array) -> Array:
    """X by the Cholesky factors of the lower triangles."""
    if left.ndim == 2:
        analysis, factor = dense_cholesky(left._expr)
        return Array(analysis.solve(factor, left.dtype.name, right._expr))
    triangle = cholesky(left)
    half = factors_of("solve", triangle, right)[0]
    return factors_of("solve", adjoint(triangle), half)[0]


__all__ = ["solve"]
