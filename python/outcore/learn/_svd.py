"""Leading singular values and right vectors of tall data, by its Gram matrix or by a randomized range finder."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outcore import _api as oc
from outcore._base.types import RandomState
from outcore._lazy.array import Array
from outcore.learn._fit import Fit, clear_room, sweep, values
from outcore.learn._flaws import first_flaw, refuse_flaws
from outcore.learn._moments import Moments, moments
from outcore.learn._shift import shift

Numbers = npt.NDArray[np.float64]
# Matrices as large as a Gram matrix, of columns by directions, that work in memory takes at once.
GRAM_ROOM, RANGE_ROOM = 6, 8


class Singular(NamedTuple):
    """Singular values, largest first, their right vectors as rows; means and variances (divisor n) of the columns."""

    values: Numbers
    vectors: Numbers
    mean: Numbers
    variances: Numbers


def signed(vectors: Numbers) -> Numbers:
    """Vectors (rows) with the sign that makes the entry of largest size positive: so they are the same every time."""
    largest = np.argmax(np.abs(vectors), axis=1)
    return vectors * np.where(vectors[np.arange(len(vectors)), largest] < 0, -1.0, 1.0)[:, None]


def of_gram(gram: Numbers, rows: int, mean: Numbers, variances: Numbers) -> Singular:
    """From the eigenvalues of XᵀX = VΣ²Vᵀ: small values lose digits below √ε of the largest."""
    clear_room(GRAM_ROOM * gram.size)
    squares, vectors = np.linalg.eigh(gram)
    count = min(rows, len(gram))
    singular_values = np.sqrt(np.maximum(squares[::-1][:count], 0))
    return Singular(singular_values, signed(vectors.T[::-1][:count]), mean, variances)


def of_moments(moments: Moments, rows: int) -> Singular:
    """Of data less its column means, whose scatter matrix is known."""
    return of_gram(moments.scatter, rows, moments.mean_x, np.diag(moments.scatter) / moments.weight)


def by_gram(x: Array, center: bool) -> Singular:
    """All singular values of the data, or of the data less its column means. I/O: one read of `x`."""
    if center:
        return of_moments(moments(x), x.shape[0])
    x = x.astype(np.float64)
    *results, row = sweep([x.T @ x, oc.mean(x, axis=0), oc.var(x, axis=0), first_flaw(x)])
    refuse_flaws(results, row, X=x)
    return of_gram(results[0], x.shape[0], results[1], results[2])


def by_range(
    x: Array, rank: int, *, oversamples: int, power: int, center: bool, random_state: RandomState, fit: Fit
) -> Singular:
    """The first `rank` by a randomized range finder with `power` iterations (Halko, Martinsson, Tropp 2011).

    With A = X, or X less its means, and random Q: Q ← orth(AᵀA Q), `power` times, each one sweep (algorithm 4.4); then
    Y = AQ spans the range. One sweep more gives W = YᵀA and so YᵀY = WQ = EΛEᵀ, and the small B = Λ^(−½) Eᵀ W has
    the singular values and right vectors of A in the range of Y (algorithm 5.1). Means are subtracted from products,
    AᵀAQ = aᵀaQ − n·m mᵀQ, of data a shifted by the mean of its first rows. The objective that grows from iteration to
    iteration is the part of |A|² that Q captures, tr QᵀAᵀAQ / |A|². I/O: `power` + 1 reads of `x`.
    """
    rows, columns = x.shape
    random = fit.random(random_state)
    width = min(rank + oversamples, rows, columns)
    base = random.normal(size=(columns, width))
    start = shift(x) if center else oc.zeros((1, columns))
    a = x - start
    terms = [start, oc.mean(a, axis=0), oc.var(a, axis=0), a.T @ (a @ oc.asarray(base))]
    *first, row = sweep([*terms, first_flaw(a)])
    refuse_flaws(first, row, X=x)
    far, variances, product = first[1:]
    offset = far if center else np.zeros(columns)
    whole = rows * float(np.sum(variances + (far * far if not center else 0.0)))
    for _ in range(power):
        product = product - rows * np.outer(offset, offset @ base)
        clear_room(RANGE_ROOM * product.size)
        base, _ = np.linalg.qr(product)
        product = values([a.T @ (a @ oc.asarray(base))])[0]
        caught = float(np.sum(base * product)) - rows * float(np.sum((offset @ base) ** 2))
        fit.tell(power, captured=caught / whole if whole > 0 else 1.0)
    clear_room(RANGE_ROOM * product.size)
    crossed = (product - rows * np.outer(offset, offset @ base)).T
    weights, turns = np.linalg.eigh(crossed @ base)
    kept = weights > max(float(weights[-1]), 0.0) * width * np.finfo(np.float64).eps
    small = (turns[:, kept] / np.sqrt(weights[kept])).T @ crossed
    _, singular_values, vectors = np.linalg.svd(small, full_matrices=False)
    short = max(rank - len(singular_values), 0)
    singular_values = np.concatenate([singular_values, np.zeros(short)])[:rank]
    vectors = np.vstack([vectors, np.zeros((short, columns))])[:rank]
    return Singular(singular_values, signed(vectors), first[0][0] + far, variances)


__all__ = ["GRAM_ROOM", "RANGE_ROOM", "Singular", "by_gram", "by_range", "of_gram", "of_moments", "signed"]
