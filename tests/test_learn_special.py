"""Rows without weight, missing values, constant columns and large offsets change nothing they have no part in."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import cluster as theirs_cluster
from sklearn import linear_model as theirs_linear
from sklearn import metrics as theirs
from sklearn import preprocessing as theirs_scaled
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore import learn
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError
from outcore.learn import metrics

FILL = 9.96921e36  # what netCDF writes for missing elements
ROOM = 24 << 20  # less than the data, so that nothing is read for free


@st.composite
def weighted_rows(draw: st.DrawFn) -> Any:
    """Rows of weight 1 and 2, and anywhere among them rows of weight 0 that hold anything finite."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(20, 80)), draw(st.integers(1, 3))
    x = random.normal(size=(rows, columns)) + draw(st.sampled_from([0.0, 1e3, 1.7e9]))
    x[:, : draw(st.integers(0, columns - 1))] = draw(st.sampled_from([0.0, 0.1, 1e9]))
    weights = random.integers(1, 3, rows).astype(float)
    void = random.random(rows) < 0.2
    void[: draw(st.integers(0, rows // 2))] = True
    void[-10:] = False
    weights[void] = 0
    y = (x - x.mean(axis=0)) @ np.arange(1.0, columns + 1) + 4
    x[void], y[void] = draw(st.sampled_from([FILL, -1e100, 0.0, 5e-324])), draw(st.sampled_from([0.0, FILL]))
    return x, y, weights


def lazy(x: Any) -> oc.Array:
    return oc.rechunk(oc.asarray(x), (7, *x.shape[1:]))


@settings(max_examples=examples(40), deadline=None)
@given(weighted_rows())
def test_rows_without_weight_have_no_part_in_a_fit(made: Any) -> None:
    x, y, weights = made
    kept = weights > 0
    with session():
        for model, reference in (
            (learn.LinearRegression(), theirs_linear.LinearRegression()),
            (learn.Ridge(1.0), theirs_linear.Ridge(1.0, solver="cholesky")),
        ):
            found = model.fit(lazy(x), lazy(y), sample_weight=weights).predict(x[kept])
            expected = reference.fit(x[kept], y[kept], sample_weight=weights[kept]).predict(x[kept])
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        scaler = learn.StandardScaler().fit(lazy(x), sample_weight=weights)
        reference = theirs_scaled.StandardScaler().fit(x[kept] - x[kept][0], sample_weight=weights[kept])
        np.testing.assert_allclose(scaler.mean_, reference.mean_ + x[kept][0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(scaler.var_, reference.var_, rtol=1e-9, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(weighted_rows())
def test_rows_without_weight_have_no_part_in_clusters(made: Any) -> None:
    x, _, weights = made
    kept = weights > 0
    with session(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = learn.KMeans(3, random_state=0).fit(lazy(x), sample_weight=weights)
        apart = ((x[kept][:, None] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1)
        scale = np.sum(weights[kept][:, None] * (x[kept] - x[kept].mean(axis=0)) ** 2)
        assert model.inertia_ == pytest.approx(np.sum(weights[kept] * apart), rel=1e-6, abs=1e-6 * scale)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e6, 1.7e9]), st.floats(0, 1), st.integers(0, 60))
def test_missing_elements_are_passed_over_wherever_they_are(seed: int, far: float, part: float, first: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(80, 3)) * 10
    x[random.random(x.shape) < part / 2] = np.nan
    x[:first, 1:] = np.nan
    x[-2:] = [[1.0, 2.0, 3.0], [2.0, 5.0, 1.0]]
    with session():
        scaler = learn.StandardScaler().fit(lazy(x + far))
        weighed = learn.StandardScaler().fit(lazy(x + far), sample_weight=np.ones(80))
    reference = theirs_scaled.StandardScaler().fit(x + far - far)
    for found in (scaler, weighed):
        np.testing.assert_allclose(found.var_, reference.var_, rtol=1e-6)
        np.testing.assert_allclose(found.mean_, reference.mean_ + far, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found.n_samples_seen_, reference.n_samples_seen_)


def test_an_infinite_element_is_named() -> None:
    x = np.arange(60.0).reshape(20, 3)
    x[2], x[11, 1] = np.nan, -np.inf
    for scaler in (learn.StandardScaler(), learn.MinMaxScaler()):
        with session(), pytest.raises(ArgumentError, match=r"infinity .* X\[11, 1\]"):
            scaler.fit(lazy(x))


def test_a_sum_of_weights_of_zero_is_refused() -> None:
    x = np.arange(30.0).reshape(10, 3)
    for model in (learn.LinearRegression(), learn.Ridge(), learn.KMeans(2)):
        with session(), pytest.raises(ArgumentError, match="sample_weight must be above 0"):
            model.fit(lazy(x), lazy(x[:, 0]), sample_weight=oc.zeros(10))


def test_scores_of_rows_without_weight_have_no_part() -> None:
    random = np.random.default_rng(0)
    y = 1.7e9 + random.normal(size=500)
    found, weights = y + random.normal(size=500) / 3, np.ones(500)
    y[:20], weights[:20] = FILL, 0
    expected = theirs.r2_score(y[20:], found[20:])
    assert metrics.r2_score(lazy(y), lazy(found), sample_weight=weights) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(1, 3), st.sampled_from(["k-means++", "k-means||", "random"]), st.sampled_from([0.0, 0.1, 1e9]))
def test_fewer_distinct_rows_than_clusters_end_the_fit_with_a_warning(distinct: int, init: str, far: float) -> None:
    rows = np.asarray([[0.1, 0.2], [0.7, 0.3], [5.1, 2.2]])[:distinct] + far
    with session(), pytest.warns(ConvergenceWarning, match=f"{distinct} distinct rows?, 4 clusters"):
        model = learn.KMeans(4, init=init, random_state=0).fit(lazy(np.repeat(rows, 50, axis=0)))
    assert model.n_iter_ <= (1 if init != "random" else 4)
    distances = np.abs(rows[:, None] - model.cluster_centers_).max(axis=2).min(axis=1)
    assert np.all(distances <= 1e-9 * np.abs(rows).max())


def test_the_first_sweep_of_a_fit_is_its_only_look_before_it_begins(tmp_path: Path) -> None:
    """Checks of finiteness, the moments of columns and the first step come from one read."""
    x = np.abs(np.random.default_rng(0).normal(size=(120_000, 32)))
    np.save(tmp_path / "x.npy", x)
    for model, sweeps in (
        (learn.KMeans(4, init=x[:4], max_iter=1, tol=1e9), 2),  # the last is for the inertia
        (learn.KMeans(4, init=x[:4], max_iter=3, tol=0), 4),
        (learn.KMeans(2, init="k-means++", max_iter=1, tol=1e9, random_state=0), 4),
        (learn.NMF(3, max_iter=2), 4),
        (learn.GaussianMixture(2, init_params="random_from_data", max_iter=2, random_state=0), 4),
        (learn.StandardScaler(), 1),
    ):
        with session(pool_limit=ROOM), oc.profile() as profile, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(oc.open(tmp_path / "x.npy"))
        # Some tiles stay from sweep to sweep.
        read = [outcome.bytes_read for outcome in profile.outcomes if outcome.bytes_read > x.nbytes / 20]
        assert len(read) == sweeps, model
        assert all(each <= 1.01 * x.nbytes for each in read), model


def test_clusters_that_do_not_fit_are_refused_before_a_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(40_000, 16)))
    for init, clusters in (("k-means++", 36), ("k-means||", 12), ("random", 36)):
        model = learn.KMeans(clusters, init=init, n_init=1, max_iter=1, random_state=0)
        with session(pool_limit=2 << 20) as one:
            with pytest.raises(MemoryLimitError, match=r"KMeans\.fit") as refused:
                model.fit(oc.open(tmp_path / "x.npy"))
            assert one.counters()["bytes_read"] < 1 << 20
        assert refused.value.operator == "KMeans.fit"
        with session(pool_limit=refused.value.smallest):
            model.fit(oc.open(tmp_path / "x.npy"))


def test_fits_without_room_are_refused_before_a_read_with_a_limit_that_works(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20_000, 40)))
    with session(pool_limit=1 << 20) as one:
        with pytest.raises(MemoryLimitError, match=r"GaussianMixture\.fit") as refused:
            learn.GaussianMixture(6).fit(oc.open(tmp_path / "x.npy"))
        assert one.counters()["bytes_read"] < 1 << 20
    with session(pool_limit=refused.value.smallest), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learn.GaussianMixture(6, max_iter=2, random_state=0).fit(oc.open(tmp_path / "x.npy"))
    np.save(tmp_path / "y.npy", np.arange(20_000) % 2)
    for model in (
        learn.LogisticRegression(max_iter=1),
        learn.LogisticRegression(solver="newton-cholesky", max_iter=1),
        learn.SGDClassifier(max_iter=1),
        learn.LinearRegression(),
        learn.StandardScaler(),
    ):
        with session(pool_limit=1 << 20) as one:
            with pytest.raises(MemoryLimitError, match=rf"^{type(model).__name__}\.(partial_)?fit") as refused:
                model.fit(oc.open(tmp_path / "x.npy"), oc.open(tmp_path / "y.npy"))
            assert one.counters()["bytes_read"] == 0
        with session(pool_limit=refused.value.smallest), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(oc.open(tmp_path / "x.npy"), oc.open(tmp_path / "y.npy"))
    wide = oc.zeros((30_000, 20_000))  # a matrix of 20,000² numbers is 3 GiB
    for model in (learn.PCA(), learn.TruncatedSVD(algorithm="gram"), learn.IncrementalPCA(), learn.Ridge()):
        with session(memory_limit=2 << 30) as one:
            with pytest.raises(MemoryLimitError, match=rf"{type(model).__name__}\.fit needs .* GiB") as refused:
                model.fit(wide, oc.zeros(30_000))
            assert refused.value.smallest > 17 << 30
            assert one.counters()["bytes_read"] == 0


