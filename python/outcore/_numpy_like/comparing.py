"""Whether arrays are equal, or nearly so: NumPy's functions of those names."""

from __future__ import annotations

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import floating
from outcore._lazy.typed import Typed, typed_of
from outcore._standard.creation import asarray
from outcore._standard.manipulation import broadcast_shapes
from outcore._standard.utility import all
from outcore.elementwise import abs, isfinite, isnan
from outcore.errors import DTypeError


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


def _typed_pair(x1: object, x2: object) -> tuple[Array | Typed, Array | Typed] | None:
    """Both arrays, where one of them is of dates or text; the other may be of numbers."""
    typed = typed_of(x1), typed_of(x2)
    if typed == (None, None):
        return None
    first, second = (Array(node(x)) if of is None else of for x, of in zip((x1, x2), typed, strict=True))
    return first, second


def _typed_same(a: object, b: object, equal_nan: bool) -> Array | None:
    """Where elements are equal; None for types that do not compare."""
    if not (isinstance(a, Typed) and isinstance(b, Typed)):
        return None
    try:
        same: object = a == b
    except DTypeError:
        return None
    if same is NotImplemented or not isinstance(same, Array):
        return None
    gone = [x._missing(x._columns()) for x in (a, b)] if equal_nan else [None]
    first, last = gone[0], gone[-1]
    return same if first is None or last is None else same | (first & last)


def array_equal(x1: Operand | Typed, x2: Operand | Typed, /, *, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements, also of dates and text: a lazy truth value.

    I/O: one read of each, none where shapes differ.

    >>> import numpy as np, outcore as oc
    >>> bool(oc.array_equal(np.asarray([1, 2]), np.asarray([1, 2, 3])))
    False
    """
    typed = _typed_pair(x1, x2)
    if typed is not None:
        same = _typed_same(*typed, equal_nan) if typed[0].shape == typed[1].shape else None
        return asarray(False) if same is None else all(same)
    a, b = Array(node(x1)), Array(node(x2))
    if a.shape != b.shape:
        return asarray(False)
    same = a == b
    if equal_nan and a.dtype.kind in "fc" and b.dtype.kind in "fc":
        same = same | (isnan(a) & isnan(b))
    return all(same)


def array_equiv(x1: Operand | Typed, x2: Operand | Typed, /) -> Array:
    """Whether two arrays broadcast to one shape and are equal there: a lazy truth value. I/O: one read of each.

    >>> import numpy as np, outcore as oc
    >>> bool(oc.array_equiv(np.asarray([[1, 2], [1, 2]]), np.asarray([1, 2])))
    True
    """
    a, b = _typed_pair(x1, x2) or (Array(node(x1)), Array(node(x2)))
    try:
        broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return asarray(False)
    same = a == b if type(a) is type(b) is Array else _typed_same(a, b, False)
    return asarray(False) if same is None else all(same)


__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]
