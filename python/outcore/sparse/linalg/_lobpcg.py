"""`lobpcg`: eigenvalues by locally optimal steps of a block, with a preconditioner."""

from __future__ import annotations

import warnings

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._run.driver import Driver
from outcore._run.holding import Holder
from outcore.errors import ArgumentError, ShapeError
from outcore.sparse.linalg._operators import Identity, MatrixLike, Operator, floating_dtype, square


def lobpcg(
    A: MatrixLike,
    X: Operand,
    B: MatrixLike | None = None,
    M: MatrixLike | None = None,
    Y: Operand | None = None,
    tol: float | None = None,
    maxiter: int | None = None,
    largest: bool = True,
) -> tuple[NDArray, Array]:
    """The k eigenvalues of a Hermitian matrix at one end, from approximations X (n, k) of their vectors (Knyazev 2001).

    SciPy's arguments, without B and Y, which are refused: `M` approximates the inverse of A, `tol` (n √ε unless told)
    bounds the residuals |Ax − λx|, `maxiter` is 20 unless told. Gives λ, the best first, as NumPy's, and vectors (n, k)
    as a lazy array whose value is held. Where `tol` is not reached the last iterate is given, with a warning.

    Each step takes the best of the span of X, the residuals MR and the last steps P, from the matrices of their inner
    products (3k, 3k). Memory: X, R, P and their images, old and new: 12 matrices (n, k). Raises ShapeError for X that
    does not go with A. I/O: one read of A per step.

    >>> import numpy as np, outcore as oc
    >>> values, _ = oc.sparse.linalg.lobpcg(np.diag(np.arange(1.0, 21.0)), np.eye(20, 2) + 0.1, maxiter=60, tol=1e-8)
    >>> values.round(6)
    array([20., 19.])
    """
    if B is not None or Y is not None:
        raise ArgumentError("lobpcg: B and Y (generalized and constrained problems) are not supported")
    a = square(A, "lobpcg")
    x = Array(node(X))
    if x.ndim != 2 or x.shape[0] != a.shape[0] or not 1 <= x.shape[1] <= a.shape[0]:
        raise ShapeError(f"lobpcg: matrix {a.shape}, X {x.shape}")
    m = Identity(a.shape, a.dtype) if M is None else square(M, "lobpcg")
    dtype = floating_dtype(a.dtype, x.dtype)
    limit = a.shape[0] * float(np.sqrt(np.finfo(dtype).eps)) if tol is None else tol
    holder = Holder(x.size * dtype.itemsize, 12)
    most = 20 if maxiter is None else maxiter
    with Driver("lobpcg").running() as driver:
        basis, images, grams = _extended(a, holder, [oc.linalg.qr(x.astype(dtype))[0]], [])
        for taken in range(most + 1):
            values, turns = _best(*grams, x.shape[1], largest)
            vectors, image = _product(basis, turns), _product(images, turns)
            (vectors, image), (sizes,) = holder.held([vectors, image], [_sizes(vectors, image, values)])
            if (sizes <= limit).all():
                # The image was carried along by linear combinations; the true one decides.
                (image,), (sizes,) = holder.held([a @ vectors], [_sizes(vectors, a @ vectors, values)])
            if taken:
                driver.tell(most, "step", residual=float(sizes.max()))
            if (sizes <= limit).all() or taken == most:
                break
            near = m @ (image - vectors * oc.asarray(values))
            near = near * oc.asarray(1 / np.where(sizes == 0, 1, sizes).astype(sizes.dtype))
            near = near - vectors @ (oc.conj(vectors.T) @ near)
            # The last step: what the new vectors have of all but the old ones.
            steps = [_product(part[1:], turns[x.shape[1] :]) for part in (basis, images)] if len(basis) > 1 else None
            known = ([vectors], [image]) if steps is None else ([vectors, steps[0]], [image, steps[1]])
            basis, images, grams = _extended(a, holder, [known[0][0], near, *known[0][1:]], known[1])
    if not (sizes <= limit).all():
        said = f"lobpcg: residuals are up to {float(sizes.max())} after the last step, above tol={limit}"
        warnings.warn(f"{said}; give a larger maxiter", stacklevel=2)
    return values, vectors


def _sizes(vectors: Array, image: Array, values: NDArray) -> Array:
    """|Ax − λx| of each column."""
    return oc.sqrt(oc.sum(oc.square(oc.abs(image - vectors * oc.asarray(values))), axis=0))


def _extended(
    a: Operator, holder: Holder, basis: list[Array], known: list[Array]
) -> tuple[list[Array], list[Array], tuple[NDArray, NDArray]]:
    """The basis S and AS, held, with SᴴS and SᴴAS: the part of S whose image is not known has one product."""
    place = len(basis) - 1 if not known else 1
    images = [*known[:1], a @ basis[place], *known[1:]]
    grams = [oc.conj(left.T) @ right for left in basis for right in [*basis, *images]]
    held, products = holder.held([*basis, *images], grams)
    count = len(basis)
    rows = [products[2 * count * row : 2 * count * (row + 1)] for row in range(count)]
    gram = np.vstack([np.hstack(row[:count]) for row in rows])
    projected = np.vstack([np.hstack(row[count:]) for row in rows])
    return held[:count], held[count:], (gram, projected)


def _best(gram: NDArray, projected: NDArray, count: int, largest: bool) -> tuple[NDArray, NDArray]:
    """The Ritz values at one end and the weights of their vectors. Directions that S has twice but for rounding are
    left out."""
    scale = 1 / np.sqrt(np.where(np.diag(gram).real > 0, np.diag(gram).real, 1))
    sizes, turns = np.linalg.eigh(scale[:, None] * gram * scale)
    kept = sizes > len(gram) * np.finfo(gram.dtype).eps * 100 * sizes[-1]
    to = scale[:, None] * turns[:, kept] / np.sqrt(sizes[kept])
    ritz, vectors = np.linalg.eigh(to.conj().T @ ((projected + projected.conj().T) / 2) @ to)
    order = np.argsort(-ritz if largest else ritz)[:count]
    return ritz[order], np.ascontiguousarray(to @ vectors[:, order])


def _product(parts: list[Array], weights: NDArray) -> Array:
    """[S₁ S₂ …] · weights."""
    width = parts[0].shape[1]
    pieces = [np.ascontiguousarray(weights[place * width : (place + 1) * width]) for place in range(len(parts))]
    total = parts[0] @ oc.asarray(pieces[0])
    for part, piece in zip(parts[1:], pieces[1:], strict=True):
        total = total + part @ oc.asarray(piece)
    return total


__all__ = ["lobpcg"]
