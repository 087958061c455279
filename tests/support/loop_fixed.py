"""Known loop programs: plain functions over NumPy arrays, and arguments for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.loop_exchanges import EXCHANGES
from support.loop_programs import FixedCase, cholesky, floyd_warshall, seidel
from support.loop_scalars import SCALARS


def nine_points(u: Any, steps: Any) -> Any:
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                rows = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1] + u[i, j]
                u[i, j] = (rows + u[i, j + 1] + u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]) / 9.0
    return u


def jacobi(u: Any, v: Any, steps: Any) -> Any:
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                v[i, j] = 0.2 * (u[i, j] + u[i, j - 1] + u[i, j + 1] + u[i - 1, j] + u[i + 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                u[i, j] = 0.2 * (v[i, j] + v[i, j - 1] + v[i, j + 1] + v[i - 1, j] + v[i + 1, j])
    return u, v


def factors(a: Any) -> Any:
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def product(a: Any, b: Any, c: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for p in range(b.shape[0]):
                c[i, j] += a[i, p] * b[p, j]
    return c


def alignment(s: Any, t: Any, h: Any, best: Any, gap: Any) -> Any:
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            score = h[i - 1, j - 1] + (3 if s[i - 1] == t[j - 1] else -3)
            h[i, j] = max(0, score, h[i - 1, j] - gap, h[i, j - 1] - gap)
            best[0] = max(best[0], h[i, j])
    return h, best


def nussinov(s: Any, t: Any) -> Any:
    n = len(s)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            t[i, j] = max(t[i, j], t[i, j - 1])
            if i + 1 < n:
                t[i, j] = max(t[i, j], t[i + 1, j])
                if i < j - 1:
                    t[i, j] = max(t[i, j], t[i + 1, j - 1] + (1 if s[i] + s[j] == 3 else 0))
                else:
                    t[i, j] = max(t[i, j], t[i + 1, j - 1])
            for k in range(i + 1, j):
                t[i, j] = max(t[i, j], t[i, k] + t[k + 1, j])
    return t


def reversed_recurrences(x: Any, y: Any) -> Any:
    n, columns = x.shape
    for i in range(n - 2, -1, -1):
        for j in range(columns - 1, -1, -1):
            x[i, j] = 0.5 * (x[i, j] - x[i + 1, j])
    for i in range(n):
        for j in range(columns - 3, -1, -2):
            y[i, j] = y[i, j + 2] * 0.5 + x[n - 1 - i, columns - 1 - j]
    return x, y


def wavefront(a: Any) -> Any:
    rows, columns = a.shape
    for i in range(1, rows):
        for j in range(columns - 2, -1, -1):
            a[i, j] = a[i - 1, j + 1] ^ (a[i - 1, j] + 3 * a[i, j + 1]) + i - j
    return a


def assembly(stiffness: Any, rows: Any, u: Any, band: Any, r: Any) -> Any:
    """Elements of four corners each, on a grid: their matrices summed into a band, and applied."""
    n = stiffness.shape[0]
    for x in range(n):
        for y in range(n):
            for p in range(2):
                for q in range(2):
                    for s in range(2):
                        for t in range(2):
                            entry = stiffness[x, y] * rows[2 * p + q, 2 * s + t]
                            band[x + p, y + q, 3 * s - 3 * p + t - q + 4] += entry
                            r[x + p, y + q] += entry * u[x + s, y + t]
    return band, r


def triangular_solve(a: Any, b: Any) -> Any:
    n, columns = b.shape
    for i in range(n - 1, -1, -1):
        for c in range(columns):
            for k in range(i + 1, n):
                b[i, c] -= a[i, k] * b[k, c]
            b[i, c] /= a[i, i]
    return b


def volumes(a: Any, b: Any) -> Any:
    n, m, k = a.shape
    for i in range(1, n):
        for j in range(m - 1):
            for p in range(k - 2, 0, -1):
                a[i, j, p] = 0.25 * (a[i - 1, j + 1, p] + b[p, j, i]) + 0.5 * a[i, j, p + 1]
                b[p, j, i] = max(b[p - 1, j + 1, i], a[i, j, p])
    return a, b


def guarded(x: Any, y: Any) -> Any:
    n, m = x.shape
    for j in range(m):
        for i in range(n):
            if i == 0:
                y[i, j] = x[i, j]
            else:
                y[i, j] = 0.5 * y[i - 1, j] + x[i, j]
            if i + j > 5:
                x[i, j] = y[i, j] * 2.0
    return x, y


def crossing(a: Any, b: Any) -> Any:
    """The second branch writes what the first reads an iteration later."""
    n, m = a.shape
    for i in range(1, n):
        for j in range(1, m):
            if j < m - 2:
                a[i, j] = b[i, j - 1] + a[i - 1, j]
            if j > 2:
                b[i, j] = a[i, j - 1] - b[i - 1, j]
    return a, b


def definite(random: Any, n: int) -> Any:
    a = random.random((n, n))
    return a @ a.T + n * np.eye(n)


FIXED = {
    "seidel": FixedCase(seidel, lambda random, n=21: (random.random((n, n + 4)), random.random((n, n + 4)), 3)),
    "nine points": FixedCase(nine_points, lambda random: (random.random((19, 19)), 3)),
    "jacobi": FixedCase(jacobi, lambda random, n=20: (random.random((n, n)), random.random((n, n)), 2)),
    "floyd_warshall": FixedCase(floyd_warshall, lambda random: (random.integers(1, 99, (17, 17)),)),
    "factors": FixedCase(factors, lambda random: (definite(random, 17),)),
    "cholesky": FixedCase(cholesky, lambda random: (definite(random, 16),), False),
    "alignment": FixedCase(
        alignment,
        lambda random, n=30: (
            *(random.integers(0, 4, length).astype("i1") for length in (n, n - 7)),
            np.zeros((n + 1, n - 6), "i4"),
            np.zeros(1, "i4"),
            2,
        ),
    ),
    "nussinov": FixedCase(nussinov, lambda random: (random.integers(0, 4, 18), np.zeros((18, 18), int))),
    "reversed recurrences": FixedCase(
        reversed_recurrences, lambda random: (random.random((15, 16)), random.random((15, 16)))
    ),
    "product": FixedCase(
        product, lambda random: (random.random((11, 17)), random.random((17, 13)), np.zeros((11, 13))), False
    ),
    "wavefront": FixedCase(wavefront, lambda random: (random.integers(0, 1 << 40, (23, 19)),)),
    "assembly": FixedCase(
        assembly,
        lambda random: (*(random.random((n, n)) for n in (8, 4, 9)), np.zeros((9, 9, 9)), np.zeros((9, 9))),
        False,
    ),
    "triangular_solve": FixedCase(
        triangular_solve, lambda random: (definite(random, 15), random.random((15, 8))), False
    ),
    "guarded": FixedCase(guarded, lambda random: (random.random((17, 12)), random.random((17, 12)))),
    "crossing": FixedCase(crossing, lambda random: (random.random((14, 15)), random.random((14, 15)))),
    "volumes": FixedCase(volumes, lambda random: (random.random((7, 8, 9)), random.random((9, 8, 7)))),
    **SCALARS,
    **EXCHANGES,
}
