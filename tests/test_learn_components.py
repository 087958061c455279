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
from outcore.learn import NMF, PCA, IncrementalPCA, TruncatedSVD

ROOM = 24 << 20  # less than the data, so that nothing is read for free


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
        with session(pool_limit=ROOM), oc.profile() as profile:
            model.fit(oc.open(tmp_path / "x.npy"))
        sweeps = [outcome.bytes_read for outcome in profile.outcomes]
        assert len(sweeps) == reads, model
        assert all(read <= x.nbytes * 1.01 for read in sweeps), model


@pytest.fixture
def positive() -> Any:
    random = np.random.default_rng(2)
    return random.random((300, 3)) @ random.random((3, 8)) + random.random((300, 8)) * 0.01


def test_multiplicative_updates_are_scikit_learns(positive: Any) -> None:
    random = np.random.default_rng(0)
    w, h = random.random((300, 3)), random.random((3, 8))
    expected = theirs.NMF(3, init="custom", solver="mu", max_iter=40, tol=0)
    found = NMF(3, init="custom", max_iter=40, tol=0)
    factor = found.fit_transform(tiled(positive), W=w, H=h)
    expected.fit_transform(positive, W=w.copy(), H=h.copy())
    np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-9)
    np.testing.assert_allclose(found.reconstruction_err_, expected.reconstruction_err_, rtol=1e-6)
    assert isinstance(factor, oc.Array)


@pytest.mark.parametrize("init", ["random", "nndsvda"])
def test_factors_rebuild_the_data(positive: Any, init: str) -> None:
    model = NMF(3, init=init, max_iter=400, tol=1e-6, random_state=0)
    factor = model.fit_transform(tiled(positive)).compute()
    assert factor.min() >= 0
    assert model.components_.min() >= 0
    error = np.linalg.norm(positive - factor @ model.components_)
    # W of the final H is updated further than the one that H was updated with.
    assert error < 1.05 * model.reconstruction_err_
    assert error < 0.02 * np.linalg.norm(positive)
    np.testing.assert_allclose(model.inverse_transform(factor), factor @ model.components_)


def test_an_update_of_both_factors_is_one_read(tmp_path: Path) -> None:
    x = np.abs(np.random.default_rng(0).normal(size=(150_000, 32)))
    np.save(tmp_path / "x.npy", x)
    factors = 150_000 * 3 * 8
    with session(pool_limit=ROOM), oc.profile() as profile:
        NMF(3, init="random", max_iter=4, tol=0, random_state=0).fit(oc.open(tmp_path / "x.npy"))
    sweeps = [outcome.bytes_read for outcome in profile.outcomes if outcome.bytes_read > x.nbytes // 4]
    assert 1 <= len(sweeps) <= 5
    assert max(sweeps) <= (x.nbytes + factors) * 1.01


def test_factors_are_gone_on_with_from_a_checkpoint(tmp_path: Path, positive: Any) -> None:
    oc.store({str(tmp_path / "x.npy"): oc.asarray(positive)})
    options: dict[str, Any] = {"init": "random", "tol": 0, "random_state": 0}
    with session(tmp_path):
        x = oc.open(tmp_path / "x.npy")
        whole = NMF(3, max_iter=12, **options).fit(x)
        again = NMF(3, max_iter=12, checkpoint=5, **options).fit(x)
    np.testing.assert_array_equal(again.components_, whole.components_)


def test_refusals_say_what_there_is(data_matrix: Any) -> None:
    with pytest.raises(ArgumentError, match="n_components=13"):
        PCA(13).fit(data_matrix)
    with pytest.raises(ArgumentError, match="svd_solver='arpack'"):
        PCA(svd_solver="arpack").fit(data_matrix)
    with pytest.raises(ArgumentError, match="least is -"):
        NMF(2).fit(tiled(data_matrix - 60))
    with pytest.raises(ArgumentError, match="init='svd'"):
        NMF(2, init="svd").fit(data_matrix)
    with pytest.raises(ArgumentError, match="algorithm='qr'"):
        TruncatedSVD(algorithm="qr").fit(data_matrix)
