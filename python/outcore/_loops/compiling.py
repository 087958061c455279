"""Blocks compiled by numba, where it is installed: a function that runs the iterations of a line.

A block is compiled only where its numbers come to the bits of outcore's own functions: sums, products, quotients,
roots, minima, comparisons, choices and conversions that are exact. Python's integers of 64 bits stand between narrower
ones as in C, so each result is brought to its type.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from outcore._base.types import NDArray
from outcore._functions.compiled import scalar_of
from outcore._functions.jit_kernels import Kernel, NumbaObject, numba_module
from outcore._lazy.limits import memory_limit
from outcore.errors import ArgumentError

ElementRow: TypeAlias = "tuple[int, str, bool, int | None, int | None]"
OperandRow: TypeAlias = "tuple[str, int, str, bytes]"
TermRow: TypeAlias = "tuple[str, str, list[OperandRow], Callable[..., NDArray] | None]"
StepRow: TypeAlias = "tuple[tuple[str, int, str], list[tuple[str, int]], list[TermRow], OperandRow, str]"
Compile: TypeAlias = "Callable[[list[ElementRow], list[StepRow], float], int | None]"

# Elements of outcore's own lines from which on compilation, of a second or so, is worth it.
EFFORT_MIN = 1 << 27
# The least memory limit for which numba, of some 100 MiB, is taken into the process.
MEMORY_MIN = 1 << 30

_FLOATS = ("float32", "float64")
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NUMBERS = (*_FLOATS, *_INTEGERS)
_ALL = (*_NUMBERS, "bool")
# The expression of each function, and the types of operands that it is right for.
_FORMS: dict[str, tuple[str, Sequence[str]]] = {
    "add": ("{0} + {1}", _NUMBERS),
    "subtract": ("{0} - {1}", _NUMBERS),
    "multiply": ("{0} * {1}", _NUMBERS),
    "divide": ("{0} / {1}", _FLOATS),
    "minimum": ("{0} if {0} <= {1} or {0} != {0} else {1}", _NUMBERS),
    "maximum": ("{0} if {0} >= {1} or {0} != {0} else {1}", _NUMBERS),
    "equal": ("{0} == {1}", _NUMBERS),
    "not_equal": ("{0} != {1}", _NUMBERS),
    "less": ("{0} < {1}", _NUMBERS),
    "less_equal": ("{0} <= {1}", _NUMBERS),
    "greater": ("{0} > {1}", _NUMBERS),
    "greater_equal": ("{0} >= {1}", _NUMBERS),
    "logical_and": ("{0} and {1}", ("bool",)),
    "logical_or": ("{0} or {1}", ("bool",)),
    "logical_xor": ("{0} != {1}", ("bool",)),
    "bitwise_and": ("{0} & {1}", _INTEGERS),
    "bitwise_or": ("{0} | {1}", _INTEGERS),
    "bitwise_xor": ("{0} ^ {1}", _INTEGERS),
    "bitwise_invert": ("~{0}", _INTEGERS),
    "logical_not": ("not {0}", ("bool",)),
    "negative": ("-{0}", _NUMBERS),
    "positive": ("{0}", _NUMBERS),
    "absolute": ("abs({0})", _FLOATS),
    "sqrt": ("sqrt({0})", _FLOATS),
    "square": ("{0} * {0}", _NUMBERS),
    "floor": ("floor({0})", _FLOATS),
    "ceil": ("ceil({0})", _FLOATS),
    "isnan": ("{0} != {0}", _FLOATS),
    "where": ("{1} if {0} else {2}", _ALL),
}
# Functions that come close to outcore's own, for blocks that run compiled alone since they call functions of `jit`.
_CLOSE: dict[str, tuple[str, Sequence[str]]] = {
    **{name: (f"{name}({{0}})", _FLOATS) for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "log10")},
    **{name: (f"{name}({{0}})", _FLOATS) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "trunc", "sign")},
    **{name: (f"arc{name[1:]}({{0}})", _FLOATS) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    **{name: (f"{name}({{0}})", _FLOATS) for name in ("isfinite", "isinf")},
    "round": ("rint({0})", _FLOATS),
    "reciprocal": ("1 / {0}", _FLOATS),
    "pow": ("{0} ** {1}", _NUMBERS),
    "floor_divide": ("{0} // {1}", _NUMBERS),
    "remainder": ("{0} % {1}", _NUMBERS),
    "hypot": ("hypot({0}, {1})", _FLOATS),
    "atan2": ("arctan2({0}, {1})", _FLOATS),
    "copysign": ("copysign({0}, {1})", _FLOATS),
}
_NUMPY = (
    *("sqrt", "floor", "ceil", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh"),
    *("cosh", "tanh", "trunc", "sign", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "isfinite"),
    *("isinf", "rint", "hypot", "arctan2", "copysign"),
)
# The same for pairs of truths, which numba would take as integers.
_OF_TRUTHS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}
_OF_TRUTHS |= {"bitwise_invert": "logical_not", "not_equal": "logical_xor"}


class _NotTakenError(Exception):
    """A block holds what is left to outcore's own functions: the message says what."""


