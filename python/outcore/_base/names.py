"""Public names of a module that only collects them: each is listed once, where it is imported."""

from __future__ import annotations

from collections.abc import Mapping


def public_names(namespace: Mapping[str, object]) -> list[str]:
    """The names of a module's `globals()` that do not begin with an underscore, in order.

    Type checkers do not evaluate `__all__`, and with one that they cannot read they take no name for public. So a
    module that calls this hides the assignment from them; they follow its imports instead.
    """
    return sorted(name for name in namespace if not name.startswith("_"))


__all__ = ["public_names"]
