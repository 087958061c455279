"""The user's call that a run belongs to: function, file and line."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from types import FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))
_TEXT_MAX = 120


# Loops of fits, solvers and `iterate` that are under way, each within the one before.
loops: ContextVar[int] = ContextVar("outcore_loops", default=0)


class Call(NamedTuple):
    """A call of a public function, or a method, from a line of the user's."""

    function: str
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.function} ({self.place})" if self.place else self.function

    @property
    def place(self) -> str:
        """The name of the file and the line."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""


def calling() -> Call:
    """The innermost call into this package from a line that is neither in it nor in an installed library; where there
    is none, from whoever calls it."""
    function, nearest = "", None
    for frame in _frames():
        file = frame.f_code.co_filename
        origin = _origin(file)
        if origin == _PACKAGE:
            # Wrappers have no name of their own; the function that they wrap stands within.
            name = frame.f_code.co_qualname
            function = name if not function or "<locals>" not in name else function
            continue
        nearest = nearest or Call(_public(function), file, frame.f_lineno, "")
        if not origin:
            return Call(_public(function), file, frame.f_lineno, _text(file, frame.f_lineno))
    return nearest or Call(_public(function), "", 0, "")


def user_frame() -> FrameType | None:
    """The frame of that line, if there is one."""
    return next((frame for frame in _frames() if not _origin(frame.f_code.co_filename)), None)


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


@lru_cache(4096)
def _origin(file: str) -> str:
    """The folder of this package, or of installed libraries, that a file is in; empty for the user's own."""
    folders = (_PACKAGE, _STANDARD, "<frozen")
    inside = next((folder for folder in folders if file.startswith(folder)), "")
    return inside or next((folder for folder in _INSTALLED if folder in file), "")


@lru_cache(4096)
def _public(function: str) -> str:
    """The name by which a function of this package is known: that of the class for its constructor and operators."""
    owner, _, name = function.replace("<locals>.", "").rpartition(".")
    if name.startswith("__") or not name:
        return owner or name
    return f"{owner}.{name}" if owner and not owner.startswith("_") else name


@lru_cache(1024)
def _text(file: str, line: int) -> str:
    text = linecache.getline(file, line).strip()
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


__all__ = ["Call", "calling", "loops", "user_frame"]
