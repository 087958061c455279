"""What tests of estimators run in child processes whose memory limit is real."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

# By name, for `outcore.learn` is imported when tiles fill the limit already.
ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "LinearRegression": ("t", {}),
    "Ridge": ("t", {}),
    "LogisticRegression": ("y", {"max_iter": 4}),
    "LogisticRegression, newton-cholesky": ("y", {"max_iter": 2, "solver": "newton-cholesky"}),
    "LogisticRegression, newton-cg": ("y", {"max_iter": 1, "solver": "newton-cg"}),
    "LogisticRegression, absolute values": ("y", {"max_iter": 3, "l1_ratio": 0.5}),
    "SGDClassifier": ("y", {"max_iter": 1}),
    "SGDRegressor": ("t", {"max_iter": 1}),
    "KMeans": ("", {"n_clusters": 8, "max_iter": 4, "random_state": 0}),
    "KMeans, k-means||": ("", {"n_clusters": 8, "max_iter": 2, "init": "k-means||", "random_state": 0}),
    "MiniBatchKMeans": ("", {"n_clusters": 8, "max_iter": 1, "random_state": 0}),
    "GaussianMixture": ("", {"n_components": 3, "max_iter": 2, "init_params": "random_from_data", "random_state": 0}),
    "GaussianMixture, diag": (
        "",
        {
            "n_components": 3,
            "max_iter": 2,
            "covariance_type": "diag",
            "init_params": "random_from_data",
            "random_state": 0,
        },
    ),
    "PCA": ("", {"n_components": 5}),
    "PCA, randomized": ("", {"n_components": 5, "svd_solver": "randomized", "iterated_power": 2, "random_state": 0}),
    "IncrementalPCA": ("", {"n_components": 5}),
    "TruncatedSVD": ("", {"n_components": 5}),
    "NMF": ("", {"n_components": 5, "max_iter": 3}),
    "StandardScaler": ("", {}),
    "MinMaxScaler": ("", {}),
    "RobustScaler": ("", {}),
    "OneHotEncoder": ("codes", {}),
}


def fit(name: str, folder: str, memory_limit: int, filled: bool) -> int:
    """Fits an estimator to files larger than the limit. Gives how many attributes were fitted.

    Where `filled`, tiles of the data fill the limit before `outcore.learn` is imported.
    """
    import outcore as oc

    oc.config.set(memory_limit=memory_limit, threads=2, progress=False)
    x, target = oc.open(Path(folder) / "x.npy"), ESTIMATORS[name][0]
    if filled:
        oc.sum(x).compute()
    from outcore import learn

    warnings.simplefilter("ignore")
    model = getattr(learn, name.partition(",")[0])(**ESTIMATORS[name][1])
    if target == "codes":
        model.fit(oc.open(Path(folder) / "codes.npy"))
    elif target:
        model.fit(x, oc.open(Path(folder) / f"{target}.npy"))
    else:
        model.fit(x)
    return len([key for key in vars(model) if key.endswith("_")])


def components_of_a_product(rows: int, components: int | None, memory_limit: int, folder: str) -> list[float]:
    """Principal components of a sparse matrix times an identity. Gives the first variances."""
    import numpy as np
    import scipy.sparse

    import outcore as oc

    oc.config.set(memory_limit=memory_limit, threads=2, progress=False)
    made = scipy.sparse.random_array((rows, rows), density=20 / rows, rng=np.random.default_rng(0), format="csr")
    matrix = oc.sparse.from_scipy(made, Path(folder) / "a.ocs")
    from outcore import learn

    model = learn.PCA(components, random_state=0).fit(matrix @ oc.eye(rows))
    return [float(value) for value in model.explained_variance_[:2]]
