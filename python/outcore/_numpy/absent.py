"""Refusals of NumPy's functions that lazy arrays lack: the reason, the nearest function, the cost of computing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

import numpy as np

from outcore import _api as oc
from outcore._base.names import close_names
from outcore._base.sizes import format_size
from outcore._lazy.array import Array
from outcore._lazy.node import is_weak
from outcore.errors import DTypeError

_CHANGES = "it changes its argument"
_TEXT = "it is about text"
_DATES = "it is about dates"
_FILES = "it writes files"
_SMALL = "it is of a few coefficients"

# Why a function is absent, and what is nearest.
ABSENT: dict[str, tuple[str, str]] = {
    "copyto": (_CHANGES, "x[...] = values"),
    "fill_diagonal": (_CHANGES, "where(eye(...), value, x)"),
    "place": (_CHANGES, "x[mask] = values"),
    "put": (_CHANGES, "x[mask] = values, where()"),
    "put_along_axis": (_CHANGES, "where()"),
    "putmask": (_CHANGES, "x[mask] = value, where()"),
    "array2string": (_TEXT, "repr(x)"),
    "array_repr": (_TEXT, "repr(x)"),
    "array_str": (_TEXT, "str(x)"),
    "datetime_as_string": (_DATES, "none"),
    "busday_count": (_DATES, "none"),
    "busday_offset": (_DATES, "none"),
    "is_busday": (_DATES, "none"),
    "save": (_FILES, "store({'x.npy': x})"),
    "savetxt": (_FILES, "store({'x.npy': x})"),
    "savez": (_FILES, "store({'x.npy': x, 'y.npy': y})"),
    "savez_compressed": (_FILES, "store({'x.zarr': x})"),
    "poly": (_SMALL, "none"),
    "polyadd": (_SMALL, "+ of rows"),
    "polyder": (_SMALL, "gradient of values"),
    "polydiv": (_SMALL, "none"),
    "polyfit": ("it solves for a few coefficients", "vander, x.T @ x, cov"),
    "polyint": (_SMALL, "trapezoid of values"),
    "polymul": (_SMALL, "convolve"),
    "polysub": (_SMALL, "- of rows"),
    "roots": (_SMALL, "none"),
}


def nearest(name: str) -> str:
    """The nearest function of outcore to one of NumPy's, by the table above or by its name."""
    if name in ABSENT:
        return ABSENT[name][1]
    spaces = {f"{space}.{part}": part for space in ("linalg", "fft", "random") for part in getattr(oc, space).__all__}
    names = {part: part for part in vars(oc)["__all__"] if callable(getattr(oc, part, None))} | spaces
    close = close_names(name, names.values(), count=3, cutoff=0.65)
    hints = [full for full, part in names.items() if part in close]
    return ", ".join(hints) if hints else "map_blocks, map"


def lazy_among(value: object) -> Iterable[Array]:
    """The lazy arrays among arguments, and in their lists and tuples."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from lazy_among(part)


def refuse(name: str, arguments: Iterable[object]) -> NoReturn:
    """Raises DTypeError, which is the TypeError that NumPy's protocols ask for."""
    size = sum(array.nbytes for array in lazy_among(list(arguments)))
    short = name.rpartition(".")[2]
    reason = ABSENT[short][0] if short in ABSENT and name.count(".") == 1 else "it has not been written"
    raise DTypeError(
        f"{name} of a lazy array is not supported: {reason}; nearest in outcore: {nearest(short)}; "
        f"or give it x.compute() ({format_size(size)})"
    )


def ours_alone(types: Iterable[type]) -> bool:
    """Whether no other library could still answer for its own arrays."""
    return all(issubclass(kind, Array) or kind in (np.ndarray, np.generic) for kind in types)


def full_name(function: Callable[..., object]) -> str:
    """A NumPy function's name with the namespace users find it in."""
    module = getattr(function, "__module__", None) or "numpy"
    space = next((part for part in ("linalg", "fft", "random") if part in module), None)
    return f"numpy.{space}.{function.__name__}" if space else f"numpy.{function.__name__}"


def other_library(value: object) -> bool:
    """Whether an operand of a ufunc is neither ours, nor NumPy's, nor a Python number or sequence."""
    if isinstance(value, (Array, np.ndarray, np.generic, list, tuple)) or is_weak(value):
        return False
    return hasattr(value, "__array_ufunc__")
