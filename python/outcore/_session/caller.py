"""The user's call that a run belongs to: function, file and line."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from functools import cache
from types import FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TEXT_MAX = 120


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
    frame: FrameType | None = sys._getframe(1)
    function, nearest = "", None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_PACKAGE):
            function = frame.f_code.co_qualname
        else:
            nearest = nearest or Call(_public(function), file, frame.f_lineno, "")
            if not file.startswith(_libraries()):
                return Call(_public(function), file, frame.f_lineno, _text(file, frame.f_lineno))
        frame = frame.f_back
    return nearest or Call(_public(function), "", 0, "")


@cache
def _libraries() -> tuple[str, ...]:
    """Folders of installed libraries and of Python's own."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {path for name in names if (path := sysconfig.get_path(name))}
    return ("<frozen", *(folder.rstrip(os.sep) + os.sep for folder in folders))


def _public(function: str) -> str:
    """The name by which a function of this package is known: that of the class for its constructor and operators."""
    owner, _, name = function.replace("<locals>.", "").rpartition(".")
    if name.startswith("__") or not name:
        return owner or name
    return f"{owner}.{name}" if owner and not owner.startswith("_") else name


def _text(file: str, line: int) -> str:
    text = linecache.getline(file, line).strip()
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


__all__ = ["Call", "calling"]
