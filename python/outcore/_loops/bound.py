"""Values of names that are no numbers: arrays, registers, and elements of scalars."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple

from outcore._base.types import DType
from outcore._lazy.array import Array
from outcore._loops.affine import Affine


@dataclass(frozen=True, eq=False)
class BoundArray:
    """An array of the program: its number, and its values when the program begins."""

    number: int
    name: str
    array: Array


class BoundElement(NamedTuple):
    """An element of an array, in each iteration."""

    array: BoundArray
    subscripts: tuple[Affine, ...]


@dataclass(frozen=True)
class Register:
    """A local number of one block that depends on leaves."""

    number: int
    dtype: DType
    is_weak: bool
    block: int


class OutOfReachError(Exception):
    """A register is used in another block: a number that seemed an affine function, until arguments made it a float."""

    def __init__(self, use: ast.Name) -> None:
        super().__init__(use.id)
        self.use = use


class PeriodError(Exception):
    """A remainder or a quotient of loop variables: affine where so many times more iterations of loops are one each."""

    def __init__(self, node: ast.expr, periods: dict[ast.For, int]) -> None:
        super().__init__(ast.unparse(node))
        self.node, self.periods = node, periods


@dataclass(frozen=True)
class InMemory:
    """The value of a name that the element of its scalar alone holds."""


__all__ = ["BoundArray", "BoundElement", "InMemory", "OutOfReachError", "PeriodError", "Register"]
