"""NumPy-shaped arrays larger than memory, on one machine's disks.

    import outcore as oc

    X = oc.open("X.zarr")
    print(oc.explain(X.T @ X))
    oc.store({"gram.npy": X.T @ X})

The functions are those of the array API standard. Nothing runs until `compute`, `store` or `persist`.
"""

from outcore import _api, graph, sparse
from outcore import _upward as _upward
from outcore._api import *  # noqa: F403  # each name is listed there
from outcore._lazy.absent import missing_name
from outcore._numpy.strided import lib as lib


def __getattr__(name: str) -> object:
    """`outcore.learn` is imported when it is asked for: it needs scikit-learn, which takes a second to load.

    Names of other libraries are answered by what is nearest.
    """
    if name == "learn":
        import importlib

        return importlib.import_module("outcore.learn")
    raise missing_name("module 'outcore'", name)


def __dir__() -> list[str]:
    return sorted({*__all__, "learn"})


__all__ = [*_api.__all__, "graph", "sparse"]
