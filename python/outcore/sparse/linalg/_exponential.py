"""The exponential of a matrix, times vectors."""

from __future__ import annotations

import math

import numpy as np

from outcore import _api as oc
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.holding import Holder
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.sparse.linalg._operators import MatrixLike, Operator, Shifted, floating_dtype, square
from outcore.sparse.linalg._pivoting import diagonal_of

# For so many terms, sizes of t A up to which they give double precision (Al-Mohy, Higham 2011, table 3.1).
_TERMS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55)
_SIZES = dict(zip(_TERMS, (2.40e-3, 1.44e-1, 6.41e-1, 1.44, 2.43, 3.54, 4.7, 6.0, 7.2, 8.5, 9.9), strict=True))
_PRECISION = 2.0**-53
# The last term of a step whose size is known, by the result or by the first term.
_LAST_TERM = 1e-9
# Products at most.
_PRODUCTS_MOST = 10**7


def expm_multiply(A: MatrixLike, B: Operand, *, t: complex = 1.0) -> Array:
    """exp(t A) B by products with A alone, as `scipy.sparse.linalg.expm_multiply` of t A: (n,) or (n, k).

    `A` (n, n) is a sparse matrix on disk, a dense array larger than memory or not, or anything of SciPy's that
    multiplies. Taylor's series in as many steps as the size of t A asks for, the terms of a step ended where they no
    longer matter (Al-Mohy, Higham, Computing the action of the matrix exponential, SISC 33 (2011)). The result is a
    lazy array whose value is held, in memory or in scratch. Of an operator whose elements are not known steps are
    shortened until the terms fall off.

    I/O: two reads of A for its norm and its diagonal, whose mean is taken off, and one for each term: about 6 |t A|₁,
    and from 5 on. Memory: four arrays like B, which go to scratch where they take more than a third. Raises ShapeError
    for shapes that differ, ArgumentError for a `t` that is not finite or takes more than 10⁷ products, and DTypeError
    for a matrix whose numbers are not finite.

    >>> import numpy as np, outcore as oc
    >>> oc.sparse.linalg.expm_multiply(np.asarray([[0.0, 1.0], [-1.0, 0.0]]), [1.0, 0.0], t=np.pi).compute().round(12)
    array([-1., -0.])
    """
    a, b = square(A, "expm_multiply"), oc.asarray(B)
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(f"expm_multiply: {a.shape} and an array of shape {b.shape}")
    if np.ndim(t) != 0 or not np.isfinite(t):
        raise ArgumentError(f"expm_multiply: t={t!r} is not one finite number")
    step = complex(t) if isinstance(t, complex) or np.iscomplexobj(t) else float(t)
    dtype = floating_dtype(a.dtype, b.dtype, np.result_type(type(step), np.float64))
    if 0 in b.shape:
        return b.astype(dtype)
    shift, norm = _shift_and_norm(a, b)
    shifted = Shifted(a, shift) if shift else a
    terms, steps = _terms_and_steps(abs(step) * norm)
    holder, last = Holder(b.size * dtype.itemsize, 4), _PRECISION if a.elements is None else _LAST_TERM
    total, done = holder.held([b.astype(dtype)])[0][0], 0
    while done < steps:
        made = _one_step(shifted, total, step / steps, (terms, last), holder)
        if made is None:
            # The size was estimated too small: what is left is taken as twice as large.
            step, left = step * ((steps - done) / steps), steps - done
            (terms, steps), done = _terms_and_steps(2 * left * _SIZES[terms]), 0
            continue
        done += 1
        total = holder.held([(made * np.exp(step * shift / steps)).astype(dtype)])[0][0] if shift else made
    return total


def _one_step(a: Operator, start: Array, step: complex, of_terms: tuple[int, float], holder: Holder) -> Array | None:
    """exp(step A) of an array by so many terms; nothing where the last is not as small as it should be."""
    terms, last = of_terms
    term = total = start
    first = now = before = np.inf
    for number in range(1, terms + 1):
        term, product = a.pair(term)
        product = product * (step / number)
        made = [product]
        if holder.is_in_files:  # one program for both takes more memory
            product, made = holder.held([product])[0][0], []
        grown = total + product
        sizes_of = [oc.max(oc.abs(product)), oc.max(oc.abs(grown))]
        held, sizes = holder.held([*made, grown], sizes_of, [0] * (1 + len(made)))
        term, total = held if made else (product, held[0])
        now, largest = (float(size) for size in sizes)
        if not np.isfinite(now):
            return None
        if before + now <= _PRECISION * largest:
            return total
        first, before = (now if number == 1 else first), now
    return total if now <= last * max(largest, first) else None


def _shift_and_norm(a: Operator, b: Array) -> tuple[complex, float]:
    """The mean of the diagonal, by which exp(A) is exp(A − shift I) times a number, and the one-norm of the difference.

    Of an operator without elements 0, and a first guess by its product with B.
    """
    shift: complex = 0.0
    if a.elements is None:
        length, product = (float(size) for size in oc.compute(oc.max(oc.abs(b)), oc.max(oc.abs(a @ b))))
        norm = product / length if length > 0 else 0.0
    else:
        sums: Array = oc.ones((a.shape[0],)) @ a.elements.astype(floating_dtype(a.dtype)).__abs__()
        of = a.elements
        on_diagonal = oc.linalg.diagonal(of) if isinstance(of, Array) else diagonal_of(of)
        lengths, diagonal = (np.asarray(part) for part in oc.compute(sums, on_diagonal))
        mean = diagonal.mean()
        shift = complex(mean) if mean.imag else float(mean.real)
        norm = float(np.max(lengths - np.abs(diagonal) + np.abs(diagonal - shift)))
    if not np.isfinite(norm):
        raise DTypeError("expm_multiply: the matrix has elements that are not finite, or too large for their sums")
    return shift, norm


def _terms_and_steps(size: float) -> tuple[int, int]:
    """Terms of a step and steps with the fewest products."""
    if size == 0:
        return min(_SIZES), 1
    if not size <= _PRODUCTS_MOST:
        raise ArgumentError(f"expm_multiply: t A is so large that {size:.3g} products and more are needed")
    steps = {terms: max(1, math.ceil(size / limit)) for terms, limit in _SIZES.items()}
    terms = min(steps, key=lambda terms: terms * steps[terms])
    return terms, steps[terms]


__all__ = ["expm_multiply"]
