"""Descriptive statistics of columns, from one read: a summary, moments, standard scores, and `scipy.stats`'s like.

Powers are of distances from the mean of some rows that lie together, in float64, and groups of rows are merged (Pébay
2008), so that variance, skewness and kurtosis do not cancel where values are large beside their spread, whichever rows
are missing. Along other axes than the first of some thousand columns distances are from the mean of the first elements
that are finite: digits are lost where those lie many deviations from the mean of all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from outcore import _core
from outcore._base.shortened import record_text
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axis_of, node
from outcore._numpy_like import correlation
from outcore._numpy_like.order import quantile
from outcore._run.run import compute
from outcore._standard.manipulation import part_along, reshape, squeeze
from outcore._standard.searching import count_nonzero, where
from outcore._standard.statistical import max, mean, min, std, sum
from outcore.elementwise import abs, exp, isfinite, isnan, log, sqrt
from outcore.errors import ArgumentError, DTypeError, ShapeError

# Elements along the axis whose mean is the shift.
_SHIFT_BY = 16
# Columns of which a tile has at least a few rows; rows of which it has at least some pages.
_COLUMNS_MAX = 1 << 14
_ROWS_MAX = 1 << 6
# Rows of the table that `_core.describe` makes.
_FACTS = 11


class Summary(NamedTuple):
    """The result of `summary`: one lazy array each, with the shape of `x` without the axis."""

    min: Array
    max: Array
    mean: Array
    l1: Array
    l2: Array
    variance: Array
    nonzeros: Array
    skewness: Array
    kurtosis: Array
    missing: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)

    def compute(self) -> Summary:
        """The same names with NumPy arrays, all from one read."""
        return Summary(*compute(*self))


class Description(NamedTuple):
    """The result of `describe`; `minmax` is a pair, the others are lazy arrays with the shape of `x` without the
    axis."""

    nobs: int
    minmax: tuple[Array, Array]
    mean: Array
    variance: Array
    skewness: Array
    kurtosis: Array

    def __repr__(self) -> str:
        return record_text(self, self._fields)

    def compute(self) -> Description:
        """The same names with NumPy arrays, all from one read."""
        least, greatest, *others = compute(*self.minmax, *self[2:])
        return Description(self.nobs, (least, greatest), *others)


class _SampleFacts(NamedTuple):
    """Facts from one look at every element that is not NaN; `sums` are Σd², Σd³, Σd⁴ of distances d from the mean."""

    number: Array
    nonzeros: Array
    least: Array
    greatest: Array
    l1: Array
    squares: Array
    mean: Array
    sums: tuple[Array, Array, Array]


class _Central(NamedTuple):
    """The mean, and the means of the second to fourth power of distances from it."""

    mean: Array
    second: Array
    third: Array
    fourth: Array


def _real(name: str, x: Operand) -> Array:
    array = Array(node(x))
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{name}: elements must be real numbers, not {array.dtype}")
    return array.astype(np.float64)


def _facts(x: Array, axis: int) -> _SampleFacts:
    """Facts of what lies along an axis; where the others are no more than a few thousand columns, by one kernel."""
    others = (*x.shape[:axis], *x.shape[axis + 1 :])
    length, columns = x.shape[axis], math.prod(others)
    if axis == 0 and 0 < columns <= _COLUMNS_MAX:
        return _of_columns(reshape(x, (length, columns)), others)
    if axis == x.ndim - 1 and 0 < columns <= _ROWS_MAX:
        return _of_columns(reshape(x, (columns, length)).T, others)
    return _about_first(x, axis)


def _of_columns(x: Array, shape: tuple[int, ...]) -> _SampleFacts:
    rows = Array(_core.describe(x._expr))
    count, nonzeros, least, greatest, l1, squares, base, shifted, *sums = (
        reshape(rows[row], shape) for row in range(_FACTS)
    )
    known = where(count > 0, base + shifted, np.nan)
    return _SampleFacts(count, nonzeros, least, greatest, l1, squares, known, (sums[0], sums[1], sums[2]))


def _first_mean(x: Array, axis: int) -> Array:
    """The mean of the first elements along an axis that are finite; of all such where there are none, or 0."""
    first = part_along(x, axis, None, _SHIFT_BY)
    known = isfinite(first)
    some = sum(known, axis=axis, keepdims=True)
    center = sum(where(known, first / where(some > 0, some, 1), 0.0), axis=axis, keepdims=True)
    others = sum(where(some > 0, center / where(some > 0, count_nonzero(some), 1), 0.0))
    return where(some > 0, center, others)


def _about_first(x: Array, axis: int) -> _SampleFacts:
    """Facts by sums sₖ of powers of distances from the mean of the first elements.

    With r = s₁ / n: Σd² = s₂ − r s₁, Σd³ = s₃ − 3r s₂ + 2r² s₁, Σd⁴ = s₄ − 4r s₃ + 6r² s₂ − 3r³ s₁.
    """
    center = _first_mean(x, axis)
    gone = isnan(x)
    filled = where(gone, 0.0, x)
    apart = where(gone, 0.0, x - center)
    square = apart * apart
    number = (x.shape[axis] - sum(gone, axis=axis)).astype(np.float64)
    s1, s2, s3, s4 = (sum(part, axis=axis) for part in (apart, square, square * apart, square * square))
    r = s1 / where(number > 0, number, 1.0)
    second = s2 - r * s1
    return _SampleFacts(
        number,
        count_nonzero(filled, axis=axis),
        min(where(gone, np.inf, x), axis=axis),
        max(where(gone, -np.inf, x), axis=axis),
        sum(abs(filled), axis=axis),
        sum(filled * filled, axis=axis),
        where(number > 0, squeeze(center, axis=axis) + r, np.nan),
        (
            where(second < 0, 0.0, second),
            s3 - r * s2 * 3.0 + r * r * s1 * 2.0,
            s4 - r * s3 * 4.0 + r * r * s2 * 6.0 - r * r * r * s1 * 3.0,
        ),
    )


def _central(of: _SampleFacts, number: Operand) -> _Central:
    """Central moments of `number` elements; NaN where that is."""
    second, third, fourth = (total / number for total in of.sums)
    return _Central(where(isnan(number), np.nan, of.mean), second, third, fourth)


def _whole(x: Array, axis: int) -> tuple[_SampleFacts, _Central]:
    """Facts and central moments in which one NaN makes all that it belongs to NaN."""
    of = _facts(x, axis)
    number = where(of.number == x.shape[axis], float(x.shape[axis]), np.nan)
    return of, _central(of, number)


def _skewness(of: _Central, count: Operand, bias: bool) -> Array:
    """μ₃ / μ₂^1.5, NaN where all elements are equal; without bias by Joanes and Gill 1998, G₁."""
    skewness = where(_spread(of), of.third / (of.second * sqrt(of.second)), np.nan)
    if bias:
        return skewness
    n = Array(node(count)).astype(np.float64)
    return where(n > 2, skewness * sqrt(n * (n - 1)) / (n - 2), skewness)


def _kurtosis(of: _Central, count: Operand, fisher: bool, bias: bool) -> Array:
    """μ₄ / μ₂², less 3 if `fisher`; without bias by Joanes and Gill 1998, G₂."""
    kurtosis = where(_spread(of), of.fourth / (of.second * of.second), np.nan)
    if not bias:
        n = Array(node(count)).astype(np.float64)
        kurtosis = where(n > 3, ((n * n - 1) * kurtosis - 3.0 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3.0, kurtosis)
    return kurtosis - 3.0 if fisher else kurtosis


def _spread(of: _Central) -> Array:
    """Where elements differ by more than the rounding of their mean."""
    epsilon = float(np.finfo(np.float64).eps)
    return sqrt(of.second) > abs(of.mean) * epsilon


def summary(x: Operand, /, *, axis: int | str = 0, ddof: float = 1.0) -> Summary:
    """Of each column, NaN passed over: min, max, mean, Σ|x|, √Σx², variance, non-zeros, skewness, kurtosis, missing.

    `missing` counts the NaN, `nonzeros` what is neither 0 nor NaN (int64); the others are float64, and NaN where all
    are missing. The variance has the divisor n − `ddof`; skewness μ₃/μ₂^1.5 and kurtosis μ₄/μ₂² − 3 are those of the
    data (biased), NaN for constant columns. Raises ShapeError where there are no elements along the axis, DTypeError
    for complex numbers.

    I/O: one read of `x` for all of them, computed together: `oc.stats.summary(x).compute()`, which keeps the names.

    >>> import numpy as np, outcore as oc
    >>> found = oc.stats.summary(np.asarray([[1.0, 0.0], [2.0, np.nan], [3.0, 5.0]]))
    >>> oc.compute(found.mean, found.variance, found.missing)
    (array([2. , 2.5]), array([ 1. , 12.5]), array([0, 1]))
    >>> found.compute().nonzeros
    array([3, 1])
    """
    array = _real("summary", x)
    place = axis_of("summary", axis, array)
    if array.shape[place] == 0:
        raise ShapeError(f"summary: axis {place} of shape {array.shape} must have at least 1 element")
    facts = _facts(array, place)
    count, divisor = facts.number, facts.number - ddof
    of = _central(facts, count)
    return Summary(
        min=where(count > 0, facts.least, np.nan),
        max=where(count > 0, facts.greatest, np.nan),
        mean=of.mean,
        l1=facts.l1,
        l2=sqrt(facts.squares),
        variance=where(divisor > 0, of.second * count / where(divisor > 0, divisor, 1.0), np.nan),
        nonzeros=facts.nonzeros.astype(np.int64),
        skewness=_skewness(of, count, bias=True),
        kurtosis=_kurtosis(of, count, fisher=True, bias=True),
        missing=(array.shape[place] - count).astype(np.int64),
    )


def describe(x: Operand, /, *, axis: int | str = 0, ddof: float = 1.0, bias: bool = True) -> Description:
    """Number, bounds, mean, variance, skewness and kurtosis along an axis, as `scipy.stats.describe`. NaN propagates.

    I/O: one read of `x` for all of them, computed together.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.describe(np.asarray([1.0, 2.0, 3.0])).variance.item()
    1.0
    """
    array = _real("describe", x)
    place = axis_of("describe", axis, array)
    count = array.shape[place]
    facts, of = _whole(array, place)
    is_whole = facts.number == count
    return Description(
        count,
        (where(is_whole, facts.least, np.nan), where(is_whole, facts.greatest, np.nan)),
        of.mean,
        of.second * (count / (count - ddof) if count > ddof else np.nan),
        _skewness(of, count, bias),
        _kurtosis(of, count, True, bias),
    )


def moment(x: Operand, /, order: int = 1, *, axis: int | str = 0) -> Array:
    """The central moment of an order from 0 to 4: the mean of (x − mean)^order. I/O: one read of `x`.

    Raises ArgumentError for other orders.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.moment(np.asarray([1.0, 2.0, 6.0]), 3).item()
    6.0
    """
    array = _real("moment", x)
    if order not in (0, 1, 2, 3, 4):
        raise ArgumentError(f"moment: order must be 0, 1, 2, 3 or 4, not {order!r}")
    _, of = _whole(array, axis_of("moment", axis, array))
    if order < 2:
        return of.mean * 0.0 + float(order == 0)
    return of[order - 1]


def skew(x: Operand, /, *, axis: int | str = 0, bias: bool = True) -> Array:
    """Skewness μ₃/μ₂^1.5 along an axis; NaN where all are equal. Without `bias`, corrected (Joanes, Gill 1998).

    I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> round(oc.stats.skew(np.asarray([1.0, 2.0, 6.0])).item(), 6)
    0.59517
    """
    array = _real("skew", x)
    place = axis_of("skew", axis, array)
    return _skewness(_whole(array, place)[1], array.shape[place], bias)


def kurtosis(x: Operand, /, *, axis: int | str = 0, fisher: bool = True, bias: bool = True) -> Array:
    """Kurtosis μ₄/μ₂² along an axis, less 3 if `fisher` (0 for normal data); NaN where all are equal.

    Without `bias`, corrected (Joanes, Gill 1998). I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.kurtosis(np.asarray([1.0, 2.0, 3.0])).item()
    -1.5
    """
    array = _real("kurtosis", x)
    place = axis_of("kurtosis", axis, array)
    return _kurtosis(_whole(array, place)[1], array.shape[place], fisher, bias)


def sem(x: Operand, /, *, axis: int | str = 0, ddof: float = 1.0) -> Array:
    """The standard error of the mean, deviation / √n, along an axis. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.sem(np.asarray([1.0, 3.0, 1.0, 3.0]), ddof=0).item()
    0.5
    """
    array = _real("sem", x)
    place = axis_of("sem", axis, array)
    return std(array, axis=place, correction=ddof) / float(np.sqrt(array.shape[place]))


def variation(x: Operand, /, *, axis: int | str = 0, ddof: float = 0.0) -> Array:
    """The coefficient of variation, deviation / mean, along an axis. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.variation(np.asarray([1.0, 3.0])).item()
    0.5
    """
    array = _real("variation", x)
    place = axis_of("variation", axis, array)
    return std(array, axis=place, correction=ddof) / mean(array, axis=place)


def zscore(x: Operand, /, *, axis: int | str = 0, ddof: float = 0.0) -> Array:
    """Each element less the mean along the axis, over the standard deviation. Shape of `x`; NaN where all are equal.

    I/O: two reads of `x`, the first for mean and deviation.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.zscore(np.asarray([1.0, 3.0])).compute()
    array([-1.,  1.])
    """
    array = _real("zscore", x)
    place = axis_of("zscore", axis, array)
    center, spread = mean(array, axis=place, keepdims=True), std(array, axis=place, correction=ddof, keepdims=True)
    # A rounding error of a constant is no deviation.
    spread = where(spread > abs(center) * float(np.finfo(np.float64).eps), spread, np.nan)
    return (array - center) / spread


def gmean(x: Operand, /, *, axis: Axis = 0) -> Array:
    """The geometric mean along axes, exp of the mean of logarithms. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> round(oc.stats.gmean(np.asarray([1.0, 4.0])).item(), 12)
    2.0
    """
    return exp(mean(log(_real("gmean", x)), axis=axis))


def hmean(x: Operand, /, *, axis: Axis = 0) -> Array:
    """The harmonic mean along axes, the inverse of the mean of inverses. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.hmean(np.asarray([1.0, 3.0])).item()
    1.5
    """
    return 1.0 / mean(1.0 / _real("hmean", x), axis=axis)


def iqr(x: Operand, /, *, axis: Axis = 0, rng: tuple[float, float] = (25.0, 75.0)) -> Array:
    """The distance of two percentiles along axes, of the quartiles unless told. I/O: two reads of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.iqr(np.asarray([1.0, 2.0, 3.0, 4.0, 5.0])).item()
    2.0
    """
    quartiles = quantile(_real("iqr", x), [part / 100 for part in rng], axis=axis)
    return quartiles[1] - quartiles[0]


def cov(x: Operand, y: Operand | None = None, /, *, bias: bool = False, ddof: int | None = None) -> Array:
    """`oc.cov` of columns: rows are observations. I/O: one read of the data.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.cov(np.asarray([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])).compute()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return correlation.cov(x, y, rowvar=False, bias=bias, ddof=ddof)


def corrcoef(x: Operand, y: Operand | None = None, /) -> Array:
    """`oc.corrcoef` of columns: rows are observations. I/O: one read of the data.

    >>> import numpy as np, outcore as oc
    >>> oc.stats.corrcoef(np.asarray([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])).compute()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return correlation.corrcoef(x, y, rowvar=False)


__all__ = [
    "Description",
    "Summary",
    "corrcoef",
    "cov",
    "describe",
    "gmean",
    "hmean",
    "iqr",
    "kurtosis",
    "moment",
    "sem",
    "skew",
    "summary",
    "variation",
    "zscore",
]
