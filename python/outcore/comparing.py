"""Whether arrays are equal, or nearly so: NumPy's functions of those names."""

from __future__ import annotations

from outcore._array import Array
from outcore._node import Operand, node
from outcore._reduction import floating
from outcore.creation import asarray
from outcore.elementwise import abs, isfinite, isnan
from outcore.manipulation import broadcast_shapes
from outcore.utility import all


def isclose(x1: Operand, x2: Operand, /, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """Whether |x1 − x2| ≤ atol + rtol·|x2|, element by element; equal infinities are close, NaN to NaN if `equal_nan`.

    Shape: both broadcast together. I/O: fused into what reads it.

    >>> import numpy as np, outcore as oc
    >>> oc.isclose(np.asarray([1.0, 2.0]), np.asarray([1.0 + 1e-9, 2.1])).compute()
    array([ True, False])
    """
    a, b = floating(x1), floating(x2)
    near = (abs(a - b) <= atol + rtol * abs(b)) & isfinite(b)
    close = near | (a == b)
    return close | (isnan(a) & isnan(b)) if equal_nan else close


def allclose(
    x1: Operand, x2: Operand, /, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close, as `isclose` says: a lazy truth value. I/O: one read of each.

    >>> import numpy as np, outcore as oc
    >>> bool(oc.allclose(np.asarray([1.0, 2.0]), np.asarray([1.0, 2.0 + 1e-9])))
    True
    """
    return all(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))


def array_equal(x1: Operand, x2: Operand, /, *, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements: a lazy truth value.

    I/O: one read of each, none where shapes differ.

    >>> import numpy as np, outcore as oc
    >>> bool(oc.array_equal(np.asarray([1, 2]), np.asarray([1, 2, 3])))
    False
    """
    a, b = Array(node(x1)), Array(node(x2))
    if a.shape != b.shape:
        return asarray(False)
    same = a == b
    if equal_nan and a.dtype.kind in "fc" and b.dtype.kind in "fc":
        same = same | (isnan(a) & isnan(b))
    return all(same)


def array_equiv(x1: Operand, x2: Operand, /) -> Array:
    """Whether two arrays broadcast to one shape and are equal there: a lazy truth value. I/O: one read of each.

    >>> import numpy as np, outcore as oc
    >>> bool(oc.array_equiv(np.asarray([[1, 2], [1, 2]]), np.asarray([1, 2])))
    True
    """
    a, b = Array(node(x1)), Array(node(x2))
    try:
        broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return asarray(False)
    return all(a == b)


__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]
