"""Symmetric indefinite and unsymmetric sparse matrices of many patterns."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from support.definite import grid

Kind = Literal["sym", "her", "lu"]


def drawn(n: int, density: float, kind: Kind, random: np.random.Generator, is_complex: bool = False) -> csr_array:
    """Entries at random places, half of the diagonal 0; a random permutation makes it structurally nonsingular."""
    entries = int(density * n)
    rows, columns = random.integers(0, max(n, 1), (2, entries if n else 0))
    half = np.arange(n) if kind == "lu" else np.arange(n)[::-1]
    partners = random.permutation(n) if kind == "lu" else half
    rows, columns = np.concatenate([rows, np.arange(n)]), np.concatenate([columns, partners])
    values: Any = random.normal(size=len(rows))
    if is_complex:
        values = values + 1j * random.normal(size=len(rows))
    matrix = csr_array((values, (rows, columns)), shape=(n, n))
    if kind == "lu":
        return matrix
    return csr_array(matrix + (matrix.conj().T if kind == "her" else matrix.T))


def saddle(side: int, random: np.random.Generator) -> csr_array:
    """A grid's Laplacian with constraints on differences of neighbours, whose multipliers have no diagonal."""
    h = grid(side, side, side)
    n = h.shape[0]
    chosen = random.permutation(n - 1)[: n // 3]
    ones = np.ones(len(chosen))
    rows = np.concatenate([np.arange(len(chosen))] * 2)
    b = csr_array((np.concatenate([ones, -ones]), (rows, np.concatenate([chosen, chosen + 1]))), shape=(len(chosen), n))
    return csr_array(scipy.sparse.block_array([[h, b.T], [b, None]]))


def shifted(side: int, shift: float) -> csr_array:
    """A grid's Laplacian less a multiple of the identity within its spectrum."""
    h = grid(side, side, side)
    return csr_array(h - shift * scipy.sparse.eye_array(h.shape[0]))


def convection(side: int, speed: float) -> csr_array:
    """A grid's Laplacian with a flow along each axis."""
    h = grid(side, side, side)
    off = np.full(side - 1, speed)
    line = scipy.sparse.diags_array([-off, off], offsets=[-1, 1], shape=(side, side))
    eye = scipy.sparse.eye_array(side)
    flows = [
        scipy.sparse.kron(scipy.sparse.kron(line, eye), eye),
        scipy.sparse.kron(scipy.sparse.kron(eye, line), eye),
        scipy.sparse.kron(scipy.sparse.kron(eye, eye), line),
    ]
    return csr_array(h + sum(flows))
