"""scikit-learn's own checks of an estimator pass for every one of ours."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.running import session

from outcore import learn

ESTIMATORS = [
    learn.LinearRegression(),
    learn.Ridge(),
    *(learn.LogisticRegression(solver=solver) for solver in ("lbfgs", "newton-cg", "newton-cholesky")),
    learn.MiniBatchKMeans(),
    learn.SGDClassifier(),
    learn.SGDClassifier("log_loss"),
    learn.SGDRegressor(),
    learn.NMF(),
    learn.NMF(init="random"),
    learn.OneHotEncoder(),
    learn.LabelEncoder(),
    learn.StandardScaler(),
    learn.MinMaxScaler(),
    learn.RobustScaler(),
    learn.KMeans(),
    *(learn.GaussianMixture(covariance_type=form) for form in ("full", "tied", "diag", "spherical")),
    learn.PCA(),
    learn.PCA(svd_solver="randomized"),
    learn.IncrementalPCA(),
    learn.TruncatedSVD(),
    learn.TruncatedSVD(algorithm="randomized"),
]

_DRAWS = {"check_sample_weight_equivalence_on_dense_data": "rows are drawn: repeated ones are other draws than weights"}
EXPECTED = dict.fromkeys(("KMeans", "MiniBatchKMeans", "SGDClassifier", "SGDRegressor"), _DRAWS)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda made: EXPECTED.get(type(made).__name__, {}))
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    with session():
        check(estimator)
