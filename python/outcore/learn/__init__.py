"""Estimators with scikit-learn's interface for data larger than memory: a few lines of lazy expressions each.

    from outcore.learn import KMeans

    model = KMeans(n_clusters=10).fit(oc.open("x.npy"))
    oc.store({"labels.npy": model.predict(oc.open("x.npy"))})

They take lazy arrays, NumPy arrays and lists, work in scikit-learn's pipelines and pass its `check_estimator`. What is
lazy stays lazy: predictions for lazy data are lazy arrays. Every sweep of a fit is one read of the data.

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
`learn`, and this package is imported only where it is named.
"""

try:
    import sklearn as _sklearn  # noqa: F401 - whether it is there
except ImportError as error:
    raise ImportError(
        "outcore.learn needs scikit-learn, whose interface its estimators follow: pip install 'outcore[learn]'"
    ) from error

from outcore.learn import metrics
from outcore.learn.cluster import KMeans
from outcore.learn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from outcore.learn.encoding import LabelEncoder, OneHotEncoder
from outcore.learn.factorization import NMF
from outcore.learn.gradient_descent import SGDClassifier, SGDRegressor
from outcore.learn.linear_model import LinearRegression, Ridge
from outcore.learn.logistic import LogisticRegression
from outcore.learn.minibatch import MiniBatchKMeans
from outcore.learn.mixture import GaussianMixture
from outcore.learn.model_selection import KFold, train_test_split
from outcore.learn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

__all__ = [
    "GaussianMixture",
    "IncrementalPCA",
    "KFold",
    "KMeans",
    "LabelEncoder",
    "LinearRegression",
    "LogisticRegression",
    "MinMaxScaler",
    "MiniBatchKMeans",
    "NMF",
    "OneHotEncoder",
    "PCA",
    "Ridge",
    "RobustScaler",
    "SGDClassifier",
    "SGDRegressor",
    "StandardScaler",
    "TruncatedSVD",
    "metrics",
    "train_test_split",
]
