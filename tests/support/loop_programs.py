"""Loop programs for tests: plain functions that run over NumPy arrays as they stand, and arguments for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class LoopCase(NamedTuple):
    """A function and the arguments of a call, made anew by every call of `arguments`."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


class FixedCase(NamedTuple):
    """`is_exact` where no sum is taken in another order than that of the plain function."""

    function: Callable[..., Any]
    arguments: Callable[..., tuple[Any, ...]]
    is_exact: bool = True


def _random(*shape: int, dtype: str = "f8", seed: int = 0) -> Any:
    values = np.random.default_rng(seed).random(shape)
    return (values * 100).astype(dtype) if np.dtype(dtype).kind in "iu" else values.astype(dtype)


def seidel(u: Any, f: Any, steps: Any) -> Any:
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return u


def cholesky(a: Any) -> Any:
    n = len(a)
    for j in range(n):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        a[j, j] = np.sqrt(a[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for i in range(j):
            a[i, j] = 0
    return a


def floyd_warshall(d: Any) -> Any:
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def product(a: Any, b: Any) -> Any:
    m, k = a.shape
    n = b.shape[1]
    c = np.zeros((m, n), a.dtype)
    for i in range(m):
        for j in range(n):
            for p in range(k):
                c[i, j] += a[i, p] * b[p, j]
    return c


def alignment(s: Any, t: Any, gap: Any) -> Any:
    rows, columns = len(s) + 1, len(t) + 1
    h = np.zeros((rows, columns), np.int32)
    best = np.zeros(1, np.int32)
    for i in range(1, rows):
        for j in range(1, columns):
            score = h[i - 1, j - 1] + (3 if s[i - 1] == t[j - 1] else -3)
            h[i, j] = max(0, score, h[i - 1, j] - gap, h[i, j - 1] - gap)
            best[0] = max(best[0], h[i, j])
    return h, best


def branches(x: Any, y: Any, h: Any) -> Any:
    rows, columns = x.shape
    z = np.zeros((rows, columns), "f4")
    c = np.zeros(columns, dtype=np.int32)
    w = np.full_like(y, 2)
    for i in range(rows - 1, -1, -2):
        k = i + 1
        t = x[i, 0] * h
        t += i * 0.5
        z[i, 0] = t
        for j in range(i, columns):
            if (0 < j < columns - 1 and i != j) or j == 0:
                z[i, j] = x[i, j] if x[i, j] > 0.5 else -x[i, j]
                c[j] += 1
            elif i == j:
                z[i, j] = abs(x[i, j]) * k
            else:
                c[j] -= i
                z[i, j] = math.sqrt(x[i, j]) + k
            w[j] *= np.float32(i + 1)
    for j in range(columns):
        a, b = y[j], w[columns - 1 - j]
        y[j] = a + b
    y[-1] = 3
    return z, c, w, y


def red_black(x: Any, g: Any) -> Any:
    half = len(x) // 2
    for i in range(1, half):
        x[2 * i] = g[2 * i] * (x[2 * i - 1] + (x[2 * i + 1] if 2 * i + 1 < len(x) else 0))
    for i in range(1, half - 1):
        x[2 * i + 1] = g[2 * i + 1] * (x[2 * i] + x[2 * i + 2])
    for i in range(half):
        x[i], x[len(x) - 1 - i] = x[len(x) - 1 - i], x[i]
    return x


def numbers(x: Any, y: Any, k: Any) -> Any:
    """Types of all sorts beside each other."""
    n = len(x)
    r = np.zeros((14, n))
    for i in range(n):
        r[0, i] = x[i] * i + 0.1
        r[1, i] = (x[i] + 1) / 3
        r[2, i] = x[i] * y[i]
        r[3, i] = i / 3 + (i // 2) * (i % 3) - i**2
        r[4, i] = math.sqrt(x[i]) + math.floor(y[i] * 2.5) * k
        r[5, i] = float(x[i]) * 0.1 + int(y[i] * 2)
        r[6, i] = np.float32(y[i]) * 0.1
        r[7, i] = -x[i] if not (x[i] > 1 or y[i] < 0.5) else np.maximum(x[i], i)
        r[8, i] = (x[i] > 1) + True + (i > 2)
        r[9, i] = np.where(y[i] >= 0.5, x[i], k) + np.clip(y[i], 0.25, 0.75)
        r[10, i] = round(x[i] * 1.5) + pow(y[i], 2) + abs(i - 3) * x[i]
        r[11, i] = np.minimum(x[i], y[i]) + min(y[i], y[0]) + max(i, k)
        r[12, i] = (0.2 if x[i] > 1 else 1) * y[i] + (i if i > 2 else k) * x[i]
        r[13, i] = x[i] // 2 + x[i] % 2 + bool(x[i]) * 0.1
    return r


def integers(x: Any, y: Any) -> Any:
    n = len(x)
    for i in range(n):
        x[i] += y[i] * 3
        x[i] -= i
        x[i] *= x[n - 1 - i] if 2 * i > n else 3
        y[i] = (x[i] & 3) | (y[i] << 1) ^ 5
        y[i] = y[i] // (i + 1) + y[i] % (i + 2) - (~x[i] & 1)
        x[i] = y[i] * 0.7
        y[i] = i > 2
    return x, y


def complexes(a: Any, b: Any) -> Any:
    for i in range(len(a)):
        a[i] = a[i] * (1 + 2j) + b[i]
        a[i] -= np.conj(a[i])
        b[i] = a[i].real + a[i].imag * 2 + abs(a[i])
    return a, b


CASES = {
    "seidel": LoopCase(seidel, lambda: (_random(5, 6), _random(5, 6, seed=1), 2)),
    "cholesky": LoopCase(cholesky, lambda: (_random(5, 5) @ _random(5, 5).T + 5 * np.eye(5),)),
    "floyd_warshall": LoopCase(floyd_warshall, lambda: (_random(4, 4),)),
    "product": LoopCase(product, lambda: (_random(3, 4, dtype="f4"), _random(4, 2, dtype="f4"))),
    "alignment": LoopCase(alignment, lambda: (_random(6, dtype="i1") % 3, _random(7, dtype="i1", seed=1) % 3, 2)),
    "branches": LoopCase(branches, lambda: (_random(4, 5), _random(5), 0.3)),
    "branches, narrow": LoopCase(branches, lambda: (_random(4, 5, dtype="f4"), _random(5, dtype="f4"), 0.3)),
    "branches, one row": LoopCase(branches, lambda: (_random(1, 5, dtype="f4"), _random(5, dtype="f4"), 2)),
    "red_black": LoopCase(red_black, lambda: (_random(9), _random(9, seed=1))),
    **{
        f"numbers, {x} and {y}": LoopCase(
            numbers, lambda x=x, y=y: (_random(6, dtype=x) * 3 % 50, _random(6, dtype=y, seed=1), 3)
        )
        for x, y in (("f8", "f8"), ("f4", "f4"), ("f4", "f8"), ("i4", "f4"), ("i8", "f8"), ("i2", "f4"))
    },
    **{
        f"integers, {x} and {y}": LoopCase(
            integers, lambda x=x, y=y: (_random(6, dtype=x), _random(6, dtype=y, seed=1))
        )
        for x, y in (("i8", "i8"), ("i4", "i8"), ("i8", "i4"), ("i4", "i2"))
    },
    "complexes": LoopCase(complexes, lambda: (_random(4, dtype="c16"), _random(4))),
    "complexes, narrow": LoopCase(complexes, lambda: (_random(4, dtype="c8"), _random(4, dtype="f4"))),
}


def expected(case: LoopCase) -> tuple[Any, ...]:
    """The results of the plain function over NumPy arrays."""
    with np.errstate(all="ignore"):
        results = case.function(*case.arguments())
    return results if isinstance(results, tuple) else (results,)
