"""Differences, integrals, interpolation and convolution along an axis: NumPy's functions of those names."""

from __future__ import annotations

from functools import reduce as fold
from typing import Any, Literal, overload

import numpy as np

from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Axis, Operand, as_numpy, axes_of, axis_of, is_weak, node
from outcore._lazy.reduction import floating, wide_dtype
from outcore._standard.creation import asarray, zeros
from outcore._standard.dtypes import result_type
from outcore._standard.indexing import take
from outcore._standard.manipulation import concat, flip, part_along, reshape
from outcore._standard.searching import searchsorted, where
from outcore._standard.statistical import sum
from outcore.elementwise import clip, conj, isnan
from outcore.errors import ArgumentError, DTypeError, ShapeError

# Each is a shifted read that is fused with the others; longer ones are work for a transform.
_KERNEL_MAX = 64


@overload
def gradient(f: Operand, /, *spacing: Operand, axis: int, edge_order: int = 1) -> Array: ...
@overload
def gradient(f: Operand, /, *spacing: Operand, axis: Axis = None, edge_order: int = 1) -> Array | list[Array]: ...
def gradient(f: Operand, /, *spacing: Operand, axis: Axis = None, edge_order: int = 1) -> Array | list[Array]:
    """Central differences along the axes, one array for each (alone for one), one-sided at the ends.

    `spacing`: nothing (1), one step for all axes, or for each axis a step or the coordinates. The ends are of first or
    second order by `edge_order`. Raises ShapeError for an axis of fewer than `edge_order + 1` elements.

    I/O: one read of `f` for each axis.

    >>> import numpy as np, outcore as oc
    >>> oc.gradient(np.asarray([1.0, 2.0, 4.0, 7.0])).compute()
    array([1. , 1.5, 2.5, 3. ])
    """
    array = floating(f)
    axes = axes_of("gradient", axis, array)
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order={edge_order} is neither 1 nor 2")
    steps = list(spacing) if len(spacing) != 1 else list(spacing) * len(axes)
    if steps and len(steps) != len(axes):
        raise ArgumentError(f"gradient: {len(steps)} spacings for {len(axes)} axes")
    gradients = [
        _gradient(array, place, as_numpy(steps[at]) if steps else np.asarray(1.0), edge_order)
        for at, place in enumerate(axes)
    ]
    return gradients[0] if len(gradients) == 1 else gradients


def _gradient(f: Array, axis: int, spacing: Any, edge_order: int) -> Array:
    length = f.shape[axis]
    if length < edge_order + 1:
        raise ShapeError(f"gradient: axis {axis} of {f.shape} is shorter than {edge_order + 1}")
    if spacing.ndim > 1 or (spacing.ndim == 1 and len(spacing) != length):
        raise ShapeError(f"gradient: coordinates of shape {spacing.shape} for axis {axis} of {f.shape}")
    widths = np.full(length - 1, float(spacing)) if spacing.ndim == 0 else np.diff(spacing.astype(np.float64))

    def column(values: object) -> Array:
        shape = (1,) * axis + (-1,) + (1,) * (f.ndim - axis - 1)
        return asarray(np.asarray(values, dtype=f.real.dtype).reshape(shape))

    def at(place: int) -> Array:
        return part_along(f, axis, place, place + 1 or None)

    parts = []
    first, last = widths[0], widths[-1]
    if edge_order == 1:
        begin, end = (at(1) - at(0)) / first, (at(-1) - at(-2)) / last
    else:
        d1, d2 = widths[0], widths[1]
        begin = at(0) * (-(2 * d1 + d2) / (d1 * (d1 + d2))) + at(1) * ((d1 + d2) / (d1 * d2))
        begin = begin + at(2) * (-d1 / (d2 * (d1 + d2)))
        d1, d2 = widths[-2], widths[-1]
        end = at(-3) * (d2 / (d1 * (d1 + d2))) + at(-2) * (-(d2 + d1) / (d1 * d2))
        end = end + at(-1) * ((2 * d2 + d1) / (d2 * (d1 + d2)))
    parts.append(begin)
    if length > 2:
        before, middle, behind = (part_along(f, axis, start, start - 2 or None) for start in (0, 1, 2))
        if np.all(widths == widths[0]):
            parts.append((behind - before) / (2.0 * widths[0]))
        else:
            low, high = widths[:-1], widths[1:]
            a, b = column(-high / (low * (low + high))), column((high - low) / (low * high))
            parts.append(before * a + middle * b + behind * column(low / (high * (low + high))))
    parts.append(end)
    return concat(parts, axis=axis)


