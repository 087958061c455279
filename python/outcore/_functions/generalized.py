"""Matrix products over other operations than multiplication and addition (FlashMatrix's `inner.prod`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce as fold
from typing import Literal

import numpy as np

from outcore import elementwise
from outcore._base.types import DType
from outcore._functions.blocks import map
from outcore._functions.compiled import Jitted
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._lazy.reduction import floating, sum_dtype
from outcore._standard import statistical, utility
from outcore._standard.linear_algebra import matmul
from outcore._standard.manipulation import expand_dims
from outcore._standard.statistical import mean, sum
from outcore.elementwise import abs, clip, multiply, pow, square, subtract
from outcore.errors import ArgumentError, ShapeError

Add = Literal["sum", "prod", "min", "max", "any", "all"]
Multiply = str | Callable[[Array, Array], Array]

_ADDITIONS: dict[str, Callable[..., Array]] = {
    **{name: getattr(statistical, name) for name in ("sum", "prod", "min", "max")},
    **{name: getattr(utility, name) for name in ("any", "all")},
}

# How two pairs are taken together, and in what type.
_TOGETHER: dict[str, tuple[Callable[[Array, Array], Array], Callable[[DType], DType]]] = {
    "sum": (elementwise.add, sum_dtype),
    "prod": (elementwise.multiply, sum_dtype),
    "min": (elementwise.minimum, np.dtype),
    "max": (elementwise.maximum, np.dtype),
    "any": (elementwise.logical_or, lambda _: np.dtype(np.bool_)),
    "all": (elementwise.logical_and, lambda _: np.dtype(np.bool_)),
}
# So few pairs beside so many columns are faster one after another than as an axis of their own.
_UNROLLED_MAX = 8
_WIDE = 16


def inner(x1: Operand, x2: Operand, /, multiply: Multiply = "multiply", add: Add = "sum") -> Array:
    """The product of matrices (m, k) and (k, n) in which `multiply` pairs elements and `add` takes the k pairs
    together.

    `multiply` is the name of a function of two arrays ("subtract", "minimum", "not_equal", …) or one of your own,
    which is traced into nodes, or compiled where `jit` made it: no Python per element. `add` is a reduction:
    inner(A, B, "add", "min") is the min-plus product, inner(A, B, "not_equal", "sum") counts where rows and columns
    differ (Hamming), inner(A, B, lambda a, b: (a - b) ** 2) is squared Euclidean distance.

    The ordinary product is a product; so is the squared distance, as |a|² + |b|² − 2ab of what is left of both without
    the mean of B: distances much smaller than the spread of the data lose digits by that. All others are m·n·k
    operations. Raises ArgumentError for other names, ShapeError for shapes that do not go together.

    I/O: as `matmul` for products; else one read of A for every few columns of B that fit the memory beside it. For a
    function made by `jit`, B is computed at once and held in memory, and A is read once.

    >>> import numpy as np, outcore as oc
    >>> cost = np.asarray([[0.0, 3.0], [np.inf, 0.0]])
    >>> oc.inner(cost, cost, "add", "min").compute()
    array([[ 0.,  3.],
           [inf,  0.]])
    """
    left, right = Array(node(x1)), Array(node(x2))
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise ShapeError(f"inner: {left.shape} and {right.shape} are not (m, k) and (k, n)")
    if add not in _ADDITIONS:
        raise ArgumentError(f"inner: add={add!r} is not one of {', '.join(_ADDITIONS)}")
    # The reduced axis is not the last: vector instructions then add whole rows of pairs.
    a, b = expand_dims(left, axis=2), expand_dims(right, axis=0)
    if isinstance(multiply, Jitted) and left.size and right.size:
        return multiply.product(left, right, add)
    pairs = paired("inner", multiply, a, b)
    if add == "sum" and pairs.ndim == 3:
        if pairs._expr.id == elementwise.multiply(a, b)._expr.id and pairs.dtype.kind != "b":
            return matmul(left, right).astype(pairs.dtype)
        if any(pairs._expr.id == square._expr.id for square in _squares(a, b)) and pairs.dtype.kind == "f":
            return _distances(left, right).astype(pairs.dtype)
    if pairs.shape != (*left.shape, right.shape[1]):
        raise ShapeError(f"inner: multiply gives an array of shape {pairs.shape}; it must pair elements")
    if 0 < left.shape[1] <= _UNROLLED_MAX and right.shape[1] >= _WIDE:
        return _unrolled(multiply, left, right, add).astype(_ADDITIONS[add](pairs, axis=1).dtype)
    return _ADDITIONS[add](pairs, axis=1)


def _unrolled(multiply: Multiply, left: Array, right: Array, add: str) -> Array:
    """The k pairs of each place chained in one fused step, which holds no array of three axes."""
    together, kind = _TOGETHER[add]
    columns = [
        paired("inner", multiply, left[:, place : place + 1], right[place : place + 1])
        for place in range(left.shape[1])
    ]
    return fold(together, [column.astype(kind(column.dtype)) for column in columns])


def paired(name: str, multiply: Multiply, a: Array, b: Array) -> Array:
    """The result of a function of two arrays, or of an element-wise one by its name. Raises ArgumentError else."""
    if callable(multiply):
        return Array(node(map(multiply, a, b)))
    if multiply not in elementwise.__all__:
        raise ArgumentError(f"{name}: multiply={multiply!r} is not the name of an element-wise function")
    result: Array = getattr(elementwise, multiply)(a, b)
    return result


def _squares(a: Array, b: Array) -> Iterator[Array]:
    """The ways in which a squared difference may be written; equal expressions are one node."""
    for apart in (subtract(a, b), subtract(b, a)):
        yield from (multiply(apart, apart), square(apart), pow(apart, 2), pow(apart, 2.0), square(abs(apart)))
        yield from (pow(abs(apart), 2), pow(abs(apart), 2.0))


def _distances(left: Array, right: Array) -> Array:
    """|a − b|² of rows of A and columns of B."""
    middle = mean(floating(right), axis=1, keepdims=True)
    a, b = floating(left) - middle.T, floating(right) - middle
    lengths = sum(a * a, axis=1, keepdims=True) + sum(b * b, axis=0, keepdims=True)
    return clip(lengths - 2 * matmul(a, b), 0, None)


__all__ = ["inner"]
