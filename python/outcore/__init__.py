"""NumPy-shaped arrays larger than memory, on one machine's disks.

    import outcore as oc

    X = oc.open("X.zarr")
    print(oc.explain(X.T @ X))
    oc.store({"gram.npy": X.T @ X})

The functions are those of the array API standard. Nothing runs until `compute`, `store` or `persist`.
"""

import typing as _typing

from outcore import _api
from outcore import _upward as _upward
from outcore import graph as graph
from outcore import sparse as sparse
from outcore._api import *
from outcore._api import __array_api_version__ as __array_api_version__
from outcore._api import __array_namespace_info__ as __array_namespace_info__
from outcore._api import __version__ as __version__
from outcore._lazy.absent import missing_name
from outcore._numpy.strided import lib as lib


def __getattr__(name: str) -> object:
    """`outcore.learn` is imported when it is asked for: it needs scikit-learn, which takes a second to load. So is
    `outcore.show`, which few programs need.

    Names of other libraries are answered by what is nearest.
    """
    if name in ("learn", "show"):
        import importlib

        return importlib.import_module(f"outcore.{name}")
    raise missing_name("module 'outcore'", name)


def __dir__() -> list[str]:
    return sorted({*globals()["__all__"], "learn", "show"})


if _typing.TYPE_CHECKING:
    from outcore import show as show

if not _typing.TYPE_CHECKING:  # a type checker follows the imports
    __all__ = [*_api.__all__, "graph", "sparse"]
