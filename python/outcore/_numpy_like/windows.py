"""Statistics of sliding windows: sums, means, extremes and variances of each element and those before it.

An axis is cut into blocks as long as the window. A window then is the end of one block and the beginning of the next,
so what it comes to is what a scan backwards through the one and a scan forwards through the other have found (van Herk
1992, Gil and Werman 1993): a few operations for each element, however long the window. Nothing is subtracted again, as
differences of one running sum would have it, so a large number spoils the windows it lies in and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, axis_of, integers
from outcore._lazy.reduction import floating
from outcore._numpy_like.arranging import pad
from outcore._standard.creation import arange
from outcore._standard.manipulation import broadcast_to, flip, part_along, reshape
from outcore._standard.searching import where
from outcore._standard.statistical import cummax, cummin, cumulative_sum
from outcore.elementwise import isfinite, isnan, maximum, minimum, positive, sqrt
from outcore.errors import ArgumentError, DTypeError, ShapeError

Parts = list[Array]
Sweep = Callable[[Array, int], Parts]
Merge = Callable[[Parts, Parts], Parts]


def _along(values: Array, axis: int, ndim: int) -> Array:
    """A row along one of several axes."""
    return reshape(values, (1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def _windows(x: Array, axis: int, window: int, sweep: Sweep, nothing: Sequence[float], merge: Merge) -> Parts:
    """The results of `sweep` for each element and the `window` − 1 before it, or of as many as there are.

    `sweep` gives running values along an axis, `nothing` those of no elements, `merge` puts two neighbours together.
    """
    length = x.shape[axis]
    if not length:
        return sweep(x, axis)
    size = min(window, length)
    count = -(-length // size)
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, count * size - length)
    shape = (*x.shape[:axis], count, size, *x.shape[axis + 1 :])
    # Behind an element-wise step both scans share one sweep over a file, which each would else read in its own tiles.
    blocks = reshape(positive(pad(x, widths)), shape)
    begun = sweep(blocks, axis + 1)
    if count > 1:
        # Of the block before, what a window does not reach with its first element; of the first one there is none.
        ended = [flip(part, axis=axis + 1) for part in sweep(flip(blocks, axis=axis + 1), axis + 1)]
        widths = [(0, 0)] * len(shape)
        widths[axis], widths[axis + 1] = (1, 0), (0, 1)
        before = [
            pad(part_along(part_along(part, axis, 0, count - 1), axis + 1, 1, None), widths, constant_values=value)
            for part, value in zip(ended, nothing, strict=True)
        ]
        begun = merge(before, begun)
    flat = (*x.shape[:axis], count * size, *x.shape[axis + 1 :])
    return [part_along(reshape(part, flat), axis, 0, length) for part in begun]


class _Call:
    """The arguments that all of them share, checked."""

    def __init__(
        self, name: str, x: Operand, window: int, axis: int | str, min_periods: int | None, wide: bool
    ) -> None:
        self.x = floating(x)
        self.dtype = self.x.dtype
        if wide:  # long sums would use up the digits of half and single precision
            self.x = self.x.astype(np.result_type(self.dtype, np.float64))
        if not self.x.ndim:
            raise ShapeError(f"{name}: x must have at least 1 axis; a number has none")
        self.axis = axis_of(name, axis, self.x)
        self.window = integers(window)[0]
        if self.window < 1:
            raise ArgumentError(f"{name}: window must be at least 1, not {self.window}")
        least = self.window if min_periods is None else integers(min_periods)[0]
        if not 0 <= least <= self.window:
            raise ArgumentError(f"{name}: min_periods must be between 0 and the window, {self.window}, not {least}")
        self.least = least
        # NaN spoils every window it lies in by itself; it is counted only where it may be passed over.
        self.counts = least < self.window

    def present(self, values: Array) -> Array:
        """Where the values are numbers."""
        return ~isnan(values)

    def run(self, sweep: Sweep, nothing: Sequence[float], merge: Merge) -> Parts:
        return _windows(self.x, self.axis, self.window, sweep, nothing, merge)

    def whole(self, value: Array, count: Array | None, least: int) -> Array:
        """The value where a window has enough elements, NaN where not."""
        if count is not None:
            return where(count >= least, value, np.nan).astype(self.dtype)
        places = _along(arange(self.x.shape[self.axis]), self.axis, self.x.ndim)
        return where(places >= self.window - 1, value, np.nan).astype(self.dtype)


def _added(left: Parts, right: Parts) -> Parts:
    return [a + b for a, b in zip(left, right, strict=True)]


def _sums(call: _Call) -> tuple[Array, Array | None]:
    """Sums of windows, and of how many elements, where these are counted."""

    def sweep(values: Array, axis: int) -> Parts:
        if not call.counts:
            return [cumulative_sum(values, axis=axis)]
        present = call.present(values)
        filled = where(present, values, 0)
        return [cumulative_sum(filled, axis=axis), cumulative_sum(present.astype(np.float64), axis=axis)]

    total, *count = call.run(sweep, [0, 0][: 1 + call.counts], _added)
    return total, count[0] if count else None


def rolling_sum(x: Operand, window: int, /, *, axis: int | str = -1, min_periods: int | None = None) -> Array:
    """The sum of each element and the `window` − 1 before it along an axis; floating, integers as float64.

    NaN where a window has fewer than `min_periods` (the whole window unless given) elements that are not NaN; with
    `min_periods` NaN is passed over. Windows are added up as they are, each from at most two running sums of its own
    elements, in double precision: the error is that of adding them one by one, whatever lies elsewhere.

    Same shape. Raises ArgumentError for a window below 1, or `min_periods` not within it.
    I/O: two scans, forwards and backwards within blocks of one window: one read of `x` and no write while some tens of
    tiles and a few windows fit the memory; for longer ones as `explain` says.

    >>> import numpy as np, outcore as oc
    >>> oc.rolling_sum(np.asarray([1.0, 2.0, 3.0, 4.0]), 2).compute()
    array([nan,  3.,  5.,  7.])
    """
    call = _Call("rolling_sum", x, window, axis, min_periods, wide=True)
    total, count = _sums(call)
    return call.whole(total, count, call.least)


def rolling_mean(x: Operand, window: int, /, *, axis: int | str = -1, min_periods: int | None = None) -> Array:
    """The mean of each element and the `window` − 1 before it along an axis; see `rolling_sum`.

    Errors and I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.rolling_mean(np.asarray([1.0, np.nan, 3.0]), 2, min_periods=1).compute()
    array([1., 1., 3.])
    """
    call = _Call("rolling_mean", x, window, axis, min_periods, wide=True)
    total, count = _sums(call)
    if count is None:
        return call.whole(total / float(call.window), None, call.least)
    least = max(call.least, 1)
    return call.whole(total / where(count > 0, count, 1), count, least)


def _extreme(name: str, x: Operand, window: int, axis: int | str, min_periods: int | None) -> Array:
    call = _Call(name, x, window, axis, min_periods, wide=False)
    if call.x.dtype.kind == "c":
        raise DTypeError(f"{name}: {call.x.dtype} numbers have no order; use their real and imag parts")
    smallest = name == "rolling_min"
    farthest = np.inf if smallest else -np.inf
    scan, better = (cummin, minimum) if smallest else (cummax, maximum)

    def sweep(values: Array, axis: int) -> Parts:
        if not call.counts:
            return [scan(values, axis=axis)]
        present = call.present(values)
        count = cumulative_sum(present.astype(np.float64), axis=axis)
        return [scan(where(present, values, farthest), axis=axis), count]

    def merge(left: Parts, right: Parts) -> Parts:
        return [better(left[0], right[0]), *_added(left[1:], right[1:])]

    value, *count = call.run(sweep, [farthest, 0][: 1 + call.counts], merge)
    return call.whole(value, count[0] if count else None, max(call.least, 1))


def rolling_min(x: Operand, window: int, /, *, axis: int | str = -1, min_periods: int | None = None) -> Array:
    """The smallest of each element and the `window` − 1 before it along an axis; see `rolling_sum`.

    Raises DTypeError for complex numbers. Other errors and I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.rolling_min(np.asarray([3.0, 1.0, 2.0, 5.0]), 2).compute()
    array([nan,  1.,  1.,  2.])
    """
    return _extreme("rolling_min", x, window, axis, min_periods)


def rolling_max(x: Operand, window: int, /, *, axis: int | str = -1, min_periods: int | None = None) -> Array:
    """The largest of each element and the `window` − 1 before it along an axis; see `rolling_min`.

    Errors and I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.rolling_max(np.asarray([3.0, 1.0, 2.0, 5.0]), 2).compute()
    array([nan,  3.,  2.,  5.])
    """
    return _extreme("rolling_max", x, window, axis, min_periods)


def _spreads(values: Array, axis: int) -> Parts:
    """Running count, a number near the values, sum of distances from it, and sum of squared distances from the mean.

    The squares by Welford's update (1962), M₂(k) = M₂(k−1) + (k−1)/k · (d − mean of those before)²: a running sum of
    terms that are not negative, so nothing cancels, however far from zero the values lie.
    """
    present = ~isnan(values)
    first = part_along(values, axis, 0, 1)
    near = broadcast_to(where(isfinite(first), first, 0), values.shape)
    distance = where(present, values - near, 0)
    count = cumulative_sum(present.astype(values.dtype), axis=axis)
    total = cumulative_sum(distance, axis=axis)
    earlier = maximum(count - 1, 1)
    apart = distance - (total - distance) / earlier
    terms = where(present & (count > 1), apart * apart * ((count - 1) / maximum(count, 1)), 0)
    return [count, near, total, cumulative_sum(terms, axis=axis)]


def _merged(left: Parts, right: Parts) -> Parts:
    """Two parts' squares as those of both (Chan, Golub, LeVeque 1983)."""
    count = left[0] + right[0]
    means = [total / maximum(number, 1) for number, _, total, _ in (left, right)]
    apart = (right[1] - left[1]) + (means[1] - means[0])
    both = (left[0] > 0) & (right[0] > 0)
    between = where(both, apart * apart * (left[0] * (right[0] / maximum(count, 1))), 0)
    return [count, right[1], right[2], left[3] + right[3] + between]


