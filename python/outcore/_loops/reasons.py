"""Reasons of refusals that are found with and without arguments, in one wording."""

from __future__ import annotations

import ast

from outcore._loops.refusal import quoted

SUBSCRIPT = "a subscript"
BOUND = "a bound of a loop"
CONDITION = "the condition of an `if`"
VALUE = "a number beside arrays"
NO_ARRAY = "is a number, and the program takes an array there"
OPERATIONS: dict[type, str] = {
    ast.Mult: "a product of loop variables",
    ast.Div: "a quotient of a loop variable",
    ast.FloorDiv: "a floor division by a loop variable, or of no sum of some",
    ast.Mod: "a remainder by a loop variable, or of no sum of some",
    ast.Pow: "a power of a loop variable",
}


def data(node: ast.AST, role: str) -> str:
    """A number that depends on elements, where only integers known beforehand are taken."""
    advice = {
        CONDITION: "; write a conditional expression: x if c else y",
        BOUND: "; loops of a length that data decides are not taken",
    }.get(role, "")
    if isinstance(node, ast.Name):
        local = f"{quoted(node)} is a local number that depends on data or is not affine"
        return f"{local}, and {role} must follow from loop variables and integers alone{advice}"
    return f"{quoted(node)} depends on data, and {role} must follow from loop variables and integers alone{advice}"


def not_affine(node: ast.AST, role: str) -> str:
    """An expression of loop variables that is not affine."""
    if isinstance(node, ast.BinOp):
        operation = OPERATIONS.get(type(node.op), "an operation on bits")
    elif isinstance(node, ast.Call) and role == BOUND:
        operation = "a function; the smaller or larger of two bounds is said by `min` and `max`, of integers"
    else:
        is_choice = isinstance(node, (ast.Compare, ast.IfExp, ast.BoolOp))
        operation = "a choice by a loop variable" if is_choice else "a function"
        operation += "; write an `if` statement"
    return f"{quoted(node)} is not affine, and {role} must be: {operation}"


def long_period(node: ast.AST, by: int, most: int) -> str:
    """A remainder or quotient by a number that repeats statements too often."""
    return (
        f"{quoted(node)}: statements are repeated {by} times for remainders by {by}, and {most} times at most; write"
        " loops within each other, one for the quotient and one for the remainder"
    )


def extreme(node: ast.Name, role: str) -> str:
    """The name of a minimum or maximum where an affine function stands."""
    said = f"{quoted(node)} is the smallest or largest of several numbers, and {role} must be affine"
    return f"{said}; write an `if` statement"


def no_conjunction(node: ast.Call) -> str:
    """A range whose lower bound is a smallest, or whose upper bound is a largest, of loop variables."""
    return (
        f"{quoted(node)}: bounds by loop variables are the largest of several lower ones and the smallest of several"
        " upper ones; for others write an `if`, with a loop in each branch"
    )


def begin_by_steps(node: ast.expr, step: int) -> str:
    """A range by steps that begins at one of several numbers."""
    return (
        f"{quoted(node)} is one number or another by loop variables, and steps of {step} go on from it: write an `if`,"
        " with a loop in each branch"
    )


def unsubscripted(name: str) -> str:
    """An array that stands without subscripts."""
    return f"the array `{name}` stands without subscripts; elements are computed one at a time"


def unassigned(name: str) -> str:
    """A name that has no value where it is used."""
    return f"`{name}` is used before it has a value: assign it before the loop"


def uncertain(name: str) -> str:
    """A name that has no value where it is used, if a loop has no iteration or a branch is not taken."""
    return (
        f"`{name}` may be used before it has a value, where a branch is not taken or a loop has no iterations: assign"
        " it before"
    )


def mixed(name: str, kinds: str, statement: ast.AST) -> str:
    """A name whose types in different iterations lead to different numbers."""
    return (
        f"`{name}` is {kinds} by turns, and {quoted(statement)} depends on which: begin with a number of the type that"
        " later iterations have, as np.float32(0)"
    )


def many_kinds(node: ast.AST) -> str:
    """A statement whose scalars have types by turns that combine in too many ways."""
    return f"{quoted(node)}: the types of its names combine in too many ways: begin with numbers of one type"


def beyond(name: str) -> str:
    """The variable of a loop that is used after it, or before."""
    return f"`{name}` is assigned by a loop and used beyond it: use what it counts to"


def renamed_in_branch(name: str) -> str:
    """A name that takes an array within an `if`."""
    return f"`{name}` takes another array within a condition: arrays are exchanged in each iteration, or in none"


def lost(name: str) -> str:
    """A name that takes an array in each iteration, for one that then has no name."""
    return f"`{name}` takes an array whose other names keep it: arrays of a loop are exchanged, as `u, v = v, u`"


def lent(name: str) -> str:
    """A name that is one of an array within a loop alone."""
    return f"`{name}` is another name of an array within a loop, and used beyond it"


def array_at_times(name: str) -> str:
    """A name of a number that was one of an array before."""
    return f"`{name}` is the name of an array, and of a number: give the number another name"


def exchange_count(name: str) -> str:
    """An exchange in a loop whose iterations are not counted before the program runs."""
    return (
        f"arrays are exchanged in the loop over `{name}`, whose number of iterations depends on a loop around: there it"
        " must be the same in all iterations"
    )


