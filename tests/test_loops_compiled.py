"""Blocks that numba compiles: the bits of outcore's own lines, for all functions and types that are taken."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.loop_fixed import FIXED
from support.loop_runs import ROOM, assert_same, lazy, run_within, stored
from support.loop_sources import drawn_program
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore._loops import compiling
from outcore.errors import ArgumentError, FunctionError

pytest.importorskip("numba", reason="numba, the optional extra outcore[jit], is not installed")


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The address of each block that was compiled, as they come."""
    addresses: list[int] = []
    compiled = compiling._compiled

    def counted(source: Any) -> int:
        addresses.append(compiled(source))
        return addresses[-1]

    monkeypatch.setattr(compiling, "_compiled", counted)
    return addresses


@pytest.mark.parametrize("name", FIXED)
def test_known_programs_come_to_the_same_bits(name: str, tmp_path: Path, blocks: list[int]) -> None:
    case = FIXED[name]
    values = case.arguments(np.random.default_rng(7))
    cut = [None if not hasattr(value, "shape") else tuple(min(5, n) for n in value.shape) for value in values]
    arguments = stored(tmp_path, values, cut)
    own = run_within(tmp_path, oc.loops(case.function, compiled=False), arguments, pool_limit=ROOM, threads=1)
    assert not blocks
    program = oc.loops(case.function, compiled=True)
    compiled = run_within(tmp_path, program, arguments, pool_limit=own.pool_limit, threads=2)
    assert blocks
    assert_same(compiled.results, own.results)
    least = run_within(tmp_path, program, arguments, pool_limit=64 << 10, threads=2)
    assert_same(least.results, own.results)


