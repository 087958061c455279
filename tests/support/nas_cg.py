"""The NAS CG benchmark (NPB 3): its random generator, its matrix and its outer iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

SEED, MULTIPLIER, BITS = 314159265, 5**13, 46
RCOND = 0.1
# Order, entries per random vector, outer iterations, shift, zeta.
CLASSES = {
    "S": (1400, 7, 15, 10.0, 8.5971775078648),
    "W": (7000, 8, 15, 12.0, 10.362595087124),
    "A": (14000, 11, 15, 20.0, 17.130235054029),
}


class Uniform:
    """x ← a·x mod 2⁴⁶, as numbers from 0 to 1."""

    def __init__(self) -> None:
        self._x = SEED

    def __call__(self) -> float:
        self._x = self._x * MULTIPLIER & ((1 << BITS) - 1)
        return self._x * 2.0**-BITS


def sprnvc(n: int, count: int, uniform: Uniform) -> dict[int, float]:
    """A sparse random vector: `count` places, without repeats, and values."""
    power = 1 << (n - 1).bit_length()
    found: dict[int, float] = {}
    while len(found) < count:
        value, place = uniform(), int(power * uniform())
        if place < n and place not in found:
            found[place] = value
    return found


def matrix(name: str) -> Any:
    """The sum over i of ωⁱ xᵢ xᵢᵀ, with ω = rcond^(1/n) and ½ at place i of xᵢ, and rcond − shift on the diagonal."""
    n, nonzer, _, shift, _ = CLASSES[name]
    uniform = Uniform()
    uniform()
    rows, columns, values = [], [], []
    size, ratio = 1.0, RCOND ** (1.0 / n)
    for row in range(n):
        vector = sprnvc(n, nonzer, uniform)
        vector[row] = 0.5  # vecset: instead of what is there, else behind it
        places, parts = np.fromiter(vector, dtype=np.int64), np.fromiter(vector.values(), dtype=np.float64)
        rows.append(np.repeat(places, len(places)))
        columns.append(np.tile(places, len(places)))
        values.append(np.outer(size * parts, parts).ravel())
        size *= ratio
    rows.append(np.arange(n))
    columns.append(np.arange(n))
    values.append(np.full(n, RCOND - shift))
    parts = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return scipy.sparse.coo_array(parts, shape=(n, n))


def zeta(name: str, solve: Any) -> float:
    """The outer iterations: `solve(x)` runs 25 steps of conjugate gradients and gives z and x·z and |z|."""
    n, _, iterations, shift, _ = CLASSES[name]
    x: Any = np.ones(n)
    found = 0.0
    for _ in range(iterations):
        z, along, size = solve(x)
        found, x = shift + 1.0 / along, z * (1.0 / size)
    return found
