"""The common part of eigensolvers: the choice of eigenvalues, the test that they converged, and the error else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._run.checkpoints import Checkpoints, content, identity
from outcore.errors import ArgumentError, LinAlgError
from outcore.sparse._convert import from_coo
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse.linalg._copies import Copies, Gain, margin_of
from outcore.sparse.linalg._direct import analyze
from outcore.sparse.linalg._krylov import Krylov, check_range
from outcore.sparse.linalg._operators import MatrixLike, Operator, Shifted
from outcore.sparse.linalg._preconditioners import factored, factored_operator
from outcore.sparse.linalg._restarts import Restarts

_DENSE = 96  # matrices up to this order are solved whole
_ROUNDINGS = 4  # of |A|, to which an estimate of a residual is brought where no tolerance is given
_STRICTEST = 4.0**-6  # part of an estimate's limit, below which true residuals do not follow it
_SKEW = 0.5  # power of a rounding, above which products of vectors tell that a matrix is not Hermitian
_LOST = 0.2  # power of a rounding, above which the residual of a solution says that it has no digits
_FACTORED_AT_ONCE = 20_000  # rows up to which SciPy factorizes a matrix in memory, whose solves take less time
_SLACK = 200  # roundings of |A|, to which a true residual can be brought


class NotConvergedError(LinAlgError):
    """Eigenvalues that did not converge: `eigenvalues` and `eigenvectors` are those that did, as in SciPy's error."""

    def __init__(self, message: str, eigenvalues: NDArray, eigenvectors: Array | None) -> None:
        super().__init__(message, {"converged": len(eigenvalues)})
        self.eigenvalues, self.eigenvectors = eigenvalues, eigenvectors


@dataclass(frozen=True)
class Problem:
    """An eigenproblem: `a` is judged by, `inner` iterated with, whose
    eigenvalues `forward` gives of A's, and `back` the other way. `solver` is the inverse that the caller has."""

    name: str
    a: Operator
    inner: Operator
    forward: Callable[[NDArray], NDArray]
    back: Callable[[NDArray], NDArray]
    k: int
    capacity: int
    width: int
    most: int
    tol: float
    dtype: DType
    order_of: Callable[[NDArray], npt.NDArray[np.int64]]
    gain: Gain
    hermitian: bool
    which: str
    sigma: complex | None
    solver: Operator | None


def inverse(name: str, A: MatrixLike, a: Operator, sigma: complex) -> Operator:
    """(A − σI)⁻¹: SciPy's complete LU factors of a small matrix, our own of a larger one on disk."""
    if isinstance(A, SparseMatrix):
        if A.shape[0] > _FACTORED_AT_ONCE:
            return _factored_inverse(name, A, Shifted(a, sigma).dtype, sigma)
        matrix = A.to_scipy()
    elif hasattr(A, "tocsc"):
        matrix = A
    else:
        raise ArgumentError(f"{name}: sigma={sigma} of {type(A).__name__} needs OPinv, which solves (A - sigma I)x = b")
    import scipy.sparse

    dtype = Shifted(a, sigma).dtype
    shifted = matrix.astype(dtype) - sigma * scipy.sparse.eye_array(a.shape[0], dtype=dtype)
    factors = factored(shifted.tocsc(), lambda: _singular(name, sigma))
    # Pivots that are 0 but for rounding leave no digit of a solution.
    x = np.random.default_rng(0).standard_normal((a.shape[0], 1)).astype(dtype)
    with np.errstate(all="ignore"):
        residual = np.linalg.norm(shifted @ factors.solve(x, "N") - x)
    if not residual <= float(np.finfo(dtype).eps) ** _LOST * np.linalg.norm(x):
        raise _singular(name, sigma)
    return factored_operator(factors, dtype)


def _factored_inverse(name: str, A: SparseMatrix, dtype: DType, sigma: complex) -> Operator:
    """The inverse by a factor that may be larger than memory."""
    places = np.arange(A.shape[0])
    shift = from_coo(places, places, np.full(len(places), sigma, dtype), A.shape)
    factor = analyze(A.astype(dtype) - shift, "sym" if name == "eigsh" and dtype.kind != "c" else "auto").factorize()
    if factor.perturbed:
        raise _singular(name, sigma)
    return factor.outcore_operator


