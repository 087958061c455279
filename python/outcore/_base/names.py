"""Names: the public ones of a module that only collects them, and those close to one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def public_names(namespace: Mapping[str, object]) -> list[str]:
    """The names of a module's `globals()` that do not begin with an underscore, in order.

    Type checkers do not evaluate `__all__`, and with one that they cannot read they take no name for public. So a
    module that calls this hides the assignment from them; they follow its imports instead.
    """
    return sorted(name for name in namespace if not name.startswith("_"))


def close_names(name: str, known: Iterable[str], *, count: int, cutoff: float) -> list[str]:
    """At most `count` of the names that are known, the closest first, each alike to at least `cutoff` (0 to 1)."""
    import difflib  # of who mistypes, not of all who import outcore

    return difflib.get_close_matches(name, list(known), n=count, cutoff=cutoff)


__all__ = ["close_names", "public_names"]