def trapezoid(y: Operand, /, x: Operand | None = None, *, dx: float = 1.0, axis: int | str = -1) -> Array:
    """The integral along an axis by trapezoids, over coordinates `x` or steps `dx`. I/O: one read of `y` and of `x`.

    Of float16, sums are formed in float32; steps between coordinates of short integers in int64.

    >>> import numpy as np, outcore as oc
    >>> oc.trapezoid(np.asarray([1.0, 2.0, 3.0])).item()
    4.0
    """
    array = floating(y)
    place = axis_of("trapezoid", axis, array)
    step: Operand = dx
    steps = dx if x is None else x
    dtype = result_type(array, steps if is_weak(steps) else Array(node(steps)))
    array = array.astype(wide_dtype(array.dtype))
    if x is not None:
        points = Array(node(x))
        if points.dtype == np.float16:
            points = points.astype(np.float32)
        elif points.dtype.kind in "biu" and points.dtype.itemsize < 8:  # whose differences may be beyond them
            points = points.astype(np.int64)
        if points.ndim == 1:
            points = reshape(points, (-1,) + (1,) * (array.ndim - place - 1))
            step = part_along(points, 0, 1, None) - part_along(points, 0, None, -1)
        else:
            axis_of_points = axis_of("trapezoid", axis, points)
            step = part_along(points, axis_of_points, 1, None) - part_along(points, axis_of_points, None, -1)
    pairs = part_along(array, place, 1, None) + part_along(array, place, None, -1)
    return sum(pairs * step / 2.0, axis=place).astype(dtype)


def interp(x: Operand, xp: Operand, fp: Operand, /, *, left: float | None = None, right: float | None = None) -> Array:
    """Linear interpolation at `x` of the points (xp, fp); `left` and `right` outside, else the outermost values.

    `xp` rises and is held in memory with `fp`: they are few beside `x`. NaN where `x` is NaN. Raises ShapeError where
    they are not two rows of one length. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.interp(np.asarray([0.5, 3.0]), np.asarray([0.0, 1.0]), np.asarray([10.0, 20.0])).compute()
    array([15., 20.])
    """
    points, values = as_numpy(xp, np.float64), as_numpy(fp, np.float64)
    if points.ndim != 1 or points.shape != values.shape or not len(points):
        raise ShapeError(f"interp: points of shape {points.shape} with values of shape {values.shape}")
    array = Array(node(x)).astype(np.float64)
    flat = reshape(array, (array.size,))
    low = float(values[0]) if left is None else float(left)
    high = float(values[-1]) if right is None else float(right)
    if len(points) == 1:
        interpolated = where(flat < points[0], low, where(flat > points[0], high, float(values[0])))
    else:
        slopes = np.diff(values) / np.diff(points)
        place = clip(searchsorted(asarray(points), flat, side="right") - 1, 0, len(points) - 2)
        inside = (flat - take(asarray(points), place)) * take(asarray(slopes), place) + take(asarray(values), place)
        inside = where(flat == points[-1], float(values[-1]), inside)
        interpolated = where(flat < points[0], low, where(flat > points[-1], high, inside))
    return reshape(where(isnan(flat), np.nan, interpolated), array.shape)