def _singular(name: str, sigma: complex) -> LinAlgError:
    return LinAlgError(f"{name}: A - sigma I is singular: sigma={sigma} is an eigenvalue; use a number beside it")


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


def solved(problem: Problem, v0: Array | None, seed: int, checkpoint: int | None) -> tuple[NDArray, Array]:
    """Eigenvalues, as `order_of` puts them, and their vectors. Raises NotConvergedError.

    The state is stored after each `checkpoint` restarts.
    """
    order = problem.a.shape[0]
    if order <= max(problem.capacity + problem.width, _DENSE):
        return _whole(problem)
    space = Krylov(problem.name, problem.inner, problem.width, problem.capacity, problem.dtype, seed)
    saved = None
    if checkpoint is not None:
        saved = Checkpoints.known_by(checkpoint, f"a loop of {problem.name}", _identity(problem, v0, seed))
    with Restarts(problem.name, saved, space, problem.most).running(final=(LinAlgError,)) as restarts:
        restarts.begin(v0, problem.hermitian)
        while restarts.step < restarts.most and restarts.stricter >= _STRICTEST:
            result = _sought(problem, space, restarts) if restarts.copies is None else _copied(problem, space, restarts)
            if result is not None:
                return result
        raise _not_converged(problem, space, restarts)


def _is_full(problem: Problem, space: Krylov) -> bool:
    return len(space.basis) + problem.width > problem.capacity


def _sought(problem: Problem, space: Krylov, restarts: Restarts) -> tuple[NDArray, Array] | None:
    """Looks for what is wanted, until a restart. Where all converged, copies are looked for, or there can be none."""
    while not _is_full(problem, space):
        space.expand()
    if problem.hermitian and space.skew > max(float(np.finfo(problem.dtype).eps) ** _SKEW, 10 * problem.tol):
        said = f"{problem.name}: the matrix is not Hermitian: x·Ay and Ax·y differ by {space.skew:.1%} of their size"
        raise LinAlgError(f"{said}; use eigs")
    ritz, weights = _pairs(problem, space.t)
    chosen = problem.order_of(ritz)[: problem.k]
    limit = _limit(problem, ritz[chosen], ritz) * restarts.stricter
    done = np.linalg.norm(space.b @ weights[:, chosen], axis=0) <= limit
    if done.all():
        values, vectors, good = _judged(problem, ritz[chosen], space.vectors(weights[:, chosen]))
        if good.all():
            margin = margin_of(ritz[chosen], ritz, problem.tol, problem.dtype)
            copies = Copies.begin(space, ritz[chosen], problem.gain, margin, problem.hermitian)
            if copies is None:
                return values, vectors
            _lock(problem, space, ritz[chosen], vectors)
            restarts.change(copies)
            restarts.count(problem.k)
            return None
        restarts.stricter /= 4
    _restart(problem, space, ritz, weights, int(done.sum()))
    restarts.count(int(done.sum()))
    return None


def _copied(problem: Problem, space: Krylov, restarts: Restarts) -> tuple[NDArray, Array] | None:
    """Looks for copies of what converged, until a restart: gives it where there are none that count."""
    copies, locked = restarts.copies, space.locked
    assert copies is not None
    known = _of_locked(problem, space)[0]
    while True:
        ritz, weights = _pairs(problem, space.t[locked:, locked:])
        margin = margin_of(known, np.append(known, ritz), problem.tol, problem.dtype)
        residuals = np.linalg.norm(space.b[:, locked:] @ weights, axis=0)
        better = problem.gain(known, ritz) > np.maximum(margin, 0.0 if _ends(problem) else residuals)
        if better.any():
            space.unlock(problem.hermitian)
            restarts.change(None)
            return None
        if copies.excluded(space, problem.a.shape[0]):
            return _result(problem, space)
        if _is_full(problem, space):
            break
        space.expand()
    _restart_beside(problem, space, copies, ritz, weights)
    restarts.count(problem.k)
    return None


