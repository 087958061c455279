"""Loop programs of the benchmark: seven access patterns after table 2 of the paper, and kernels of PolyBench.

The paper: Kandemir, Son, Karakoy, Improving I/O performance of applications through compiler-directed code
restructuring (FAST 2008).

The paper prints no code: the seven are reconstructions after names and descriptions, element by element.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import outcore as oc

Field = Any  # an array of the caller's, or a lazy one


@oc.loops
def sar(raw: Field) -> Field:
    """Rows, corner turn, columns, magnitude."""
    img = oc.zeros_like(raw)
    out = oc.zeros_like(raw)
    mag = oc.zeros_like(raw)
    n, m = raw.shape
    for i in range(n):
        for j in range(1, m):
            img[i, j] = raw[i, j] + 0.5 * img[i, j - 1]
    for j in range(m):
        for i in range(1, n):
            out[i, j] = img[i, j] + 0.5 * out[i - 1, j]
    for i in range(n):
        for j in range(m):
            mag[i, j] = abs(out[i, j])
    return mag


@oc.loops
def hf(integrals: Field, density: Field, fock: Field, steps: int) -> Field:
    """A sweep over the integrals per step."""
    n, m = integrals.shape
    for _s in range(steps):
        for p in range(n):
            fock[p] = 0.0
        for p in range(n):
            for q in range(m):
                fock[p] += integrals[p, q] * density[q]
        for q in range(m):
            density[q] = 0.9 * density[q] + 0.1 * fock[q]
    return density


@oc.loops
def apsi(t: Field, u: Field, v: Field, w: Field) -> tuple[Field, Field]:
    """Fields of three dimensions swept along each of them."""
    c = oc.zeros_like(t)
    a, b, d = t.shape
    for i in range(a):
        for j in range(b):
            for k in range(1, d):
                t[i, j, k] = t[i, j, k - 1] + 0.1 * u[i, j, k]
    for j in range(b):
        for k in range(d):
            for i in range(1, a):
                t[i, j, k] = t[i - 1, j, k] + 0.1 * v[i, j, k]
    for k in range(d):
        for i in range(a):
            for j in range(1, b):
                c[i, j, k] = c[i, j - 1, k] + t[i, j, k] * w[i, j, k]
    return t, c


@oc.loops
def wupwise(even: Field, odd: Field, g: Field, h: Field, dot: Field, steps: int) -> tuple[Field, Field]:
    """Even sites from odd ones, odd from even ones, and a scalar product between."""
    y = oc.zeros_like(even)
    z = oc.zeros_like(odd)
    n = even.shape[0]
    for s in range(steps):
        for i in range(1, n):
            y[i] = g[i] * (odd[i - 1] + odd[i])
        for i in range(n - 1):
            z[i] = h[i] * (y[i] + y[i + 1])
        for i in range(n):
            dot[s] += even[i] * y[i] + odd[i] * z[i]
        for i in range(n):
            even[i] = even[i] - dot[s] * y[i]
            odd[i] = odd[i] - dot[s] * z[i]
    return even, odd


@oc.loops
def e_elem(element: Field, node: Field) -> Field:
    """Element matrices, then their assembly."""
    near = oc.zeros_like(element)
    far = oc.zeros_like(element)
    row = oc.zeros_like(node)
    for e in range(element.shape[0]):
        near[e] = element[e] * node[e]
        far[e] = element[e] * node[e + 1]
    for e in range(element.shape[0]):
        row[e] += near[e]
        row[e + 1] += far[e]
    return row


@oc.loops
def astro(raw: Field, flat: Field, middle: Field) -> Field:
    """Image by image, pixel by pixel through time, image by image."""
    cal = oc.zeros_like(raw)
    out = oc.zeros_like(raw)
    times, rows, columns = raw.shape
    for t in range(times):
        for y in range(rows):
            for x in range(columns):
                cal[t, y, x] = raw[t, y, x] / flat[y, x]
    for y in range(rows):
        for x in range(columns):
            for t in range(times):
                middle[y, x] += cal[t, y, x] / times
    for t in range(times):
        for y in range(rows):
            for x in range(columns):
                out[t, y, x] = cal[t, y, x] - middle[y, x]
    return out


@oc.loops
def contour(z: Field, levels: int) -> Field:
    """Levels outside: as it is written the field is read once a level."""
    segments = oc.zeros((levels, z.shape[0], z.shape[1]), dtype="u1")
    for c in range(levels):
        for i in range(z.shape[0] - 1):
            for j in range(z.shape[1] - 1):
                segments[c, i, j] = (1 if z[i, j] > c else 0) + (2 if z[i + 1, j] > c else 0)
    return segments


@oc.loops
def gemm(a: Field, b: Field, c: Field) -> Field:
    """A product of matrices."""
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@oc.loops
def atax(a: Field, x: Field, y: Field, z: Field) -> Field:
    """Aᵀ (A x)."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j] * x[j]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            z[j] += a[i, j] * y[i]
    return z


@oc.loops
def jacobi(a: Field, b: Field, steps: int) -> Field:
    """Two arrays, each from the other."""
    n, m = a.shape
    for _t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = 0.2 * (b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i + 1, j] + b[i - 1, j])
    return a


@oc.loops
def seidel(a: Field, steps: int) -> Field:
    """Nine points in place."""
    n, m = a.shape
    for _t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                above = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                below = a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                a[i, j] = (above + a[i, j - 1] + a[i, j] + a[i, j + 1] + below) / 9.0
    return a


@oc.loops
def fdtd(ex: Field, ey: Field, hz: Field, steps: int) -> Field:
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
    return hz


@oc.loops
def floyd_warshall(d: Field) -> Field:
    """All shortest paths."""
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


class LoopCase(NamedTuple):
    """A program, the shapes and types of its arrays (lazy zeros where the type is "new"), and its other arguments."""

    program: Any
    arrays: tuple[tuple[tuple[int, ...], str], ...]
    others: tuple[int, ...] = ()


def cases(scale: int) -> dict[str, LoopCase]:
    """The cases, with arrays of `scale` MiB, about."""
    side = int((scale * (1 << 20) // 8) ** 0.5)
    long, cube = scale * (1 << 20) // 8, int((scale * (1 << 20) // 8) ** (1 / 3))
    square, row = ((side, side), "f8"), ((side,), "f8")
    images = ((scale // 4, 1024, 1024), "f4")
    return {
        "sar": LoopCase(sar, (square,)),
        "hf": LoopCase(hf, (square, row, row), (5,)),
        "apsi": LoopCase(apsi, (((cube, cube, cube), "f8"),) * 4),
        "wupwise": LoopCase(wupwise, (((long,), "f8"),) * 4 + (((3,), "f8"),), (3,)),
        "e_elem": LoopCase(e_elem, (((long - 1,), "f8"), ((long,), "f8"))),
        "astro": LoopCase(astro, (images, ((1024, 1024), "f4"), ((1024, 1024), "f4"))),
        "contour": LoopCase(contour, (square,), (5,)),
        "gemm": LoopCase(gemm, (square, square, ((side, side), "new"))),
        "atax": LoopCase(atax, (square, row, ((side,), "new"), ((side,), "new"))),
        "jacobi-2d": LoopCase(jacobi, (square, square), (20,)),
        "seidel-2d": LoopCase(seidel, (square,), (40,)),
        "fdtd-2d": LoopCase(fdtd, (square,) * 3, (20,)),
    }
