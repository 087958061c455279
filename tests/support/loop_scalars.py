"""Loop programs whose numbers are carried over loops: plain functions over NumPy arrays, and arguments for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.loop_programs import FixedCase


def rows(a: Any, x: Any, y: Any) -> Any:
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j] * x[j]
        y[i] = s
    return y


def smoothed(x: Any, out: Any, level: Any) -> Any:
    for t in range(len(x)):
        level = 0.9 * level + x[t]
        out[t] = level
    return out


def largest(a: Any, ends: Any) -> Any:
    low, high = a[0, 0], -np.inf
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            low = min(low, a[i, j])
            high = max(a[i, j], high)
    ends[0] = low
    ends[1] = high
    return ends


def fibonacci(x: Any) -> Any:
    a, b = 0, 1
    for i in range(len(x)):
        x[i] += a
        a, b = b, a + b
    return x


def totals(x: Any, out: Any) -> Any:
    """A sum after each element, backwards, of each row."""
    for i in range(x.shape[0] - 1, -1, -1):
        total = 0
        for j in range(x.shape[1] - 1, -1, -1):
            total += x[i, j]
            out[i, j] = total
    return out


def weighted(u: Any, w: Any, steps: Any) -> Any:
    """A stencil through time by a scalar of each point, with steps of two along rows."""
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1, 2):
            for j in range(u.shape[1] - 2, 0, -1):
                s = 0.0
                for k in range(3):
                    s = s + w[k] * (u[i - 1 + k, j] + u[i, j - 1 + k])
                u[i, j] = s * 0.25
    return u


def triangles(a: Any, b: Any) -> Any:
    """Loops whose bounds follow from those around."""
    n = len(a)
    for i in range(n - 1, -1, -1):
        for j in range(i, n, 2):
            best = a[i, j]
            for k in range(i, j + 1):
                best = max(best, a[k, j] - 0.125 * a[i, k])
            b[i, j] = best
        for j in range(i + 1):
            least = a[j, i]
            for k in range(j, i):
                least = min(least, a[j, k])
            b[i, j] += 0.5 * least
    return b


def branches(x: Any, y: Any) -> Any:
    """Assignments in branches: before, within, and in both."""
    n, m = x.shape
    for i in range(n):
        s = 0.0
        count = 0
        for j in range(m):
            if j > i:
                s = 0.5 * s + x[i, j]
                count += 1
            elif j == i:
                s = -x[i, j]
            t = x[i, j]
            if i + j > 7:
                t = 0.5 * t + s
            y[i, j] = t + s * count
    return y


def last_ones(x: Any, y: Any) -> Any:
    """What a loop leaves, and a name that serves twice with two types."""
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            t = x[i, j] * 2
            x[i, j] = t
        y[i] = t
    t = 0
    for i in range(n):
        t += i
        y[i] = y[i] * t
    return x, y


def runs(s: Any, longest: Any) -> Any:
    """The longest run of equal letters: integers of Python's that data decides."""
    length, best = 1, 1
    for i in range(1, len(s)):
        length = length + 1 if s[i] == s[i - 1] else 1
        best = max(best, length)
        longest[i] = best
    return longest


def moments(x: Any, out: Any) -> Any:
    """Means and deviations of columns, each of a sum that another needs (Welford, 1962)."""
    for c in range(x.shape[1]):
        mean, spread, count = 0.0, 0.0, 0.0
        for r in range(x.shape[0]):
            count += 1.0
            delta = x[r, c] - mean
            mean = mean + delta / count
            spread = spread + delta * (x[r, c] - mean)
        out[0, c] = mean
        out[1, c] = spread
    return out


SCALARS = {
    "rows": FixedCase(rows, lambda random: (random.random((13, 17)), random.random(17), np.zeros(13)), False),
    "smoothed": FixedCase(smoothed, lambda random: (random.random(41), np.zeros(41), 0.25)),
    "largest": FixedCase(largest, lambda random: (random.random((15, 12)), np.zeros(2))),
    "fibonacci": FixedCase(fibonacci, lambda random: (random.integers(0, 9, 40),)),
    "totals": FixedCase(totals, lambda random: (random.integers(0, 99, (12, 14)), np.zeros((12, 14), int))),
    "weighted": FixedCase(weighted, lambda random: (random.random((16, 15)), random.random(3), 3)),
    "triangles": FixedCase(triangles, lambda random: (random.random((15, 15)), np.zeros((15, 15)))),
    "branches": FixedCase(branches, lambda random: (random.random((11, 13)), np.zeros((11, 13)))),
    "last ones": FixedCase(last_ones, lambda random: (random.random((12, 9)), np.zeros(12))),
    "runs": FixedCase(runs, lambda random: (random.integers(0, 2, 50).astype("i1"), np.zeros(50, int))),
    "moments": FixedCase(moments, lambda random: (random.random((14, 11)), np.zeros((2, 11)))),
}
