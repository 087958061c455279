"""`loops`: the decorator of loop programs."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Generic, ParamSpec, Protocol, TypeVar, cast, overload

from outcore._base.shortened import short_text
from outcore._loops.arguments import Arguments
from outcore._loops.binding import BoundProgram, bound_program
from outcore._loops.checking import check
from outcore._loops.compiling import compiler
from outcore._loops.pivots import cut_at_pivots
from outcore._loops.program import LoopProgram, results_of
from outcore._loops.syntax import listed

LoopArguments = ParamSpec("LoopArguments")
LoopResults = TypeVar("LoopResults")


class LoopsDecorator(Protocol):
    """`loops` with options, above a function."""

    def __call__(self, function: Callable[LoopArguments, LoopResults], /) -> Loops[LoopArguments, LoopResults]:
        """The program of the function."""


class Loops(Generic[LoopArguments, LoopResults]):
    """A loop program, called on arrays. Made by `loops`; `plain` is the function as it was written."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[LoopArguments, LoopResults], compiled: bool | None = None) -> None:
        compiler(compiled)  # refused here where numba is missing
        self._compiled = compiled
        self._listed = listed(function)
        self._names = check(self._listed)
        functools.update_wrapper(self, function)
        self.plain = function
        self._signature = inspect.signature(function)

    def __call__(self, *args: LoopArguments.args, **kwargs: LoopArguments.kwargs) -> LoopResults:
        """The lazy arrays that the program returns: one, or a tuple of several."""
        bound = self._bound(args, kwargs)
        written = results_of(cut_at_pivots(bound.program), compiler(self._compiled))
        arrays = (written.get(result.array.number, result.array.array) for result in bound.results)
        results = tuple(
            array[0] if result.is_scalar else array for array, result in zip(arrays, bound.results, strict=True)
        )
        return cast(LoopResults, results if bound.gives_tuple else results[0])

    def __repr__(self) -> str:
        return short_text(f"outcore.loops({self.__qualname__}{self._signature})")

    def tree(self, *args: LoopArguments.args, **kwargs: LoopArguments.kwargs) -> LoopProgram:
        """The program for these arguments, as the core takes it."""
        return self._bound(args, kwargs).program

    def _bound(self, args: tuple[object, ...], kwargs: dict[str, object]) -> BoundProgram:
        arguments = self._signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        return bound_program(self._listed, self._names, Arguments(self._listed, arguments.arguments))

    def __reduce__(self) -> str | tuple[object, ...]:
        # A decorated function is found by its name, as plain functions are.
        member: object = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            member = getattr(member, name, None)
        return self.__qualname__ if member is self else (Loops, (self.plain, self._compiled))


@overload
def loops(
    function: Callable[LoopArguments, LoopResults], /, *, compiled: bool | None = None
) -> Loops[LoopArguments, LoopResults]: ...
@overload
def loops(*, compiled: bool | None = None) -> LoopsDecorator: ...
def loops(function: Callable[..., object] | None = None, /, *, compiled: bool | None = None) -> object:
    """A function of plain loops over arrays as a program on disk: `@oc.loops` above it.

    The source of the function is read once, where it is decorated; Python runs none of its statements. A call binds
    the arguments, checks every subscript against its axis, and gives lazy arrays, which are computed within the memory
    limit as all others. Order matters and is kept: a sweep in place, a recurrence or a table of dynamic programming
    comes to the elements that the same function has over NumPy arrays. Arrays that are written are new values; the
    arguments stay as they are.

    Loops are `for i in range(...)` with bounds, subscripts and conditions of `if` that are affine functions of loop
    variables, shapes and integers (sums, differences, multiples, and remainders and quotients by integers), nested up
    to 8 deep, in any number one after the other. Bounds may be the largest of several lower ones and the smallest of
    several upper ones, as in `range(max(0, i-k), min(n, i+k+1))`. A body assigns elements one at a time,
    `a[i, j] = …`, `a[i] += …`, `a[i] = min(a[i], …)`, from operators, conditional expressions `x if c else y` and
    element-wise functions of numpy, math and outcore, or slices of equal lengths, `a[i, 1:] = b[i, :-1]`, where no
    other element of the array that is assigned is read. A right side that calls functions of whole slices,
    `a[i, :] = f(a[i, :])` or `s[i] = np.linalg.norm(a[i, 1:])`, is run by Python with NumPy arrays, once for each
    iteration. Local names hold numbers, which loops may carry (`s += a[i, j]`), in the type that NumPy gives them; a
    first value comes before the first use. Names of arrays are exchanged at the end of an iteration, `u, v = v, u`.
    New arrays are made before the loops, as by `oc.zeros`; those of `empty` hold zeros. Types follow NumPy: elements
    decide, loop indices and Python's numbers adapt. Both sides of a conditional expression promote together, as do the
    arguments of `min` and `max`, which give NaN where one is NaN.

    Parameters
    ----------
    function
        A function in a file, whose last statement returns names: of arrays, or of numbers, which become arrays without
        axes. Its parameters are arrays (all that `asarray` takes, with at least one axis), integers, other numbers and
        element types.
    compiled
        Whether numba, the extra `jit`, compiles bodies. None: where it is installed, the memory limit is 1 GiB or more
        and loops are long enough to be worth a second; True: always, or a refusal that names the reason; False: never.
        Results have the same bits either way: bodies with functions that are not exact to the last bit (exponentials,
        sines, powers), of complex numbers or of float16 are not compiled; functions of slices run as they are.

    Returns
    -------
    Loops
        The program. Called with the arguments of the function it gives one array, or a tuple of several. `plain` is
        the function itself, and `tree` tells the program for some arguments.

    Raises
    ------
    ArgumentError
        A program that is not taken, with file, line, column and reason: at decoration for what the source alone
        decides (subscripts that are not affine, `while`, lengths that data decides), at the call for what needs
        arguments (subscripts out of bounds, two arguments that are one array, types), before anything is read.
    ImportError
        `compiled=True` without numba.
    FunctionError
        When a result is computed: an exception of a function of slices.

    I/O: none; when a result is computed, the arrays are read and written in blocks, as often as the order of the
    iterations and the memory limit need; `explain` tells the bytes. Reuse of blocks across whole programs is after
    Kandemir, Son and Karakoy, "Improving I/O Performance of Applications through Compiler-Directed Code Restructuring"
    (FAST 2008).

    >>> import numpy as np, outcore as oc
    >>> @oc.loops
    ... def shortest(d):
    ...     n = d.shape[0]
    ...     for k in range(n):
    ...         for i in range(n):
    ...             for j in range(n):
    ...                 d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    ...     return d
    >>> shortest(np.array([[0.0, 2.0, 9.0], [np.inf, 0.0, 3.0], [1.0, np.inf, 0.0]])).compute()
    array([[0., 2., 5.],
           [4., 0., 3.],
           [1., 3., 0.]])
    """
    if function is None:
        return functools.partial(loops, compiled=compiled)
    return Loops(function, compiled)


__all__ = ["loops"]