def rolling_var(
    x: Operand, window: int, /, *, axis: int | str = -1, min_periods: int | None = None, correction: float = 0.0
) -> Array:
    """The variance of each element and the `window` − 1 before it along an axis, with divisor n − `correction`.

    Otherwise as `rolling_sum`; NaN also where n is not above `correction` (pandas has 1 for it). Squares are of
    distances from means of the window's own elements. Raises DTypeError for complex numbers.
    I/O: three scans in each direction, else as `rolling_sum`.

    >>> import numpy as np, outcore as oc
    >>> oc.rolling_var(np.asarray([1.0, 3.0, 3.0, 7.0]) + 1e9, 2).compute()
    array([nan,  1.,  0.,  4.])
    """
    call = _Call("rolling_var", x, window, axis, min_periods, wide=True)
    if call.x.dtype.kind == "c":
        raise DTypeError(
            f"rolling_var: elements must be real, not {call.x.dtype}; add the variances of real and imag parts"
        )
    count, _, _, squares = call.run(_spreads, [0, 0, 0, 0], _merged)
    divisor = count - correction
    enough = (count >= max(call.least, 1)) & (divisor > 0)
    return where(enough, squares / where(divisor > 0, divisor, 1), np.nan).astype(call.dtype)


def rolling_std(
    x: Operand, window: int, /, *, axis: int | str = -1, min_periods: int | None = None, correction: float = 0.0
) -> Array:
    """The square root of `rolling_var`.

    Errors and I/O as there.

    >>> import numpy as np, outcore as oc
    >>> oc.rolling_std(np.asarray([1.0, 3.0, 3.0, 7.0]), 2).compute()
    array([nan,  1.,  0.,  2.])
    """
    return sqrt(rolling_var(x, window, axis=axis, min_periods=min_periods, correction=correction))


__all__ = ["rolling_max", "rolling_mean", "rolling_min", "rolling_std", "rolling_sum", "rolling_var"]
