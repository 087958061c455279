"""Losses of linear models and their derivatives, on NumPy batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outcore._base.types import NDArray

# Loss and its derivative by the prediction p, for a target y (−1 or 1 for classes).
Loss = Callable[[NDArray, NDArray], tuple[NDArray, NDArray]]


def _hinge(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    margin = 1 - y * p
    return np.maximum(margin, 0), np.where(margin > 0, -y, 0.0)


def _perceptron(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    return np.maximum(-y * p, 0), np.where(y * p <= 0, -y, 0.0)


def _squared_hinge(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    margin = np.maximum(1 - y * p, 0)
    return margin**2, -2 * y * margin


def _modified_huber(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    margin = np.maximum(1 - y * p, 0)
    far = y * p < -1
    return np.where(far, -4 * y * p, margin**2), np.where(far, -4 * y, -2 * y * margin)


def _log_loss(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    return np.logaddexp(0, -y * p), -y * np.exp(-np.logaddexp(0, y * p))


def _squared_error(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    return 0.5 * (p - y) ** 2, p - y


CLASS_LOSSES: dict[str, Loss] = {
    "hinge": _hinge,
    "log_loss": _log_loss,
    "modified_huber": _modified_huber,
    "squared_hinge": _squared_hinge,
    "perceptron": _perceptron,
}


def regression_losses(epsilon: float) -> dict[str, Loss]:
    """The losses for numbers; `epsilon` is where huber's grows linear, and what the insensitive one passes over."""

    def huber(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        far = np.abs(p - y)
        value = np.where(far <= epsilon, 0.5 * far**2, epsilon * far - 0.5 * epsilon**2)
        return value, np.clip(p - y, -epsilon, epsilon)

    def insensitive(p: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        excess = np.abs(p - y) - epsilon
        return np.maximum(excess, 0), np.where(excess > 0, np.sign(p - y), 0.0)

    return {"squared_error": _squared_error, "huber": huber, "epsilon_insensitive": insensitive}


__all__ = ["CLASS_LOSSES", "Loss", "regression_losses"]