def test_labels_may_be_floats_of_whole_numbers() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    with session():
        for model in (learn.LogisticRegression(), learn.SGDClassifier(random_state=0)):
            found = model.fit(lazy(x), lazy(y)).predict(lazy(x))
            assert model.classes_.tolist() == [-1.0, 1.0]
            assert model.score(lazy(x), lazy(y)) > 0.9
            assert metrics.accuracy_score(lazy(y.astype(int)), found) == theirs.accuracy_score(y, found.compute())
            matrix = metrics.confusion_matrix(lazy(y), found.astype(np.int64))
            np.testing.assert_array_equal(matrix, theirs.confusion_matrix(y, found.compute()))
            for bad, kind, text in (
                (y + 0.5, ArgumentError, "whole numbers"),
                (np.where(y > 0, np.nan, y), ArgumentError, "whole numbers"),
                (y.astype(complex), DTypeError, r"1-D integers, not complex128; use y.astype\('int64'\)"),
                (y[:, None], ShapeError, r"1-D; use y\[:, 0\]"),
            ):
                with pytest.raises(kind, match=text):
                    model.fit(lazy(x), lazy(bad))


def test_lazy_labels_that_are_no_class_are_refused() -> None:
    x, y = np.zeros((4, 2)), np.asarray([0, 1, 2, 1])
    with session(), pytest.raises(ArgumentError, match="not among classes"):
        learn.SGDClassifier().partial_fit(lazy(x), lazy(y), classes=[0, 1])


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(2, 60), st.integers(0, 2), st.integers(0, 2**32 - 1), st.sampled_from(["float64", "int32", "bool"]))
def test_the_area_under_the_curve_is_scikit_learns(rows: int, digits: int, seed: int, dtype: str) -> None:
    """With ties, with weights and without."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows).astype(dtype)
    y[:2] = [0, 1]
    scores, weights = np.round(random.normal(size=rows), digits), random.choice([0.0, 1.0, 2.5], rows)
    weights[:2] = 1
    with session():
        for weighing in (None, weights):
            expected = theirs.roc_auc_score(y, scores, sample_weight=weighing)
            assert metrics.roc_auc_score(lazy(y), lazy(scores), sample_weight=weighing) == pytest.approx(expected)
            assert metrics.roc_auc_score(y, scores, sample_weight=weighing) == pytest.approx(expected)


def test_an_area_that_is_not_defined_is_said_to_be() -> None:
    with session():
        with pytest.warns(UndefinedMetricWarning, match="one class"):
            assert np.isnan(metrics.roc_auc_score([1, 1], [0.5, 0.2]))
        with pytest.raises(ArgumentError, match="more than two classes"):
            metrics.roc_auc_score([0, 1, 2], [0.1, 0.2, 0.3])
        with pytest.raises(ArgumentError, match="NaN or infinity"):
            metrics.roc_auc_score([0, 1], [0.1, np.nan])
        assert metrics.roc_auc_score(["a", "b", "b"], [0.1, 0.2, 0.3]) == 1.0


def test_flat_spectra_are_no_worse_than_nothing() -> None:
    """A projection: what is left is no larger than the data, and every singular value is one of the data's."""
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 120)))[0]
    with session():
        for x in (q, np.eye(90)):
            for power in (0, 5):
                model = learn.TruncatedSVD(5, algorithm="randomized", n_iter=power, random_state=0).fit(lazy(x))
                left = x - model.inverse_transform(model.transform(x))
                assert np.linalg.norm(left, 2) <= 1 + 1e-9
                assert np.linalg.norm(left) < np.linalg.norm(x)
                np.testing.assert_allclose(model.singular_values_, 1, rtol=1e-9)


