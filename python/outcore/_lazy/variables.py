"""The names of the user's variables that hold lazy arrays, by the names of their nodes in plans."""

from __future__ import annotations

import sys

from outcore._lazy.array import Array
from outcore._session.caller import user_frame

# Of code whose variables are no dictionary: that of functions.
_OPTIMIZED = 1
# More variables than that are those of somebody's namespace, in which no one looks for names.
_VARIABLES_MAX = 2000


def variables() -> dict[str, str]:
    """Of the function of the user's that calls: the first name of each array, by that of its node."""
    frame = user_frame()
    if frame is None:
        return {}
    scope = frame.f_locals
    names: dict[str, str] = {}
    if len(scope) <= _VARIABLES_MAX:
        for name, value in list(scope.items()):
            if isinstance(value, Array) and not name.startswith("_"):
                names.setdefault(f"{value._expr.op}#{value._expr.id}", name)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & _OPTIMIZED and sys.gettrace() is None:
        # The frame would hold this copy of its variables, and what they hold, for as long as it runs.
        scope.clear()
    return names


__all__ = ["variables"]
