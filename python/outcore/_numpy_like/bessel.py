"""The modified Bessel function of order 0, which windows of Kaiser are made of."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._lazy.reduction import floating
from outcore._standard.searching import where
from outcore.elementwise import abs, exp, minimum, sqrt
from outcore.errors import DTypeError

_NEAR = 8.0  # up to here one polynomial, beyond it another
_DEGREES = (28, 24)
_ANGLES = 1 << 13


def _scaled(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """exp(−x)·I₀(x) = (1/π) ∫₀^π exp(x·(cos t − 1)) dt; for periodic functions midpoints are exact to rounding."""
    angles = (np.arange(_ANGLES) + 0.5) * (np.pi / _ANGLES)
    # 1 − cos t as 2·sin²(t/2), which has all its digits near 0.
    values: npt.NDArray[np.float64] = np.exp(np.multiply.outer(x, -2 * np.sin(angles / 2) ** 2)).mean(axis=-1)
    return values


@cache
def _coefficients() -> tuple[list[float], list[float]]:
    """Chebyshev series of exp(−x)·I₀(x) in x/4 − 1 below 8, and of √x·exp(−x)·I₀(x) in 16/x − 1 beyond."""

    def near(t: Any) -> Any:
        return _scaled((t + 1) * _NEAR / 2)

    def beyond(t: Any) -> Any:
        x = 2 * _NEAR / (t + 1)
        return np.sqrt(x) * _scaled(x)

    low, high = (
        chebyshev.chebinterpolate(function, degree) for function, degree in zip((near, beyond), _DEGREES, strict=True)
    )
    return low.tolist(), high.tolist()


def _series(coefficients: list[float], t: Array) -> Array:
    """A Chebyshev series by Clenshaw's recurrence (1955)."""
    twice = t * 2
    ahead, behind = t * 0, t * 0
    for coefficient in coefficients[:0:-1]:
        ahead, behind = twice * ahead - behind + coefficient, ahead
    return t * ahead - behind + coefficients[0]


def i0(x: Operand, /) -> Array:
    """I₀(x), the modified Bessel function of the first kind and order 0, to about 2e-14 of its value; floating.

    Raises DTypeError for complex numbers. I/O: fused into what reads it.

    >>> import numpy as np, outcore as oc
    >>> oc.i0(np.asarray([0.0, 1.0])).compute().round(6)
    array([1.      , 1.266066])
    """
    array = floating(x)
    if array.dtype.kind == "c":
        raise DTypeError(f"i0: takes real numbers, not {array.dtype}")
    size = abs(array)
    near, beyond = _coefficients()
    far = where(size > _NEAR, size, _NEAR)
    below = _series(near, minimum(size, _NEAR) * (2 / _NEAR) - 1)
    above = _series(beyond, (2 * _NEAR) / far - 1) / sqrt(far)
    return where(size > _NEAR, above, below) * exp(size)


__all__ = ["i0"]