def test_clusters_of_the_same_start_are_scikit_learns_beside_weightless_rows() -> None:
    random = np.random.default_rng(1)
    x, weights = random.normal(size=(300, 2)), np.ones(300)
    x[:20], weights[:20] = FILL, 0
    start = x[50:53]
    with session():
        model = learn.KMeans(3, init=start, tol=0).fit(lazy(x), sample_weight=weights)
    reference = theirs_cluster.KMeans(3, init=start, n_init=1, tol=0).fit(x[20:])
    np.testing.assert_allclose(model.cluster_centers_, reference.cluster_centers_, rtol=1e-9)
    assert model.inertia_ == pytest.approx(reference.inertia_, rel=1e-9)


def test_scikit_learn_is_loaded_with_an_estimator_and_no_sooner() -> None:
    program = (
        "import sys, outcore as oc, outcore.learn as learn\n"
        "learn.metrics.accuracy_score([0, 1], [0, 1]), learn.train_test_split(oc.arange(8), random_state=0)\n"
        "assert not {'sklearn', 'scipy', 'pandas'} & set(sys.modules), sorted(sys.modules)\n"
        "assert set(learn.__all__) <= set(dir(learn))\n"
        "learn.StandardScaler\n"
        "assert 'sklearn' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (learn.LogisticRegression(max_iter=1), "y"),
        (learn.LinearRegression(), "t"),
        (learn.StandardScaler(), None),
        (learn.MinMaxScaler(), None),
        (learn.RobustScaler(), None),
        (learn.PCA(3), None),
        (learn.NMF(3, max_iter=1), None),
        (learn.OneHotEncoder(), "codes"),
    ],
    ids=lambda value: f"{value}"[:40],
)
def test_a_fit_is_refused_once_under_its_own_name(model: Any, target: str | None, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", random.random((40_000, 48)))
    np.save(tmp_path / "y.npy", random.integers(0, 4, 40_000))
    np.save(tmp_path / "t.npy", random.random(40_000))
    np.save(tmp_path / "codes.npy", random.integers(0, 5, (40_000, 3)))

    def fit() -> None:
        given = [oc.open(tmp_path / "x.npy"), *([oc.open(tmp_path / f"{target}.npy")] if target else [])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(*(given[1:] if target == "codes" else given))

    name = f"{type(model).__name__}.fit"
    with session(pool_limit=1 << 20), pytest.raises(MemoryLimitError) as refused:
        fit()
    assert refused.value.operator == name
    assert re.match(rf"{name}: (a sweep )?needs ", str(refused.value))
    assert str(refused.value).endswith(f"limit that works is {refused.value.smallest >> 20} MiB")
    with session(pool_limit=refused.value.smallest):
        fit()
