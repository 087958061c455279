"""Scaling, encoding, scores and splits: scikit-learn's values, lazy for lazy data; pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as their_metrics
from sklearn import preprocessing as theirs
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.model_selection import KFold as TheirKFold
from sklearn.pipeline import make_pipeline
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore import learn
from outcore.errors import ArgumentError, ShapeError
from outcore.learn import metrics

ROOM = 24 << 20  # less than the data, so that nothing is read for free
X = np.random.default_rng(3).normal(size=(200, 4)) * [1, 5, 0.1, 100] + [0, 1000, -3, 5]
SCALERS = ("StandardScaler", "MinMaxScaler", "RobustScaler")


def tiled(x: Any) -> oc.Array:
    return oc.rechunk(oc.asarray(x), (37, *x.shape[1:]))


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("missing", [False, True])
def test_scaled_as_scikit_learn_does(name: str, dtype: str, missing: bool) -> None:
    x = X.astype(dtype)
    if missing:
        x[::7, 1] = np.nan
    ours, other = getattr(learn, name)().fit(tiled(x)), getattr(theirs, name)().fit(x)
    # Values near 1000 with a spread of 5 have three digits fewer.
    digits = 1e-9 if dtype == "float64" else 1e-3
    found = ours.transform(tiled(x))
    assert isinstance(found, oc.Array)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.compute(), other.transform(x), rtol=digits, atol=digits)
    np.testing.assert_allclose(ours.inverse_transform(found).compute(), x, rtol=digits, atol=digits)


@pytest.mark.parametrize("name", ["StandardScaler", "MinMaxScaler"])
def test_parts_are_scaled_as_the_whole(name: str) -> None:
    whole, parts = getattr(learn, name)().fit(X), getattr(learn, name)()
    for part in np.array_split(X, [1, 60, 100]):
        parts.partial_fit(tiled(part))
    for attribute in ("scale_", "n_samples_seen_"):
        np.testing.assert_allclose(getattr(parts, attribute), getattr(whole, attribute), rtol=1e-12)


def test_categories_become_columns() -> None:
    random = np.random.default_rng(0)
    table = np.column_stack([random.integers(0, 4, 90), random.integers(5, 7, 90)])
    for drop in (None, "first"):
        ours, other = learn.OneHotEncoder(drop=drop), theirs.OneHotEncoder(drop=drop, sparse_output=False)
        found, expected = ours.fit_transform(tiled(table)), other.fit_transform(table)
        assert isinstance(found, oc.Array)
        np.testing.assert_array_equal(found.compute(), expected)
        np.testing.assert_array_equal(ours.inverse_transform(found).compute(), table)
        np.testing.assert_array_equal(ours.inverse_transform(expected), table)
        assert list(ours.get_feature_names_out()) == list(other.get_feature_names_out())
    names = np.asarray([["a", "x"], ["b", "x"]], dtype=object)
    np.testing.assert_array_equal(learn.OneHotEncoder().fit_transform(names), [[1, 0, 1], [0, 1, 1]])


def test_unknown_categories_are_refused_or_nothing() -> None:
    known, strange = np.asarray([[1], [2]]), np.asarray([[3], [1]])
    with pytest.raises(ArgumentError, match="column 0"):
        learn.OneHotEncoder().fit(known).transform(tiled(strange))
    found = learn.OneHotEncoder(handle_unknown="ignore").fit(known).transform(tiled(strange))
    np.testing.assert_array_equal(found.compute(), [[0, 0], [1, 0]])
    with pytest.raises(ArgumentError, match="unseen"):
        learn.LabelEncoder().fit([1, 2]).transform(tiled(np.asarray([3])))


def test_labels_are_places() -> None:
    labels = np.random.default_rng(0).choice([30, -2, 7], 100)
    encoder = learn.LabelEncoder()
    found = encoder.fit_transform(tiled(labels))
    np.testing.assert_array_equal(found.compute(), theirs.LabelEncoder().fit_transform(labels))
    np.testing.assert_array_equal(encoder.inverse_transform(found).compute(), labels)
    np.testing.assert_array_equal(encoder.inverse_transform(found.compute()), labels)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_scores_are_scikit_learns(seed: int, with_weights: bool) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 60))
    true, found = random.normal(size=(2, count, 2)) + 100
    labels, guesses = random.integers(0, 3, (2, count))
    weights = random.random(count) + 0.1 if with_weights else None
    lazy = None if weights is None else tiled(weights)
    for name in ("mean_squared_error", "mean_absolute_error", "r2_score", "root_mean_squared_error"):
        ours = getattr(metrics, name)(tiled(true), tiled(found), sample_weight=lazy)
        np.testing.assert_allclose(ours, getattr(their_metrics, name)(true, found, sample_weight=weights), rtol=1e-8)
    ours = metrics.accuracy_score(tiled(labels), tiled(guesses), sample_weight=lazy)
    np.testing.assert_allclose(ours, their_metrics.accuracy_score(labels, guesses, sample_weight=weights))
    matrix = metrics.confusion_matrix(tiled(labels), tiled(guesses), sample_weight=lazy)
    np.testing.assert_allclose(matrix, their_metrics.confusion_matrix(labels, guesses, sample_weight=weights))
    chances = random.random((count, 3)) + 0.01
    chances /= chances.sum(axis=1, keepdims=True)
    ours = metrics.log_loss(tiled(labels), tiled(chances), labels=[0, 1, 2], sample_weight=lazy)
    expected = their_metrics.log_loss(labels, chances, labels=[0, 1, 2], sample_weight=weights)
    np.testing.assert_allclose(ours, expected)


def test_scores_of_text_and_of_chosen_labels() -> None:
    true, found = ["a", "b", "b", "c"], ["a", "b", "c", "c"]
    assert metrics.accuracy_score(true, found) == 0.75
    matrix = metrics.confusion_matrix([0, 1, 1, 2], [0, 1, 2, 2], labels=[2, 1])
    np.testing.assert_array_equal(matrix, their_metrics.confusion_matrix([0, 1, 1, 2], [0, 1, 2, 2], labels=[2, 1]))
    with pytest.raises(ShapeError, match=r"\(2,\) and \(3,\)"):
        metrics.accuracy_score([1, 2], [1, 2, 3])


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("sizes", [{}, {"test_size": 0.3}, {"test_size": 7, "train_size": 50}, {"train_size": 0.5}])
def test_rows_are_split_alike_in_all_arrays(sizes: Any, shuffle: bool) -> None:
    rows = np.arange(101)
    options = {"random_state": 5, "shuffle": shuffle, **sizes}
    train, test, y_train, y_test = learn.train_test_split(tiled(rows[:, None] * 2), rows.tolist(), **options)
    assert isinstance(train, oc.Array)
    np.testing.assert_array_equal(train.compute()[:, 0], np.asarray(y_train) * 2)
    np.testing.assert_array_equal(test.compute()[:, 0], np.asarray(y_test) * 2)
    assert not set(y_train) & set(y_test)
    expected = len(theirs_split(rows, sizes)[1])
    assert len(y_test) == expected
    if shuffle:
        other = learn.train_test_split(rows, random_state=6, **sizes)[1]
        assert list(other) != list(y_test)


def theirs_split(rows: Any, sizes: Any) -> Any:
    from sklearn.model_selection import train_test_split

    return train_test_split(rows, **sizes)


@pytest.mark.parametrize("shuffle", [True, False])
def test_each_row_is_tested_once(shuffle: bool) -> None:
    x = np.arange(23.0)[:, None]
    folds = learn.KFold(4, shuffle=shuffle, random_state=0)
    lazy = [(x_train.compute(), x_test.compute()) for x_train, x_test in folds.split(tiled(x))]
    for (train, test), (mask, other) in zip(folds.split(x), lazy, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(mask), train)
        np.testing.assert_array_equal(np.flatnonzero(other), test)
        assert len(train) + len(test) == 23
    tested = np.concatenate([test for _, test in folds.split(x)])
    np.testing.assert_array_equal(np.sort(tested), np.arange(23))
    assert folds.get_n_splits() == 4
    assert [len(test) for _, test in TheirKFold(4).split(x)] == [test.sum() for _, test in lazy]


def test_pipelines_take_lazy_data_and_steps_of_both_libraries() -> None:
    y = (X[:, 0] + X[:, 1] / 5 > 200).astype(int)
    lazy = make_pipeline(learn.StandardScaler(), learn.PCA(3), learn.LogisticRegression()).fit(tiled(X), tiled(y))
    plain = make_pipeline(theirs.StandardScaler(), learn.PCA(3), learn.LogisticRegression()).fit(X, y)
    found = lazy.predict(tiled(X))
    assert isinstance(found, oc.Array)
    np.testing.assert_array_equal(found.compute(), plain.predict(X))
    assert lazy.score(tiled(X), tiled(y)) == plain.score(X, y)
    assert clone(lazy).get_params()["pca__n_components"] == 3
    scores = cross_val_score(plain, X, y, cv=learn.KFold(3, shuffle=True, random_state=0))
    assert scores.min() > 0.6


def test_scikit_learns_searches_take_lazy_data() -> None:
    x, y = (X - X.mean(axis=0)) / X.std(axis=0), (X[:, 0] > 0).astype(int)
    for folds in (TheirKFold(3), learn.KFold(3), learn.KFold(3, shuffle=True, random_state=0)):
        lazy = cross_val_score(learn.LogisticRegression(), tiled(x), tiled(y), cv=folds)
        np.testing.assert_allclose(lazy, cross_val_score(learn.LogisticRegression(), x, y, cv=folds))
    search = GridSearchCV(learn.Ridge(), {"alpha": [1.0, 1e6]}, cv=learn.KFold(3))
    assert search.fit(tiled(X), tiled(X[:, 0] * 2.0)).best_params_ == {"alpha": 1.0}


def test_descent_arrives_near_the_minimum(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(4000, 5))
    truth = np.asarray([1.0, -2.0, 0.5, 0.0, 3.0])
    y = x @ truth + 1 + random.normal(size=4000) * 0.1
    model = learn.SGDRegressor(eta0=0.05, tol=1e-5, random_state=0).fit(tiled(x), tiled(y))
    np.testing.assert_allclose(model.coef_, truth, atol=0.05)
    np.testing.assert_allclose(model.intercept_, [1], atol=0.05)
    labels = np.digitize(x @ truth, [-2, 2])
    for loss in ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron"):
        one = learn.SGDClassifier(loss, random_state=0).fit(tiled(x), tiled(labels > 0))
        assert one.score(tiled(x), tiled(labels > 0)) > 0.95, loss
    several = learn.SGDClassifier("log_loss", random_state=0)
    for part in range(2):
        rows = slice(part * 2000, part * 2000 + 2000)
        several.partial_fit(tiled(x[rows]), tiled(labels[rows]), classes=[0, 1, 2])
    assert several.score(x, labels) > 0.7
    with pytest.raises(ArgumentError, match="loss='cubic'"):
        learn.SGDRegressor("cubic").fit(x, y)


def test_an_epoch_is_one_read(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(120_000, 32))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", x[:, 0])
    with session(pool_limit=ROOM), oc.profile() as profile:
        model = learn.SGDRegressor(max_iter=2, tol=None, batch_size=256, random_state=0)
        model.fit(oc.open(tmp_path / "x.npy"), oc.open(tmp_path / "y.npy"))
    assert profile.bytes_read <= 2 * (x.nbytes + 8 * len(x)) * 1.1


def test_mini_batches_find_clear_clusters() -> None:
    random = np.random.default_rng(1)
    centers = random.normal(size=(5, 3)) * 20
    which = random.integers(0, 5, 5000)
    x = centers[which] + random.normal(size=(5000, 3))
    model = learn.MiniBatchKMeans(5, n_init=5, batch_size=200, random_state=0).fit(tiled(x))
    best = learn.KMeans(5, init=centers).fit(x)
    assert model.inertia_ < best.inertia_ * 1.02
    assert isinstance(model.labels_, oc.Array)
    parts = learn.MiniBatchKMeans(5, n_init=5, random_state=0)
    for part in np.array_split(x, 4):
        parts.partial_fit(part)
    assert -parts.score(x) < best.inertia_ * 1.05
