"""What eigensolvers share: which eigenvalues are wanted, when they are good, and what is said when they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import outcore as oc
from outcore._array import Array
from outcore._checkpoints import Checkpoints, content
from outcore.errors import ArgumentError, LinAlgError
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._krylov import Krylov
from outcore.sparse.linalg._operators import Operator, Shifted
from outcore.sparse.linalg._preconditioners import factored
from outcore.sparse.linalg._restarts import Restarts

Numbers = npt.NDArray[Any]
_DENSE = 96  # matrices up to this order are solved whole
_ROUNDINGS = 4  # of |A|, to which an estimate of a residual is brought where no tolerance is given
_SLACK = 200  # roundings of |A|, to which a true residual can be brought


class NotConvergedError(LinAlgError):
    """Eigenvalues that did not converge: `eigenvalues` and `eigenvectors` are those that did, as in SciPy's error."""

    def __init__(self, message: str, eigenvalues: Numbers, eigenvectors: Array | None) -> None:
        super().__init__(message, {"converged": len(eigenvalues)})
        self.eigenvalues, self.eigenvectors = eigenvalues, eigenvectors


@dataclass(frozen=True)
class Problem:
    """An eigenproblem: `a` is judged by, `inner` iterated with, whose
    eigenvalues `forward` gives of A's, and `back` the other way. `given` is the inverse that the caller has."""

    name: str
    a: Operator
    inner: Operator
    forward: Callable[[Numbers], Numbers]
    back: Callable[[Numbers], Numbers]
    k: int
    capacity: int
    width: int
    most: int
    tol: float
    dtype: np.dtype[Any]
    order_of: Callable[[Numbers], npt.NDArray[np.int64]]
    hermitian: bool
    which: str
    sigma: complex | None
    given: Operator | None


def inverse(name: str, A: Any, a: Operator, sigma: complex) -> Operator:
    """(A − σI)⁻¹: complete LU factors of a matrix that fits into memory."""
    if isinstance(A, SparseMatrix):
        found = A.to_scipy()
    elif hasattr(A, "tocsc"):
        found = A
    else:
        raise ArgumentError(f"{name}: sigma={sigma} of {type(A).__name__} needs OPinv, which solves (A - sigma I)x = b")
    import scipy.sparse

    dtype = Shifted(a, sigma).dtype
    return factored(found.astype(dtype) - sigma * scipy.sparse.eye_array(a.shape[0], dtype=dtype))


def problem_checked(
    name: str, a: Operator, k: int, ncv: int | None, width: int, maxiter: int | None
) -> tuple[int, int]:
    """The size that the basis may grow to, and the most restarts."""
    order = a.shape[0]
    if not 1 <= k <= order:
        raise ArgumentError(f"{name}: k={k} of a matrix of order {order}")
    if width < 1:
        raise ArgumentError(f"{name}: block_size={width}; a block has at least one vector")
    least = k + 2 * width
    capacity = max(2 * k + 1, 20) * (1 if width == 1 else 2) + 4 * (width - 1) if ncv is None else ncv
    if ncv is not None and ncv < min(least, order):
        raise ArgumentError(f"{name}: ncv={ncv}; k={k} values by blocks of {width} need {least} vectors")
    return max(min(capacity, order), min(least, order)), 10 * order if maxiter is None else maxiter


def solved(problem: Problem, v0: Array | None, seed: int, checkpoint: int | None) -> tuple[Numbers, Array]:
    """Eigenvalues, as `order_of` puts them, and their vectors. Raises NotConvergedError.

    The state is stored after each `checkpoint` restarts.
    """
    order = problem.a.shape[0]
    if order <= max(problem.capacity + problem.width, _DENSE):
        return _whole(problem)
    space = Krylov(problem.inner, problem.width, problem.capacity, problem.dtype, seed)
    restarts = Restarts(space, v0, None if checkpoint is None else _stored(problem, v0, seed, checkpoint))
    while restarts.done < problem.most:
        while len(space.basis) + problem.width <= problem.capacity:
            space.expand()
        found, weights = _pairs(problem, space.t)
        ranks = problem.order_of(found)
        wanted = ranks[: problem.k]
        limit = _limit(problem, found[wanted], found) * restarts.stricter
        done = np.linalg.norm(space.b @ weights[:, wanted], axis=0) <= limit
        if done.all():
            values, vectors, good = _judged(problem, found[wanted], space.vectors(weights[:, wanted]))
            if good.all():
                restarts.finish()
                return values, vectors
            restarts.stricter /= 4
        _restart(problem, space, found, weights, int(done.sum()))
        restarts.count(problem.most)
    error = _not_converged(problem, space)
    restarts.finish()
    raise error


def _stored(problem: Problem, v0: Array | None, seed: int, checkpoint: int) -> Checkpoints:
    """Where the states of this problem are, and of no other."""
    return Checkpoints.known_by(checkpoint, f"a loop of {problem.name}", _identity(problem, v0, seed))


