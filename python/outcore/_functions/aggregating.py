"""Folds of elements over functions of one's own (FlashMatrix's `agg`, `agg.row` and `agg.col`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce as fold

import numpy as np

from outcore import elementwise
from outcore._base.types import Scalar
from outcore._functions.blocks import map
from outcore._functions.compiled import Jitted
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, axes_of, node, weak
from outcore._lazy.reduction import floating
from outcore._standard.creation import full
from outcore._standard.manipulation import broadcast_to, concat, part_along, reshape, squeeze
from outcore._standard.searching import where
from outcore._standard.statistical import max, min, prod, sum
from outcore._standard.utility import all, any
from outcore.elementwise import abs, exp, isinf, log, maximum, positive, sqrt
from outcore.errors import ArgumentError, DTypeError, ShapeError

Pairing = str | Callable[[Array, Array], Array]
Join = Callable[[list[Array]], Array]
Reduction = Callable[[Array, Sequence[int]], Array]  # the fold along axes, which stay at length 1

# So many parts of a block are taken together by one fused step; what is left is held, a sixteenth of it.
_PARTS = 16
# Fewer where each is rows so long that parts lie in tiles of their own, which are all in memory at once.
_PARTS_OF_LONG_ROWS = 4
_LONG_ROW_ELEMENTS = 1 << 16
# Elements that lie one after another in a part, so that steps work on whole vectors.
_PART_ELEMENTS = 256
_KINDS_MAX = 4


def aggregate(
    x: Operand,
    function: Pairing,
    combine: Pairing | None = None,
    /,
    *,
    axis: Axis = None,
    identity: Scalar | None = None,
    keepdims: bool = False,
) -> Array:
    """All elements of `x`, or those along some axes, taken together by a function of two.

    `function` is the name of an element-wise function that has an identity ("add", "multiply", "minimum", "maximum",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "hypot"), or
    one of your own with its `identity`: traced into nodes as by `map`, or made by `jit`. With `combine`, `function`
    takes what was gathered and one more element, and `combine` takes two that were gathered: aggregate(x, lambda
    count, value: count + (value > 0), "add", identity=0) counts, from the identity on and in its type: int64 here,
    float64 for 0.0, and `np.float32(0)` is float32.

    Functions must be associative and commutative: which elements meet is the planner's choice, fixed by the shape
    alone, so results have the same bits at every memory limit and number of threads. The result has the type that the
    function gives of its own results, for "add" and "multiply" that of `oc.sum`. Along axes of length 0 it is the
    identity; "minimum" and "maximum" refuse, unless one is given.

    Raises ArgumentError for other names and for functions without identity, ShapeError for a function that does not
    pair elements, DTypeError for one whose results keep changing their type.

    I/O: one read of `x`. Named functions that are reductions of the engine cost no more than those. Others take
    sixteen parts of a block together in one fused step, and a sixteenth of `x` is held for the next; what the memory
    does not hold of that is written and read once (Zheng 2016, section 5.3.3.1).

    >>> import numpy as np, outcore as oc
    >>> oc.aggregate(np.asarray([[5, 3], [6, 2]]), "bitwise_xor", axis=0).compute()
    array([3, 1])
    >>> oc.aggregate(np.asarray([0.5, 0.5]), lambda p, q: p + q - p * q, identity=0).item()
    0.75
    """
    array = Array(node(x))
    axes = axes_of("aggregate", axis, array)
    _check_names(function, combine, identity)
    if combine is not None:
        array = _gathered(function, array, identity)
    joined = function if combine is None else combine
    if identity is not None and math.prod(array.shape[place] for place in axes) == 0:
        result = broadcast_to(Array(weak(identity, array.dtype)), _shape_of(array, axes))
    elif isinstance(joined, str):
        result = _NAMED[joined](array, axes)
    else:
        result = _folded(joined, array, axes, identity)
    return result if keepdims or not axes else squeeze(result, tuple(axes))


def _check_names(function: Pairing, combine: Pairing | None, identity: Scalar | None) -> None:
    for role, name in (("function", function), ("combine", combine)):
        is_gathering = role == "function" and combine is not None
        if isinstance(name, str) and name not in (elementwise.__all__ if is_gathering else _NAMED):
            known = "the name of an element-wise function" if is_gathering else f"one of {', '.join(_NAMED)}"
            raise ArgumentError(f"aggregate: {role}={name!r} is not {known}")
    if identity is None and (combine is not None or not isinstance(function, str)):
        raise ArgumentError("aggregate: functions of your own need identity=, what they start from")


def _gathered(function: Pairing, x: Array, identity: Scalar | None) -> Array:
    """Each element alone as what `function` gathers of it."""
    assert identity is not None
    start = broadcast_to(Array(node(identity)), x.shape)
    return broadcast_to(_paired(function, start, x), x.shape)


def _paired(function: Pairing, a: Array, b: Array) -> Array:
    pairs = getattr(elementwise, function)(a, b) if isinstance(function, str) else map(function, a, b)
    return Array(node(pairs))


def _shape_of(x: Array, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 if place in axes else length for place, length in enumerate(x.shape))


def _folded(function: Callable[[Array, Array], Array], x: Array, axes: Sequence[int], identity: Scalar | None) -> Array:
    """`x` with axes of length 1, each of what a function of one's own makes of it."""
    closed = _closed(function, x)
    if closed.size == 0:
        assert identity is not None
        return full(_shape_of(closed, axes), identity, dtype=closed.dtype)
    if isinstance(function, Jitted):
        return _by_axes(closed, axes, function.fold_blocks)
    return _by_axes(closed, axes, lambda part, axis: _step(part, axis, lambda parts: _tree(function, parts)))


