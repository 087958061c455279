"""Limits for what follows a run: arrays of which the length is counted first are planned as long as they can be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TypeVar

from outcore import _core
from outcore._session.reached import refused, tentative
from outcore._session.record import unrecorded
from outcore.errors import MemoryLimitError

Made = TypeVar("Made")

_asked: ContextVar[bool] = ContextVar("outcore_asked", default=False)
_foreseeing: ContextVar[bool] = ContextVar("outcore_foreseeing", default=False)


class UnforeseenError(Exception):
    """Something that only a run can tell."""


def is_foreseeing() -> bool:
    """Whether programs are planned that will not run: nothing is computed for them, and nothing remembered."""
    return _foreseeing.get()


def for_all(make: Callable[[], Made], plan: Callable[[], object]) -> Made:
    """The result of `make`, for which runs may be needed first. A refusal of these is for `plan` as well.

    `plan` plans what is made, and all that is asked for with it: lengths that are not known yet are as large as they
    can be.
    """
    if _asked.get():  # whoever asked for more is answered
        return make()
    token = _asked.set(True)
    try:
        with tentative():
            return make()
    except MemoryLimitError as error:
        larger = _larger(error, plan)
        refused(larger)
        raise larger from None
    finally:
        _asked.reset(token)


def _larger(refusal: MemoryLimitError, plan: Callable[[], object]) -> MemoryLimitError:
    token = _foreseeing.set(True)
    try:
        with suppress(UnforeseenError), unrecorded():
            plan()
    except MemoryLimitError as following:
        if (following.smallest or 0) > (refusal.smallest or 0):
            text = str(following).replace("the smallest limit that works is", "a limit that works is")
            return MemoryLimitError(text, following.details)
    finally:
        _foreseeing.reset(token)
    return refusal


def stored(node: _core.Expr) -> _core.Expr:
    """A stand-in for a node's values, as if a run had stored them."""
    return _core.foreseen(node)
