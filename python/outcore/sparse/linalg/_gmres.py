"""`gmres`: least residual over a Krylov space, begun again when its basis has grown to a given size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.driver import Driver
from outcore._run.holding import Holder
from outcore.errors import ArgumentError, LinAlgError
from outcore.sparse.linalg._operators import MatrixLike
from outcore.sparse.linalg._systems import Ends, System, system
from outcore.sparse.linalg._vectors import Basis, norm, ratio

_RESTART = 20


def gmres(
    A: MatrixLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: MatrixLike | None = None,
    callback: Callable[[Any], object] | None = None,
    callback_type: str | None = None,
) -> tuple[Array, int]:
    """Solves Ax = b for any square matrix, by GMRES restarted after `restart` steps, 20 unless told (Saad, Schultz
    1986).

    Arguments and results are SciPy's, see `cg`; `maxiter` counts restarts. `M` stands to the right of A. Of
    `callback_type` "x" gives `callback` the iterate of each restart; "pr_norm", and unless told, |r| / |b| of each
    step. Convergence is that of the true residual, which each restart forms.

    With V orthonormal and AMV = VH: x ← x + MVy for the y that makes |β e₁ − Hy| least.

    Memory: `restart` + 4 vectors, in scratch where they take more than a third. Raises ShapeError for shapes that
    differ. I/O: one read of A per step and per restart.

    >>> import numpy as np, outcore as oc
    >>> x, info = oc.sparse.linalg.gmres(np.asarray([[2.0, 1.0], [0.0, 4.0]]), np.asarray([3.0, 4.0]))
    >>> x.compute().round(6), info
    (array([1., 1.]), 0)
    """
    problem = system("gmres", A, b, x0, M, Ends(rtol, atol, maxiter))
    if callback_type not in (None, "x", "pr_norm", "legacy"):
        raise ArgumentError(f"gmres: callback_type={callback_type!r} is none of x, pr_norm, legacy")
    order = problem.a.shape[0]
    if restart is not None and restart < 1:
        raise ArgumentError(f"gmres: restart={restart}; at least one step has to run")
    length = min(_RESTART if restart is None else restart, order)
    x = oc.zeros(order, dtype=problem.dtype) if problem.first is None else problem.first
    if problem.size == 0:
        return problem.result(oc.zeros(order, dtype=problem.dtype)), 0
    holder = Holder(order * problem.dtype.itemsize, length + 4)
    tell = callback if callback is not None and callback_type != "x" else None
    shown = problem.rescaled(callback) if tell is None else None
    taken, before, old = 0, np.inf, x
    with Driver("gmres").running() as driver:
        for _ in range(problem.most + 1):
            r = problem.b - problem.a @ x if taken or problem.first is not None else problem.b
            (x, r), (size,) = holder.held([x, r], [norm(r)])
            if taken:
                driver.tell(problem.most, "restart", residual=float(size))
            if not np.isfinite(size):
                problem.check_products()
                x = old
                break
            if taken and shown is not None:
                shown(x)
            if size <= problem.limit or not size < before or taken >= problem.most * length:
                break
            before = size
            basis, h = _arnoldi(problem, r, float(size), length, holder, tell)
            y = _least(h, float(size))
            taken += len(y)
            old, x = x, x + problem.m @ basis.product(y[:, None], problem.dtype)[:, 0]
    return problem.result(x), 0 if size <= problem.limit else max(taken, 1)


def _arnoldi(
    problem: System, r: Array, size: float, length: int, holder: Holder, tell: Callable[[float], object] | None
) -> tuple[Basis, NDArray]:
    """An orthonormal basis of the Krylov space of AM and r, and H (k + 1, k)."""
    h = np.zeros((length + 1, length), dtype=np.result_type(problem.dtype, np.float64))
    basis = Basis(holder)
    (last,), _ = holder.held([r[:, None] * (1 / size)])
    for step in range(length):
        basis.append(last)
        orthogonal, weights = basis.orthogonalized(problem.a @ (problem.m @ last))
        long = norm(orthogonal)
        (last,), sizes = holder.held([orthogonal * ratio(oc.ones_like(long), long)], [long, *weights])
        h[: step + 1, step], h[step + 1, step] = np.vstack(sizes[1:])[:, 0], sizes[0]
        if not np.isfinite(h[: step + 2, step]).all():
            problem.check_products()
            raise LinAlgError(f"gmres: products with A are beyond the range of {problem.dtype}; scale A")
        part = h[: step + 2, : step + 1]
        y = _least(part, size)
        residual = np.linalg.norm(np.append(size, np.zeros(step + 1)) - part @ y)
        if tell is not None:
            tell(float(residual / problem.size))
        # Nothing is left of a vector that lay in the space already.
        spent = abs(h[step + 1, step]) <= np.finfo(problem.dtype).eps * np.linalg.norm(h[: step + 2, step])
        if residual <= problem.limit or spent:
            return basis, part
    return basis, h


def _least(h: NDArray, size: float) -> NDArray:
    """The y that makes |size·e₁ − Hy| least."""
    right = np.zeros(len(h), dtype=h.dtype)
    right[0] = size
    coefficients: NDArray = np.linalg.lstsq(h, right, rcond=None)[0]
    return coefficients


__all__ = ["gmres"]
