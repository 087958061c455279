"""Symmetric positive definite matrices of many patterns, and the scaled residual of solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array, diags_array


def path(n: int) -> csr_array:
    """The Laplacian of a path, and a little on the diagonal."""
    off = np.full(max(n - 1, 0), -1.0)
    return csr_array(diags_array([off, np.full(n, 2.001), off], offsets=[-1, 0, 1], shape=(n, n)))


def grid(*lengths: int) -> csr_array:
    """The Laplacian of a grid of points with the neighbours along its axes, zero outside."""
    found = csr_array((1, 1))
    for length in lengths:
        line = path(length) - 0.001 * scipy.sparse.eye_array(length)
        found = scipy.sparse.kron(found, scipy.sparse.eye_array(length)) + scipy.sparse.kron(
            scipy.sparse.eye_array(found.shape[0]), line
        )
    return csr_array(found)


def arrow(n: int, first: bool = False) -> csr_array:
    """A diagonal, and one full row and column: the last, or the first, which makes all of the factor full."""
    hub = 0 if first else n - 1
    others = np.delete(np.arange(n), hub)
    rows = np.concatenate([np.arange(n), np.full(n - 1, hub), others])
    columns = np.concatenate([np.arange(n), others, np.full(n - 1, hub)])
    values = np.concatenate([np.where(np.arange(n) == hub, float(n), 2.0), np.full(2 * n - 2, 0.5)])
    return csr_array((values, (rows, columns)), shape=(n, n))


def drawn(n: int, entries: int, random: np.random.Generator, is_complex: bool = False) -> csr_array:
    """Entries at random places, symmetric (Hermitian), and diagonals that dominate them."""
    rows, columns = random.integers(0, max(n, 1), (2, entries if n else 0))
    values = random.normal(size=len(rows)).astype(np.complex128 if is_complex else np.float64)
    if is_complex:
        values += 1j * random.normal(size=len(rows))
    half = scipy.sparse.triu(csr_array((values, (rows, columns)), shape=(n, n)), 1)
    both = csr_array(half + half.conj().T)
    size = abs(both) @ np.ones(n)
    return csr_array(both + diags_array(size + random.uniform(0.1, 1.0, n)) if n else both)


def scaled(matrix: csr_array, decades: int, random: np.random.Generator) -> csr_array:
    """D A D with powers of ten on the diagonal of D."""
    by = 10.0 ** random.integers(-decades, decades + 1, matrix.shape[0])
    return csr_array(diags_array(by) @ matrix @ diags_array(by))


def full(n: int, random: np.random.Generator) -> csr_array:
    """A matrix without zeros."""
    half = random.normal(size=(n, n))
    return csr_array(half @ half.T + n * np.eye(n))


#: Cases of a size that tasks of whole subtrees take, and such with fronts in tiles.
SMALL: dict[str, Callable[[], csr_array]] = {
    "path": lambda: path(3000),
    "arrow": lambda: arrow(700),
    "star": lambda: arrow(300, first=True),
    "grid": lambda: grid(40, 50),
    "disconnected": lambda: csr_array(scipy.sparse.block_diag([grid(9, 9, 9), path(70), np.eye(5), arrow(30)])),
    "diagonal": lambda: csr_array(diags_array(np.arange(1.0, 900.0))),
}
LARGE_FRONTS: dict[str, Callable[[], csr_array]] = {
    "full": lambda: full(1100, np.random.default_rng(2)),
    "cube": lambda: grid(22, 22, 22),
    "wide cube": lambda: csr_array(grid(14, 14, 14) @ grid(14, 14, 14)),
}


def residual(matrix: Any, x: Any, b: Any) -> float:
    """The largest scaled residual of the columns, by NumPy."""
    x, b = np.asarray(x), np.asarray(b)
    if 0 in x.shape:
        return 0.0
    x, b = (part.reshape(matrix.shape[0], -1) for part in (x, b))
    matrix = csr_array(matrix)
    norm = np.max(abs(matrix) @ np.ones(matrix.shape[0]))
    scale = norm * abs(x).max(axis=0) + abs(b).max(axis=0)
    return float(np.max(abs(matrix @ x - b).max(axis=0) / np.where(scale == 0, 1, scale)))
