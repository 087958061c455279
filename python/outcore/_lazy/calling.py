"""The function of the package that the user called: arrays, refusals and explanations are named by it."""

from __future__ import annotations

from contextvars import ContextVar
from types import FrameType

# Set while `map` traces a function: then the value of a lazy array must not be asked for.
tracing: ContextVar[str | None] = ContextVar("outcore_tracing", default=None)

# Files that ask for expressions, of which they are no part.
_RUNNING = ("outcore._lazy.node", "outcore._run.run", "outcore._run.running", "outcore._session.session")


# The function that was called for an array which is made now, when something needs it.
calling: ContextVar[str | None] = ContextVar("outcore_calling", default=None)


def called(frame: FrameType | None) -> str | None:
    """The function of outcore that the caller called, seen from a frame inside of it; None where it is an operator."""
    name = calling.get()
    if name is not None:
        return name
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("outcore") or module in _RUNNING:
            break
        name = frame.f_code.co_name
        frame = frame.f_back
    return None if name is None or name.startswith(("_", "<")) else name


__all__ = ["called", "calling", "tracing"]