def digitize(x: Operand, bins: Operand, /, *, right: bool = False) -> Array:
    """The number of the bin that each element lies in, int64: edges rise or fall; 0 before them, their number behind.

    A bin holds its left edge, the right one if `right`. Edges are held in memory. I/O: one read of `x`.

    >>> import numpy as np, outcore as oc
    >>> oc.digitize(np.asarray([0.5, 2.0]), np.asarray([0.0, 1.0, 2.0])).compute()
    array([1, 3])
    """
    edges = as_numpy(bins)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: edges of shape {edges.shape} are not one-dimensional")
    side: Literal["left", "right"] = "left" if right else "right"
    steps = np.diff(edges)
    if np.all(steps >= 0):
        return searchsorted(asarray(edges), x, side=side)
    if np.all(steps <= 0):
        return len(edges) - searchsorted(asarray(edges[::-1].copy()), x, side=side)
    raise ArgumentError("digitize: edges neither rise nor fall throughout")


def correlate(x1: Operand, x2: Operand, /, *, mode: Literal["full", "same", "valid"] = "valid") -> Array:
    """The correlation of two rows, Σⱼ x1[i+j]·conj(x2[j]): the convolution with `x2` reversed; see `convolve`.

    Modes, errors and I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.correlate(np.asarray([1.0, 2.0, 3.0]), np.asarray([0.0, 1.0, 0.5])).compute()
    array([3.5])
    """
    a, b = Array(node(x1)), Array(node(x2))
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"correlate: arrays of shapes {a.shape} and {b.shape} are not two rows")
    if mode == "same" and a.size < b.size:
        # NumPy exchanges the rows, and with them which of two middle places counts as the first.
        return flip(_conjugate(convolve(b, flip(_conjugate(a)), mode="same")))
    return convolve(a, flip(_conjugate(b)) if isinstance(x2, Array) else np.flip(np.conj(np.asarray(x2))), mode=mode)


def _conjugate(x: Array) -> Array:
    return conj(x) if x.dtype.kind == "c" else x


def convolve(x1: Operand, x2: Operand, /, *, mode: Literal["full", "same", "valid"] = "full") -> Array:
    """The convolution of two rows, Σⱼ x1[i−j]·x2[j]; the shorter has at most 64 elements and is held in memory.

    `mode` as in NumPy: "full" (n + m − 1 elements), "same" (as the longer), "valid" (where they overlap entirely).
    Raises ArgumentError for two long rows. I/O: one read of the longer.

    >>> import numpy as np, outcore as oc
    >>> oc.convolve(np.asarray([1.0, 2.0, 3.0]), np.asarray([0.0, 1.0, 0.5])).compute()
    array([0. , 1. , 2.5, 4. , 1.5])
    """
    a, b = Array(node(x1)), Array(node(x2))
    if a.ndim != 1 or b.ndim != 1 or not a.size or not b.size:
        raise ShapeError(f"convolve: arrays of shapes {a.shape} and {b.shape} are not two rows with elements")
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"convolve: mode {mode!r} is none of full, same, valid")
    long, short = (a, b) if a.size >= b.size else (b, a)
    if short.size > _KERNEL_MAX:
        raise ArgumentError(f"convolve: rows of {a.size} and {b.size} elements; the shorter may have {_KERNEL_MAX}")
    dtype = np.result_type(a.dtype, b.dtype)
    if dtype.kind == "b":
        raise DTypeError("convolve: of bool is not defined; cast the arrays first")
    before = short.size - 1
    edge = zeros((before,), dtype=dtype)
    padded = concat([edge, long.astype(dtype), edge]) if before else long.astype(dtype)
    total = long.size + before
    kernel = x2 if short is b else x1
    # Of rows in memory the weights are numbers; others stay lazy.
    weights: Array | NDArray = short.astype(dtype) if isinstance(kernel, Array) else np.asarray(kernel).astype(dtype)
    each = [weights[at : at + 1] if isinstance(kernel, Array) else asarray(weights[at]) for at in range(short.size)]
    shifted = [padded[before - at : before - at + total] * weight for at, weight in enumerate(each)]
    full = fold(lambda left, right: left + right, shifted)
    if mode == "full":
        return full
    if mode == "valid":
        return full[before : long.size]
    start = before // 2
    return full[start : start + long.size]


__all__ = ["convolve", "correlate", "digitize", "gradient", "interp", "trapezoid"]