def exchange_order(name: str, order: int) -> str:
    """Exchanges of too many arrays."""
    return f"arrays are exchanged in the loop over `{name}` so that more than {order} iterations bring them back"


def untaken_slice(node: ast.Slice) -> str:
    """A slice elsewhere than in an assignment to slices."""
    said = "slices stand on both sides of `=`, as in `a[i, 1:] = b[:-1]`, with steps above 0"
    return f"{quoted(node)} is a slice: {said}, at most as many as are assigned"


def many_slices(statement: ast.AST, depth: int) -> str:
    """A call with slices of too many lengths, or with none."""
    return (
        f"{quoted(statement)}: functions of slices take some, and those that are read together with the loops around"
        f" have {depth} lengths at most"
    )


def no_slice(node: ast.Subscript, rank: int) -> str:
    """Subscripts that are none of a slice."""
    return (
        f"{quoted(node)} is no slice of {quoted(node.value)}, which has {rank} axes: subscripts are integers and slices"
        " with steps above 0"
    )


def extreme_slice(node: ast.Subscript) -> str:
    """A slice with one of several ends."""
    return f"{quoted(node)}: a slice that a function takes has one end, no smaller or larger of several"


def empty_slice(node: ast.AST) -> str:
    """A slice that has no elements in some iteration."""
    return f"{quoted(node)} may have no elements: begin the loop where it has some"


def lazy_function(node: ast.AST) -> str:
    """A function of this package among those of whole slices."""
    function = quoted(node.func if isinstance(node, ast.Call) else node)
    return (
        f"{function} is a function of lazy arrays, and slices are those of NumPy: take a function of NumPy or your own"
    )


def end_from_behind(node: ast.expr) -> str:
    """The end of a slice that is below 0 in some iterations."""
    return (
        f"{quoted(node)} ends a slice and may be below 0, which NumPy counts from the end of the axis: add its length"
    )


def unequal_slices(node: ast.AST) -> str:
    """A slice of another length than the one that is assigned."""
    return f"{quoted(node)} has another number of elements than the slice that is assigned"


def overlapping(name: str) -> str:
    """A slice that is assigned while other elements of the same array are read."""
    return (
        f"slices of `{name}` are assigned while other elements of `{name}` are read, all of which NumPy reads before:"
        " assign to another array, or write a loop"
    )


def no_assignment(node: ast.expr) -> str:
    """A statement that is an expression."""
    if isinstance(node, ast.Call):
        return f"{quoted(node)}: a call is not taken as a statement; what it does beside would not happen"
    return f"{quoted(node)}: a statement without an assignment has no effect"


def too_many(most: int) -> str:
    """A program that grows by exchanges beyond what can be planned."""
    return f"more than {most} statements, with those that exchanges of arrays repeat: exchange in fewer loops"


def rebound(name: str) -> str:
    """An array whose name is assigned."""
    return f"the array `{name}` is rebound: assign its elements, or give the new one another name"


def no_result(node: ast.expr | None) -> str:
    """A result that is no array."""
    said = "nothing" if node is None else quoted(node)
    names = "the names of arrays are returned, one or several, or of numbers that elements decide"
    return f"`return` of {said}: {names}" + ("; assign it to a name before" if isinstance(node, ast.BinOp) else "")


def outside(node: ast.expr) -> str:
    """An array that is no argument."""
    return f"{quoted(node)} is an array from outside of the function: make it a parameter"


def own_function(node: ast.Call, owner: str) -> str:
    """A function that is a parameter, or an attribute of one."""
    said = f"the function {quoted(node.func)} is not taken, since `{owner}` is a name of the program itself"
    return f"{said}: functions are those of the module or of a function around"


def unknown_function(node: ast.Call, taken: str) -> str:
    """A function that bodies do not call."""
    if any(isinstance(part, ast.Slice) for part in ast.walk(node)):
        said = "a function of slices stands in a statement that assigns one element or slice, as `s[i] = …`"
        return f"the function {quoted(node.func)} is not taken here: {said}"
    said = f"the function {quoted(node.func)} is not taken: {taken} are"
    parts = (part for part in node.args if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name))
    row = next((part for part in parts if not isinstance(part.slice, ast.Tuple)), None)
    return f"{said}; where {quoted(row)} is a slice, it is written with a colon for each axis" if row else said


__all__ = [
    "BOUND",
    "CONDITION",
    "OPERATIONS",
    "SUBSCRIPT",
    "VALUE",
    "array_at_times",
    "begin_by_steps",
    "beyond",
    "data",
    "empty_slice",
    "end_from_behind",
    "exchange_count",
    "exchange_order",
    "extreme",
    "extreme_slice",
    "lazy_function",
    "lent",
    "long_period",
    "lost",
    "many_kinds",
    "many_slices",
    "mixed",
    "no_assignment",
    "no_conjunction",
    "no_result",
    "no_slice",
    "not_affine",
    "overlapping",
    "own_function",
    "outside",
    "rebound",
    "too_many",
    "renamed_in_branch",
    "unassigned",
    "uncertain",
    "unequal_slices",
    "unknown_function",
    "unsubscripted",
    "untaken_slice",
]
