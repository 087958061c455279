"""The programs that benchmarks and tests run, written once for NumPy, Dask and outcore alike."""

from __future__ import annotations

from typing import Any

STEP = 1e-6


def nmf(x: Any, w: Any, h: Any, iterations: int) -> tuple[Any, Any]:
    """Non-negative matrix factorization X ≈ W H, multiplicative updates (Lee and Seung 2001)."""
    for _ in range(iterations):
        w = w * (x @ h.T) / (w @ h @ h.T)
        h = h * (w.T @ x) / (w.T @ w @ h)
    return w, h


def logistic(namespace: Any, x: Any, y: Any, w: Any, iterations: int, step: float = STEP) -> Any:
    """Logistic regression by batch gradient descent; y holds zeros and ones, y and w are columns."""
    for _ in range(iterations):
        w = w - step * (x.T @ (1 / (1 + namespace.exp(-(x @ w))) - y))
    return w


def product(a: Any, b: Any) -> Any:
    return a @ b


def transpose(a: Any) -> Any:
    return a.T


def gram_of_sum(a: Any, b: Any) -> Any:
    """(A + B) @ (A + B).T: one temporary that both sides of a product want."""
    return (a + b) @ (a + b).T


def nmf_flops(rows: int, columns: int, factors: int, iterations: int) -> int:
    """Flops of the products with W @ (H @ H.T) re-associated, the cheapest order."""
    return iterations * (4 * rows * columns * factors + 4 * rows * factors**2 + 4 * columns * factors**2)


def logistic_flops(rows: int, columns: int, iterations: int) -> int:
    return iterations * 4 * rows * columns
