"""Solvers of Ax = b by short recurrences: conjugate gradients, MINRES, BiCGSTAB."""

from __future__ import annotations

import numpy as np

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.sparse.linalg._operators import MatrixLike, Shifted, square
from outcore.sparse.linalg._systems import Callback, Ends, solve, system
from outcore.sparse.linalg._vectors import dot, norm, ratio, real_dot, scalar, where_broken


def cg(
    A: MatrixLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: MatrixLike | None = None,
    callback: Callback | None = None,
    checkpoint: int | None = None,
) -> tuple[Array, int]:
    """Solves Ax = b for a Hermitian positive definite matrix, by conjugate gradients (Hestenes, Stiefel 1952).

    `A` (n, n) is a sparse matrix on disk, a dense array, or anything of SciPy's that multiplies; `b` (n,) or (n, 1).
    `M` approximates the inverse of A and is positive definite too. `callback(x)` sees each iterate. The arguments and
    results are SciPy's: x as a lazy array whose value is held, and 0, or the number of steps where |b − Ax| is still
    above max(rtol·|b|, atol). That is the true residual; where the recurrence's strayed from it, it begins anew.
    `checkpoint` stores the state every so many steps, as `iterate` says.

        q = Ap, α = rᴴz / pᴴq, x ← x + αp, r ← r − αq, z = Mr, p ← z + (rᴴz new / rᴴz old) p

    Memory: x, r, p, old and new (6 vectors), which go to scratch where they take more than a third. Raises ShapeError
    for shapes that differ. I/O: one read of A per step, one for each true residual.

    >>> import numpy as np, outcore as oc
    >>> x, info = oc.sparse.linalg.cg(np.diag([1.0, 2.0, 4.0]), np.ones(3))
    >>> x.compute().round(6), info
    (array([1.  , 0.5 , 0.25]), 0)
    """
    problem = system("cg", A, b, x0, M, Ends(rtol, atol, maxiter))
    a, m = problem.a, problem.m

    def begin(r: Array) -> tuple[Array, ...]:
        z = m @ r
        return r, z, real_dot(r, z), norm(r)

    def step(x: Array, r: Array, p: Array, rz: Array, _: Array) -> tuple[Array, ...]:
        q = a @ p
        along = real_dot(p, q)
        alpha = ratio(rz, along)
        x = x + alpha * p
        r, z = m.pair(r - alpha * q)
        new = real_dot(r, z)
        return x, r, z + ratio(new, rz) * p, new, where_broken(along == 0, norm(r))

    return solve(problem, begin, step, callback, checkpoint)


def bicgstab(
    A: MatrixLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: MatrixLike | None = None,
    callback: Callback | None = None,
    checkpoint: int | None = None,
) -> tuple[Array, int]:
    """Solves Ax = b for any square matrix, by stabilized bi-conjugate gradients (van der Vorst 1992).

    Arguments and results are those of `cg`; `M` stands to the right of A, so that residuals are true ones.

        v = AMp, α = ρ / r̂ᴴv, s = r − αv, t = AMs, ω = tᴴs / tᴴt, x ← x + M(αp + ωs), r ← s − ωt,
        β = (ρ new / ρ old)(α / ω), p ← r + β(p − ωv)

    Memory: 7 vectors. I/O: two reads of A per step, for the second product needs the first.

    >>> import numpy as np, outcore as oc
    >>> x, info = oc.sparse.linalg.bicgstab(np.asarray([[2.0, 1.0], [0.0, 4.0]]), np.asarray([3.0, 4.0]))
    >>> x.compute().round(6), info
    (array([1., 1.]), 0)
    """
    problem = system("bicgstab", A, b, x0, M, Ends(rtol, atol, maxiter))
    a, m = problem.a, problem.m

    def begin(r: Array) -> tuple[Array, ...]:
        return r, r, r, dot(r, r), norm(r)

    def step(x: Array, r: Array, shadow: Array, p: Array, rho: Array, _: Array) -> tuple[Array, ...]:
        p, direction = m.pair(p)
        v = a @ direction
        across = dot(shadow, v)
        alpha = ratio(rho, across)
        s, second = m.pair(r - alpha * v)
        t = a @ second
        omega = ratio(dot(t, s), dot(t, t))
        x = x + alpha * direction + omega * second
        r = s - omega * t
        new = dot(shadow, r)
        beta = ratio(new, rho) * ratio(alpha, omega)
        broken = (across == 0) | (rho == 0)
        return x, r, shadow, r + beta * (p - omega * v), new, where_broken(broken, norm(r))

    return solve(problem, begin, step, callback, checkpoint)


def minres(
    A: MatrixLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: MatrixLike | None = None,
    callback: Callback | None = None,
    checkpoint: int | None = None,
) -> tuple[Array, int]:
    """Solves (A − shift·I)x = b for a Hermitian matrix, definite or not, with least residual (Paige, Saunders 1975).

    Arguments and results are those of `cg`; `M` is positive definite. Of a singular system that has a solution one is
    found. The Lanczos recurrence gives v and a tridiagonal matrix, a Givens rotation per step its QR factors, and with
    their last row (ε, δ, γ): w ← (v − ε w₂ − δ w₁) / γ, x ← x + φw.

    Memory: 12 vectors. I/O: one read of A per step, one for each true residual.

    >>> import numpy as np, outcore as oc
    >>> x, info = oc.sparse.linalg.minres(np.diag([1.0, -2.0, 4.0]), np.ones(3))
    >>> x.compute().round(6), info
    (array([ 1.  , -0.5 ,  0.25]), 0)
    """
    problem = system("minres", Shifted(square(A, "minres"), shift) if shift else A, b, x0, M, Ends(rtol, 0.0, maxiter))
    a, m = problem.a, problem.m
    numbers = np.zeros(0, dtype=problem.dtype).real.dtype
    zero, minus = scalar(0, numbers), scalar(-1, numbers)
    tiny = float(np.finfo(numbers).tiny)

    def begin(r: Array) -> tuple[Array, ...]:
        y = m @ r
        beta = oc.sqrt(real_dot(r, y))
        nothing = oc.zeros_like(r)
        return oc.zeros_like(r), r, y, nothing, nothing, oc.stack([beta, zero, zero, zero, beta, minus, zero]), norm(r)

    def step(*state: Array) -> tuple[Array, ...]:
        x, r1, r2, y, w1, w, kept, size = state
        beta, old, dbar, epsilon, phibar, cs, sn = (kept[place] for place in range(7))
        v = y * ratio(oc.ones_like(beta), beta)
        y = a @ v - ratio(beta, old) * r1
        alpha = real_dot(v, y)
        r, y = m.pair(y - ratio(alpha, beta) * r2)
        new = oc.sqrt(oc.clip(real_dot(r, y), 0.0, None))
        delta, gbar = cs * dbar + sn * alpha, sn * dbar - cs * alpha
        gamma = oc.clip(oc.sqrt(gbar * gbar + new * new), tiny, None)
        across = (v - epsilon * w1 - delta * w) * (1 / gamma)
        rotated = (gbar / gamma, new / gamma)
        phi, new_phibar = rotated[0] * phibar, rotated[1] * phibar
        numbers = oc.stack([new, beta, -cs * new, sn * new, new_phibar, *rotated])
        # Without M this is |r|; with it, |r| if both had shrunk alike: the true one decides.
        return x + phi * across, r2, r, y, w, across, numbers, size * ratio(new_phibar, phibar)

    return solve(problem, begin, step, callback, checkpoint)


__all__ = ["bicgstab", "cg", "minres"]
