"""Normal densities and their moments, for each form of covariance, as products of the data with small matrices."""

from __future__ import annotations

import math

import numpy as np

from outcore import _api as oc
from outcore._base.types import NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore.errors import ArgumentError

FORMS = ("full", "tied", "diag", "spherical")


def factors(covariances: NDArray, form: str) -> NDArray:
    """The Cholesky factor U of each precision, Σ⁻¹ = UUᵀ, U upper triangular; square roots of precisions by feature.

    Raises ArgumentError where a covariance is not positive definite.
    """
    try:
        if form in ("diag", "spherical"):
            if np.any(covariances <= 0):
                raise np.linalg.LinAlgError
            return 1.0 / np.sqrt(covariances)
        lower = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        raise ArgumentError(
            f"GaussianMixture: a covariance ({form}) is not positive definite: components have collapsed onto few "
            f"rows; decrease n_components or increase reg_covar"
        ) from None
    eye = np.broadcast_to(np.eye(lower.shape[-1]), lower.shape)
    return np.swapaxes(np.linalg.solve(lower, eye), -1, -2)


def precisions(factors: NDArray, form: str) -> NDArray:
    """The precisions of their factors."""
    return factors**2 if form in ("diag", "spherical") else factors @ np.swapaxes(factors, -1, -2)


def log_densities(x: Array, means: NDArray, factors: NDArray, form: str) -> Array:
    """log N(x | μ_k, Σ_k) of each row and component, (rows, components): −½ (d log 2π + |(x − μ_k)U_k|²) + log |U_k|.

    |(x − μ)U|² = |xU|² − 2x·UUᵀμ + |μU|². With full covariances one product makes xU_k of all components side by side,
    and another sums their squares within each; a tied factor is shared; with variances |xU|² is a product with x². Data
    lies near the origin (see `GaussianMixture`), so that these do not cancel.
    """
    components, features = means.shape
    logs = _log_determinants(factors, form, features, components)
    constant = -0.5 * features * math.log(2 * math.pi) + logs
    if form == "full":
        whitened = x @ oc.asarray(np.concatenate(list(factors), axis=1))
        within = np.repeat(np.eye(components), features, axis=0)
        centers = np.einsum("kd,kde->ke", means, factors)
        inner = x @ oc.asarray(np.einsum("kde,ke->dk", factors, centers))
        squares = (whitened * whitened) @ oc.asarray(-0.5 * within)
        return squares + inner + oc.asarray(constant - 0.5 * np.sum(centers**2, axis=1))
    if form == "tied":
        whitened, centers = x @ oc.asarray(factors), means @ factors
        squares = oc.sum(whitened * whitened, axis=1, keepdims=True) * -0.5
        inner = whitened @ oc.asarray(np.ascontiguousarray(centers.T))
        return inner + squares + oc.asarray(constant - 0.5 * np.sum(centers**2, axis=1))
    weights = precisions(factors, form)
    weights = weights if form == "diag" else np.repeat(weights[:, None], features, axis=1)
    quadratic = (x * x) @ oc.asarray(np.ascontiguousarray(-0.5 * weights.T))
    inner = x @ oc.asarray(np.ascontiguousarray((weights * means).T))
    return quadratic + inner + oc.asarray(constant - 0.5 * np.sum(weights * means**2, axis=1))


def _log_determinants(factors: NDArray, form: str, features: int, components: int) -> NDArray:
    if form == "full":
        factors = np.diagonal(factors, axis1=1, axis2=2)
        form = "diag"
    if form == "tied":
        return np.full(components, np.sum(np.log(np.diagonal(factors))))
    logs: NDArray = np.sum(np.log(factors), axis=1) if form == "diag" else features * np.log(factors)
    return logs


def sums(x: Array, shares: Array, form: str) -> list[Operand]:
    """Σ r_k, Σ r_k x and Σ r_k x xᵀ (or x² by feature) over the rows, as products with responsibilities r."""
    components = shares.shape[1]
    terms: list[Operand] = [oc.sum(shares, axis=0), shares.T @ x]
    if form == "full":
        return terms + [(x * shares[:, k : k + 1]).T @ x for k in range(components)]
    if form == "tied":
        return [*terms, x.T @ x]
    return [*terms, shares.T @ (x * x)]


def covariances(weighted_sums: list[NDArray], means: NDArray, form: str, ridge: float) -> NDArray:
    """Covariances of the components from their `sums`: the second moments less the means' products, plus `ridge`."""
    weights, features = weighted_sums[0], means.shape[1]
    if form == "full":
        inner: NDArray = np.stack(weighted_sums[2:]) / weights[:, None, None] - means[:, :, None] * means[:, None, :]
        return inner + ridge * np.eye(features)
    if form == "tied":
        inner = (weighted_sums[2] - (means.T * weights) @ means) / weights.sum()
        return inner + ridge * np.eye(features)
    inner = weighted_sums[2] / weights[:, None] - means**2 + ridge
    return inner if form == "diag" else np.mean(inner, axis=1)


__all__ = ["FORMS", "covariances", "factors", "log_densities", "precisions", "sums"]
