"""Limits for what follows a run: arrays of which the length is counted first are planned as long as they can be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar

from outcore import _core
from outcore.errors import MemoryLimitError

_foreseeing: ContextVar[bool] = ContextVar("outcore_foreseeing", default=False)


class UnforeseenError(Exception):
    """Something that only a run can tell."""


def is_foreseeing() -> bool:
    """Whether programs are planned that will not run: nothing is computed for them, and nothing remembered."""
    return _foreseeing.get()


def for_all(refused: MemoryLimitError, plan: Callable[[], object]) -> MemoryLimitError:
    """The refusal of a run before, or that of what follows it where this needs a larger limit.

    `plan` plans what follows with lengths that are not known yet as large as they can be.
    """
    if is_foreseeing():
        return refused
    token = _foreseeing.set(True)
    try:
        with suppress(UnforeseenError):
            plan()
    except MemoryLimitError as following:
        if (following.smallest or 0) > (refused.smallest or 0):
            named = str(following).rpartition("works is ")
            text = f"{named[0].removesuffix('the smallest limit that ')}a limit that works is {named[2]}"
            return MemoryLimitError(text if named[0] else str(following), following.details)
    finally:
        _foreseeing.reset(token)
    return refused


def stored(node: _core.Expr) -> _core.Expr:
    """What stands for a node's values, as if a run had stored them."""
    return _core.foreseen(node)