@pytest.mark.parametrize("kind", ["integers", "sums"])
@settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(data=st.data())
def test_drawn_programs_come_to_the_same_bits(kind: str, data: st.DataObject) -> None:
    """What is not compiled is left to outcore, block by block."""
    drawn = drawn_program(lambda items: data.draw(st.sampled_from(items)), kind)
    note(drawn.source)
    values = drawn.values(data.draw(st.integers(0, 9)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = stored(folder, values, [of.tile for of in drawn.arrays])
        with session(folder, pool_limit=ROOM, threads=2):
            own = [result.compute() for result in lazy(oc.loops(drawn.function, compiled=False), arguments)]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(compiling, "EFFORT_MIN", 0)
                compiled = [result.compute() for result in lazy(oc.loops(drawn.function), arguments)]
        assert_same(compiled, own)


def arithmetic(x: Any, y: Any, r: Any) -> Any:
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            low, high = min(x[i, j], y[i, j]), max(x[i, j], y[i, j])
            z = x[i, j] * y[i, j] - 3 * low + high
            r[i, j] = -z if x[i, j] > y[i, j] and low != 2 else z + i - r[i - 1, j] + j
            r[i, j] += x[i - 1, j] * x[i - 1, j]
    return r


def floating(x: Any, y: Any, r: Any) -> Any:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            z = np.sqrt(np.abs(x[i, j])) / y[i, j] + 0.1 * np.floor(y[i, j]) - np.ceil(x[i, j])
            r[i, j] = min(z, r[i, j - 1]) if z == z else np.square(x[i, j]) + j
    return r


def truths(x: Any, y: Any, r: Any) -> Any:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            is_less = x[i, j] < y[i, j]
            r[i, j] = (is_less ^ r[i, j - 1]) | (~is_less & (x[i, j] != y[i, j]))
    return r


def bits(x: Any, y: Any, r: Any) -> Any:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            r[i, j] = (x[i, j] & y[i, j]) ^ (~x[i, j] | r[i, j - 1])
    return r


REAL = ["f4", "f8"]
WHOLE = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
CASES = [
    *((arithmetic, dtype, dtype) for dtype in (*REAL, *WHOLE)),
    *((floating, dtype, dtype) for dtype in REAL),
    *((truths, dtype, "?") for dtype in ("f8", "i4")),
    *((bits, dtype, dtype) for dtype in WHOLE),
]


@pytest.mark.parametrize(("function", "dtype", "result"), CASES)
def test_functions_and_types_come_to_the_same_bits(
    function: Any, dtype: str, result: str, tmp_path: Path, blocks: list[int]
) -> None:
    random = np.random.default_rng(3)
    x, y = (random.integers(-120, 120, (9, 14)).astype(dtype) for _ in range(2))
    if dtype in REAL:
        x[3:5], y[:, 4] = np.nan, 0
        x[6], y[7] = -0.0, np.inf
        x[7] *= 1.7
    arguments = stored(tmp_path, [x, y, np.zeros(x.shape, result)], [(4, 5)] * 3)
    own = run_within(tmp_path, oc.loops(function, compiled=False), arguments, pool_limit=ROOM)
    compiled = run_within(tmp_path, oc.loops(function, compiled=True), arguments, pool_limit=ROOM)
    assert blocks
    assert own.results[0].tobytes() == compiled.results[0].tobytes()


def tangents(x: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] = np.tan(x[i - 1]) + x[i]
    return x


def test_functions_that_are_not_exact_are_left_to_outcore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: list[int]
) -> None:
    monkeypatch.setattr(compiling, "EFFORT_MIN", 0)
    x = np.random.default_rng(4).random(40)
    with session(tmp_path):
        found = oc.loops(tangents)(x).compute()
        np.testing.assert_array_equal(found, oc.loops(tangents, compiled=False)(x).compute())
    assert not blocks


@pytest.mark.parametrize(("dtype", "named"), [("f8", "`tan` of float64"), ("f2", "float16"), ("c16", "complex128")])
def test_what_must_be_compiled_and_is_not_is_refused_by_name(dtype: str, named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        oc.loops(tangents, compiled=True)(np.ones(9, dtype))


def recurrence(x: Any, y: Any) -> Any:
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


@oc.jit
def logistic(x: Any, rate: Any) -> Any:
    for _ in range(3):
        x = rate * x * (1 - x)
    return x


def generations(x: Any, y: Any) -> Any:
    for i in range(1, x.shape[0]):
        growth = logistic(y[i - 1], x[i])
        y[i] = 0.5 * growth + np.exp(-x[i]) if growth > 0.1 else logistic(x[i], i)
    return y


def test_functions_of_jit_are_called_in_order(tmp_path: Path) -> None:
    x, y = np.random.default_rng(5).random((2, 300))
    x[:7] = 0.01
    arguments = stored(tmp_path, [x, y], [(17,), (40,)])
    for compiled in (None, True):
        program = oc.loops(generations, compiled=compiled)
        found = run_within(tmp_path, program, arguments, pool_limit=ROOM, threads=2).results[0]
        np.testing.assert_allclose(found, generations(x, y.copy()), rtol=1e-13)


def orbit(x: Any, y: Any) -> Any:
    value = 0.5
    for i in range(x.shape[0]):
        value = logistic(value, x[i])
        y[i] = value
    return y


def test_functions_of_jit_take_numbers_that_loops_carry(tmp_path: Path) -> None:
    x, y = np.random.default_rng(6).random((2, 300)) + 2.0
    arguments = stored(tmp_path, [x, y], [(17,), (40,)])
    for compiled in (None, True):
        program = oc.loops(orbit, compiled=compiled)
        results = run_within(tmp_path, program, arguments, pool_limit=ROOM, threads=2).results
        np.testing.assert_allclose(results[0], orbit(x, y.copy()), rtol=1e-13)


def test_functions_of_jit_that_nothing_compiles_are_refused() -> None:
    x, y = np.ones((2, 9))
    with pytest.raises(ArgumentError, match="compiled=False"):
        oc.loops(generations, compiled=False)(x, y)
    for compiled in (None, True):
        with pytest.raises(ArgumentError, match="complex128 is not compiled"):
            oc.loops(waves, compiled=compiled)(x + 1j, y + 0j)


@oc.jit
def checked(x: Any) -> Any:
    if x < 0:
        raise ValueError("negative")
    return x


def totals(x: Any) -> Any:
    for t in range(1, x.shape[0]):
        x[t] = checked(x[t - 1]) + x[t]
    return x


def test_exceptions_of_functions_end_the_run(tmp_path: Path) -> None:
    """They were told to the terminal, and elements behind them stayed as they were."""
    x = np.ones(1000)
    with session(tmp_path):
        np.testing.assert_array_equal(oc.loops(totals)(x).compute(), totals(x.copy()))
        x[500] = -900
        with pytest.raises(FunctionError, match=r"loops: .*outcore\.jit raised an exception"):
            oc.store({tmp_path / "r.npy": oc.loops(totals)(x)})
    assert not (tmp_path / "r.npy").exists()


def waves(x: Any, y: Any) -> Any:
    for i in range(x.shape[0]):
        y[i] = logistic(x[i], y[i])
    return y


def test_long_programs_are_compiled_by_themselves(monkeypatch: pytest.MonkeyPatch, blocks: list[int]) -> None:
    """Effort counts: lines of one element, as of a recurrence, are worth a hundred of others."""
    program = oc.loops(recurrence)
    short, long = ((oc.zeros(n), oc.zeros(n)) for n in (1 << 16, 1 << 21))
    program(*short)
    assert not blocks
    program(*long)
    assert len(blocks) == 1
    monkeypatch.setattr(compiling, "EFFORT_MIN", 1 << 30)
    program(*long)
    assert len(blocks) == 1


def test_small_limits_keep_numba_out(monkeypatch: pytest.MonkeyPatch, blocks: list[int]) -> None:
    """Unless it is there already: its memory is the process's."""
    monkeypatch.setattr(compiling, "EFFORT_MIN", 1)
    program, values = oc.loops(recurrence), (oc.zeros(9), oc.zeros(9))
    modules = dict(sys.modules)
    monkeypatch.setattr(sys, "modules", {name: module for name, module in modules.items() if name != "numba"})
    with session(memory_limit="900MiB"):
        program(*values)
    assert not blocks
    monkeypatch.setattr(sys, "modules", modules)
    with session(memory_limit="900MiB"):
        program(*values)
    assert len(blocks) == 1


def test_without_numba_compilation_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(ImportError, match=r"outcore\[jit\]"):
        oc.loops(recurrence, compiled=True)
    values = np.ones(5), np.zeros(5)
    assert oc.loops(recurrence)(*values).compute()[-1] == 1.875
