"""Clusters and mixtures: scikit-learn's labels and likelihoods, one read of the data per iteration."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import cluster as their_cluster
from sklearn import mixture as their_mixture
from sklearn.exceptions import ConvergenceWarning
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, ShapeError
from outcore.learn import GaussianMixture, KMeans

ROOM = 24 << 20  # less than the data, so that nothing is read for free


@pytest.fixture
def blobs() -> Any:
    """Rows around six centers far from the origin, and where they belong."""
    random = np.random.default_rng(7)
    centers = random.normal(size=(6, 5)) * 12 + 100
    which = random.integers(0, 6, 900)
    return centers[which] + random.normal(size=(900, 5)), which


def store(folder: Path, x: Any) -> Any:
    """The data as it lies on disk, cut into many tiles."""
    oc.store(
        {str(folder / "x.zarr"): oc.asarray(x)}, chunks={str(folder / "x.zarr"): (max(len(x) // 7, 1), x.shape[1])}
    )
    return oc.open(folder / "x.zarr")


def same_partition(a: Any, b: Any) -> bool:
    """Whether two labelings agree up to names."""
    pairs = np.unique(np.column_stack([np.asarray(a), np.asarray(b)]), axis=0)
    return len(pairs) == len(np.unique(a)) == len(np.unique(b))


@pytest.mark.parametrize("weighted", [False, True])
def test_lloyd_arrives_where_scikit_learn_does(tmp_path: Path, blobs: Any, weighted: bool) -> None:
    x, _ = blobs
    weights = np.random.default_rng(1).random(len(x)) if weighted else None
    first = x[[0, 1, 2, 3, 4, 5]]
    theirs = their_cluster.KMeans(6, init=first, n_init=1, tol=0, algorithm="lloyd").fit(x, sample_weight=weights)
    ours = KMeans(6, init=first, tol=0).fit(store(tmp_path, x), sample_weight=weights)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-9)
    assert ours.n_iter_ == theirs.n_iter_
    assert isinstance(ours.labels_, oc.Array)
    np.testing.assert_array_equal(ours.labels_.compute(), theirs.labels_)
    np.testing.assert_allclose(ours.transform(x), theirs.transform(x), rtol=1e-9)
    np.testing.assert_allclose(ours.score(x), theirs.score(x), rtol=1e-9)


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_start_finds_clear_clusters(tmp_path: Path, blobs: Any, init: str, weighted: bool) -> None:
    x, which = blobs
    lazy = store(tmp_path, x)
    weights = oc.asarray(np.random.default_rng(1).random(len(x)) + 0.5) if weighted else None
    model = KMeans(6, init=init, n_init=1 if init == "k-means||" else 8, random_state=0).fit(
        lazy, sample_weight=weights
    )
    assert same_partition(model.labels_.compute(), which)


def test_k_means_plus_plus_draws_by_distance() -> None:
    x = np.concatenate([np.zeros((500, 1)), np.full((3, 1), 100.0), np.full((1, 1), -1000.0)])
    for seed in range(5):
        model = KMeans(3, n_init=1, random_state=seed).fit(x)
        np.testing.assert_allclose(np.sort(model.cluster_centers_.ravel()), [-1000, 0, 100], atol=1e-9)


def test_a_cluster_without_rows_takes_the_farthest_row() -> None:
    x = np.concatenate([np.random.default_rng(0).normal(size=(50, 2)), [[30.0, 30.0]]])
    first = np.asarray([[0.0, 0.0], [1000.0, 1000.0], [2000.0, 2000.0]])
    theirs = their_cluster.KMeans(3, init=first, n_init=1, tol=0).fit(x)
    ours = KMeans(3, init=first, tol=0).fit(x)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-9)


def test_starts_advance_in_one_read(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(100_000, 32))
    np.save(tmp_path / "x.npy", x)
    first = x[:10]
    with session(pool_limit=ROOM):
        lazy = oc.open(tmp_path / "x.npy")
        reads = {}
        for rounds in (2, 5):
            for starts in (1, 3):
                oc.clear()
                with session(pool_limit=ROOM), oc.profile() as profile:
                    KMeans(10, init="random", n_init=starts, max_iter=rounds, tol=0, random_state=0).fit(lazy)
                reads[rounds, starts] = [o.bytes_read for o in profile.outcomes if o.bytes_read > x.nbytes // 2]
        assert all(read <= x.nbytes * 1.01 for each in reads.values() for read in each)
        with session(pool_limit=ROOM), oc.profile() as profile:
            KMeans(10, init=first, max_iter=5, tol=0).fit(lazy)
        # A read per iteration and one for the inertia; tiles that stay in memory are not read again.
        assert profile.bytes_read <= 6 * x.nbytes * 1.01


def test_a_model_of_lazy_data_is_pickled_without_its_labels(tmp_path: Path, blobs: Any) -> None:
    x, _ = blobs
    model = KMeans(6, random_state=0).fit(store(tmp_path, x))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert not hasattr(again, "labels_")


def test_progress_tells_the_objective(blobs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    KMeans(6, verbose=1, random_state=0).fit(blobs[0])
    assert "iteration 1, inertia" in capsys.readouterr().out


def test_refusals_name_both_sides(blobs: Any) -> None:
    x, _ = blobs
    with pytest.raises(ShapeError, match=r"n_samples=3.*n_clusters=6"):
        KMeans(6).fit(x[:3])
    with pytest.raises(ArgumentError, match="k-means"):
        KMeans(6, init="nearest").fit(x)
    with pytest.raises(ShapeError, match=r"\(2, 5\) for 6 clusters"):
        KMeans(6, init=x[:2]).fit(x)
    with pytest.raises(ShapeError, match="4 features"):
        KMeans(6).fit(x).predict(oc.asarray(x[:, :4]))
    with pytest.raises(ArgumentError, match="not finite"):
        KMeans(6, init=x[:6]).fit(oc.where(oc.asarray(x) > 110, np.nan, x))


FORMS = ("full", "tied", "diag", "spherical")


@pytest.mark.parametrize("form", FORMS)
def test_a_mixture_has_scikit_learns_likelihood(tmp_path: Path, blobs: Any, form: str) -> None:
    x, _ = blobs
    start = {"means_init": x[:3], "weights_init": [0.2, 0.3, 0.5], "precisions_init": precisions(form, 3, x.shape[1])}
    options = {"covariance_type": form, "tol": 1e-10, "max_iter": 30, **start}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = their_mixture.GaussianMixture(3, **options).fit(x)
        found = GaussianMixture(3, **options).fit(store(tmp_path, x))
    assert found.n_iter_ == expected.n_iter_
    # The shifted moments of data 100 from the origin agree to 1e-7 of the variance.
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bound_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-8, err_msg=name)
    np.testing.assert_array_equal(found.predict(x), expected.predict(x))
    np.testing.assert_allclose(found.predict_proba(x), expected.predict_proba(x), atol=1e-7)
    np.testing.assert_allclose(found.score_samples(oc.asarray(x)).compute(), expected.score_samples(x), rtol=1e-7)
    for name in ("bic", "aic", "score"):
        np.testing.assert_allclose(getattr(found, name)(x), getattr(expected, name)(x), rtol=1e-8, err_msg=name)


def precisions(form: str, components: int, features: int) -> Any:
    """Unit precisions of a form."""
    eye = np.eye(features)
    return {
        "full": np.repeat(eye[None], components, axis=0),
        "tied": eye,
        "diag": np.ones((components, features)),
        "spherical": np.ones(components),
    }[form]


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "k-means||"])
@pytest.mark.parametrize("form", FORMS)
def test_a_mixture_finds_clear_components(tmp_path: Path, blobs: Any, form: str, init: str) -> None:
    x, which = blobs
    model = GaussianMixture(6, covariance_type=form, init_params=init, n_init=3, random_state=1).fit(store(tmp_path, x))
    assert same_partition(model.predict(x), which)
    drawn, labels = model.sample(400)
    assert same_partition(model.predict(drawn), labels)


def test_an_em_step_is_one_read(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(100_000, 32))
    np.save(tmp_path / "x.npy", x)
    for form in FORMS:
        start = {"means_init": x[:4], "weights_init": [0.25] * 4, "precisions_init": precisions(form, 4, 32)}
        model = GaussianMixture(4, covariance_type=form, max_iter=3, tol=0, **start)
        with session(pool_limit=ROOM), oc.profile() as profile, pytest.warns(ConvergenceWarning):
            model.fit(oc.open(tmp_path / "x.npy"))
        # One for the mean of the data, and one for each step.
        assert len(profile.outcomes) == 4
        assert all(outcome.bytes_read <= x.nbytes * 1.01 for outcome in profile.outcomes)


def test_collapsed_components_are_refused() -> None:
    x = np.concatenate([np.zeros((10, 2)), np.ones((10, 2))])
    with pytest.raises(ArgumentError, match="not positive definite"):
        GaussianMixture(2, reg_covar=0, random_state=0).fit(x)
