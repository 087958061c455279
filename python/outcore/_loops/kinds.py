"""Types that a scalar has by turns, and the one type in which memory holds it.

A name may hold Python's 0.0 before a loop and a float32 after the first iteration. Memory holds one type, to which all
promote, and a statement is taken where its value is the same expression by each of them: equal expressions are one
node.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from outcore import _core
from outcore._base.types import DType
from outcore._loops.program import Leaf
from outcore._loops.values import (
    Computed,
    Leaves,
    NumberTerm,
    PlainNumber,
    dtype_of_term,
    is_plain,
    is_strong,
    weak_zero,
)


@dataclass(frozen=True)
class ScalarKind:
    """The type of a number, whether it gives way to others as Python's numbers do, and the number where it is known."""

    dtype: DType
    is_weak: bool
    text: str = ""
    number: PlainNumber | None = field(default=None, compare=False)

    @staticmethod
    def of(term: NumberTerm) -> ScalarKind:
        """The kind of a number that is known, or of one that data decides."""
        number = None if isinstance(term, Computed) else term
        return ScalarKind(dtype_of_term(term), not is_strong(term), "" if number is None else repr(number), number)

    def without_number(self) -> ScalarKind:
        """The kind of other numbers of the type."""
        return ScalarKind(self.dtype, self.is_weak)

    def __str__(self) -> str:
        if self.number is not None and self.is_weak:
            return f"Python's {self.text}"
        return f"a {type(weak_zero(self.dtype)).__name__} of Python's" if self.is_weak else self.dtype.name


def joined(kinds: Iterable[ScalarKind]) -> ScalarKind:
    """The kind that all promote to."""
    kinds = list(kinds)
    if not kinds:
        return ScalarKind(np.dtype(float), True)
    strong = [kind.dtype for kind in kinds if not kind.is_weak]
    weak = [kind.dtype for kind in kinds if kind.is_weak]
    if not strong:
        return ScalarKind(np.result_type(*weak), True)
    return ScalarKind(np.result_type(*strong, *map(weak_zero, weak)), False)


def as_taken(leaf: Leaf, kind: ScalarKind, leaves: Leaves) -> NumberTerm:
    """A scalar while it is of a kind."""
    if kind.number is not None:
        return kind.number
    return Computed(leaves.stand_in(leaf, kind.dtype), kind.is_weak)


def as_held(leaf: Leaf, kind: ScalarKind, held: ScalarKind, leaves: Leaves) -> NumberTerm:
    """The same where memory holds it in another."""
    if kind.number is not None:
        number: np.generic = held.dtype.type(kind.number)
        return cast("PlainNumber", number.item()) if held.is_weak else number
    stand_in = leaves.stand_in(leaf, kind.dtype)
    return Computed(stand_in if kind.dtype == held.dtype else stand_in.astype(held.dtype), held.is_weak)


def is_same(first: NumberTerm, second: NumberTerm, jitted: Container[str]) -> bool:
    """Whether two numbers are one expression of one kind. Each call of functions of `jit` makes a node of its own."""
    if is_plain(first) or is_plain(second):
        return is_plain(first) and is_plain(second) and ScalarKind.of(first) == ScalarKind.of(second)
    assert isinstance(first, Computed)
    assert isinstance(second, Computed)
    return first.is_weak == second.is_weak and _is_equal(first.array._expr, second.array._expr, jitted)


def _is_equal(first: _core.Expr, second: _core.Expr, jitted: Container[str]) -> bool:
    if first.id == second.id:
        return True
    parts, others = first.inputs, second.inputs
    is_alike = first.op == second.op and first.dtype == second.dtype and len(parts) == len(others)
    is_known = first.op in jitted or any(_holds_call(part, jitted) for part in parts)
    return is_alike and is_known and all(_is_equal(*pair, jitted) for pair in zip(parts, others, strict=True))


def _holds_call(node: _core.Expr, jitted: Container[str]) -> bool:
    return node.op in jitted or any(_holds_call(part, jitted) for part in node.inputs)


__all__ = ["ScalarKind", "as_taken", "as_held", "is_same", "joined"]
