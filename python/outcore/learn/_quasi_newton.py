"""OWL-QN: limited-memory quasi-Newton steps for a smooth loss and a penalty by absolute values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
_MEMORY = 10  # pairs of steps and changes of the gradient
_HALVINGS = 50
_ENOUGH = 1e-4  # of the decrease that the gradient promises (Armijo)
_ROUNDING = 64 * np.finfo(np.float64).eps


def steepest(point: Numbers, gradient: Numbers, heavy: Numbers) -> Numbers:
    """The pseudo-gradient of f(w) + Σ c_i |w_i|: of its subgradients the one nearest to zero (equation 4)."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - heavy, 0)
    found: Numbers = np.where(point == 0, at_zero, gradient + heavy * np.sign(point))
    return found


def _along(gradient: Numbers, pairs: list[tuple[Numbers, Numbers]]) -> Numbers:
    """The inverse Hessian of the last steps times a gradient, by the two loops of Nocedal 1980."""
    q, shares = gradient.copy(), []
    for step, change in reversed(pairs):
        shares.append((step @ q) / (change @ step))
        q -= shares[-1] * change
    if pairs:
        step, change = pairs[-1]
        q *= (step @ change) / (change @ change)
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        q += (share - (change @ q) / (change @ step)) * step
    return q


def minimize(
    smooth: Callable[[Numbers], tuple[float, Numbers]],
    point: Numbers,
    heavy: Numbers,
    *,
    tol: float,
    max_iter: int,
    tell: Callable[[float], None],
) -> tuple[Numbers, int, bool]:
    """The least f(w) + Σ c_i |w_i| near `point`: where, after how many steps, and whether it was reached.

    `smooth` gives f and its gradient, `heavy` the c_i. Steps stay in the orthant of the point or, at zero, of the
    descent; where they would leave it, coefficients become zero. It ends where no part of the pseudo-gradient is above
    `tol`, or the value falls by rounding only. f has to be convex, so that backtracking alone keeps curvatures
    positive. Source: Andrew, Gao, Scalable Training of L1-Regularized Log-Linear Models, ICML 2007.
    I/O: one value of `smooth` per step, and one per halving of a step; `tell` gets the value after each step.
    """
    value, gradient = smooth(point)
    value += float(heavy @ np.abs(point))
    pairs: list[tuple[Numbers, Numbers]] = []
    for iteration in range(1, max_iter + 1):
        slope = steepest(point, gradient, heavy)
        if np.max(np.abs(slope)) <= tol:
            return point, iteration - 1, True
        step = -_along(slope, pairs)
        step[(step * slope >= 0) & (heavy > 0)] = 0
        if step @ slope >= 0:
            step, pairs = -slope, []
        orthant = np.where(point != 0, np.sign(point), -np.sign(slope))
        length = 1.0 if pairs else min(1.0, 1.0 / float(np.linalg.norm(slope)))
        for _ in range(_HALVINGS):
            new = point + length * step
            new[(new * orthant <= 0) & (heavy > 0)] = 0
            new_value, new_gradient = smooth(new)
            new_value += float(heavy @ np.abs(new))
            if new_value <= value + _ENOUGH * float(slope @ (new - point)) + _ROUNDING * abs(value):
                break
            length /= 2
        else:
            return point, iteration - 1, False
        gained, change = value - new_value, new_gradient - gradient
        if change @ (new - point) > 0:
            pairs = [*pairs[1 - _MEMORY :], (new - point, change)]
        point, value, gradient = new, new_value, new_gradient
        tell(value)
        if gained <= _ROUNDING * max(abs(value), 1.0):
            return point, iteration, True
    return point, max_iter, bool(np.max(np.abs(steepest(point, gradient, heavy))) <= tol)


__all__ = ["minimize", "steepest"]
