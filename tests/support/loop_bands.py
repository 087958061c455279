"""Loop programs with minima and maxima in their bounds: some that are known, and some that are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from support.loop_programs import FixedCase
from support.loop_sources import LENGTH_MAX, DrawnProgram, Limits, Pick, Variable, Writer


class BandWriter(Writer):
    """Writes loops from the largest of several lower bounds to the least of several upper ones.

    An integer is among both, so that subscripts stay within arrays by the guards alone.
    """

    def __init__(self, pick: Pick, kind: str) -> None:
        super().__init__(pick, kind)
        self.bounds: list[str] = []  # names of bounds of the loops around

    def bound(self, around: Sequence[Variable]) -> str:
        of, offset = self.pick(around), self.pick([2, 1, 0, 3, 5])
        texts = [f"{of.name} - {offset}", f"{of.name} + {offset}", f"{of.high + offset} - {of.name}"]
        texts.append(f"2 * {of.name} - {offset}")
        texts.append(f"{self.pick(around).name} + {of.name} - {self.pick(range(LENGTH_MAX))}")
        return str(self.pick(texts))

    def extreme(self, function: str, integer: int, around: Sequence[Variable]) -> str:
        parts = [str(integer), *(self.bound(around) for _ in range(self.pick([1, 1, 2])))]
        return f"{function}({', '.join(parts if self.often(50) else parts[::-1])})"

    def limits(self, depth: int, around: Sequence[Variable]) -> Limits:
        if not around or not self.often(80):
            return super().limits(depth, around)
        low, high = self.pick([0, 1, 2]), self.pick([6, 12, 9, 7, 5, 4, 3, 11, LENGTH_MAX])
        below = self.extreme("max", low, around) if self.often(75) else str(low)
        above = self.extreme("min", high, around) if self.often(75) else str(high)
        if self.often(10):
            # Between the two ends: the smaller and the larger are decided by each other.
            below, above = f"min({below}, {high})", f"max({low}, {above})"
        step = self.pick([1, 1, 1, -1, 2, 3, -2])
        if step > 1:
            below = str(low)
        if step < -1:
            above = str(high)
        if self.often(30):
            names = [f"begin{self.count}", f"end{self.count}"]
            self.count += 1
            self.write(depth, f"{', '.join(names)} = {below}, {above}")
            self.bounds += names
            below, above = names
        texts = [f"{above} - 1", f"{below} - 1"] if step < 0 else [below, above]
        return Limits([*texts, str(step)] if step != 1 else texts, (low, high - 1), False)

    def body(self, depth: int, around: Sequence[Variable]) -> None:
        outer = len(self.bounds)
        super().body(depth, around)
        del self.bounds[outer:]

    def value(self, around: Sequence[Variable], depth: int = 0) -> str:
        if self.bounds and self.often(10):
            return f"{self.pick(self.bounds)} * {'3' if self.kind == 'integers' else '0.03125'}"
        return super().value(around, depth)


def drawn_bands(pick: Pick, kind: str) -> DrawnProgram:
    return BandWriter(pick, kind).program()


def product_of_band(a: Any, x: Any, y: Any, k: Any) -> Any:
    n = len(x)
    for i in range(n):
        for j in range(max(0, i - k), min(n, i + k + 1)):
            y[i] = y[i] + a[i, j - i + k] * x[j]
    return y


def cholesky_of_band(a: Any, k: Any) -> Any:
    """Over the whole matrix, of which the band alone is touched."""
    n = len(a)
    for j in range(n):
        a[j, j] = np.sqrt(a[j, j])
        end = min(n, j + k + 1)
        for i in range(j + 1, end):
            a[i, j] = a[i, j] / a[j, j]
        for m in range(j + 1, end):
            for i in range(m, end):
                a[i, m] = a[i, m] - a[i, j] * a[m, j]
    return a


def rows_of_band(b: Any, k: Any) -> Any:
    """The factor row by row, of diagonals beside each other."""
    for i in range(len(b)):
        begin = max(0, i - k)
        for j in range(begin, i):
            for p in range(max(begin, j - k), j):
                b[i, i - j] = b[i, i - j] - b[i, i - p] * b[j, j - p]
            b[i, i - j] = b[i, i - j] / b[j, 0]
        for p in range(begin, i):
            b[i, 0] = b[i, 0] - b[i, i - p] * b[i, i - p]
        b[i, 0] = np.sqrt(b[i, 0])
    return b


def substitution_in_bands(b: Any, y: Any, k: Any) -> Any:
    """Forwards and backwards: loops that count down within a band."""
    n = len(y)
    for i in range(n):
        for j in range(max(0, i - k), i):
            y[i] = y[i] - b[i, i - j] * y[j]
        y[i] = y[i] / b[i, 0]
    for i in range(n - 1, -1, -1):
        for j in range(min(n - 1, i + k), i, -1):
            y[i] = y[i] - b[j, j - i] * y[j]
        y[i] = y[i] / b[i, 0]
    return y


def product_by_tiles(a: Any, b: Any, c: Any, t: Any) -> Any:
    for ii in range(0, c.shape[0], t):
        for jj in range(0, c.shape[1], t):
            for p in range(a.shape[1]):
                for i in range(ii, min(ii + t, c.shape[0])):
                    for j in range(jj, min(jj + t, c.shape[1])):
                        c[i, j] = c[i, j] + a[i, p] * b[p, j]
    return c


def sweep_by_tiles(u: Any, t: Any, steps: Any) -> Any:
    """Gauss and Seidel's sweeps in tiles, as a compiler writes them, from the last to the first."""
    n, m = u.shape
    for _ in range(steps):
        for ii in range(n - 2, 0, -t):
            for jj in range(1, m - 1, t):
                for i in range(ii, max(ii - t, 0), -1):
                    for j in range(jj, min(jj + t, m - 1)):
                        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def cut_triangle(a: Any, r: Any, k: Any) -> Any:
    """Triangles with a corner cut off, every other column; numbers carried over each row."""
    n, m = a.shape
    largest = 0.0
    for i in range(n):
        s = 0.0
        for j in range(i, min(m, i + k), 2):
            s = 0.5 * (s + a[i, j])
        for j in range(min(i, k), -1, -1):
            if j != 3:
                s = s + a[i, min(k, 1) + j]
        r[i] = s
        largest = max(largest, s)
    return r, largest


