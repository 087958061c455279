"""Estimators with scikit-learn's interface for data larger than memory: a few lines of lazy expressions each.

    from outcore.learn import KMeans as KMeans

    model = KMeans(n_clusters=10).fit(oc.open("x.npy"))
    oc.store({"labels.npy": model.predict(oc.open("x.npy"))})

They take lazy arrays, NumPy arrays and lists, work in scikit-learn's pipelines and pass its `check_estimator`. Lazy
data gives lazy results: predictions for lazy data are lazy arrays. Every sweep of a fit is one read of the data.

A fit is a chain of programs, each followed by a few lines over their small results. So every estimator that iterates
has `history_`, its objective step by step, which the progress line shows and `verbose=1` prints. And `checkpoint=k`
keeps what every k-th program found on disk (`NMF`: its factors after every k-th iteration): after a kill, a power loss
or Ctrl-C the same fit of the same files goes on from there to the same bits, also under another memory limit or number
of threads. It costs a small file in the session's scratch, which goes when the fit ends; `outcore clean` lists those
that can be gone on with. Another parameter, or a changed file, begins anew.

Data that is not finite is refused, where the estimator cannot take it, with scikit-learn's error and the place of the
element. Of lazy data it is found by the first sweep, in one more product of it: there is no read to look for it.

They inherit scikit-learn's `BaseEstimator`, whose contract (tags, cloning, routing, output containers) changes with
its releases; a copy of it would be wrong with the next. Hence scikit-learn is an optional dependency, the extra
`learn`, and loaded when an estimator is named: kept tiles give way to it where the memory limit is full of them.

The room uses arrays and runs alone. Start with `_base.py` (data, answers, the kinds of estimator) and `_fit.py` (the
programs of a fit), then `linear_model.py`; `metrics.py` needs no scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from outcore._session.session import leave_room

if find_spec("sklearn") is None:
    raise ImportError(
        "outcore.learn needs scikit-learn, whose interface its estimators follow: pip install 'scikit-learn>=1.6'"
    )

from outcore.learn import metrics as metrics
from outcore.learn.model_selection import KFold as KFold
from outcore.learn.model_selection import train_test_split as train_test_split

if TYPE_CHECKING:
    from outcore.learn.cluster import KMeans as KMeans
    from outcore.learn.decomposition import PCA as PCA
    from outcore.learn.decomposition import IncrementalPCA as IncrementalPCA
    from outcore.learn.decomposition import TruncatedSVD as TruncatedSVD
    from outcore.learn.encoding import LabelEncoder as LabelEncoder
    from outcore.learn.encoding import OneHotEncoder as OneHotEncoder
    from outcore.learn.factorization import NMF as NMF
    from outcore.learn.gradient_descent import SGDClassifier as SGDClassifier
    from outcore.learn.gradient_descent import SGDRegressor as SGDRegressor
    from outcore.learn.linear_model import LinearRegression as LinearRegression
    from outcore.learn.linear_model import Ridge as Ridge
    from outcore.learn.logistic import LogisticRegression as LogisticRegression
    from outcore.learn.minibatch import MiniBatchKMeans as MiniBatchKMeans
    from outcore.learn.mixture import GaussianMixture as GaussianMixture
    from outcore.learn.preprocessing import MinMaxScaler as MinMaxScaler
    from outcore.learn.preprocessing import RobustScaler as RobustScaler
    from outcore.learn.preprocessing import StandardScaler as StandardScaler

# scikit-learn takes a second and 100 MB to load, with SciPy and pandas: it is, when an estimator is named.
_HOMES = {
    "GaussianMixture": "mixture",
    "IncrementalPCA": "decomposition",
    "KMeans": "cluster",
    "LabelEncoder": "encoding",
    "LinearRegression": "linear_model",
    "LogisticRegression": "logistic",
    "MinMaxScaler": "preprocessing",
    "MiniBatchKMeans": "minibatch",
    "NMF": "factorization",
    "OneHotEncoder": "encoding",
    "PCA": "decomposition",
    "Ridge": "linear_model",
    "RobustScaler": "preprocessing",
    "SGDClassifier": "gradient_descent",
    "SGDRegressor": "gradient_descent",
    "StandardScaler": "preprocessing",
    "TruncatedSVD": "decomposition",
}
_LOADED_BYTES = 128 << 20


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    leave_room(_LOADED_BYTES, unless="sklearn.base")
    estimator = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = estimator
    return estimator


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


# A module of estimators that is imported by its own name loads it without asking here.
leave_room(_LOADED_BYTES, unless="sklearn.base")

__all__ = sorted([*_HOMES, "KFold", "metrics", "train_test_split"])
