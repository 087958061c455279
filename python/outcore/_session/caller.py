"""The user's call that a run or a progress line belongs to: function, file and line."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD, _FROZEN = os.path.dirname(os.__file__) + os.sep, "<frozen"
_TRANSPARENT = (_STANDARD, _FROZEN)  # as `contextlib` is, which stands between functions of this package
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


class UserCall(NamedTuple):
    """The function of the package that was called from outside: a short name, and the identity of its frame while it
    runs."""

    name: str
    frame: int

    @classmethod
    def of(cls, name: str = "") -> UserCall:
        """The call by the frames above, under the name of a function, or of a class whose method it is."""
        function, frame = _entered()
        parts = (name,) if name and not name[0].isupper() else (name, function.rpartition(".")[2].strip("_"))
        return cls(".".join(part for part in parts if part) or "outcore", frame)


def calling() -> Call:
    """The call into this package, and the innermost line that is neither in it nor in an installed library; where
    there is none, the line that calls."""
    function = _public(_entered()[0])
    user = user_frame()
    if user is not None:
        file, line = user.f_code.co_filename, user.f_lineno
        return Call(function, file, line, _text(file, line))
    outside = next((frame for frame in _frames() if _origin(frame.f_code.co_filename) != _PACKAGE), None)
    return (
        Call(function, "", 0, "")
        if outside is None
        else Call(function, outside.f_code.co_filename, outside.f_lineno, "")
    )


def _entered() -> tuple[str, int]:
    """The function of this package that was called from outside of it, by its qualified name, and the identity of its
    frame."""
    function, identity = "", 0
    for frame in _frames():
        code = frame.f_code
        origin = _origin(code.co_filename)
        if origin == _PACKAGE:
            function, identity = _outer(function, code), id(frame)
        elif origin not in _TRANSPARENT:
            break
    return function, identity


def _outer(function: str, code: CodeType) -> str:
    """The name of a function of this package, or of that within it, where it has none: it is a wrapper, or a lambda."""
    name, is_inner = code.co_qualname, "<" in code.co_qualname
    if is_inner and not name.endswith(code.co_name) and not function.endswith(f".{code.co_name}"):
        return code.co_name  # a wrapper under the name of its function
    return function if is_inner and function else name


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
    folders = (_PACKAGE, *_TRANSPARENT)
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


__all__ = ["Call", "UserCall", "calling", "loops", "user_frame"]