def _closed(function: Callable[[Array, Array], Array], x: Array) -> Array:
    """`x` in the type that the function gives of two of its results."""
    for _ in range(_KINDS_MAX):
        result = _paired(function, x, x)
        if result.shape != x.shape:
            raise ShapeError(
                f"aggregate: the function gives shape {result.shape} of shape {x.shape}; it pairs elements"
            )
        if result.dtype == x.dtype:
            return x
        x = x.astype(result.dtype)
    raise DTypeError(f"aggregate: the function gives {result.dtype} of two that it gave before, and so on")


def _tree(function: Callable[[Array, Array], Array], parts: list[Array]) -> Array:
    while len(parts) > 1:
        pairs = [_paired(function, *parts[place : place + 2]) for place in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _by_axes(x: Array, axes: Sequence[int], step: Callable[[Array, int], Array]) -> Array:
    for axis in sorted(axes, key=lambda axis: -x.shape[axis]):  # what lies side by side first
        while x.shape[axis] > 1:
            x = step(x, axis)
    return x


def _step(x: Array, axis: int, join: Join) -> Array:
    """An axis made shorter: parts of each of its blocks taken together, and what is no whole block behind them.

    Parts of a block lie side by side, so no tile waits for another.
    """
    length, beside = x.shape[axis], math.prod(x.shape[axis + 1 :])
    many = _PARTS if beside < _LONG_ROW_ELEMENTS else _PARTS_OF_LONG_ROWS
    if length <= many:
        return join([part_along(x, axis, place, place + 1) for place in range(length)])
    run = np.clip(_PART_ELEMENTS // np.maximum(beside, 1), 1, length // many).item()
    blocks = length // (many * run)
    end = blocks * many * run
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    body = reshape(part_along(x, axis, 0, end), (*before, blocks, many, run, *behind))
    parts = [squeeze(part_along(body, axis + 1, place, place + 1), axis + 1) for place in range(many)]
    joined = reshape(join(parts), (*before, blocks * run, *behind))
    return joined if end == length else concat([joined, part_along(x, axis, end, None)], axis=axis)


def _reduction(reduce: Callable[..., Array], of_bool: Callable[..., Array] | None = None) -> Reduction:
    def along(x: Array, axes: Sequence[int]) -> Array:
        use = of_bool if of_bool is not None and x.dtype.kind == "b" else reduce
        return use(x, axis=tuple(axes), keepdims=True)

    return along


def _odd(x: Array, *, axis: Axis, keepdims: bool) -> Array:
    return sum(x.astype(np.bool_), axis=axis, keepdims=keepdims) % 2 == 1


def _bits(name: str, of_bool: Callable[..., Array], identity: int) -> Reduction:
    function = getattr(elementwise, name)

    def along(x: Array, axes: Sequence[int]) -> Array:
        if x.dtype.kind == "b":
            return of_bool(x, axis=tuple(axes), keepdims=True)
        function(x, x)  # refuses types that have no bits
        start = identity if identity >= 0 or x.dtype.kind == "i" else int(np.iinfo(x.dtype).max)
        return _folded(function, x, axes, start)

    return along


def _floats(join: Join, identity: float, finish: Callable[[Array], Array] = positive) -> Reduction:
    def along(x: Array, axes: Sequence[int]) -> Array:
        array = floating(x)
        if array.dtype.kind == "c":
            raise DTypeError(f"aggregate: {array.dtype} has no order")
        if array.size == 0:
            return full(_shape_of(array, axes), identity, dtype=array.dtype)
        return finish(_by_axes(array, axes, lambda part, axis: _step(part, axis, join)))

    return along


def _log_of_sum(parts: list[Array]) -> Array:
    """log Σ exp(p), of distances from the largest: one logarithm for all of them."""
    high = fold(maximum, parts)
    shift = where(isinf(high), 0.0, high)
    return where(isinf(high), high, log(fold(elementwise.add, [exp(part - shift) for part in parts])) + shift)


def _length(parts: list[Array]) -> Array:
    """√Σp², by shares of the largest, whose squares do not overflow."""
    high = fold(maximum, [abs(part) for part in parts])
    scale = where((high == 0) | isinf(high), 1.0, high)
    return sqrt(fold(elementwise.add, [(part / scale) ** 2 for part in parts])) * scale


_NAMED: dict[str, Reduction] = {
    "add": _reduction(sum),
    "multiply": _reduction(prod),
    "minimum": _reduction(min, all),
    "maximum": _reduction(max, any),
    "logical_and": _reduction(all),
    "logical_or": _reduction(any),
    "logical_xor": _reduction(_odd),
    "bitwise_and": _bits("bitwise_and", all, -1),
    "bitwise_or": _bits("bitwise_or", any, 0),
    "bitwise_xor": _bits("bitwise_xor", _odd, 0),
    "logaddexp": _floats(_log_of_sum, -np.inf),
    "hypot": _floats(_length, 0.0, abs),
}

__all__ = ["aggregate"]
