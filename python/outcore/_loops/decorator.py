"""`loops`: the decorator of loop programs."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable

from outcore._lazy.array import Array
from outcore._loops.binding import BoundProgram
from outcore._loops.checking import check
from outcore._loops.program import LoopProgram, results_of
from outcore._loops.syntax import listed


class Loops:
    """A loop program, called on arrays. Made by `loops`; `plain` is the function as it was written."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., object]) -> None:
        self._listed = listed(function)
        check(self._listed)
        functools.update_wrapper(self, function)
        self.plain = function
        self._signature = inspect.signature(function)

    def __call__(self, *args: object, **kwargs: object) -> Array | tuple[Array, ...]:
        """The lazy arrays that the program returns."""
        bound = self._bound(args, kwargs)
        written = results_of(bound.program)
        results = tuple(written.get(result.number, result.array) for result in bound.results)
        return results if bound.gives_tuple else results[0]

    def tree(self, *args: object, **kwargs: object) -> LoopProgram:
        """The program for these arguments, as the core takes it."""
        return self._bound(args, kwargs).program

    def _bound(self, args: tuple[object, ...], kwargs: dict[str, object]) -> BoundProgram:
        arguments = self._signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        return BoundProgram(self._listed, arguments.arguments)

    def __reduce__(self) -> str | tuple[type[Loops], tuple[Callable[..., object]]]:
        # A decorated function is found by its name, as plain functions are.
        member: object = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            member = getattr(member, name, None)
        return self.__qualname__ if member is self else (Loops, (self.plain,))


def loops(function: Callable[..., object], /) -> Loops:
    """TODO"""
    return Loops(function)


__all__ = ["loops"]
