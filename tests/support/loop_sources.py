"""Loop programs that are drawn: their source, within the bounds of their arrays, and the arrays with their tiles."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
# Which of some items is taken: a draw of hypothesis, or of a generator of random numbers.
Pick = Callable[[Sequence[Any]], Any]
INDENT = "    "
LENGTH_MAX = 14
_numbers = count()


class Variable(NamedTuple):
    """A loop variable, and an interval that holds all its values."""

    name: str
    low: int
    high: int


class Limits(NamedTuple):
    """Arguments of `range`, an interval that holds its numbers, and whether it has the same ones each time."""

    arguments: list[str]
    ends: tuple[int, int]
    is_counted: bool


class DrawnArray(NamedTuple):
    name: str
    shape: tuple[int, ...]
    tile: tuple[int, ...]
    dtype: str
    # Elements of the last axis from one that is used to the next: wide tiles do not fit into a small pool all at once.
    stretch: int


class DrawnProgram(NamedTuple):
    """`is_exact` where values are the same bits in any order that dependences allow."""

    function: Callable[..., Any]
    source: str
    arrays: tuple[DrawnArray, ...]
    is_exact: bool

    def values(self, seed: int) -> tuple[Any, ...]:
        random = np.random.default_rng(seed)
        return tuple(
            random.integers(-9, 10, of.shape).astype(of.dtype)
            if np.dtype(of.dtype).kind == "i"
            else (random.random(of.shape) * 2 - 1).astype(of.dtype)
            for of in self.arrays
        )


class Writer:
    """Writes a program: nests of loops, with statements, registers, scalars, guards and inner loops in their bodies.

    `kind` is "integers", "elements" (floats of which no sum depends on an order) or "sums".
    """

    def __init__(self, pick: Pick, kind: str) -> None:
        self.pick, self.kind = pick, kind
        self.lines: list[str] = []
        dtype = pick(["i8", "i8", "i4"] if kind == "integers" else ["f8", "f8", "f4"])
        self.stretch = pick([1, 1, 1, 96])
        self.arrays = tuple(self.array(name, dtype) for name in "abcd"[: pick([1, 2, 2, 3, 4])])
        if self.often(20):
            self.arrays = tuple(self.arrays[0]._replace(name=of.name) for of in self.arrays)
        self.uncounted = 0  # branches around, and loops of lengths that others decide
        self.registers: list[str] = []
        self.scalars: list[str] = []  # numbers that all statements within see, and those after
        self.count = 0

    def often(self, hundredths: int) -> bool:
        # The first choice is what a failing program is reduced to.
        return bool(self.pick(range(20)) >= 20 - hundredths // 5)

    def array(self, name: str, dtype: str) -> DrawnArray:
        axes = range(self.pick([2, 2, 1, 1, 3]))
        longest = 8 if len(axes) == 3 else LENGTH_MAX
        shape = tuple(self.pick([longest, longest - 1, 6, longest - 2, 7, 5, 3, 1]) for _ in axes)
        cuts = [3, 4, 2, LENGTH_MAX] if len(axes) == 3 else [3, 2, 4, LENGTH_MAX, 5, 1]
        tile = tuple(min(length, self.pick(cuts)) for length in shape)
        wide = (*(1 for _ in shape[1:]), self.stretch)
        whole, cut = (tuple(a * b for a, b in zip(sizes, wide, strict=True)) for sizes in (shape, tile))
        return DrawnArray(name, whole, cut, dtype, self.stretch)

    def write(self, depth: int, line: str) -> None:
        self.lines.append(INDENT * depth + line)

    def affine(self, around: Sequence[Variable], length: int, axis: int = -1) -> str:
        """Text with values in 0..length-1: mostly one variable and an offset, as most programs have."""
        if not around or self.often(5):
            return str(self.pick(range(length)))
        terms = [(1, around[axis % len(around)] if self.often(75) else self.pick(around))]
        if self.often(30):
            terms = [(self.pick([-1, 2, -2]), terms[0][1])]
        if self.often(15):
            terms.append((self.pick([1, -1]), self.pick(around)))
        while terms:
            low = sum(min(by * of.low, by * of.high) for by, of in terms)
            span = sum(abs(by) * (of.high - of.low) for by, of in terms)
            if span < length:
                offset = self.pick(range(length - span)) - low
                return " + ".join([f"{by} * {of.name}" if by != 1 else of.name for by, of in terms]) + f" + {offset}"
            terms.pop()
        return str(self.pick(range(length)))

    def element(self, around: Sequence[Variable], of: DrawnArray) -> str:
        shape = (*of.shape[:-1], of.shape[-1] // of.stretch)
        inner = [self.affine(around, length, axis) for axis, length in enumerate(shape)]
        inner[-1] = inner[-1] if of.stretch == 1 else f"{of.stretch} * ({inner[-1]})"
        return f"{of.name}[{', '.join(inner)}]"

    def read(self, around: Sequence[Variable]) -> str:
        if self.registers and self.often(30):
            return str(self.pick(self.registers))
        if self.scalars and self.often(25):
            return str(self.pick(self.scalars))
        return self.element(around, self.pick(self.arrays))

    def value(self, around: Sequence[Variable], depth: int = 0) -> str:
        """Floats stay within the largest of those that are read, so nothing becomes NaN."""
        choice = self.pick(range(10)) if depth < 2 else 0
        read = self.read(around)
        if choice <= 2:
            return read
        if choice == 3:
            return f"{self.pick(around).name} * {'3' if self.kind == 'integers' else '0.0625'}"
        other = self.value(around, depth + 1)
        if choice == 4:
            return f"{self.pick(['min', 'max'])}({read}, {self.read(around)})"
        if choice == 5:
            return f"abs({read})"
        if choice == 6 and self.kind != "sums":
            return f"({read} if {read} {self.pick(['<', '>='])} {self.read(around)} else {other})"
        if self.kind == "integers":
            return self.pick([f"{read} + {other}", f"{read} * 3 - {other}", f"{read} % 7 + {other} // 2"])
        return self.pick([f"0.5 * ({read} - ({other}))", f"0.5 * ({read} + {other})", f"{read} * 0.75"])

    def statement(self, depth: int, around: Sequence[Variable]) -> None:
        if self.often(15):
            register = f"t{self.count}"
            self.count += 1
            self.write(depth, f"{register} = {self.value(around)}")
            self.registers.append(register)
            return
        to = self.pick(self.arrays)
        target, value = self.element(around, to), self.value(around)
        if self.often(15):
            order = [target, value] if self.often(50) else [value, target]
            if "[" in value:
                self.write(depth, f"{target} = {self.pick(['min', 'max'])}({', '.join(order)})")
                return
        if self.kind == "elements" or self.often(50):
            self.write(depth, f"{target} = {value}")
        elif self.kind == "integers":
            self.write(depth, f"{target} {self.pick(['+=', '-=', '*='])} {value}")
        else:
            self.write(depth, f"{target} {self.pick(['+=', '-='])} 0.125 * ({value})")

    def scalar(self, depth: int, around: Sequence[Variable]) -> None:
        """A number that is carried, begun: by an element, or by a number of Python's where those have its type."""
        name = f"s{self.count}"
        self.count += 1
        of = self.pick(self.arrays)
        is_wide = bool(around) and all(np.dtype(part.dtype).itemsize == 8 for part in self.arrays)
        zero = "0" if self.kind == "integers" else "0.0"
        self.write(depth, f"{name} = {zero if is_wide and self.often(50) else self.element(around, of)}")
        self.scalars.append(name)

    def carry(self, depth: int, around: Sequence[Variable]) -> None:
        """A number that is carried, assigned anew."""
        name, read = self.pick(self.scalars), self.element(around, self.pick(self.arrays))
        forms = [f"{name} = 0.5 * ({name} + {read})", f"{name} = {self.pick(['min', 'max'])}({name}, {read})"]
        if self.kind == "integers":
            forms = [f"{name} {self.pick(['+=', '-=', '*='])} {read}", f"{name} = {read} - {name} * 3", forms[1]]
        elif self.kind == "sums":
            forms.append(f"{name} {self.pick(['+=', '-='])} 0.125 * {read}")
        self.write(depth, self.pick(forms))

    def condition(self, around: Sequence[Variable]) -> str:
        of, other = self.pick(around), self.pick(around)
        text = self.pick([f"{of.name} > {(of.low + of.high) // 2}", f"{of.name} <= {other.name} + 1"])
        if self.often(30):
            joined = self.pick([f"{other.name} != {other.high}", f"{of.name} + {other.name} < {of.high}"])
            text = f"{text} {self.pick(['and', 'or'])} {joined}"
        return f"not ({text})" if self.often(10) else str(text)

    def limits(self, depth: int, around: Sequence[Variable]) -> Limits:
        low, high = self.pick([0, 1, 2]), self.pick([6, 12, 9, 7, 5, 4, 3, 11, LENGTH_MAX])
        step = self.pick([1, 1, 1, 1, 2, 3])
        texts, ends = [str(low), str(high)], (low, high - 1)
        if around and self.often(35):
            of = self.pick(around)
            texts, ends = self.pick(
                [
                    ([of.name, str(high)], (min(of.low, high - 1), high - 1)),
                    ([f"{of.name} + 1", str(high)], (min(of.low + 1, high - 1), high - 1)),
                    ([str(low), f"{of.name} + 1"], (low, max(of.high, low))),
                    ([str(low), f"{high} - {of.name}"], (low, max(high - of.low - 1, low))),
                ]
            )
        if self.often(20):
            # The same numbers from the other end; with steps, others between the same ends.
            texts, step = [f"{texts[1]} - 1", f"{texts[0]} - 1"], -step
        is_counted = not any(of.name in text for of in around for text in texts)
        return Limits([*texts, str(step)] if step != 1 else texts, ends, is_counted)

    def loop(self, depth: int, around: Sequence[Variable]) -> None:
        name = "ijk"[len(around)]
        limits = self.limits(depth, around)
        self.write(depth, f"for {name} in range({', '.join(limits.arguments)}):")
        self.uncounted += not limits.is_counted
        self.body(depth + 1, [*around, Variable(name, *limits.ends)])
        self.exchange(depth + 1)
        self.uncounted -= not limits.is_counted

    def exchange(self, depth: int) -> None:
        """Arrays of one shape change names at the end of a loop."""
        alike = [of.name for of in self.arrays if of.shape == self.arrays[0].shape]
        if len(alike) > 1 and not self.uncounted and self.often(30):
            self.write(depth, f"{', '.join(alike)} = {', '.join([*alike[1:], alike[0]])}")

    def body(self, depth: int, around: Sequence[Variable]) -> None:
        self.registers = []
        begin, outer = len(self.lines), len(self.scalars)
        if self.often(20):
            self.scalar(depth, around)
        for at in range(self.pick([1, 1, 2, 3])):
            if len(around) < 3 and self.often(55 if at == 0 else 20):
                self.loop(depth, around)
                self.registers = []
            elif self.often(15) and depth < 5:
                self.write(depth, f"if {self.condition(around)}:")
                self.branch(depth + 1, around)
                if self.often(40):
                    self.write(depth, "else:")
                    self.branch(depth + 1, around)
            elif self.scalars and self.often(35):
                self.carry(depth, around)
            else:
                self.statement(depth, around)
        if not any("] " in line for line in self.lines[begin:]):
            # A body of registers alone is no program.
            self.write(depth, f"{self.element(around, self.pick(self.arrays))} = {self.value(around)}")
        del self.scalars[outer:]

    def branch(self, depth: int, around: Sequence[Variable]) -> None:
        self.uncounted += 1
        self.body(depth, around)
        self.uncounted -= 1
        self.registers = []

    def program(self) -> DrawnProgram:
        names = ", ".join(of.name for of in self.arrays)
        self.write(0, f"def drawn({names}):")
        if self.often(15):
            self.scalar(1, [])
        for _ in range(self.pick([1, 1, 2, 3])):
            self.loop(1, [])
        results = ", ".join([names, *self.scalars])
        self.write(1, f"return ({results},)")
        source = "\n".join(self.lines) + "\n"
        return DrawnProgram(function_of(source), source, self.arrays, self.kind != "sums")


def function_of(source: str, name: str = "drawn") -> Callable[..., Any]:
    """The function of a source, which stays where `inspect` looks for sources."""
    file = f"<loops {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), space)
    made: Callable[..., Any] = space[name]
    return made


def drawn_program(pick: Pick, kind: str) -> DrawnProgram:
    return Writer(pick, kind).program()