class _Source:
    """The source of the function of a block."""

    def __init__(self, elements: list[ElementRow], steps: list[StepRow]) -> None:
        self._elements = elements
        self._before: list[str] = []
        self._body: list[str] = []
        self._end: list[str] = []
        self._after: list[str] = []
        self._indices = 0
        self._constants: dict[tuple[str, bytes], str] = {}
        self._types: dict[str, str] = {}
        self._sole = _sole_update(elements, steps)
        self._has_calls = _has_calls(steps)
        self.called: dict[str, Kernel] = {}
        for number, (_, dtype, _, stride, _) in enumerate(elements):
            _take(dtype in _ALL, dtype)
            kind = "uint8" if dtype == "bool" else dtype
            self._before.append(f"p{number} = pointer_{kind}(words[{2 * number}])")
            if stride is None:
                self._before.append(f"s{number} = words[{2 * number + 1}]")
        for number, step in enumerate(steps):
            self._step(number, step)

    def text(self) -> str:
        """The source; constants are names of its globals."""
        body = [*self._body, *self._end] or ["pass"]
        lines = [*self._before, "for i in range(count):", *(f"    {line}" for line in body), *self._after]
        if self._has_calls:
            lines = ["raised = 0", "try:", *(f"    {line}" for line in lines), "except Exception:", "    raised = 1"]
        lines.append("return raised" if self._has_calls else "return 0")
        return "\n".join(["def line(count, words):", *(f"    {line}" for line in lines), ""])

    def constants(self) -> dict[str, np.generic]:
        """Values of the names of constants."""
        return {name: np.frombuffer(data, dtype)[0] for (dtype, data), name in self._constants.items()}

    def _step(self, number: int, step: StepRow) -> None:
        (kind, target, function), leaves, terms, result, dtype = step
        values = [self._leaf(number, place, *leaf) for place, leaf in enumerate(leaves)]
        names: list[str] = []
        for place, (name, kind_of_term, operands, called) in enumerate(terms):
            parts = [self._operand(part, values, names) for part in operands]
            value = self._call(called, parts) if called is not None else self._term(name, kind_of_term, parts)
            self._let(self._body, f"t{number}_{place}", value, kind_of_term)
            names.append(f"t{number}_{place}")
        value = self._operand(result, values, names)
        if kind == "register":
            self._let(self._body, f"r{target}", value, dtype)
        elif kind == "store":
            self._put(self._body, target, value)
        elif target in self._sole:
            element = f"u{target}"
            self._get(self._before, element, target)
            self._let(self._body, element, self._term(function, dtype, [element, value]), dtype)
            self._put(self._after, target, element)
        else:
            element = f"u{target}"
            self._get(self._body, element, target)
            self._let(self._body, f"v{target}", self._term(function, dtype, [element, value]), dtype)
            self._put(self._body, target, f"v{target}")

    def _leaf(self, step: int, place: int, kind: str, number: int) -> str:
        if kind == "register":
            return f"r{number}"
        name = f"e{step}_{place}"
        if kind == "element":
            _, dtype, is_written, stride, carried = self._elements[number]
            if carried is not None:
                # Lines of two iterations or more have both in one tile, so the first alone is read.
                if f"q{carried}" not in self._types:
                    self._get(self._before, f"q{carried}", number)
                self._let(self._body, name, f"q{carried}", dtype)
                return name
            self._get(self._before if stride == 0 and not is_written else self._body, name, number)
            return name
        first = 2 * len(self._elements) + 2 * self._indices
        self._indices += 1
        self._let(self._body, name, f"words[{first}] + i * words[{first + 1}]", "int64")
        return name

    def _operand(self, operand: OperandRow, values: Sequence[str], names: Sequence[str]) -> str:
        kind, number, dtype, data = operand
        if kind == "leaf":
            return values[number]
        if kind == "term":
            return names[number]
        _take(dtype in _ALL, dtype)
        name = self._constants.setdefault((dtype, bytes(data)), f"c{len(self._constants)}")
        self._types[name] = dtype
        return name

    def _call(self, called: Callable[..., NDArray], parts: Sequence[str]) -> str:
        function = scalar_of(called)
        if function is None:
            raise _NotTakenError("a function that outcore.jit did not make")
        name = f"f{len(self.called)}"
        self.called[name] = function
        return f"{name}({', '.join(parts)})"

    def _term(self, name: str, dtype: str, parts: Sequence[str]) -> str:
        types = {self._types[part] for part in parts[1 if name == "where" else 0 :]}
        if name == "cast":
            return self._cast(parts[0], self._types[parts[0]], dtype)
        if types == {"bool"}:
            name = _OF_TRUTHS.get(name, name)
        forms = _FORMS | _CLOSE if self._has_calls else _FORMS
        form, taken = forms.get(name, ("", ()))
        is_taken = len(types) == 1 and types <= set(taken) and dtype in _ALL
        _take(is_taken, f"`{name}` of {' and '.join(sorted(types))}")
        return form.format(*parts)

    def _cast(self, part: str, before: str, dtype: str) -> str:
        if dtype == "bool":
            return f"{part} != 0" if before != "bool" else part
        # Numbers that an integer does not hold become what the processor gives.
        is_exact = before not in _FLOATS or dtype in _FLOATS or self._has_calls
        _take(dtype in _NUMBERS and is_exact, f"{before} as {dtype}")
        return part

    def _let(self, lines: list[str], name: str, expression: str, dtype: str) -> None:
        _take(dtype in _ALL, dtype)
        lines.append(f"{name} = {dtype}({expression})" if dtype != "bool" else f"{name} = {expression}")
        self._types[name] = dtype

    def _place(self, element: int) -> str:
        stride = self._elements[element][3]
        steps = {None: f"i * s{element}", 0: "0", 1: "i"}
        return steps.get(stride, f"i * {stride}")

    def _get(self, lines: list[str], name: str, element: int) -> None:
        dtype = self._elements[element][1]
        place = "0" if lines is self._before else self._place(element)
        lines.append(f"{name} = p{element}[{place}]" + (" != 0" if dtype == "bool" else ""))
        self._types[name] = dtype

    def _put(self, lines: list[str], element: int, value: str) -> None:
        if any(carried == element for *_, carried in self._elements):
            self._end.append(f"q{element} = {value}")
        dtype = self._elements[element][1]
        place = "0" if lines is self._after else self._place(element)
        lines.append(f"p{element}[{place}] = " + (f"uint8({value})" if dtype == "bool" else value))


