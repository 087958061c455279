"""Functions that stand above the files that call them: the package fills them in when all of it has been imported.

An array has functions of the package as its methods, takes part in NumPy's protocols, and is indexed by masks; all of
these are made of arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any


class Hooks:
    """Functions by their names, as attributes."""

    def fill(self, functions: Mapping[str, object]) -> None:
        """Adds functions."""
        self.__dict__.update(functions)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


# Functions of the package by their public names, and others that only the package's own files call.
functions = Hooks()
above = Hooks()

__all__ = ["above", "functions"]
