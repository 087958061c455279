"""Lazy arrays in terminals and notebooks. Nothing is planned, computed or counted for it."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from outcore import _core
from outcore._base.shortened import call_text, short_path, short_shape, short_text
from outcore._base.sizes import format_size
from outcore._base.types import DType
from outcore._lazy.preview import FirstValues, first_values
from outcore._show.card import Fact, card, path_fact
from outcore._show.tiles import counted_tiles, tiles_picture

_NODES = 512  # of an expression that are looked at; of larger ones the files below are not told
_WIDE = 40  # characters of a name or a path within a line
_LENGTHS = 40  # characters of a shape
# Operators that look at each tile of their inputs once.
_ELEMENTWISE = """
negative positive absolute sign sqrt cbrt square reciprocal exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos
atan sinh cosh tanh asinh acosh atanh floor ceil trunc round isnan isinf isfinite signbit logical_not bitwise_invert
conj real imag add subtract multiply divide floor_divide remainder pow atan2 hypot logaddexp copysign nextafter minimum
maximum equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
bitwise_xor bitwise_left_shift bitwise_right_shift where astype
"""
_ONCE = {*_ELEMENTWISE.split(), "permute_dims", "expand_dims", "squeeze"}
_ONCE |= {"sum", "prod", "min", "max", "mean", "any", "all"}


class StoredBelow(NamedTuple):
    """The stored arrays that an expression is made of: how many, the bytes of their elements, and whether an operator
    on the way may read any of them more than once."""

    number: int
    nbytes: int
    is_read_once: bool

    def __str__(self) -> str:
        of = "1 stored array" if self.number == 1 else f"{self.number:,} stored arrays"
        if self.is_read_once:
            return f"about {format_size(self.nbytes)}, {of}"
        return f"{of} of {format_size(self.nbytes)}, perhaps more than once"


class Shown:
    """The representations of an array."""

    __slots__ = ()

    _expr: _core.Expr

    def _is_pending(self) -> bool:
        """Whether the shape follows from data that has not been looked at yet."""
        return False

    def _maker(self) -> str | None:
        """The function that made an array of which there is no node yet."""
        return None

    def __repr__(self) -> str:
        if self._is_pending():
            return pending_text("Array", "", self._maker())
        return array_text("Array", self._expr, *self._kind(), first_values(self._expr))

    def _repr_html_(self) -> str:
        if self._is_pending():
            return pending_card("Array", "", self._maker())
        return array_card("Array", self._expr, *self._kind(), first_values(self._expr))

    def _kind(self) -> tuple[tuple[int, ...], DType]:
        return tuple(self._expr.shape), np.dtype(self._expr.dtype)


def array_text(name: str, expr: _core.Expr, shape: tuple[int, ...], dtype: DType, values: FirstValues | None) -> str:
    """An array in a terminal. `values` are the first ones, where they cost a page at most."""
    parts = [f"shape={short_text(short_shape(shape), _LENGTHS)}", f"dtype={dtype}", _size(shape, dtype)]
    tile = tuple(expr.tile[: len(shape)])
    if tile != shape:
        parts.append(f"tile={short_text(short_shape(tile), _LENGTHS)}")
    origin = short_path(_origin(expr), _WIDE)
    parts.append(origin if values is None else f"{origin}: {values}")
    return call_text(f"outcore.{name}", parts)


def array_card(name: str, expr: _core.Expr, shape: tuple[int, ...], dtype: DType, values: FirstValues | None) -> str:
    """An array in a notebook: facts, its tiles as a picture, and the first values where they cost a page at most."""
    annotated, dims, _ = _core.annotations(expr)
    tile = tuple(expr.tile[: len(shape)])
    axes = [f"{dim}: {length:,}" if dim else f"{length:,}" for dim, length in zip(dims, shape, strict=False)]
    facts = [
        Fact("shape", " × ".join(axes) or "0-d"),
        Fact("dtype", str(dtype)),
        Fact("bytes", _size(shape, dtype)),
        Fact("tiles", _tiles(shape, tile)),
    ]
    origin = _origin(expr)
    if _is_file(expr):
        facts.append(path_fact("file", origin))
    elif origin.startswith("by "):
        facts.append(Fact("made by", short_path(origin.removeprefix("by "))))
    else:
        facts.append(Fact("held", origin))
    below = None if _is_file(expr) else stored_below(expr)
    if below is not None and below.number:
        facts.append(Fact("reads", str(below)))
    if values is not None:
        facts.append(Fact("values", str(values)))
    title = f"outcore.{name}" if annotated is None else f"outcore.{name} {annotated!r}"
    note = ("lazy: ", ".compute()", " gives NumPy, ", "outcore.explain(x)", " the plan")
    return card(title, facts, tiles_picture(shape, tile), note)


def pending_text(name: str, dtype: str, maker: str | None) -> str:
    """An array whose shape follows from data, in a terminal."""
    return call_text(f"outcore.{name}", ["shape=?", *([f"dtype={dtype}"] if dtype else []), *_pending(maker)])


def pending_card(name: str, dtype: str, maker: str | None) -> str:
    """An array whose shape follows from data, in a notebook."""
    facts = [Fact("shape", "follows from data, which is looked at when something needs it")]
    facts += [Fact("dtype", dtype)] if dtype else []
    facts += [Fact("made by", maker)] if maker else []
    return card(f"outcore.{name}", facts)


def stored_below(expr: _core.Expr) -> StoredBelow | None:
    """The stored arrays that an expression is made of; None for one of very many operators. No I/O."""
    uses: Counter[int] = Counter()
    stored: dict[int, int] = {}
    due, is_once, met = [expr], True, {expr.id}
    while due:
        node = due.pop()
        inputs = node.inputs
        if not inputs and _is_file(node):
            stored[node.id] = node.nbytes
        is_once = is_once and (not inputs or node.op in _ONCE)
        for part in inputs:
            uses[part.id] += 1
            if part.id not in met:
                met.add(part.id)
                due.append(part)
        # Operands that are broadcast may be read for each tile that they meet.
        is_once = is_once and len({tuple(part.shape) for part in inputs if math.prod(part.shape) != 1}) <= 1
        if len(met) > _NODES:
            return None
    is_once = is_once and max(uses.values(), default=0) <= 1
    return StoredBelow(len(stored), sum(stored.values()), is_once)


def _is_file(expr: _core.Expr) -> bool:
    """Whether a node is a stored array."""
    return not expr.inputs and bool(_core.sources(expr))


def _origin(expr: _core.Expr) -> str:
    """Where an array comes from: its file, or the function that made it."""
    if _is_file(expr):
        return expr.op
    if not expr.inputs and expr.op == "array in memory":
        return "in memory"
    return f"by {expr.called or expr.op}"


def _pending(maker: str | None) -> list[str]:
    return ["not counted yet", *([f"by {maker}"] if maker else [])]


def _size(shape: tuple[int, ...], dtype: DType) -> str:
    size = dtype.itemsize
    for length in shape:
        size *= length
    return format_size(size)


def _tiles(shape: tuple[int, ...], tile: tuple[int, ...]) -> str:
    return f"{counted_tiles(shape, tile):,} of {' × '.join(f'{part:,}' for part in tile) or '0-d'}"


__all__ = ["Shown", "StoredBelow", "array_card", "array_text", "pending_card", "pending_text", "stored_below"]
