"""Twelve kernels of PolyBench 4.2 as programs of plain loops, after their definitions, statement by statement.

Loops stand in PolyBench's order, and arguments that PolyBench writes in place are written in place. Beside some stand
other forms of the same kernel: perfect nests, and factorizations with the pivot outermost.
"""

from __future__ import annotations

import math
from typing import Any

import outcore as oc

Field = Any  # an array of the caller's, or a lazy one


@oc.loops
def gemm(alpha: float, beta: float, c: Field, a: Field, b: Field) -> Field:
    """C ← β C + α A B."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] *= beta
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += alpha * a[i, k] * b[k, j]
    return c


@oc.loops
def gemm_in_nests(alpha: float, beta: float, c: Field, a: Field, b: Field) -> Field:
    """As `gemm`, with the scaling in a nest of its own."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] *= beta
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += alpha * a[i, k] * b[k, j]
    return c


@oc.loops
def syrk(alpha: float, beta: float, c: Field, a: Field) -> Field:
    """The lower triangle of C ← β C + α A Aᵀ."""
    for i in range(c.shape[0]):
        for j in range(i + 1):
            c[i, j] *= beta
        for k in range(a.shape[1]):
            for j in range(i + 1):
                c[i, j] += alpha * a[i, k] * a[j, k]
    return c


@oc.loops
def two_products(alpha: float, beta: float, a: Field, b: Field, c: Field, d: Field) -> Field:
    """2mm: D ← β D + α A B C."""
    tmp = oc.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            tmp[i, j] = 0.0
            for k in range(a.shape[1]):
                tmp[i, j] += alpha * a[i, k] * b[k, j]
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] *= beta
            for k in range(c.shape[0]):
                d[i, j] += tmp[i, k] * c[k, j]
    return d


@oc.loops
def two_products_in_nests(alpha: float, beta: float, a: Field, b: Field, c: Field, d: Field) -> Field:
    """As `two_products`, with the scaling and the zeros in nests of their own."""
    tmp = oc.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                tmp[i, j] += alpha * a[i, k] * b[k, j]
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] *= beta
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            for k in range(c.shape[0]):
                d[i, j] += tmp[i, k] * c[k, j]
    return d


@oc.loops
def atax(a: Field, x: Field) -> Field:
    """Aᵀ (A x)."""
    m, n = a.shape
    y = oc.zeros(n)
    tmp = oc.zeros(m)
    for i in range(m):
        for j in range(n):
            tmp[i] += a[i, j] * x[j]
        for j in range(n):
            y[j] += a[i, j] * tmp[i]
    return y


@oc.loops
def cholesky(a: Field) -> Field:
    """The lower triangle of A becomes L of L Lᵀ."""
    for i in range(a.shape[0]):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = math.sqrt(a[i, i])
    return a


@oc.loops
def cholesky_right(a: Field) -> Field:
    """As `cholesky`, with k outermost."""
    n = a.shape[0]
    for k in range(n):
        a[k, k] = math.sqrt(a[k, k])
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                a[i, j] -= a[i, k] * a[j, k]
    return a


@oc.loops
def lu(a: Field) -> Field:
    """L below the diagonal and U from there on, without pivots."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return a


@oc.loops
def lu_right(a: Field) -> Field:
    """As `lu`, with k outermost."""
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


@oc.loops
def floyd_warshall(d: Field) -> Field:
    """The lengths of all shortest paths."""
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


@oc.loops
def jacobi_2d(a: Field, b: Field, steps: int) -> tuple[Field, Field]:
    """Five points, from A into B and back."""
    n = a.shape[0]
    for _t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, 1 + j] + a[1 + i, j] + a[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, 1 + j] + b[1 + i, j] + b[i - 1, j])
    return a, b


@oc.loops
def seidel_2d(a: Field, steps: int) -> Field:
    """Nine points in place."""
    n = a.shape[0]
    for _t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                above = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                a[i, j] = (
                    above + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0
    return a


@oc.loops
def fdtd_2d(ex: Field, ey: Field, hz: Field, steps: int) -> tuple[Field, Field, Field]:
    """Electric and magnetic fields in turn."""
    n, m = hz.shape
    for t in range(steps):
        for j in range(m):
            ey[0, j] = t
        for i in range(1, n):
            for j in range(m):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(n):
            for j in range(1, m):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(n - 1):
            for j in range(m - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return ex, ey, hz


@oc.loops
def doitgen(a: Field, c4: Field) -> Field:
    """A[r, q, :] ← A[r, q, :] C4, through one row of sums."""
    nr, nq, np = a.shape
    sums = oc.zeros(np)
    for r in range(nr):
        for q in range(nq):
            for p in range(np):
                sums[p] = 0.0
                for s in range(np):
                    sums[p] += a[r, q, s] * c4[s, p]
            for p in range(np):
                a[r, q, p] = sums[p]
    return a


@oc.loops
def nussinov(seq: Field, table: Field) -> Field:
    """The most pairs of bases of each part of a sequence."""
    n = seq.shape[0]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
            if i == j - 1:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table
