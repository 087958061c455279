"""Checks of PolyBench kernels on parts of their results: the largest difference, relative to the largest value.

Parts are a few rows, or a corner that depends on a little more than itself alone, where the plain function runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cholesky as scipy_cholesky
from scipy.sparse.csgraph import floyd_warshall as scipy_floyd_warshall

from benchmarks import loop_polybench_programs as programs

CORNER = 48
ROWS = 5

Paths = Sequence[Path]


def loaded(paths: Paths) -> list[Any]:
    return [np.load(path, mmap_mode="r") for path in paths]


def sample(rows: int) -> Any:
    return np.linspace(0, rows - 1, ROWS).astype(int)


def difference(values: Any, right: Any) -> float:
    if values.shape != right.shape or not np.isfinite(values).all():
        raise AssertionError("a result of another shape, or one that is not finite")
    return float(np.abs(values - right).max() / np.abs(right).max())


def gemm(paths: Paths, results: Paths, alpha: float, beta: float) -> float:
    (c, a, b), (out,) = loaded(paths), loaded(results)
    rows = sample(len(c))
    return difference(out[rows], beta * c[rows] + alpha * a[rows] @ b)


def syrk(paths: Paths, results: Paths, alpha: float, beta: float) -> float:
    (c, a), (out,) = loaded(paths), loaded(results)
    rows = sample(len(c))
    lower = np.arange(len(c)) <= rows[:, None]
    return difference(out[rows], np.where(lower, beta * c[rows] + alpha * a[rows] @ a.T, c[rows]))


def two_products(paths: Paths, results: Paths, alpha: float, beta: float) -> float:
    (a, b, c, d), (out,) = loaded(paths), loaded(results)
    rows = sample(len(d))
    return difference(out[rows], beta * d[rows] + alpha * a[rows] @ b @ c)


def atax(paths: Paths, results: Paths) -> float:
    (a, x), (out,) = loaded(paths), loaded(results)
    return difference(out, a.T @ (a @ x))


def cholesky(paths: Paths, results: Paths) -> float:
    """The factor of a leading part is the leading part of the factor; the last rows by what they are a factor of."""
    (a,), (out,) = loaded(paths), loaded(results)
    corner = min(len(a), 16 * CORNER)
    lead = difference(np.tril(out[:corner, :corner]), scipy_cholesky(a[:corner, :corner], lower=True))
    lower = np.tril(out)
    rows = sample(len(a))
    return max(lead, difference(lower[rows] @ lower.T, a[rows]), difference(np.triu(out, 1), np.triu(a, 1)))


def lu(paths: Paths, results: Paths) -> float:
    (a,), (out,) = loaded(paths), loaded(results)
    rows = sample(len(a))
    columns = np.arange(len(a))
    lower = np.where(columns < rows[:, None], out[rows], np.where(columns == rows[:, None], 1.0, 0.0))
    return difference(lower @ np.triu(out), a[rows])


def doitgen(paths: Paths, results: Paths) -> float:
    (a, c4), (out,) = loaded(paths), loaded(results)
    rows = sample(len(a))
    return difference(out[rows], a[rows] @ c4)


def floyd_warshall(paths: Paths, results: Paths) -> float:
    (d,), (out,) = loaded(paths), loaded(results)
    # Lengths of no step are paths of a matrix alone, not of a graph.
    right = scipy_floyd_warshall(d)
    off = ~np.eye(len(d), dtype=bool)
    return difference(out[off], right[off])


def stencil(plain: Callable[..., Any]) -> Callable[..., float]:
    """A leading corner beside that of the plain function over a larger one.

    Rows of a step that are new already reach a column further for each row above, so the larger one is twice as wide.
    """

    def check(paths: Paths, results: Paths, steps: int) -> float:
        wide = 2 * (CORNER + steps)
        corners = [np.array(array[:wide, :wide]) for array in loaded(paths)]
        right = plain(*corners, steps)
        right = right if isinstance(right, tuple) else (right,)
        pairs = zip(loaded(results), right, strict=True)
        return max(difference(out[:CORNER, :CORNER], part[:CORNER, :CORNER]) for out, part in pairs)

    return check


def nussinov(paths: Paths, results: Paths) -> float:
    """A part of the sequence has the table of a sequence by itself."""
    (seq, _), (out,) = loaded(paths), loaded(results)
    begin = len(seq) // 2
    part = slice(begin, begin + 2 * CORNER)
    right = programs.nussinov.plain(np.array(seq[part]), np.zeros((2 * CORNER, 2 * CORNER), "i4"))
    return difference(out[part, part], right)


CHECKS: dict[str, Callable[..., float]] = {
    "gemm": gemm,
    "syrk": syrk,
    "2mm": two_products,
    "atax": atax,
    "cholesky": cholesky,
    "lu": lu,
    "doitgen": doitgen,
    "floyd-warshall": floyd_warshall,
    "jacobi-2d": stencil(programs.jacobi_2d.plain),
    "seidel-2d": stencil(programs.seidel_2d.plain),
    "fdtd-2d": stencil(programs.fdtd_2d.plain),
    "nussinov": nussinov,
}
