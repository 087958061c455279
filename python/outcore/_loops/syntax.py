"""The source of a function: read, parsed, and its free names looked up."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
from collections.abc import Iterable
from types import FunctionType

import numpy as np

from outcore._loops.called import calls_with_slices
from outcore._loops.refusal import Listing, Place, refuse
from outcore._loops.slices import Slices
from outcore.errors import ArgumentError

_MISSING = object()
# Attributes that only arrays have, by which parameters are known to be some.
_OF_ARRAYS = frozenset({"shape", "ndim", "size", "dtype"})


class Listed:
    """A function with its syntax tree, whose places are those of the file, and the names around it."""

    def __init__(self, function: FunctionType, listing: Listing, definition: ast.FunctionDef) -> None:
        self.function, self.listing, self.definition = function, listing, definition
        arguments = definition.args
        self.parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.names = {part.arg for part in self.parameters} | assigned_names(definition.body)
        arrays = _names_of_arrays(definition)
        self.slices = Slices(definition, listing, lambda part: calls_with_slices(part, self.resolved, arrays))
        self.names |= assigned_names(definition.body)
        self.array_parameters = {part.arg for part in self.parameters} & _names_of_arrays(definition)
        self._assignments: dict[ast.AugAssign, ast.Assign] = {}
        self._assigned: dict[ast.For, set[str]] = {}
        self._uses: dict[ast.AST, tuple[ast.Name, ...]] = {}

    def assigned_in(self, loop: ast.For) -> set[str]:
        """Names that the body of a loop assigns, which bindings look up at every visit of the loop."""
        if loop not in self._assigned:
            self._assigned[loop] = assigned_names(loop.body)
        return self._assigned[loop]

    def uses_in(self, part: ast.AST) -> tuple[ast.Name, ...]:
        """Names that a part of the function reads."""
        if part not in self._uses:
            names = (node for node in ast.walk(part) if isinstance(node, ast.Name))
            self._uses[part] = tuple(name for name in names if isinstance(name.ctx, ast.Load))
        return self._uses[part]

    def free(self, node: ast.Name) -> object:
        """The object that a name means which the function does not assign. Refuses unknown names."""
        code = self.function.__code__
        if node.id in code.co_freevars:
            cell = (self.function.__closure__ or ())[code.co_freevars.index(node.id)]
            try:
                return cell.cell_contents
            except ValueError:
                raise self.listing.refusal(node, f"`{node.id}` has no value yet") from None
        value = self.function.__globals__.get(node.id, _MISSING)
        if value is _MISSING:
            value = getattr(builtins, node.id, _MISSING)
        if value is _MISSING:
            raise self.listing.refusal(node, f"the name `{node.id}` is not known: define it above")
        return value

    def assignment_of(self, statement: ast.AugAssign) -> ast.Assign:
        """`t = t + value` for `t += value` of a name: the same nodes at every call."""
        if statement not in self._assignments:
            target = statement.target
            assert isinstance(target, ast.Name)
            use = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            value = ast.copy_location(ast.BinOp(use, statement.op, statement.value), statement)
            self._assignments[statement] = ast.copy_location(ast.Assign([target], value), statement)
        return self._assignments[statement]

    def resolved(self, node: ast.expr) -> object:
        """The object of a name, or of a chain of attributes of one, that is not the function's own; else None."""
        if isinstance(node, ast.Name):
            return None if node.id in self.names else self.free(node)
        if not isinstance(node, ast.Attribute):
            return None
        owner = self.resolved(node.value)
        if owner is None:
            return None
        value = getattr(owner, node.attr, _MISSING)
        if value is _MISSING:
            raise self.listing.refusal(node, f"`{ast.unparse(node.value)}` has no `{node.attr}`")
        return value

    def copied(self, node: ast.expr) -> ast.Name | None:
        """The name in `name.copy()` or `numpy.copy(name)`; None for other values."""
        match node:
            case ast.Call(ast.Attribute(ast.Name() as name, "copy"), [], []) if name.id in self.names:
                return name
            case ast.Call(function, [ast.Name() as name], []) if self.resolved(function) is np.copy:
                return name
        return None


def assigned_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that the statements assign, loop variables among them."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _names_of_arrays(definition: ast.FunctionDef) -> set[str]:
    """Names that are used as those of arrays are: with subscripts, by their shape, or as results."""
    names = set()
    for node in ast.walk(definition):
        holders: list[ast.expr | None] = []
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _OF_ARRAYS):
            holders = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            holders = [*node.args]
        elif isinstance(node, ast.Return):
            holders = [*node.value.elts] if isinstance(node.value, ast.Tuple) else [node.value]
        names |= {holder.id for holder in holders if isinstance(holder, ast.Name)}
    return names


def listed(function: object) -> Listed:
    """The syntax tree of a function. Refuses functions without source, and everything but plain functions."""
    if not isinstance(function, FunctionType):
        kind = getattr(function, "__name__", type(function).__name__)
        raise ArgumentError(f"loops: {kind} is no plain Python function, and its source is not known")
    code = function.__code__
    begin = Place(code.co_filename, code.co_firstlineno, 1)
    if function.__name__ == "<lambda>":
        raise refuse(begin, "a lambda has no loops: write a function with `def`")
    first = code.co_firstlineno
    # `inspect.getsourcelines` looks for the module first, among all that are loaded.
    linecache.checkcache(code.co_filename)
    lines = inspect.getblock(linecache.getlines(code.co_filename, function.__globals__)[first - 1 :])
    if not lines:
        raise refuse(begin, "the source is not available: write the function in a file")
    text = "".join(lines)
    is_indented = text[:1].isspace()
    try:
        # Beneath a line of its own an indented function keeps its columns.
        tree = ast.parse("if True:\n" + text if is_indented else text)
    except SyntaxError as error:
        raise refuse(begin, f"the source cannot be read by itself: {error.msg}") from None
    listing = Listing(code.co_filename, first - 1 - is_indented)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    definition = next((node for node in ast.walk(tree) if isinstance(node, kinds) and node.name == code.co_name), None)
    if definition is None:
        raise refuse(begin, "the source holds no definition of the function")
    if isinstance(definition, ast.AsyncFunctionDef):
        raise listing.refusal(definition, "`async` functions are not taken")
    return Listed(function, listing, definition)


__all__ = ["Listed", "assigned_names", "listed"]
