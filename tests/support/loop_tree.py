"""An interpreter of loop programs as the core takes them: one iteration after the other, in plain Python over NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import outcore as oc
from outcore import _core

_NAMES = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "bitwise_and": "bitwise_and"}
_UPDATES = {1: np.add, 2: np.multiply, 3: np.minimum, 4: np.maximum}
_leaves: dict[tuple[int, str], oc.Array] = {}


def loop_leaf(number: int, dtype: str) -> Any:
    """A distinct node of one element for every number and type."""
    if (number, dtype) not in _leaves:
        _leaves[number, dtype] = oc.asarray(np.full(1, number, dtype))
    return _leaves[number, dtype]._expr


def number_of(node: Any, leaves: dict[int, Any]) -> Any:
    """The value of a node for values of its leaves."""
    if node.id in leaves:
        return leaves[node.id]
    parts = [number_of(part, leaves) for part in node.inputs]
    if not parts:
        return oc.Array(node).compute().reshape(())[()]
    with np.errstate(all="ignore"):
        if node.op == "astype":
            return np.asarray(parts[0]).astype(node.dtype)[()]
        result = getattr(np, _NAMES.get(node.op, node.op))(*parts)
    assert result.dtype == node.dtype, (node.op, result.dtype, node.dtype)
    return result


class Interpreter:
    """Words are read anew in each iteration, from the place that a loop remembers."""

    def __init__(self, inputs: Sequence[Any], words: Sequence[int], nodes: Sequence[Any]) -> None:
        self.words, self.nodes = list(words), list(nodes)
        self.arrays = [np.array(oc.Array(part).compute()) for part in inputs]
        self.written: set[int] = set()
        self.place, self.node, self.registers = 0, 0, {}
        assert self.word() == len(inputs)
        self.items([], True)
        assert (self.place, self.node) == (len(self.words), len(self.nodes))

    def word(self) -> int:
        assert type(self.words[self.place]) is int
        self.place += 1
        return self.words[self.place - 1]

    def affine(self, counters: Sequence[int]) -> int:
        constant, terms = self.word(), self.word()
        return constant + sum(self.term(counters) for _ in range(terms))

    def term(self, counters: Sequence[int]) -> int:
        depth, coefficient = self.word(), self.word()
        return counters[depth] * coefficient if depth < len(counters) else 0

    def affines(self, counters: Sequence[int]) -> list[int]:
        return [self.affine(counters) for _ in range(self.word())]

    def items(self, counters: list[int], runs: bool) -> None:
        for _ in range(self.word()):
            if self.word() == 0:
                self.loop(counters, runs)
            else:
                self.block(counters, runs)

    def loop(self, counters: list[int], runs: bool) -> None:
        self.affine(counters)  # the shift, by which the core cuts; counters here begin with 0
        extent, divisor = self.affine(counters), self.word()
        assert divisor >= 1
        begin = self.place, self.node
        times = range(extent // divisor + 1) if runs and extent >= 0 else range(0)
        for counter in times:
            self.place, self.node = begin
            self.items([*counters, counter], True)
        if not times:
            self.items([*counters, 0], False)

    def block(self, counters: list[int], runs: bool) -> None:
        runs = all(guard >= 0 for guard in self.affines(counters)) and runs
        self.registers = dict.fromkeys(range(self.word()))
        for _ in range(self.word()):
            self.step(counters, runs)

    def step(self, counters: list[int], runs: bool) -> None:
        is_element = self.word()
        number = self.word()
        update = self.word() if is_element else 0
        subscripts = self.affines(counters) if is_element else []
        value, stand_ins = self.nodes[self.node], {}
        count = self.word()
        for leaf in range(count):
            kind = self.word()
            stand_in = self.nodes[self.node + 1 + leaf]
            read: Any
            if kind == 0:
                array, at = self.arrays[self.word()], tuple(self.affines(counters))
                read = self.element(array, at) if runs else None
            elif kind == 1:
                read = np.int64(self.affine(counters))
            else:
                read = self.registers[self.word()]
            assert not runs or read.dtype == stand_in.dtype
            stand_ins[stand_in.id] = read
        assert len(stand_ins) == count
        self.node += 1 + count
        if is_element:
            self.written.add(number)
        if runs:
            self.assign(is_element, number, update, tuple(subscripts), number_of(value, stand_ins))

    def element(self, array: Any, at: tuple[int, ...]) -> Any:
        assert len(at) == array.ndim
        assert all(0 <= place < length for place, length in zip(at, array.shape, strict=True)), at
        return array[at]

    def assign(self, is_element: int, number: int, update: int, at: tuple[int, ...], value: Any) -> None:
        if not is_element:
            self.registers[number] = value
            return
        array = self.arrays[number]
        before = self.element(array, at)
        assert value.dtype == array.dtype
        with np.errstate(all="ignore"):
            array[at] = value if update == 0 else _UPDATES[update](before, value)

    def results(self) -> Iterator[Any]:
        return (oc.asarray(self.arrays[number])._expr for number in sorted(self.written))


def loop_nest(
    inputs: Sequence[Any],
    words: Sequence[int],
    nodes: Sequence[Any],
    functions: Sequence[Any] = (),
    _compile: Any = None,
) -> list[Any]:
    """The results of a program without calls of functions, computed at once."""
    assert not functions
    return list(Interpreter(inputs, words, nodes).results())


def interpreted(monkeypatch: Any) -> None:
    """Has programs run by the interpreter."""
    monkeypatch.setattr(_core, "loop_leaf", loop_leaf, raising=False)
    monkeypatch.setattr(_core, "loop_nest", loop_nest, raising=False)
