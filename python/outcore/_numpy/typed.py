"""NumPy's functions of dates and text alike: orders, distinct elements, what an array is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outcore import _api as oc
from outcore._lazy.node import Axis, Operand
from outcore._numpy.arguments import check_arguments
from outcore._numpy.functions import FUNCTIONS as OF_NUMBERS
from outcore.dates import Dates
from outcore.errors import DTypeError
from outcore.text import Text


def _along_last(name: str) -> Callable[..., object]:
    """A sort along the last axis unless told; of all elements for None."""

    def call(
        a: Dates | Text, axis: int | str | None = -1, kind: str | None = None, *, stable: bool | None = None
    ) -> object:
        del kind, stable
        return getattr(a.reshape(-1) if axis is None else a, name)(-1 if axis is None else axis)

    return call


def method(name: str) -> Callable[..., object]:
    """A reduction, which is the method of its name."""

    def call(a: Operand, axis: Axis = None, **options: object) -> object:
        keywords = {key: value for key, value in options.items() if value is not None and value is not np._NoValue}
        ours = getattr(a, name)
        check_arguments(name, ours, (axis,), keywords)
        return ours(axis, **keywords)

    return call


def called(
    table: dict[Callable[..., object], Callable[..., object]],
    refusal: str,
    function: Callable[..., object],
    args: tuple[object, ...],
    options: dict[str, object],
) -> object:
    """The result of NumPy's function by a table. Raises DTypeError for a function that is not in it."""
    ours = table.get(function)
    if ours is None:
        raise DTypeError(f"numpy.{function.__name__} of outcore's {refusal}")
    check_arguments(function.__name__, ours, args, options)
    return ours(*args, **options)


FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    **{getattr(np, name): _along_last(name) for name in ("sort", "argsort")},
    **{
        getattr(np, name): OF_NUMBERS[getattr(np, name)]
        for name in ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values")
    },
    **{getattr(np, name): method(name) for name in ("min", "max")},
    np.array_equal: lambda a1, a2, equal_nan=False: oc.array_equal(a1, a2, equal_nan=equal_nan),
    np.array_equiv: lambda a1, a2: oc.array_equiv(a1, a2),
    np.searchsorted: lambda a, v, side="left": oc.searchsorted(a, v, side=side),
    np.isin: lambda element, test_elements: oc.isin(element, test_elements),
    np.lexsort: lambda keys, axis=-1: oc.lexsort(keys, axis=axis),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.copy: lambda a: a.copy(),
}


def apply_to_text(function: Callable[..., object], args: tuple[object, ...], options: dict[str, object]) -> object:
    """NumPy's function of text."""
    return called(FUNCTIONS, "text is not supported; give it .codes", function, args, options)


__all__ = ["FUNCTIONS", "apply_to_text", "called", "method"]
