"""Fills in the functions that stand above the files which call them: see `_lazy/hooks.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from outcore import _api
from outcore._lazy.hooks import above, functions
from outcore._lazy.pickled import rebuilt, steps_of
from outcore._numpy_like.updates import updated
from outcore._run import masks
from outcore._standard.elements import Elements, complex_keys, in_order, sort_typed_by
from outcore._standard.indexing import taken
from outcore._typed.as_typed import as_typed


def _of_numpy(name: str) -> Callable[..., object]:
    """A function that NumPy's calls arrive at."""

    def call(*arguments: object) -> Any:
        from outcore._numpy import protocol  # it takes 20 ms and a megabyte, which most programs need not

        return getattr(protocol, name)(*arguments)

    return call


def _lazy_of_xarray(data: object) -> Any:
    """The lazy array in what xarray has wrapped it in."""
    from outcore._xarray.unwrapped import lazy_of  # it imports xarray, which whoever has such an array has done

    return lazy_of(data)


functions.fill({name: getattr(_api, name) for name in vars(_api)["__all__"]})
above.fill(
    {
        "namespace": sys.modules["outcore"],
        "Chosen": masks.Chosen,
        "Elements": Elements,
        "apply_function": _of_numpy("apply_function"),
        "apply_to_dates": _of_numpy("apply_to_dates"),
        "apply_to_text": _of_numpy("apply_to_text"),
        "apply_ufunc": _of_numpy("apply_ufunc"),
        "as_typed": as_typed,
        "choose": masks.choose,
        "complex_keys": complex_keys,
        "hold": masks.hold,
        "in_order": in_order,
        "lazy_of_xarray": _lazy_of_xarray,
        "is_numpys": _of_numpy("is_taken"),
        "ufunc_of": _of_numpy("ufunc_of"),
        "rebuilt": rebuilt,
        "sort_typed_by": sort_typed_by,
        "steps_of": steps_of,
        "taken": taken,
        "updated": updated,
    }
)
