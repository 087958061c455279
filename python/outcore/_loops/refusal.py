"""Refusals of loop programs: the place in the source, and the reason."""

from __future__ import annotations

import ast
import copy
from typing import NamedTuple

from outcore.errors import ArgumentError


class Place(NamedTuple):
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def refuse(place: Place, reason: str) -> ArgumentError:
    """The error of a program that is not taken, ready to raise."""
    return ArgumentError(f"loops: {place}: {reason}", {"file": place.file, "line": place.line, "column": place.column})


class Listing(NamedTuple):
    """The source of a function: its file, and the lines of the file above the parsed text."""

    file: str
    above: int

    def place(self, node: ast.AST) -> Place:
        """The place of a node in the file."""
        return Place(self.file, self.above + getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)

    def refusal(self, node: ast.AST, reason: str) -> ArgumentError:
        """The error of a node, ready to raise."""
        return refuse(self.place(node), reason)


_WRITTEN = "written"  # the attribute of a node that has another in its place


def keep_written(node: ast.Subscript) -> None:
    """Keeps a slice as it is written, for messages; elements take its place."""
    setattr(node, _WRITTEN, ast.copy_location(ast.Subscript(node.value, node.slice, node.ctx), node))


class _AsWritten(ast.NodeTransformer):
    """Puts slices as they are written in the place of elements."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The slice that an element stands for."""
        written = getattr(node, _WRITTEN, None)
        return written if isinstance(written, ast.AST) else self.generic_visit(node)


def quoted(node: ast.AST) -> str:
    """The source text of a node, as messages quote it."""
    return f"`{ast.unparse(_AsWritten().visit(copy.deepcopy(node)))}`"


__all__ = ["Listing", "Place", "keep_written", "quoted", "refuse"]