def parts_of_band(a: Any, r: Any, k: Any) -> Any:
    """One loop in several conjunctions of conditions, with a number that each of its iterations carries on."""
    n, m = a.shape
    for i in range(n):
        if 4 <= i <= 7 or i > 8 or i == 1:
            for j in range(max(0, i - k), min(m, i + k + 1)):
                t = 0.0
                for p in range(max(j - 1, 0), min(j + 2, m)):
                    t = t + a[i, p]
                r[i, j] = t
    return r


def _dominant(values: Any) -> Any:
    """With large diagonals, in both ways of storing them, so that factors are real."""
    values[:, 0] += values.shape[1]
    values[np.arange(min(values.shape)), np.arange(min(values.shape))] += 2 * values.shape[1]
    return values


BANDS = {
    "product": FixedCase(
        product_of_band, lambda random: (random.random((19, 9)), random.random(19), random.random(19), 4)
    ),
    "product, half a band": FixedCase(
        product_of_band, lambda random: (random.random((7, 41)), random.random(7), random.random(7), 20)
    ),
    "product, no band": FixedCase(
        product_of_band, lambda random: (random.random((7, 9)), random.random(7), random.random(7), -3)
    ),
    "product, nothing": FixedCase(product_of_band, lambda random: (np.zeros((0, 9)), np.zeros(0), np.zeros(0), 4)),
    "cholesky": FixedCase(cholesky_of_band, lambda random: (_dominant(random.random((16, 16))), 5)),
    "cholesky, wide": FixedCase(cholesky_of_band, lambda random: (_dominant(random.random((12, 12))), 30)),
    "rows": FixedCase(rows_of_band, lambda random: (_dominant(random.random((17, 5))), 4)),
    "substitution": FixedCase(
        substitution_in_bands, lambda random: (_dominant(random.random((17, 5))), random.random(17), 4)
    ),
    "product by tiles": FixedCase(
        product_by_tiles, lambda random: (random.random((13, 7)), random.random((7, 11)), np.zeros((13, 11)), 4)
    ),
    "sweep by tiles": FixedCase(sweep_by_tiles, lambda random: (random.random((17, 14)), 5, 3)),
    "triangle": FixedCase(cut_triangle, lambda random: (random.random((14, 11)), np.zeros(14), 6)),
    "parts, wide": FixedCase(parts_of_band, lambda random: (random.random((12, 12)), np.zeros((12, 12)), 6)),
    "parts": FixedCase(parts_of_band, lambda random: (random.random((12, 10)), np.zeros((12, 10)), 3)),
}
