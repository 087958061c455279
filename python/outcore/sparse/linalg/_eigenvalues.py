"""`eigsh` and `eigs`: some eigenvalues of a matrix that is known by its products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from outcore._base.arguments import count
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.errors import ArgumentError
from outcore.sparse.linalg._copies import Gain
from outcore.sparse.linalg._eigen import Problem, inverse, problem_checked, solved
from outcore.sparse.linalg._operators import MatrixLike, floating_dtype, operator, square
from outcore.sparse.linalg._systems import vector

Permutation = npt.NDArray[np.int64]


def _both_ends(values: NDArray) -> Permutation:
    """Places from the ends inwards, the largest first."""
    up = np.argsort(values)
    order = np.empty_like(up)
    half = (len(up) + 1) // 2
    order[0::2], order[1::2] = up[::-1][:half], up[: len(up) - half]
    return order


def _beyond_ends(ends: NDArray, values: NDArray) -> NDArray:
    """How far values lie outside of those that were found at both ends."""
    up = np.sort(ends)
    low = len(up) // 2
    above = values - up[low]
    beyond: NDArray = np.maximum(above, up[low - 1] - values) if low else above
    return beyond


# By what eigenvalues are wanted: the largest first.
_HERMITIAN: dict[str, Callable[[NDArray], NDArray]] = {
    "LA": lambda values: values,
    "SA": lambda values: -values,
    "LM": np.abs,
    "SM": lambda values: -np.abs(values),
}
_GENERAL: dict[str, Callable[[NDArray], NDArray]] = {
    "LM": np.abs,
    "SM": lambda values: -np.abs(values),
    "LR": np.real,
    "SR": lambda values: -values.real,
    "LI": lambda values: np.abs(values.imag),
    "SI": lambda values: -np.abs(values.imag),
}


def _order_and_gain(name: str, which: str) -> tuple[Callable[[NDArray], Permutation], Gain]:
    """The order of what `which` asks for, and how much better than the worst of some values others are."""
    is_general = name == "eigs"
    measures = _GENERAL if is_general else _HERMITIAN
    if which == "BE" and not is_general:
        return _both_ends, _beyond_ends
    if which not in measures:
        known = [*measures, *([] if is_general else ["BE"])]
        raise ArgumentError(f"{name}: which={which!r} is none of {', '.join(known)}")
    measure = measures[which]

    def gain(known: NDArray, values: NDArray) -> NDArray:
        better: NDArray = measure(values) - measure(known).min()
        return better

    return lambda values: np.argsort(-measure(values)), gain


def _same(values: NDArray) -> NDArray:
    return values


@dataclass(frozen=True)
class Search:
    """Arguments of `eigsh`, by their names there."""

    k: int
    which: str
    v0: Operand | None
    tol: float
    ncv: int | None
    block_size: int
    maxiter: int | None
    seed: int
    checkpoint: int | None
    sigma: complex | None = None
    OPinv: MatrixLike | None = None


def some_eigenvalues(name: str, A: MatrixLike, search: Search) -> tuple[NDArray, Array]:
    """Eigenvalues and vectors in the order of `which`."""
    k, which, sigma, v0, tol, OPinv = search.k, search.which, search.sigma, search.v0, search.tol, search.OPinv
    ncv, width, maxiter, seed = search.ncv, search.block_size, search.maxiter, search.seed
    order_of, gain = _order_and_gain(name, which)
    a = square(A, name)
    if search.checkpoint is not None:
        count(name, 1, checkpoint=search.checkpoint)
    capacity, most = problem_checked(name, a, k, ncv, width, maxiter)
    dtype = floating_dtype(a.dtype, *([np.complex64] if name == "eigs" else []))
    inner, forward, back, solver = a, _same, _same, None
    if not np.isfinite(tol):
        raise ArgumentError(f"{name}: tol={tol} must be finite")
    if sigma is not None:
        if not np.isfinite(sigma):
            raise ArgumentError(f"{name}: sigma={sigma} must be finite")
        solver = None if OPinv is None else operator(OPinv, name)
        inner = inverse(name, A, a, sigma) if solver is None else solver
        dtype = np.result_type(dtype, inner.dtype)
        forward = lambda values: 1 / (values - sigma)  # noqa: E731
        back = lambda values: sigma + 1 / values  # noqa: E731
    problem = Problem(
        name=name,
        a=a,
        inner=inner,
        forward=forward,
        back=back,
        k=k,
        capacity=capacity,
        width=width,
        most=most,
        tol=tol,
        dtype=dtype,
        order_of=order_of,
        gain=gain,
        hermitian=name != "eigs",
        which=which,
        sigma=sigma,
        solver=solver,
    )
    first = None if v0 is None else vector(name, v0, a.shape[0], "v0")
    values, vectors = solved(problem, first, seed, search.checkpoint)
    return values.astype(dtype) if name == "eigs" else values, vectors


def columns_of(vectors: Array, order: Permutation) -> Array:
    """Columns in another order."""
    return vectors[:, order.tolist()] if (np.diff(order) < 0).any() else vectors


def _refuse(name: str, **arguments: object) -> None:
    for argument, value in arguments.items():
        if value is not None:
            raise ArgumentError(f"{name}: {argument} (a generalized problem, or another mode) is not supported")


def eigsh(
    A: MatrixLike,
    k: int = 6,
    M: MatrixLike | None = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: Operand | None = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: MatrixLike | None = None,
    OPinv: MatrixLike | None = None,
    mode: str = "normal",
    *,
    block_size: int = 1,
    seed: int = 0,
    checkpoint: int | None = None,
) -> Any:
    """The k eigenvalues of a Hermitian matrix at one end of its spectrum, or both, or next to `sigma`, with vectors.

    `A` (n, n) is a sparse matrix on disk, a dense array, or what SciPy multiplies with. Arguments are SciPy's: `which`
    is "LM", "SM" (by size), "LA", "SA" (largest, smallest) or "BE" (half from each end). With `sigma` those for which
    1/(λ − σ) is so, by `OPinv`, which solves (A − σI)x = b, or by SciPy's LU factors of up to 20,000 rows, and by a
    factor of `analyze`, which may be larger than memory, of more. Gives eigenvalues as NumPy's, ascending, and vectors
    (n, k) as a lazy array whose columns are held; the values only without `return_eigenvectors`.

    Thick-restart Lanczos with full reorthogonalization (Wu, Simon 2000) by blocks of `block_size` vectors (block
    Krylov–Schur: Zhou, Saad 2008; Zheng 2017, 4.4.2), which take fewer reads of A for more work. `ncv` bounds the
    basis. Values count when true residuals |Ax − λx| are at most tol·|λ|, or as near to it as rounding lets them; an
    eigenvalue that is there several times comes as often. One block finds as many of its copies as it has vectors. So
    the vectors that converged are locked, and a space from random ones beside them either finds a copy, or shrinks
    below 10⁻⁴ the chance that one was missed.

    Raises NotConvergedError after `maxiter` restarts (10 n unless told), of the search and of each one for copies, and
    where true residuals do not follow their estimates, as of a matrix that is not Hermitian; ArgumentError for k above
    n or generalized problems, LinAlgError for a `sigma` that is an eigenvalue and for products that are not finite.

    `checkpoint` stores the state every so many restarts, as `iterate` says: the same call goes on from there after a
    kill, to the same bits. Matrices in memory, and operators that SciPy or a function multiplies with, are known by a
    product. Some hundred rows are solved without restarts.

    Memory: `ncv` vectors and half as many more at restarts, in scratch where they take more than a third of it.
    I/O: one read of A for each block, and one for residuals; for copies about as many as one eigenvalue takes. A
    checkpoint writes the vectors that a restart keeps, k and about a third of the rest of `ncv`, and the next block,
    and reads them once for their checksums.

    >>> import numpy as np, outcore as oc
    >>> values, vectors = oc.sparse.linalg.eigsh(np.diag([1.0, 2.0, 3.0, 4.0]), k=2, which="LA")
    >>> values.round(6), vectors.shape
    (array([3., 4.]), (4, 2))
    """
    _refuse("eigsh", M=M, Minv=Minv, mode=None if mode == "normal" else mode)
    search = Search(k, which, v0, tol, ncv, block_size, maxiter, seed, checkpoint, sigma, OPinv)
    values, vectors = some_eigenvalues("eigsh", A, search)
    order = np.argsort(values)
    if not return_eigenvectors:
        return values[order]
    return values[order], columns_of(vectors, order)


def eigs(
    A: MatrixLike,
    k: int = 6,
    M: MatrixLike | None = None,
    sigma: complex | None = None,
    which: str = "LM",
    v0: Operand | None = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: MatrixLike | None = None,
    OPinv: MatrixLike | None = None,
    *,
    block_size: int = 1,
    seed: int = 0,
    checkpoint: int | None = None,
) -> Any:
    """The k eigenvalues of any square matrix that are the largest or smallest by size, real or imaginary part.

    As `eigsh`, by Krylov–Schur (Stewart 2001), in complex arithmetic. `which`: "LM", "SM", "LR", "SR", "LI", "SI". Of
    a real matrix one of a conjugate pair may be left out. Complex values, in the order of `which`. Needs SciPy.
    Memory, I/O, errors and `checkpoint` as `eigsh`.

    >>> import numpy as np, outcore as oc
    >>> values, vectors = oc.sparse.linalg.eigs(np.asarray([[0.0, 1.0], [-4.0, 0.0]]), k=2)
    >>> np.sort(values.imag).round(6), vectors.shape
    (array([-2.,  2.]), (2, 2))
    """
    _refuse("eigs", M=M, Minv=Minv)
    search = Search(k, which, v0, tol, ncv, block_size, maxiter, seed, checkpoint, sigma, OPinv)
    values, vectors = some_eigenvalues("eigs", A, search)
    return (values, vectors) if return_eigenvectors else values


__all__ = ["Search", "columns_of", "eigs", "eigsh", "some_eigenvalues"]
