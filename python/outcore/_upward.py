"""Fills in the functions that stand above the files which call them: see `_hooks.py`."""

import sys

from outcore import _api, _masks, _numpy, _numpy_dates, _numpy_typed
from outcore._as_typed import as_typed
from outcore._elements import Elements, complex_keys, in_order, sort_typed_by
from outcore._hooks import above, functions
from outcore._pickled import rebuilt, steps_of
from outcore._updates import updated
from outcore.indexing import taken

functions.fill({name: getattr(_api, name) for name in _api.__all__})
above.fill(
    {
        "namespace": sys.modules["outcore"],
        "Chosen": _masks.Chosen,
        "Elements": Elements,
        "apply_function": _numpy.apply_function,
        "apply_to_dates": _numpy_dates.apply_function,
        "apply_to_text": _numpy_typed.apply_to_text,
        "apply_ufunc": _numpy.apply_ufunc,
        "as_typed": as_typed,
        "choose": _masks.choose,
        "complex_keys": complex_keys,
        "hold": _masks.hold,
        "in_order": in_order,
        "numpy_functions": _numpy._FUNCTIONS,
        "numpy_ufuncs": _numpy._UFUNC_NAMES,
        "rebuilt": rebuilt,
        "sort_typed_by": sort_typed_by,
        "steps_of": steps_of,
        "taken": taken,
        "updated": updated,
    }
)