def _identity(problem: Problem, v0: Array | None, seed: int) -> Iterator[str]:
    """What tells a problem from others: its numbers, its products with zeros, and the vector that it begins with."""
    numbers = (problem.k, problem.capacity, problem.width, float(problem.tol), seed)
    sigma = None if problem.sigma is None else complex(problem.sigma)
    yield f"{oc.__version__} {problem.name} {problem.which} {sigma} {problem.dtype} {numbers}"
    zeros = oc.zeros((problem.a.shape[0], problem.width), dtype=problem.dtype)
    yield (problem.a @ zeros)._expr.digest
    if problem.given is not None:
        yield (problem.given @ zeros)._expr.digest
    if v0 is not None:
        yield content(v0)


def _not_converged(problem: Problem, space: Krylov) -> NotConvergedError:
    """The error that has what did converge. I/O: one read of A."""
    found, weights = _pairs(problem, space.t)
    wanted = problem.order_of(found)[: problem.k]
    values, vectors, good = _judged(problem, found[wanted], space.vectors(weights[:, wanted]))
    kept = [vectors[:, place] for place in np.flatnonzero(good)]
    return NotConvergedError(
        f"{problem.name}: {len(kept)} of {problem.k} eigenvalues converged in {problem.most} restarts",
        values[good],
        oc.stack(kept, axis=1) if kept else None,
    )


def _whole(problem: Problem) -> tuple[Numbers, Array]:
    """All eigenvalues of a small matrix, by LAPACK, of which the wanted ones are taken."""
    order = problem.a.shape[0]
    matrix = (problem.a @ oc.eye(order, dtype=problem.dtype)).compute()
    values, vectors = np.linalg.eigh(matrix) if problem.hermitian else np.linalg.eig(matrix)
    with np.errstate(divide="ignore"):
        wanted = problem.order_of(problem.forward(values))[: problem.k]
    return values[wanted], oc.asarray(np.ascontiguousarray(vectors[:, wanted]))


def _pairs(problem: Problem, t: Numbers) -> tuple[Numbers, Numbers]:
    """Eigenvalues and vectors of the projected matrix."""
    if problem.hermitian:
        return np.linalg.eigh((t + t.conj().T) / 2)
    return np.linalg.eig(t)


def _limit(problem: Problem, values: Numbers, whole: Numbers) -> Numbers:
    """Residuals of tol · |θ|, or of some roundings of the largest |θ| that is known, below which none can be told."""
    eps = float(np.finfo(problem.dtype).eps)
    found: Numbers = np.maximum(problem.tol * np.abs(values), _ROUNDINGS * eps * np.abs(whole).max())
    return found


def _restart(problem: Problem, space: Krylov, found: Numbers, weights: Numbers, done: int) -> None:
    """Keeps what is wanted, and some of what is near it, so that it does not have to be found again."""
    size = len(found)
    count = min(problem.k + max(done, (size - problem.k) // 3), size - problem.width)
    kept = problem.order_of(found)[:count]
    if problem.hermitian:
        space.restart(weights[:, kept], np.diag(found[kept]))
        return
    from scipy.linalg import schur

    t, vectors, count = schur(space.t, output="complex", sort=_Chosen(found[kept]))
    space.restart(vectors[:, :count], t[:count, :count])


class _Chosen:
    """Whether an eigenvalue that LAPACK found once more is one of some."""

    def __init__(self, values: Numbers) -> None:
        self._values = values
        self._near = 1e-6 * max(float(np.abs(values).max()), np.finfo(np.float64).tiny)

    def __call__(self, value: complex) -> bool:
        return bool((np.abs(self._values - value) <= self._near).any())


def _judged(problem: Problem, found: Numbers, vectors: Array) -> tuple[Numbers, Array, npt.NDArray[Any]]:
    """Eigenvalues of the matrix itself, and whether true residuals |Ax − λx| are small. I/O: one read of A."""
    values = problem.back(found)
    order, count = vectors.shape
    # What A makes of any vector tells how large it is: of eigenvalues inside its spectrum none does.
    probe = oc.random.normal((order, 1), seed=1).astype(problem.dtype) * (1 / np.sqrt(order))
    images = problem.a @ oc.concat([vectors, probe], axis=1)
    scale = oc.asarray(values.astype(problem.dtype))
    wanted = (images[:, :count] - vectors * scale, vectors, images[:, count:])
    residuals, lengths, whole = oc.compute(*(oc.linalg.vector_norm(part, axis=0) for part in wanted))
    least = _SLACK * np.finfo(problem.dtype).eps * max(float(whole[0]), float(np.abs(values).max()))
    limit = np.maximum(problem.tol * np.abs(values), least)
    # Eigenvectors of a projected matrix that is not Hermitian have lengths near 1 only.
    return values, vectors, residuals <= limit * lengths


__all__ = ["NotConvergedError", "Problem", "inverse", "problem_checked", "solved"]
