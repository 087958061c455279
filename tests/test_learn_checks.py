"""scikit-learn's own checks of an estimator pass for every one of ours."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.running import session

from outcore import learn

# Few iterations, as scikit-learn has them for its own estimators (`sklearn.utils._test_common.instance_generator`): the
# checks ask how an estimator behaves, and the other tests whether it arrives.
ESTIMATORS = [
    learn.LinearRegression(),
    learn.Ridge(),
    *(learn.LogisticRegression(solver=solver, max_iter=5) for solver in ("lbfgs", "newton-cg", "newton-cholesky")),
    learn.MiniBatchKMeans(n_clusters=3, n_init=2, max_iter=5, batch_size=10),
    learn.SGDClassifier(max_iter=5),
    learn.SGDClassifier("log_loss", max_iter=5),
    learn.SGDRegressor(max_iter=20, batch_size=8),
    learn.NMF(max_iter=5),
    learn.NMF(init="random", max_iter=5),
    learn.OneHotEncoder(),
    learn.LabelEncoder(),
    learn.StandardScaler(),
    learn.MinMaxScaler(),
    learn.RobustScaler(),
    learn.KMeans(n_clusters=2, n_init=2, max_iter=5),
    *(
        learn.GaussianMixture(covariance_type=form, n_init=2, max_iter=5)
        for form in ("full", "tied", "diag", "spherical")
    ),
    learn.PCA(),
    learn.PCA(svd_solver="randomized"),
    learn.IncrementalPCA(),
    learn.TruncatedSVD(),
    learn.TruncatedSVD(algorithm="randomized", n_components=1),
]

_DRAWS = {"check_sample_weight_equivalence_on_dense_data": "rows are drawn: repeated ones are other draws than weights"}
EXPECTED = dict.fromkeys(("KMeans", "MiniBatchKMeans", "SGDClassifier", "SGDRegressor"), _DRAWS)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda made: EXPECTED.get(type(made).__name__, {}))
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    with session():
        check(estimator)
