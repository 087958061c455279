"""The loss of logistic regression and its derivatives: one read of the data per value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.learn._base import total, weighted
from outcore.learn._fit import clear_room, values
from outcore.learn._flaws import first_flaw, refuse_flaws

HESSIAN_ROOM = 6  # matrices as large as the Hessian, in memory at once while a step is found


class Objective:
    """f(W) = Σ w ℓ(x·W + b, y) / s + |W|² / (2Cs) with s = Σ w, and its derivatives, each value one read.

    One column of coefficients for two classes, ℓ = log(1 + e^z) − yz; else one for each, ℓ = log Σ e^z − z_y. Points
    are flat: coefficients (features, columns), then intercepts.
    """

    def __init__(
        self,
        x: Array,
        codes: Array,
        classes: int,
        weights: Array | None,
        penalty: float,
        bias: bool,
        scale: float | None = None,
    ) -> None:
        """`scale` is the sum of the weights, which is found in one read of them unless it is given."""
        self.x, self.weights, self.bias = x.astype(np.float64), weights, bias
        self.features, self.columns = x.shape[1], 1 if classes == 2 else classes
        places = oc.arange(1, 2) if classes == 2 else oc.arange(classes)
        self.goal = (codes[:, None] == places).astype(np.float64)
        self.scale = float(values([total(weights, x.shape[0])])[0]) if scale is None else scale
        self.penalty = penalty / self.scale
        self.reads = 0

    @property
    def size(self) -> int:
        return (self.features + self.bias) * self.columns

    def split(self, point: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients (features, columns) and intercepts (columns)."""
        whole = point.reshape(-1, self.columns)
        return whole[: self.features], whole[self.features] if self.bias else np.zeros(self.columns)

    def _chances(self, point: NDArray) -> tuple[Array, Array]:
        """The probability of each column's class, and the loss of each row."""
        coefficients, intercepts = self.split(point)
        z = self.x @ oc.asarray(np.ascontiguousarray(coefficients)) + oc.asarray(intercepts)
        if self.columns == 1:
            small = oc.exp(-oc.abs(z))
            chances = oc.where(z >= 0, 1.0, small) / (small + 1.0)
            return chances, oc.maximum(z, 0.0) + oc.log1p(small) - self.goal * z
        top = oc.max(z, axis=1, keepdims=True)
        parts = oc.exp(z - top)
        norm = oc.sum(parts, axis=1, keepdims=True)
        return parts / norm, top + oc.log(norm) - oc.sum(self.goal * z, axis=1, keepdims=True)

    def _joined(self, along: Array, intercepts: Array) -> list[Array]:
        return [along, intercepts] if self.bias else [along]

    def _read(self, terms: Sequence[Operand]) -> list[NDArray]:
        """Sums over the rows, from one read; the first refuses data that is not finite."""
        self.reads += 1
        if self.reads > 1:
            return values(terms)
        *results, row = values([*terms, first_flaw(self.x, self.weights)])
        refuse_flaws(results, row, X=self.x, sample_weight=self.weights)
        return results

    def _regularized(self, point: NDArray, parts: list[NDArray]) -> NDArray:
        """A gradient of the loss, or a product with its Hessian, with the penalty's part added."""
        rows = np.vstack([parts[0], *(part[None, :] for part in parts[1:])]) / self.scale
        rows[: self.features] += self.penalty * self.split(point)[0]
        return rows.ravel()

    def gradient_sums(self, point: NDArray) -> tuple[list[Operand], tuple[Array, ...]]:
        """Lazy sums over the rows: the loss, and Xᵀ(P − Y); and the columns that they are made of.

        Columns that are held while the sums are planned are values of their own, which both sums share in one read.
        """
        chances, loss = self._chances(point)
        error = weighted(chances - self.goal, self.weights)
        along = self._joined(self.x.T @ error, oc.sum(error, axis=0))
        return [oc.sum(weighted(loss, self.weights)), *along], (chances, loss, error)

    def gradient(self, point: NDArray) -> tuple[float, NDArray]:
        """The value and the gradient. One read."""
        sums, _held = self.gradient_sums(point)
        results = self._read(sums)
        coefficients = self.split(point)[0]
        value = float(results[0]) / self.scale + 0.5 * self.penalty * float(np.sum(coefficients**2))
        return value, self._regularized(point, results[1:])

    def along(self, point: NDArray, direction: NDArray) -> NDArray:
        """The Hessian times a direction V: Xᵀ(P∘(XV − Σ_k P_k (XV)_k)). One read."""
        chances, _ = self._chances(point)
        coefficients, intercepts = self.split(direction)
        change = self.x @ oc.asarray(np.ascontiguousarray(coefficients)) + oc.asarray(intercepts)
        mean = chances * change if self.columns == 1 else oc.sum(chances * change, axis=1, keepdims=True)
        bent = weighted(chances * (change - mean), self.weights)
        results = self._read(self._joined(self.x.T @ bent, oc.sum(bent, axis=0)))
        return self._regularized(direction, results)

    def _pairs(self) -> list[tuple[int, int]]:
        return [(j, k) for j in range(self.columns) for k in range(j + 1)]

    def hessian_sums(self, point: NDArray) -> tuple[list[Operand], tuple[Array, ...]]:
        """Lazy sums over the rows: the loss, Xᵀ(P − Y), and blocks Xᵀ diag(P_j (δ_jk − P_k)) X of the Hessian."""
        chances, loss = self._chances(point)
        error = weighted(chances - self.goal, self.weights)
        x = oc.concat([self.x, oc.ones((self.x.shape[0], 1))], axis=1) if self.bias else self.x
        blocks = []
        for j, k in self._pairs():
            mine, other = chances[:, j : j + 1], chances[:, k : k + 1]
            blocks.append((x * weighted(mine * (1.0 - other) if j == k else mine * -other, self.weights)).T @ x)
        return [oc.sum(weighted(loss, self.weights)), x.T @ error, *blocks], (chances, loss, error)

    def hessian(self, point: NDArray) -> tuple[float, NDArray, NDArray]:
        """The value, the gradient and the Hessian. One read."""
        sums, _held = self.hessian_sums(point)
        results = self._read(sums)
        rows = self.features + self.bias
        clear_room(HESSIAN_ROOM * self.size**2)
        whole = np.zeros((rows, self.columns, rows, self.columns))
        for (j, k), block in zip(self._pairs(), results[2:], strict=True):
            whole[:, j, :, k] = whole[:, k, :, j] = block / self.scale
        matrix = whole.reshape(self.size, self.size)
        count = self.features * self.columns
        matrix[np.arange(count), np.arange(count)] += self.penalty
        value = float(results[0]) / self.scale + 0.5 * self.penalty * float(np.sum(self.split(point)[0] ** 2))
        return value, self._regularized(point, [results[1][: self.features], *results[1][self.features :]]), matrix


__all__ = ["HESSIAN_ROOM", "Objective"]
