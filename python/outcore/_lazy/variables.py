"""The names of the user's variables that hold lazy arrays, by the names of their nodes in plans."""

from __future__ import annotations

from outcore._lazy.array import Array
from outcore._session.caller import user_frame

# More variables than that are those of somebody's namespace, in which no one looks for names.
_VARIABLES_MAX = 2000


def variables() -> dict[str, str]:
    """Of the function of the user's that calls: the first name of each array, by that of its node."""
    frame = user_frame()
    if frame is None:
        return {}
    scope = frame.f_locals
    if len(scope) > _VARIABLES_MAX:
        return {}
    names: dict[str, str] = {}
    for name, value in list(scope.items()):
        if isinstance(value, Array) and not name.startswith("_"):
            node = value._expr
            names.setdefault(f"{node.op}#{node.id}", name)
    return names


__all__ = ["variables"]
