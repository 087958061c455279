"""Components, singular values and factors: scikit-learn's results to stated tolerances, in the reads promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import decomposition as theirs
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError
from outcore.learn import PCA, IncrementalPCA, TruncatedSVD


@pytest.fixture
def data_matrix() -> Any:
    """Rows of a few strong directions, far from the origin."""
    random = np.random.default_rng(5)
    return random.normal(size=(600, 12)) * (0.6 ** np.arange(12)) @ random.normal(size=(12, 12)) + 50


def tiled(x: Any) -> oc.Array:
    return oc.rechunk(oc.asarray(x), (max(len(x) // 5, 1), x.shape[1]))


ATTRIBUTES = ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_", "components_")


@pytest.mark.parametrize("solver", ["covariance_eigh", "randomized"])
@pytest.mark.parametrize("whiten", [False, True])
def test_pca_finds_scikit_learns_components(data_matrix: Any, solver: str, whiten: bool) -> None:
    expected = theirs.PCA(4, whiten=whiten, svd_solver="full").fit(data_matrix)
    found = PCA(4, whiten=whiten, svd_solver=solver, random_state=0, iterated_power=6).fit(tiled(data_matrix))
    signs = np.sign(np.sum(found.components_ * expected.components_, axis=1, keepdims=True))
    np.testing.assert_allclose(found.components_ * signs, expected.components_, atol=1e-7)
    for name in ATTRIBUTES[:-1]:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, err_msg=name)
    np.testing.assert_allclose(found.noise_variance_, expected.noise_variance_, rtol=1e-8)
    scores = found.transform(tiled(data_matrix))
    assert isinstance(scores, oc.Array)
    np.testing.assert_allclose(scores.compute() * signs.T, expected.transform(data_matrix), atol=1e-5)
    np.testing.assert_allclose(
        found.inverse_transform(scores).compute(),
        expected.inverse_transform(expected.transform(data_matrix)),
        rtol=1e-7,
    )


def test_pca_explains_as_much_as_it_is_asked_to(data_matrix: Any) -> None:
    for part in (0.5, 0.9, 0.999):
        assert (
            PCA(part).fit(data_matrix).n_components_
            == theirs.PCA(part, svd_solver="full").fit(data_matrix).n_components_
        )


def test_parts_lose_nothing(data_matrix: Any) -> None:
    whole = PCA(3).fit(data_matrix)
    model = IncrementalPCA(3)
    for part in np.array_split(data_matrix, [10, 200, 201]):
        model.partial_fit(tiled(part))
    for name in ATTRIBUTES:
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(model.var_, data_matrix.var(axis=0), rtol=1e-10)


@pytest.mark.parametrize("algorithm", ["gram", "randomized"])
def test_truncated_svd_finds_the_leading_values(data_matrix: Any, algorithm: str) -> None:
    expected = theirs.TruncatedSVD(4, algorithm="arpack").fit(data_matrix)
    found = TruncatedSVD(4, algorithm=algorithm, n_iter=7, random_state=0).fit(tiled(data_matrix))
    np.testing.assert_allclose(found.singular_values_, expected.singular_values_, rtol=1e-8)
    signs = np.sign(np.sum(found.components_ * expected.components_, axis=1, keepdims=True))
    np.testing.assert_allclose(found.components_ * signs, expected.components_, atol=1e-6)
    for name in ("explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, err_msg=name)


def test_a_low_rank_is_no_trouble() -> None:
    x = np.outer(np.arange(30.0), np.arange(6.0))
    for solver in ("covariance_eigh", "randomized"):
        model = PCA(3, svd_solver=solver, random_state=0).fit(x)
        np.testing.assert_allclose(model.explained_variance_ratio_, [1, 0, 0], atol=1e-12)


def test_reads_are_those_promised(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(150_000, 32))
    np.save(tmp_path / "x.npy", x)
    for model, reads in (
        (PCA(10), 1),
        (IncrementalPCA(10), 1),
        (TruncatedSVD(10), 1),
        (TruncatedSVD(10, algorithm="randomized", n_iter=2), 3),
        (PCA(10, svd_solver="randomized", iterated_power=2), 3),
    ):
        with session(memory_limit="300MiB"), oc.profile() as profile:
            model.fit(oc.open(tmp_path / "x.npy"))
        sweeps = [outcome.bytes_read for outcome in profile.outcomes]
        assert len(sweeps) == reads, model
        assert all(read <= x.nbytes * 1.01 for read in sweeps), model


def test_refusals_say_what_there_is(data_matrix: Any) -> None:
    with pytest.raises(ArgumentError, match="n_components=13"):
        PCA(13).fit(data_matrix)
    with pytest.raises(ArgumentError, match="svd_solver='arpack'"):
        PCA(svd_solver="arpack").fit(data_matrix)
    with pytest.raises(ArgumentError, match="algorithm='qr'"):
        TruncatedSVD(algorithm="qr").fit(data_matrix)
