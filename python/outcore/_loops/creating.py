"""Arrays that a program makes before its loops: their shapes, types and first values."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from outcore._lazy.array import Array
from outcore._loops import reasons
from outcore._loops.bound import BoundArray
from outcore._loops.expressions import Expressions
from outcore._loops.refusal import quoted
from outcore._standard.creation import full, ones, zeros

_PARAMETERS = {
    "empty": ("shape", "dtype"),
    "zeros": ("shape", "dtype"),
    "ones": ("shape", "dtype"),
    "full": ("shape", "fill_value", "dtype"),
}


def created(node: ast.Call, name: str, expressions: Expressions) -> Array:
    """The array of a call of a creation function. Refuses options that NumPy has beyond shape, value and type."""
    is_like = name.endswith("_like")
    kind = name.removesuffix("_like")
    values = _arguments(node, _PARAMETERS[kind], is_like, expressions)
    shape, dtype = values["shape"], values.get("dtype")
    return expressions.tried(node, _array, kind, shape, values.get("fill_value"), dtype)


def _arguments(node: ast.Call, parameters: Sequence[str], is_like: bool, expressions: Expressions) -> dict[str, object]:
    parts: dict[str, ast.expr] = dict(zip(parameters, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in parts or keyword.arg not in parameters:
            raise expressions.listing.refusal(keyword, f"{quoted(node)}: the argument `{keyword.arg}` is not taken")
        parts[keyword.arg] = keyword.value
    missing = [part for part in parameters if part not in parts and part != "dtype"]
    if len(node.args) > len(parameters) or missing:
        raise expressions.listing.refusal(node, f"{quoted(node)}: the arguments are {', '.join(parameters)}")
    values: dict[str, object] = {}
    if is_like:
        like = parts.pop("shape")
        bound = expressions.names.get(like.id) if isinstance(like, ast.Name) else None
        if not isinstance(bound, BoundArray):
            raise expressions.listing.refusal(like, f"{quoted(like)} is no array")
        values = {"shape": bound.array.shape, "dtype": bound.array.dtype}
    for name, part in parts.items():
        values[name] = expressions.known(part, reasons.VALUE)
    return values


def _array(kind: str, shape: object, value: object, dtype: object) -> Array:
    """Types are refused by the functions themselves."""
    if isinstance(shape, int):
        shape = (shape,)
    if kind == "full":
        return full(shape, value, dtype=dtype)  # type: ignore[arg-type]
    make = ones if kind == "ones" else zeros
    return make(shape, dtype=dtype)  # type: ignore[arg-type]


__all__ = ["created"]
