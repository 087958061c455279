"""Linear models: scikit-learn's coefficients to stated tolerances, in as many reads as promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model as theirs
from sklearn.exceptions import ConvergenceWarning
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, ShapeError
from outcore.learn import LinearRegression, LogisticRegression, Ridge, SGDClassifier, SGDRegressor

ROOM = 24 << 20  # less than the data, so that nothing is read for free
RANDOM = np.random.default_rng(11)
X = RANDOM.normal(size=(500, 6)) * [1, 2, 0.1, 5, 1, 1] + 30
COEFFICIENTS = RANDOM.normal(size=(6, 2))
Y = X @ COEFFICIENTS + RANDOM.normal(size=(500, 2)) * 0.3
WEIGHTS = RANDOM.random(500) + 0.1


def tiled(x: Any) -> oc.Array:
    return oc.rechunk(oc.asarray(x), (90, *x.shape[1:]))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("targets", [Y, Y[:, 0]])
@pytest.mark.parametrize("pair", [(LinearRegression, theirs.LinearRegression), (Ridge, theirs.Ridge)])
def test_least_squares_are_scikit_learns(pair: Any, targets: Any, weights: Any, intercept: bool) -> None:
    ours, other = (kind(fit_intercept=intercept) for kind in pair)
    ours.fit(tiled(X), tiled(targets), sample_weight=None if weights is None else tiled(weights))
    other.fit(X, targets, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, rtol=1e-7)
    found = ours.predict(tiled(X))
    assert isinstance(found, oc.Array)
    np.testing.assert_allclose(found.compute(), other.predict(X), rtol=1e-9)
    np.testing.assert_allclose(ours.score(tiled(X), tiled(targets)), other.score(X, targets), rtol=1e-9)


def test_dependent_columns_give_the_shortest_coefficients() -> None:
    x = np.column_stack([X, X[:, 0] + X[:, 1]])
    ours, other = LinearRegression().fit(x, Y), theirs.LinearRegression().fit(x, Y)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-6)
    assert ours.rank_ == other.rank_ == 6


def test_a_penalty_for_each_target() -> None:
    np.testing.assert_allclose(
        Ridge([0.5, 50.0]).fit(X, Y).coef_, theirs.Ridge([0.5, 50.0], solver="cholesky").fit(X, Y).coef_, rtol=1e-8
    )


SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
LABELS = np.asarray([3, 5, 9])[np.argmax(SCALED[:, :3] + RANDOM.normal(size=(500, 3)), axis=1)]


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False, "C": 0.1}, {"class_weight": "balanced"}])
def test_logistic_regression_is_scikit_learns(solver: str, classes: int, options: Any) -> None:
    kept = slice(None) if classes == 3 else LABELS != 9
    x, y, weights = SCALED[kept], LABELS[kept], WEIGHTS[kept]
    expected = theirs.LogisticRegression(tol=1e-9, max_iter=1000, **options).fit(x, y, weights)
    found = LogisticRegression(solver=solver, tol=1e-9, max_iter=1000, **options)
    found.fit(tiled(x), tiled(y), sample_weight=tiled(weights))
    # Both minimize one function, to a gradient of 1e-9.
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-5)
    np.testing.assert_array_equal(found.predict(tiled(x)).compute(), expected.predict(x))
    for name in ("predict_proba", "predict_log_proba", "decision_function"):
        value = getattr(found, name)(tiled(x))
        assert isinstance(value, oc.Array)
        np.testing.assert_allclose(value.compute(), getattr(expected, name)(x), atol=1e-4)


def mean_loss(model: Any, x: Any, y: Any, share: float) -> float:
    """What a logistic regression with C=1 minimizes, over the number of rows."""
    chances = model.predict_proba(x)[np.arange(len(x)), np.searchsorted(model.classes_, y)]
    size = np.abs(model.coef_)
    penalty = share * size.sum() + (1 - share) / 2 * (size**2).sum()
    return float(-np.log(chances).mean() + penalty / model.C / len(x))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("options", [{"C": 0.05}, {"C": 2.0, "fit_intercept": False}])
def test_absolute_values_make_coefficients_zero_as_scikit_learns_do(options: Any, share: float, classes: int) -> None:
    kept = slice(None) if classes == 3 else LABELS != 9
    x, y = SCALED[kept], LABELS[kept]
    expected = theirs.LogisticRegression(solver="saga", l1_ratio=share, tol=1e-10, max_iter=20_000, **options).fit(x, y)
    found = LogisticRegression(l1_ratio=share, tol=1e-9, max_iter=1000, **options).fit(tiled(x), tiled(y))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
    np.testing.assert_array_equal(found.coef_ == 0, expected.coef_ == 0)
    assert mean_loss(found, x, y, share) <= mean_loss(expected, x, y, share) + 1e-12


def test_absolute_values_alone_are_liblinears() -> None:
    x, y = SCALED[LABELS != 9], LABELS[LABELS != 9]
    options = {"C": 0.1, "fit_intercept": False}  # liblinear's penalty is on the intercept too
    expected = theirs.LogisticRegression(solver="liblinear", l1_ratio=1, tol=1e-10, max_iter=10_000, **options)
    found = LogisticRegression(l1_ratio=1.0, tol=1e-9, **options).fit(x, y)
    np.testing.assert_allclose(found.coef_, expected.fit(x, y).coef_, atol=1e-5)
    assert 0 < np.count_nonzero(found.coef_) < 6


def test_a_step_with_absolute_values_is_one_read() -> None:
    with oc.profile() as profile:
        model = LogisticRegression(l1_ratio=1.0, C=0.1, tol=1e-6).fit(SCALED, LABELS)
    # One to begin with, the sum of the weights, and few steps that were too long.
    assert len(profile.outcomes) <= model.n_iter_[0] + 4
    assert np.all(np.diff(model.history_["loss"]) <= 1e-12)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_descent_with_absolute_values_comes_near_the_minimum(penalty: str) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 12))
    y = (x[:, :3] @ [2.0, -1.0, 0.7] + random.normal(size=3000) > 0).astype(np.int64)
    alpha, share = 0.03, {"l1": 1.0, "elasticnet": 0.6}[penalty]
    best = theirs.LogisticRegression(solver="saga", l1_ratio=share, C=1 / (alpha * len(x)), tol=1e-10, max_iter=5000)
    best.fit(x, y)
    options = {"penalty": penalty, "l1_ratio": share, "alpha": alpha, "random_state": 0, "tol": None, "max_iter": 20}
    model = SGDClassifier("log_loss", learning_rate="invscaling", eta0=1.0, **options).fit(tiled(x), tiled(y))
    # Within 3% of the largest coefficient, and none but noise where the minimum has none.
    np.testing.assert_allclose(model.coef_, best.coef_, atol=0.03 * np.abs(best.coef_).max())
    assert np.abs(model.coef_[best.coef_ == 0]).max() < 0.005
    assert not np.any(SGDClassifier("log_loss", **(options | {"alpha": 2.0})).fit(x, y).coef_)
    line = SGDRegressor(eta0=0.1, **options).fit(tiled(x), tiled(x[:, :3] @ [2.0, -1.0, 0.7]))
    net = theirs.ElasticNet(alpha=alpha, l1_ratio=share).fit(x, x[:, :3] @ [2.0, -1.0, 0.7])
    np.testing.assert_allclose(line.coef_, net.coef_, atol=0.01)


def test_a_value_of_the_objective_is_one_read(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(120_000, 32))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", (x[:, 0] + random.normal(size=len(x)) > 0).astype(np.int64))
    both = x.nbytes + 8 * len(x)
    for model in (LogisticRegression(), LogisticRegression(solver="newton-cholesky"), LinearRegression(), Ridge()):
        with session(pool_limit=ROOM), oc.profile() as profile:
            model.fit(oc.open(tmp_path / "x.npy"), oc.open(tmp_path / "y.npy"))
        sweeps = [outcome.bytes_read for outcome in profile.outcomes if outcome.bytes_read > x.nbytes // 2]
        assert sweeps
        assert max(sweeps) <= both * 1.01, model
        reads = getattr(model, "n_iter_", [1])[0]
        assert len(sweeps) <= reads + 6


def test_text_classes_are_for_numpy_only() -> None:
    names = np.asarray(["a", "b", "c"])[np.searchsorted([3, 5, 9], LABELS)]
    model = LogisticRegression().fit(SCALED, names)
    assert set(model.predict(SCALED)) <= {"a", "b", "c"}
    with pytest.raises(DTypeError, match="LabelEncoder"):
        model.predict(tiled(SCALED))


def test_refusals_name_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ArgumentError, match="solver='saga'"):
        LogisticRegression(solver="saga").fit(SCALED, LABELS)
    with pytest.raises(ArgumentError, match="solver='newton-cg' has no penalty by absolute values"):
        LogisticRegression(solver="newton-cg", l1_ratio=0.5).fit(SCALED, LABELS)
    with pytest.raises(ArgumentError, match="l1_ratio must be between 0 and 1, not 2"):
        LogisticRegression(l1_ratio=2).fit(SCALED, LABELS)
    with pytest.raises(ArgumentError, match="penalty='l3'"):
        SGDRegressor(penalty="l3").fit(X, Y[:, 0])
    with pytest.raises(ArgumentError, match="eta0=100"):
        SGDRegressor(eta0=100.0, learning_rate="constant").fit(X * 1e160, Y[:, 0])
    with pytest.raises(ArgumentError, match="C must be above 0, not -1"):
        LogisticRegression(C=-1).fit(SCALED, LABELS)
    with pytest.raises(ShapeError, match="500 rows"):
        LinearRegression().fit(tiled(X), tiled(Y)[:400])
    with pytest.raises(ArgumentError, match="not finite"):
        LinearRegression().fit(tiled(X), oc.where(tiled(Y) > Y.mean(), np.inf, tiled(Y)))
    with pytest.raises(ArgumentError, match="alpha"):
        Ridge(-1.0).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        LogisticRegression(max_iter=1, verbose=1).fit(SCALED, LABELS)
    assert "loss" in capsys.readouterr().out
