"""Lazy arrays for other processes: files by path and stamp, the expression over them, arrays in memory by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.urls import is_url
from outcore._lazy.array import Array
from outcore._objects.mounting import mounted
from outcore._session.session import current
from outcore.errors import DTypeError, FormatError, OutcoreError, SourceChangedError, StorageError

# Masks, keys and distinct values in scratch, and arrays of other libraries, are pickled by value up to so many bytes.
_PROCESS_BYTES_MAX = 64 << 20


class Step(NamedTuple):
    """One node: the call that makes it of earlier ones, by their places."""

    call: str
    arguments: tuple[Any, ...]
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    tile: tuple[int, ...]
    called: str | None


def steps_of(expr: _core.Expr) -> list[Step]:
    """The nodes below an expression and itself, inputs before what is made of them.

    Raises DTypeError for what is computed by a function of the user, and for much that only this process reads: store
    it first.
    """
    places: dict[int, int] = {}
    calls: dict[int, tuple[str, tuple[Any, ...]]] = {}
    steps: list[Step] = []
    due = [expr]
    while due:
        node = due[-1]
        if node.id in places:
            due.pop()
            continue
        if node.id not in calls:
            calls[node.id] = _called(node)
        call, arguments = calls[node.id]
        parts = [*node.inputs, *_held(call, arguments)]
        missing = [part for part in parts if part.id not in places]
        if missing:
            due += missing
            continue
        due.pop()
        places[node.id] = len(steps)
        if call == "rebuild":
            builder, parameters, result = arguments
            placed = [_Placed(places[one.id]) if isinstance(one, _core.Expr) else one for one in parameters]
            arguments = (builder, placed, result)
        inputs = tuple(places[part.id] for part in node.inputs)
        steps.append(Step(call, arguments, inputs, tuple(node.shape), node.dtype, tuple(node.tile), node.called))
    return steps


class _Placed(NamedTuple):
    """A node among parameters, by its place among the steps."""

    place: int


def _held(call: str, arguments: tuple[Any, ...]) -> list[_core.Expr]:
    """Nodes among the parameters of an operator."""
    return [one for one in arguments[1] if isinstance(one, _core.Expr)] if call == "rebuild" else []


def _called(node: _core.Expr) -> tuple[str, tuple[Any, ...]]:
    """The call that makes a node of its inputs."""
    recipe = _core.recipe(node)
    if recipe is None:
        raise DTypeError(
            f"{node.op} of a lazy array cannot be pickled: it is known to this process only; store() it and open the "
            f"path in the other process, or pass compute()"
        )
    call, arguments = recipe
    if call == "process" and node.nbytes > _PROCESS_BYTES_MAX:
        raise DTypeError(
            f"{format_size(node.nbytes)} of a lazy array are known to this process only (a mask, keys or distinct "
            f"values in scratch, or another library's array), and cannot be pickled: store() it and open the path in "
            f"the other process"
        )
    if call in ("memory", "process"):
        return "memory", (Array(node).compute(),)
    if call == "source":
        path, raw = arguments
        # A file is opened whole where that gives the same array, else as the run of it that the array is.
        known = next((part for part in (None, raw) if path is not None and _digest(path, part) == node.digest), False)
        if known is False:
            raise DTypeError(
                f"{path or node.op}: this array is known to this process only, and cannot be pickled: store() it, or "
                f"its operands, and open the path in the other process"
            )
        return call, (path, known, node.digest)
    return call, arguments


Kept: TypeAlias = "tuple[str | None, list[str | None], list[tuple[str, _core.Attribute]]]"  # name, axes, attributes
Raw = tuple[int, list[int], str, bool]  # where it begins, its shape, type, and whether its bytes are swapped


def _opened(path: str, raw: Raw | None) -> _core.Expr:
    """The stored array at a path, or a run of its bytes, as it lies there: in Fortran order it is opened transposed."""
    if is_url(path):
        path = mounted(path)
    if raw is not None:
        return _core.open_raw(current()._core, path, *raw)
    if str(path).endswith(".ocs"):
        return _core.open_sparse(current()._core, path).tiles_node
    source = _core.open(current()._core, path)
    return source.inputs[0] if source.inputs else source


def _digest(path: str, raw: Raw | None) -> object:
    """The digest of what is opened so; nothing where the file cannot be opened so, as arrays in references."""
    try:
        return _opened(path, raw).digest
    except (FormatError, StorageError):
        return None


def rebuilt(steps: list[Step], annotations: Kept | None = None) -> Array:
    """The array of such steps, with its name, names of axes and attributes.

    Raises SourceChangedError where a file is not what it was when the array was pickled, FormatError for steps that no
    array was pickled as.
    """
    made: list[_core.Expr] = []
    array: Array | None = None
    try:
        for step in steps:
            made.append(_made(step, [made[place] for place in step.inputs], made))
        array = Array(made[-1] if annotations is None else _core.with_annotations(made[-1], *annotations))
        for expr, step in zip(made, steps, strict=True):
            if step.called is not None:
                expr.call_as(step.called)  # errors are of the function that was called
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, OutcoreError):
            raise
        raise FormatError(f"not a lazy array as outcore pickles it: {error}") from None
    return array


def _made(step: Step, inputs: list[_core.Expr], before: list[_core.Expr]) -> _core.Expr:
    call, arguments, shape = step.call, step.arguments, step.shape
    if call == "memory":
        expr = _core.from_numpy(np.asarray(arguments[0]))
        return expr if tuple(expr.tile) == step.tile else _core.copy_tiled(expr, step.tile)
    if call == "source":
        expr = _opened(arguments[0], arguments[1])
        if expr.digest != arguments[2]:
            raise SourceChangedError(
                f"{arguments[0]}: it is not the file that the pickled array was of", {"path": arguments[0]}
            )
        return expr
    if call == "cast":
        same = inputs[0].dtype == step.dtype
        expr = inputs[0] if same else _core.astype(inputs[0], step.dtype)
        return expr if tuple(expr.tile) == step.tile and not same else _core.copy_tiled(expr, step.tile)
    if call == "rebuild":
        builder, parameters, result = arguments
        placed = [before[one.place] if isinstance(one, _Placed) else one for one in parameters]
        return _core.rebuild(builder, placed, result, inputs)
    if call == "entry_operand":
        size, elements, dtype = arguments
        return _core.entry_operand(current()._core, size, np.frombuffer(elements, np.uint8), dtype)
    build: Callable[..., _core.Expr] = getattr(_core, call)
    made: _core.Expr
    if call in ("full", "eye", "random", "linspace", "arange"):
        made = build(*_generated(step), step.dtype)
    elif call == "concat":
        made = build(inputs, *arguments)
    elif call in ("unary", "binary", "reduce"):
        made = build(arguments[0], *inputs, *arguments[1:])
    else:
        ends = (shape,) if call in ("slice", "broadcast_to", "reshape") else ()
        made = build(*inputs, *arguments, *ends)
    return made


def _generated(step: Step) -> tuple[object, ...]:
    """Arguments of a function that makes an array of nothing, in its order."""
    arguments, shape = step.arguments, step.shape
    return {
        "full": (shape, *arguments),
        "eye": (*shape, *arguments),
        "random": (*arguments[:1], shape, *arguments[1:]),
        "linspace": arguments,
        "arange": (*arguments, *shape),
    }[step.call]


__all__ = ["rebuilt", "steps_of"]
