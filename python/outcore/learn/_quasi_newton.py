"""Proximal quasi-Newton steps: a smooth loss, each value of which is a read, and a penalty by absolute values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outcore._base.types import NDArray

_MEMORY = 20  # pairs of steps and changes of the gradient
_HALVINGS = 50
_INNER = 1000  # steps of a subproblem, none of which is a read
_NEARER = 0.01  # a subproblem is solved to this part of what is left of the gradient
_ENOUGH = 1e-4  # of the decrease that the model promises (Armijo)
_ROUNDING = 4 * np.finfo(np.float64).eps


def steepest(point: NDArray, gradient: NDArray, heavy: NDArray) -> NDArray:
    """Of the subgradients of f(w) + Σ c_i |w_i| the one nearest to zero: zero at the minimum."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - heavy, 0)
    directions: NDArray = np.where(point == 0, at_zero, gradient + heavy * np.sign(point))
    return directions


class _Model:
    """The Hessian B = θI − W M⁻¹ Wᵀ of the last pairs (s, y), W = (θS, Y), M = ((θSᵀS, L), (Lᵀ, −D)).

    L and D are SᵀY below and on its diagonal, θ = y·y / s·y. Source: Byrd, Nocedal, Schnabel 1994, equation 2.17.
    """

    def __init__(self, pairs: list[tuple[NDArray, NDArray]], gradient: NDArray) -> None:
        # Nothing is known of the Hessian at first: the first step is no longer than 1.
        self.scale = max(1.0, float(np.linalg.norm(gradient)))
        self.wide, self.core = np.zeros((len(gradient), 0)), np.zeros((0, 0))
        if pairs:
            steps, changes = (np.stack(part, axis=1) for part in zip(*pairs, strict=True))
            self.scale = float(changes[:, -1] @ changes[:, -1] / (changes[:, -1] @ steps[:, -1]))
            across = steps.T @ changes
            low, diagonal = np.tril(across, -1), np.diag(np.diag(across))
            self.wide = np.hstack([self.scale * steps, changes])
            self.core = np.linalg.inv(np.block([[self.scale * steps.T @ steps, low], [low.T, -diagonal]]))
        # Its eigenvalues are those of a small matrix, and θ.
        small = np.asarray(np.linalg.qr(self.wide, mode="r"))
        values = np.linalg.eigvalsh(small @ self.core @ small.T) if pairs else np.zeros(1)
        self.largest = self.scale - min(float(values.min()), 0.0)

    def __call__(self, v: NDArray) -> NDArray:
        product: NDArray = self.scale * v - self.wide @ (self.core @ (self.wide.T @ v))
        return product

    def least(self, point: NDArray, gradient: NDArray, heavy: NDArray, enough: float) -> NDArray:
        """The w that minimizes g·(w − p) + ½ (w − p)·B(w − p) + Σ c_i |w_i|, by proximal gradient steps in memory.

        They are accelerated, and begin anew where momentum leads uphill (Beck, Teboulle 2009; O'Donoghue, Candès 2015).
        """
        best, ahead, momentum = point, point, 1.0
        for _ in range(_INNER):
            slope = gradient + self(ahead - point)
            moved = ahead - slope / self.largest
            new = np.sign(moved) * np.maximum(np.abs(moved) - heavy / self.largest, 0)
            if self.largest * np.max(np.abs(new - ahead)) <= enough:
                return new
            if (ahead - new) @ (new - best) > 0:
                momentum, ahead = 1.0, new
            else:
                faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
                ahead = new + (momentum - 1) / faster * (new - best)
                momentum = faster
            best = new
        return best


def minimize(
    smooth: Callable[[NDArray], tuple[float, NDArray]],
    point: NDArray,
    heavy: NDArray,
    *,
    tol: float,
    max_iter: int,
    tell: Callable[[float], None],
) -> tuple[NDArray, int, bool]:
    """The least f(w) + Σ c_i |w_i| near `point`: where, after how many steps, and whether it was reached.

    `smooth` gives the convex f and its gradient, `heavy` the c_i. Each step goes to the minimum of f's quadratic model
    plus the penalty, which is found in memory, or part of the way where the value would rise. It ends where no part of
    the subgradient nearest to zero is above `tol`, or the value falls by rounding only. Source: Lee, Sun, Saunders,
    Proximal Newton-type methods for minimizing composite functions, SIAM J. Optim. 24, 2014.
    I/O: one value of `smooth` per step, and one per halving of a step; `tell` gets the value after each step.
    """
    value, gradient = smooth(point)
    value += float(heavy @ np.abs(point))
    pairs: list[tuple[NDArray, NDArray]] = []
    for iteration in range(1, max_iter + 1):
        steepness = float(np.max(np.abs(steepest(point, gradient, heavy))))
        if steepness <= tol:
            return point, iteration - 1, True
        step = _Model(pairs, gradient).least(point, gradient, heavy, _NEARER * steepness) - point
        promised = float(gradient @ step + heavy @ (np.abs(point + step) - np.abs(point)))
        length = 1.0
        for _ in range(_HALVINGS):
            new = point + length * step
            new_value, new_gradient = smooth(new)
            new_value += float(heavy @ np.abs(new))
            if new_value <= value + _ENOUGH * length * promised + _ROUNDING * abs(value):
                break
            length /= 2
        else:
            return point, iteration - 1, False
        gained, change = value - new_value, new_gradient - gradient
        if change @ (new - point) > np.finfo(np.float64).eps * float(change @ change):
            pairs = [*pairs[1 - _MEMORY :], (new - point, change)]
        point, value, gradient = new, new_value, new_gradient
        tell(value)
        if gained <= _ROUNDING * abs(value):
            return point, iteration, True
    return point, max_iter, bool(np.max(np.abs(steepest(point, gradient, heavy))) <= tol)


__all__ = ["minimize", "steepest"]
