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
    learn.StandardScaler(),
    learn.MinMaxScaler(),
    learn.RobustScaler(),
    learn.KMeans(),
]

EXPECTED: dict[str, dict[str, str]] = {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda made: EXPECTED.get(type(made).__name__, {}))
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    with session():
        check(estimator)
