"""Statements that call functions of whole slices, `a[i, :] = f(a[i, :])`: how the source tells them, and their parts.

The right side of such a statement is Python, run once for each iteration of the loops around it, with NumPy arrays in
the place of slices.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeAlias

from outcore._loops.functions import is_length, is_of_numbers, is_range

Assigning: TypeAlias = "ast.Assign | ast.AugAssign"

SHAPES = ("shape", "ndim", "size", "dtype")
_PACKAGE = __name__.partition(".")[0]


def target_of(statement: Assigning) -> ast.expr:
    """The element or slice that a statement assigns."""
    return statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]


def calls_with_slices(statement: Assigning, resolved: Callable[[ast.expr], object], arrays: set[str]) -> bool:
    """Whether a statement assigns elements or a slice by functions of whole slices, or products of matrices of them."""
    if not isinstance(target_of(statement), ast.Subscript):
        return False
    nodes = list(ast.walk(statement.value))
    is_product = isinstance(statement.op if isinstance(statement, ast.AugAssign) else None, ast.MatMult)
    has_slices = any(isinstance(node, ast.Slice) for node in (*ast.walk(target_of(statement)), *nodes))
    if not has_slices and not _has_whole(nodes, resolved, arrays):
        return False
    return is_product or any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)) or _is_of_slices(node, resolved, arrays)
        for node in nodes
    )


def _has_whole(nodes: list[ast.AST], resolved: Callable[[ast.expr], object], arrays: set[str]) -> bool:
    """Whether the name of an array stands by itself: as an argument, before a method, or beside `@`."""
    operands: list[ast.expr] = []
    for node in nodes:
        match node:
            case ast.Call() if not is_length(resolved(node.func)):
                operands += node.args
                if isinstance(node.func, ast.Attribute) and _has_array(node.func.value, arrays):
                    return True
            case ast.BinOp(op=ast.MatMult()):
                operands += (node.left, node.right)
    return any(isinstance(part, ast.Name) and part.id in arrays for part in operands)


def _has_array(node: ast.expr, arrays: set[str]) -> bool:
    """Whether an expression is made of whole arrays, not of elements and shapes alone."""
    parts = parts_of(node, lambda part: isinstance(part, ast.Name) and part.id in arrays)
    return any(isinstance(part, ast.Name) and part.id in arrays for part in parts)


def _is_of_slices(node: ast.AST, resolved: Callable[[ast.expr], object], arrays: set[str]) -> bool:
    """Whether a call is of a function that is none of numbers, or of a method of a slice or an array."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if any(isinstance(part, ast.Slice) for part in ast.walk(owner)) or _has_array(owner, arrays):
            return True
    function = resolved(node.func)
    if function is None or is_range(function) or is_length(function):
        return False
    return callable(function) and not is_of_numbers(function, node)


def is_own(function: object) -> bool:
    """Whether a function is of this package, and so one of lazy arrays."""
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module).partition(".")[0] == _PACKAGE


def parts_of(node: ast.AST, is_array: Callable[[ast.expr], bool]) -> Iterator[ast.expr]:
    """The parts of a right side that have values of the program: slices, elements, shapes, and names."""
    match node:
        case ast.Subscript(value=ast.Name() as name) if is_array(name):
            yield node
        case ast.Attribute(value=ast.Name() as name, attr=attribute) if is_array(name) and attribute in SHAPES:
            yield node
        case ast.Call(func=ast.Name("len"), args=[ast.Name() as name]) if is_array(name):
            yield node
        case ast.Name():
            yield node
        case _:
            for child in ast.iter_child_nodes(node):
                yield from parts_of(child, is_array)


__all__ = ["SHAPES", "Assigning", "calls_with_slices", "is_own", "parts_of", "target_of"]
