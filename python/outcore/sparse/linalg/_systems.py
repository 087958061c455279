"""The common part of solvers of Ax = b: their arguments, and the loop that believes a true residual only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from outcore import _api as oc
from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._run.driver import Driver
from outcore._run.holding import Holder
from outcore.errors import ArgumentError, LinAlgError, ShapeError
from outcore.sparse.linalg._operators import Identity, MatrixLike, Operator, floating_dtype, square
from outcore.sparse.linalg._vectors import norm

Begin = Callable[[Array], "tuple[Array, ...]"]
SolverStep = Callable[..., "tuple[Array, ...]"]
Callback = Callable[[Array], object]
_WORTH = 0.5  # a loop is begun again where the one before took the true residual down at least by this


@dataclass(frozen=True)
class System:
    """The arguments of a solver, checked and as lazy arrays. `limit` is the residual to reach.

    `b` and `first` are `scale` times those that were given, a power of two: squares of very large numbers overflow.
    """

    name: str
    a: Operator
    b: Array
    first: Array | None
    m: Operator
    shape: tuple[int, ...]
    dtype: DType
    size: float
    limit: float
    most: int
    scale: float

    def result(self, x: Array) -> Array:
        """A solution in the shape and the size of the right side that was given."""
        if self.scale != 1:
            x = unscaled(self.name, x, self.scale)
        return x if len(self.shape) == 1 else x[:, None]

    def rescaled(self, callback: Callback | None) -> Callback | None:
        """`callback`, which sees iterates of the size that was given."""
        if callback is None or self.scale == 1:
            return callback
        return lambda x: callback(x * (1 / self.scale))

    def check_products(self) -> None:
        """Raises LinAlgError where NaN comes from the matrix, or the preconditioner. I/O: one read of each."""
        for what, product in (("A", self.a @ oc.ones(self.a.shape[0], dtype=self.dtype)), ("M", self.m @ self.b)):
            if not bool(oc.all(oc.isfinite(product)).compute()):
                raise LinAlgError(f"{self.name}: products with {what} are not finite: it has NaN or infinity; mend it")


def scale_for(largest: float, dtype: DType) -> float:
    """The power of two that brings the largest of some numbers near 1, where its square would overflow or be lost."""
    limits = np.finfo(dtype)
    root = float(limits.eps)
    if largest == 0 or float(np.sqrt(limits.tiny)) / root <= largest <= float(np.sqrt(limits.max)) * root:
        return 1.0
    most = limits.maxexp - 4  # so that the scale and its inverse are numbers
    return float(np.ldexp(1.0, int(np.clip(-np.frexp(largest)[1], -most, most))))


def unscaled(name: str, x: Array, scale: float) -> Array:
    """x / scale, held. Raises LinAlgError where its type does not hold it."""
    (solution,), (largest,) = Holder(x.nbytes, 2).held([x * (1 / scale)], [oc.max(oc.abs(x))])
    if not float(largest) <= float(np.finfo(x.dtype).max) * scale:
        raise LinAlgError(f"{name}: the solution has numbers beyond the range of {x.dtype}; scale A or b")
    return solution


def largest_of(name: str, **vectors: Array | None) -> float:
    """The largest size of an element of the first vector. Raises ArgumentError for NaN and infinity. I/O: one read."""
    present = {what: part for what, part in vectors.items() if part is not None and part.size}
    extremes = oc.compute(*(oc.max(oc.abs(part)) for part in present.values())) if present else ()
    sizes = [float(size) for size in (extremes if isinstance(extremes, tuple) else (extremes,))]
    for what, size in zip(present, sizes, strict=True):
        if not np.isfinite(size):
            raise ArgumentError(f"{name}: {what} has NaN or infinity; replace them, as by nan_to_num")
    return sizes[0] if sizes else 0.0


def vector(name: str, x: Operand, length: int, what: str) -> Array:
    """A vector (n,) of an argument of that shape or (n, 1)."""
    array = Array(node(x))
    if array.shape not in ((length,), (length, 1)):
        raise ShapeError(f"{name}: {what} has shape {array.shape}, the matrix asks for ({length},)")
    return array if array.ndim == 1 else array[:, 0]


@dataclass(frozen=True)
class Ends:
    """When a solver ends: |b − Ax| at most max(rtol·|b|, atol), or after `maxiter` steps."""

    rtol: float
    atol: float
    maxiter: int | None


def system(name: str, A: MatrixLike, b: Operand, x0: Operand | None, M: MatrixLike | None, ends: Ends) -> System:
    """The arguments of a solver, checked. I/O: one read of b, for its largest element, and its norm."""
    rtol, atol, maxiter = ends.rtol, ends.atol, ends.maxiter
    a = square(A, name)
    order = a.shape[0]
    m = Identity(a.shape, a.dtype) if M is None else square(getattr(M, "outcore_preconditioner", M), name)
    if m.shape != a.shape:
        raise ShapeError(f"{name}: preconditioner {m.shape}, matrix {a.shape}")
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"{name}: rtol={rtol}, atol={atol}: neither is negative")
    right = vector(name, b, order, "b")
    first = None if x0 is None else vector(name, x0, order, "x0")
    parts: list[Operator | Array] = [right, *([] if M is None else [m]), *([] if first is None else [first])]
    dtype = floating_dtype(a.dtype, *(part.dtype for part in parts))
    scale = scale_for(largest_of(name, b=right, x0=first), dtype)
    right, first = right.astype(dtype), None if first is None else first.astype(dtype)
    if scale != 1:
        right, first = right * scale, None if first is None else first * scale
    size = float(norm(right).compute())
    most = 10 * order if maxiter is None else int(maxiter)
    shape = Array(node(b)).shape
    return System(name, a, right, first, m, shape, dtype, size, max(rtol * size, atol * scale), most, scale)


def solve(
    problem: System, begin: Begin, step: SolverStep, callback: Callback | None, checkpoint: int | None
) -> tuple[Array, int]:
    """Iterates until the true residual |b − Ax| is small, and gives x and SciPy's `info`.

    `begin(r)` gives what a method keeps beside x, for a residual r; `step(x, *kept)` the next of all. The last that is
    kept is the method's own idea of |r|: NaN says that it broke down. Where that is small the true one is formed, at
    the cost of one product, and the method begins anew from it where it is not.
    """
    order = problem.a.shape[0]
    x = oc.zeros(order, dtype=problem.dtype) if problem.first is None else problem.first
    if problem.size == 0:
        return problem.result(oc.zeros(order, dtype=problem.dtype)), 0
    holder = Holder(order * problem.dtype.itemsize, 8)
    r, size = problem.b, problem.size
    if problem.first is not None:
        (x, r), size = _residual(problem, holder, x)
    taken, shown = 0, problem.rescaled(callback)

    def named(*state: Array) -> tuple[Array | dict[str, Array], ...]:
        new = step(*state)
        return (*new, {"residual": new[-1]})

    def until(old: tuple[Array, ...], new: tuple[Array, ...], number: int) -> Array:
        # The values of the state before are known, so that `callback` costs no computation.
        if shown is not None and number > 1:
            shown(old[0])
        return ~(new[-1] > problem.limit)

    with Driver(problem.name).running():
        while size > problem.limit and taken < problem.most:
            most = problem.most - taken
            loop = oc.iterate(named, (x, *begin(r)), until=until, max_iter=most, checkpoint=checkpoint)
            taken += loop.iterations
            before, old = size, x
            (x, r), size = _residual(problem, holder, loop.state[0])
            if shown is not None:
                shown(x)
            if not size < before:
                if not np.isfinite(size):
                    problem.check_products()
                    x = old
                break
            if size > _WORTH * before:
                break
    return problem.result(x), 0 if size <= problem.limit else max(taken, 1)


def _residual(problem: System, holder: Holder, x: Array) -> tuple[list[Array], float]:
    r = problem.b - problem.a @ x
    held, values = holder.held([x, r], [norm(r)])
    return held, float(values[0])


__all__ = ["System", "largest_of", "scale_for", "solve", "system", "unscaled", "vector"]
