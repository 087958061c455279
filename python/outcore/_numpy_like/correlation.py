"""Weighted means, ranges, percentiles, covariance and correlation: NumPy's functions of those names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axis_of, node
from outcore._lazy.reduction import mean_dtype, wide_dtype
from outcore._numpy_like.order import QuantileMethod, quantile
from outcore._standard.creation import eye
from outcore._standard.linear_algebra import matmul, matrix_transpose
from outcore._standard.manipulation import broadcast_to, concat, expand_dims, reshape
from outcore._standard.searching import where
from outcore._standard.statistical import max, mean, min, sum
from outcore.elementwise import clip, conj, real, sqrt
from outcore.errors import ArgumentError, ShapeError

# Columns, or rows, whose mean everything is taken from before it is squared.
_SHIFT_BY = 16


def average(x: Operand, /, *, axis: Axis = None, weights: Operand | None = None, keepdims: bool = False) -> Array:
    """Mean with weights, Σ w·x / Σ w; the mean without them.

    Weights have the shape of `x`, or lie along its one axis that is reduced. Raises ShapeError for others. Of float16,
    sums are formed in float32. I/O: one read of `x` and of the weights.

    >>> import numpy as np, outcore as oc
    >>> oc.average(np.asarray([1.0, 3.0]), weights=np.asarray([3.0, 1.0])).item()
    1.5
    """
    array = Array(node(x))
    if weights is None:
        return mean(array, axis=axis, keepdims=keepdims)
    heavy = Array(node(weights))
    if heavy.shape != array.shape:
        if not isinstance(axis, int):
            raise ShapeError(f"average: weights of shape {heavy.shape} for {array.shape} need the axis they lie along")
        place = axis_of("average", axis, array)
        if heavy.shape != (array.shape[place],):
            raise ShapeError(f"average: weights of shape {heavy.shape} do not lie along axis {place} of {array.shape}")
        shape = [1] * array.ndim
        shape[place] = heavy.shape[0]
        heavy = broadcast_to(reshape(heavy, tuple(shape)), array.shape)
    dtype = np.result_type(mean_dtype(array.dtype), heavy.dtype)
    wide = wide_dtype(dtype)
    heavy = heavy.astype(wide)
    products = array.astype(wide) * heavy
    result = sum(products, axis=axis, keepdims=keepdims) / sum(heavy, axis=axis, keepdims=keepdims)
    return result.astype(dtype)


def ptp(x: Operand, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest element less the smallest. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.ptp(np.asarray([3, 9, 4])).item()
    6
    """
    array = Array(node(x))
    return max(array, axis=axis, keepdims=keepdims) - min(array, axis=axis, keepdims=keepdims)


def percentile(
    x: Operand,
    q: Operand | Sequence[float],
    /,
    *,
    axis: Axis = None,
    method: QuantileMethod = "linear",
    keepdims: bool = False,
) -> Array:
    """`quantile` of hundredths. I/O: two reads of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.percentile(np.asarray([1.0, 2.0, 3.0]), 50).item()
    2.0
    """
    return quantile(x, np.asarray(q, dtype=np.float64) / 100, axis=axis, method=method, keepdims=keepdims)


def cov(
    x: Operand, y: Operand | None = None, /, *, rowvar: bool = True, bias: bool = False, ddof: int | None = None
) -> Array:
    """Covariance of variables, which are rows (columns if not `rowvar`), with divisor n − ddof (1, or 0 if `bias`).

    `y` gives further variables; that of a single one is a number without axes, as NumPy has it. Two observations at
    least are needed for a finite result, which is float64 or complex128. Raises ShapeError for arrays of more than two
    axes and for different numbers of observations.

    I/O: one read of the data: sums and products are formed together, of distances from the mean of its first
    observations, which are read beforehand; Σ (x−c)(x−c)ᵀ − n·(m−c)(m−c)ᵀ (Chan, Golub, LeVeque 1983).

    >>> import numpy as np, outcore as oc
    >>> oc.cov(np.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).compute()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    parts = [_variables(part, rowvar) for part in (x, y) if part is not None]
    if len(parts) == 2 and parts[0].shape[0] != parts[1].shape[0]:
        raise ShapeError(f"cov: {parts[0].shape[0]} and {parts[1].shape[0]} observations")
    data = parts[0] if len(parts) == 1 else concat(parts, axis=1)
    count = data.shape[0]
    if ddof is not None and ddof != int(ddof):
        raise ArgumentError(f"cov: ddof={ddof} is not an integer")
    less = (0 if bias else 1) if ddof is None else int(ddof)
    shift = mean(data[:_SHIFT_BY], axis=0, keepdims=True)
    apart = data - shift
    products = matmul(matrix_transpose(apart), conj(apart) if data.dtype.kind == "c" else apart)
    sums = reshape(sum(apart, axis=0), (data.shape[1], 1))
    beside = matrix_transpose(conj(sums) if data.dtype.kind == "c" else sums)
    covariances = (products - sums * beside / float(count if count else 1)) / float(
        np.maximum(count - less, 0) or np.nan
    )
    return reshape(covariances, ()) if data.shape[1] == 1 else covariances


def _variables(x: Operand, rowvar: bool) -> Array:
    """Observations as rows, variables as columns, in double precision, as sums of squares need."""
    array = Array(node(x))
    if array.ndim > 2:
        raise ShapeError(f"cov: an array of shape {array.shape} has more than two axes")
    array = array.astype(np.result_type(array.dtype, np.float64))
    if array.ndim < 2:
        return reshape(array, (-1 if array.ndim else 1, 1))
    return array.T if rowvar else array


def corrcoef(x: Operand, y: Operand | None = None, /, *, rowvar: bool = True) -> Array:
    """Correlation of variables: their covariance over the product of their standard deviations, within −1 and 1.

    I/O: as `cov`.

    >>> import numpy as np, outcore as oc
    >>> oc.corrcoef(np.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).compute()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    covariances = cov(x, y, rowvar=rowvar)
    if not covariances.ndim:
        return covariances / covariances
    variables = covariances.shape[0]
    variances = sum(where(eye(variables, dtype=np.bool_), covariances, 0), axis=0)
    deviations = sqrt(real(variances) if covariances.dtype.kind == "c" else variances)
    scaled = covariances / reshape(deviations, (variables, 1)) / expand_dims(deviations, axis=0)
    return clip(scaled, -1, 1) if covariances.dtype.kind == "f" else scaled


__all__ = ["average", "corrcoef", "cov", "percentile", "ptp"]