def _take(is_taken: bool, what: str) -> None:
    if not is_taken:
        raise _NotTakenError(what)


def _has_calls(steps: list[StepRow]) -> bool:
    return any(called is not None for _, _, terms, _, _ in steps for *_, called in terms)


def _sole_update(elements: list[ElementRow], steps: list[StepRow]) -> set[int]:
    """Elements that all iterations update, and that nothing else of the block touches: they stay in a register."""
    arrays = [array for array, *_ in elements]
    updated = [target for (kind, target, _), *_ in steps if kind == "update"]
    return {target for target in updated if elements[target][3] == 0 and arrays.count(arrays[target]) == 1}


@cache
def _environment() -> dict[str, object]:
    """Names of sources: NumPy's types and functions, and addresses as pointers."""
    pointers: dict[str, object] = {f"pointer_{dtype}": _pointer(dtype) for dtype in _NUMBERS}
    types = {dtype: getattr(np, dtype) for dtype in _NUMBERS}
    return {**pointers, **types, **{name: getattr(np, name) for name in _NUMPY}}


def _pointer(dtype: str) -> NumbaObject:
    """A function that numba compiles: the pointer to an element type that an integer is the address of."""
    numba = numba_module()
    kind = numba.types.CPointer(getattr(numba.types, dtype))

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def pointer(_: NumbaObject, address: NumbaObject) -> NumbaObject:
        def instruction(context: NumbaObject, builder: NumbaObject, _: NumbaObject, values: NumbaObject) -> NumbaObject:
            return builder.inttoptr(values[0], context.get_value_type(kind))

        return kind(address), instruction

    return pointer


