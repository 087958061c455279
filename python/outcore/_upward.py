"""Fills in the functions that stand above the files which call them: see `_hooks.py`."""

import sys

from outcore import _api
from outcore._lazy.hooks import above, functions
from outcore._lazy.pickled import rebuilt, steps_of
from outcore._numpy import dates, protocol, typed
from outcore._numpy_like.updates import updated
from outcore._run import masks
from outcore._standard.elements import Elements, complex_keys, in_order, sort_typed_by
from outcore._standard.indexing import taken
from outcore._typed.as_typed import as_typed

functions.fill({name: getattr(_api, name) for name in _api.__all__})
above.fill(
    {
        "namespace": sys.modules["outcore"],
        "Chosen": masks.Chosen,
        "Elements": Elements,
        "apply_function": protocol.apply_function,
        "apply_to_dates": dates.apply_function,
        "apply_to_text": typed.apply_to_text,
        "apply_ufunc": protocol.apply_ufunc,
        "as_typed": as_typed,
        "choose": masks.choose,
        "complex_keys": complex_keys,
        "hold": masks.hold,
        "in_order": in_order,
        "numpy_functions": protocol._FUNCTIONS,
        "numpy_ufuncs": protocol._UFUNC_NAMES,
        "rebuilt": rebuilt,
        "sort_typed_by": sort_typed_by,
        "steps_of": steps_of,
        "taken": taken,
        "updated": updated,
    }
)