def _lock(problem: Problem, space: Krylov, ritz: NDArray, vectors: Array) -> None:
    """Keeps what converged, and goes on beside it."""
    if problem.hermitian:
        space.lock(vectors, np.diag(ritz))
        return
    t, turns, count = _schur(space.t, ritz)
    space.lock(space.vectors(turns[:, :count]), t[:count, :count])


def _of_locked(problem: Problem, space: Krylov) -> tuple[NDArray, NDArray]:
    """Eigenvalues of the locked space that were found, in their order, and their vectors in it."""
    t = space.t[: space.locked, : space.locked]
    if problem.hermitian:
        return np.diag(t).real, np.eye(len(t), dtype=problem.dtype)
    values, weights = np.linalg.eig(t)
    chosen = problem.order_of(values)[: problem.k]
    return values[chosen], weights[:, chosen]


def _result(problem: Problem, space: Krylov) -> tuple[NDArray, Array]:
    values, weights = _of_locked(problem, space)
    return problem.back(values), space.vectors(weights)


def _restart_beside(problem: Problem, space: Krylov, copies: Copies, ritz: NDArray, weights: NDArray) -> None:
    """As `_restart`, of the vectors that are not locked."""
    locked, size = space.locked, len(ritz)
    count = max(min(size // 3, size - problem.width), 0)
    kept = problem.order_of(ritz)[:count]
    beside = space.t[locked:, locked:]
    if not count:
        projected, turns = beside[:0, :0], beside[:, :0]
    elif problem.hermitian:
        projected, turns = np.diag(ritz[kept]), weights[:, kept]
    else:
        t, whole, count = _schur(beside, ritz[kept])
        projected, turns = t[:count, :count], whole[:, :count]
    copies.restarted(space, count)
    across = space.t[:locked, locked:] @ turns
    t = np.block([[space.t[:locked, :locked], across], [np.zeros_like(across.T), projected]])
    space.restart(_beside(locked, turns), t)


def _beside(locked: int, turns: NDArray) -> NDArray:
    """Weights that leave the first vectors as they are."""
    padded = np.zeros((locked + turns.shape[0], locked + turns.shape[1]), dtype=turns.dtype)
    padded[:locked, :locked], padded[locked:, locked:] = np.eye(locked), turns
    return padded


def _schur(t: NDArray, first: NDArray) -> tuple[NDArray, NDArray, int]:
    """The Schur form with some eigenvalues first, its vectors, and how many these are."""
    from scipy.linalg import schur

    form: tuple[NDArray, NDArray, int] = schur(t, output="complex", sort=_Chosen(first))
    return form


def _ends(problem: Problem) -> bool:
    """Whether what is wanted are ends of the spectrum of a Hermitian matrix, to which each Ritz value is a bound."""
    return problem.hermitian and problem.which != "SM"


def _identity(problem: Problem, v0: Array | None, seed: int) -> Iterator[str]:
    """The identity of a problem: its numbers, its products with some vectors, and the vector that it begins with."""
    numbers = (problem.k, problem.capacity, problem.width, float(problem.tol), seed)
    sigma = None if problem.sigma is None else complex(problem.sigma)
    yield f"{oc.__version__} {problem.name} {problem.which} {sigma} {problem.dtype} {numbers}"
    # Random ones: products with others are alike for many matrices.
    vectors = oc.random.uniform((problem.a.shape[0], problem.width), seed=0).astype(problem.dtype)
    products = [problem.a @ vectors, *([] if problem.solver is None else [problem.solver @ vectors])]
    yield from identity(problem.name, products)
    if v0 is not None:
        yield content(v0)


def _not_converged(problem: Problem, space: Krylov, restarts: Restarts) -> NotConvergedError:
    """The error that has what did converge. I/O: one read of A."""
    if space.locked:
        said = f"{problem.k} eigenvalues converged, {problem.most} restarts more did not tell how often they are there"
        return NotConvergedError(f"{problem.name}: {said}; use a larger ncv", *_result(problem, space))
    ritz, weights = _pairs(problem, space.t)
    chosen = problem.order_of(ritz)[: problem.k]
    values, vectors, good = _judged(problem, ritz[chosen], space.vectors(weights[:, chosen]))
    kept = [vectors[:, place] for place in np.flatnonzero(good)]
    said = f"{problem.name}: {len(kept)} of {problem.k} eigenvalues converged in {restarts.step} restarts"
    if restarts.stricter < _STRICTEST:
        cause = "is not Hermitian, or tol is" if problem.hermitian else "has products that differ each time, or tol is"
        said += f"; true residuals do not follow their estimates: the matrix {cause} too small for {problem.dtype}"
    return NotConvergedError(
        said,
        values[good],
        oc.stack(kept, axis=1) if kept else None,
    )


def _whole(problem: Problem) -> tuple[NDArray, Array]:
    """All eigenvalues of a small matrix, by LAPACK, of which the wanted ones are taken."""
    order = problem.a.shape[0]
    matrix = (problem.a @ oc.eye(order, dtype=problem.dtype)).compute()
    check_range(problem.name, problem.dtype, [matrix], is_first=False)
    values, vectors = np.linalg.eigh(matrix) if problem.hermitian else np.linalg.eig(matrix)
    with np.errstate(divide="ignore"):
        chosen = problem.order_of(problem.forward(values))[: problem.k]
    return values[chosen], oc.asarray(np.ascontiguousarray(vectors[:, chosen]))


def _pairs(problem: Problem, t: NDArray) -> tuple[NDArray, NDArray]:
    """Eigenvalues and vectors of the projected matrix."""
    if problem.hermitian:
        return np.linalg.eigh((t + t.conj().T) / 2)
    return np.linalg.eig(t)


def _limit(problem: Problem, values: NDArray, whole: NDArray) -> NDArray:
    """Residuals of tol · |θ|, or of some roundings of the largest |θ| that is known, below which none can be told."""
    eps = float(np.finfo(problem.dtype).eps)
    limits: NDArray = np.maximum(problem.tol * np.abs(values), _ROUNDINGS * eps * np.abs(whole).max())
    return limits


def _restart(problem: Problem, space: Krylov, ritz: NDArray, weights: NDArray, done: int) -> None:
    """Keeps what is wanted, and some of what is near it, so that it does not have to be found again."""
    size = len(ritz)
    count = min(problem.k + max(done, (size - problem.k) // 3), size - problem.width)
    kept = problem.order_of(ritz)[:count]
    if problem.hermitian:
        space.restart(weights[:, kept], np.diag(ritz[kept]))
        return
    t, vectors, count = _schur(space.t, ritz[kept])
    space.restart(vectors[:, :count], t[:count, :count])


class _Chosen:
    """Whether an eigenvalue that LAPACK found once more is one of some."""

    def __init__(self, values: NDArray) -> None:
        self._values = values
        self._near = 1e-6 * max(float(np.abs(values).max()), np.finfo(np.float64).tiny)

    def __call__(self, value: complex) -> bool:
        return bool((np.abs(self._values - value) <= self._near).any())


def _judged(problem: Problem, ritz: NDArray, vectors: Array) -> tuple[NDArray, Array, NDArray]:
    """Eigenvalues of the matrix itself, and whether true residuals |Ax − λx| are small. I/O: one read of A."""
    values = problem.back(ritz)
    order, count = vectors.shape
    # Products with A tell its size: eigenvalues inside its spectrum do not.
    probe = oc.random.normal((order, 1), seed=1).astype(problem.dtype) * (1 / np.sqrt(order))
    images = problem.a @ oc.concat([vectors, probe], axis=1)
    scale = oc.asarray(values.astype(problem.dtype))
    parts = (images[:, :count] - vectors * scale, vectors, images[:, count:])
    residuals, lengths, whole = oc.compute(*(oc.linalg.vector_norm(part, axis=0) for part in parts))
    least = _SLACK * np.finfo(problem.dtype).eps * max(float(whole[0]), float(np.abs(values).max()))
    limit = np.maximum(problem.tol * np.abs(values), least)
    # Eigenvectors of a projected matrix that is not Hermitian have lengths near 1 only.
    return values, vectors, residuals <= limit * lengths


__all__ = ["NotConvergedError", "Problem", "inverse", "problem_checked", "solved"]