# Functions that were compiled: programs hold their addresses, so that none of them ever goes.
_COMPILED: dict[tuple[str, tuple[tuple[str, bytes], ...], tuple[Kernel, ...]], NumbaObject] = {}


def compile_long(elements: list[ElementRow], steps: list[StepRow], effort: float) -> int | None:
    """The address of the function of a block; None where it is not taken, or not worth it.

    Raises ArgumentError where a block that calls functions of `jit` is not taken: nothing else runs those.
    """
    has_calls = _has_calls(steps)
    if effort < EFFORT_MIN and not has_calls:
        return None
    try:
        return _compiled(_Source(elements, steps))
    except _NotTakenError as what:
        if has_calls:
            said = f"statements that call functions of outcore.jit are compiled, and {what} is not compiled"
            raise ArgumentError(f"loops: {said}") from None
        return None


def compile_block(elements: list[ElementRow], steps: list[StepRow], _effort: float) -> int | None:
    """The address of the function of a block. Raises ArgumentError where it is not taken."""
    try:
        return _compiled(_Source(elements, steps))
    except _NotTakenError as what:
        said = f"compiled=True, and {what} is not compiled to the bits of outcore's own functions: leave compiled away"
        raise ArgumentError(f"loops: {said}") from None


def _compiled(source: _Source) -> int:
    numba = numba_module()
    constants = source.constants()
    facts = tuple((value.dtype.str, value.tobytes()) for value in constants.values())
    key = source.text(), facts, tuple(source.called.values())
    if key not in _COMPILED:
        names = {**_environment(), **constants, **source.called}
        exec(source.text(), names)
        signature = numba.types.int64(numba.types.int64, numba.types.CPointer(numba.types.int64))
        _COMPILED[key] = numba.cfunc(signature, nopython=True, error_model="numpy")(names["line"])
    address: int = _COMPILED[key].address
    return address


def compiler(compiled: bool | None) -> Compile | None:
    """The compiler of blocks: of all of them, of none, or of long ones where numba is installed and has room."""
    if compiled is None:
        return compile_long if _is_installed() and _has_room() else None
    if not compiled:
        return None
    try:
        numba_module()
    except ImportError as error:
        said = "loops: compiled=True needs numba, which is not installed: pip install outcore[jit]"
        raise ImportError(f"{said}, or leave compiled away") from error
    return compile_block


def _has_room() -> bool:
    """Whether numba is in the process already, or the memory limit bears it."""
    return "numba" in sys.modules or memory_limit() >= MEMORY_MIN


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec("numba") is not None
    except ValueError:  # a module that says nothing of where it is from
        return False


__all__ = ["Compile", "compiler"]
