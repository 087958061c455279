"""Loop programs at the edges: all element types, nothing to do, deep and long programs, results that feed others."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.loop_programs import floyd_warshall
from support.loop_runs import as_tuple, assert_close, assert_same, plain
from support.loop_sources import function_of
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, DTypeError

TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
BODIES = {
    "scan": "a[i] = a[i] + a[i - 1]",
    "index": "a[i] = i * 2 + b[i]",
    "sum": "c[0] += a[i] * 3",
    "products": "b[i] *= a[i]",
    "differences": "b[i] -= a[i]",
    "least": "c[0] = min(c[0], a[i])",
    "largest": "b[i] = max(b[i - 1], a[i])",
    "truth": "m[i] = a[i] != b[i]",
}
REFUSED = {("differences", "?")}  # as by NumPy


def tiled(values: Any, *tile: int) -> Any:
    return oc.rechunk(oc.asarray(values), tile)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", BODIES)
def test_all_element_types(name: str, dtype: str) -> None:
    body = BODIES[name]
    source = f"def drawn(a, b, c, m):\n    for i in range(1, len(a)):\n        {body}\n    return a, b, c, m\n"
    random = np.random.default_rng(2)
    a, b = (random.random((2, 50)) * 100).astype(dtype)
    values = (a, b, a[3:4].copy(), np.zeros(50, bool))
    function = function_of(source)
    with session():
        arguments = [tiled(of, tile) for of, tile in zip(values, (7, 5, 1, 3), strict=True)]
        if (name, dtype) in REFUSED:
            with pytest.raises(ArgumentError, match=r"loops: .*:3:"):
                oc.loops(function)(*arguments)
            return
        found = [result.compute() for result in oc.loops(function)(*arguments)]
    is_sum = name == "sum" and np.dtype(dtype).kind in "fc"
    if is_sum:
        np.testing.assert_allclose(found[2], plain(function, values)[2], rtol=float(np.finfo(dtype).eps) * 50)
    else:
        assert_same(found, plain(function, values))


EMPTY = {
    "no rows": ("b[j] += a[i, j]", (0, 5), (5,)),
    "no columns": ("b[0] += a[i, j]", (5, 0), (3,)),
    "neither": ("a[i, j] = 1", (0, 0), (1,)),
    "one element": ("a[i, j] = a[i, j] * 0.5 + b[j] + i", (1, 1), (1,)),
    "ranges that are empty": ("for k in range(5, 2): a[k, k + 90] = 3", (2, 3), (1,)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_to_do(name: str) -> None:
    body, *shapes = EMPTY[name]
    function = function_of(
        "def drawn(a, b):\n    for i in range(a.shape[0]):\n        for j in range(a.shape[1]):\n"
        f"            {body}\n    return a, b\n"
    )
    values = [np.ones(shape) for shape in shapes]
    with session():
        found = [result.compute() for result in oc.loops(function)(*values)]
    assert_same(found, plain(function, values))


def nested(depth: int) -> str:
    loops = [f"{'    ' * (at + 1)}for {name} in range({2 + (at == 3)}):" for at, name in enumerate("ijklmnopq"[:depth])]
    inner = "    " * (depth + 1)
    body = [f"{inner}a[i + j, k + l, m + n] += o - p + 2 * b[o, p]", f"{inner}b[o, p] = b[o, p] + 1"]
    return "\n".join(["def drawn(a, b):", *loops, *body, "    return a, b\n"])


def long(kind: str) -> str:
    if kind == "guards":
        lines = [f"        if i > {k % 29}:\n            a[i] = a[i - {k % 3}] * {k % 5} - {k}" for k in range(150)]
    else:
        lines = [f"        a[i] = a[i - {k % 3}] * {k % 5} + a[i - 2] - {k}" for k in range(200)]
    head = "    for i in range(2, 30):\n"
    body = "\n".join(head + line for line in lines) if kind == "nests" else head + "\n".join(lines)
    return f"def drawn(a):\n{body}\n    return a\n"


def test_eight_loops_and_no_more() -> None:
    values = (np.zeros((3, 4, 3), int), np.zeros((2, 2), int))
    function = function_of(nested(8))
    with session():
        found = [result.compute() for result in oc.loops(function)(tiled(values[0], 2, 1, 2), tiled(values[1], 1, 1))]
        assert_same(found, plain(function, values))
        with pytest.raises(ArgumentError, match="nested more than 8 deep"):
            oc.loops(function_of(nested(9)))(*values)


@pytest.mark.parametrize("kind", ["statements", "nests", "guards"])
def test_hundreds_of_statements(kind: str) -> None:
    function = function_of(long(kind))
    with session():
        found = oc.loops(function)(tiled(np.arange(30), 4)).compute()
    assert_same([found], plain(function, [np.arange(30)]))


def test_integers_wrap_around() -> None:
    function = function_of(
        "def drawn(a):\n    for i in range(1, len(a)):\n        a[i] = a[i] * 3 + a[i - 1]\n    return a\n"
    )
    values = np.full(9, 2**62)
    with session():
        assert_same([oc.loops(function)(tiled(values, 2)).compute()], plain(function, [values]))


RUNNING = "def drawn(a):\n    for i in range(1, len(a)):\n        a[i] = a[i] + a[i - 1]\n    return a\n"
MIRRORED = "def drawn(a, b, c):\n    for i in range(len(a)):\n        c[i] = a[i] + b[len(a) - 1 - i]\n    return c\n"
PAIR = (
    "def drawn(a, b):\n    for i in range(1, len(a)):\n        a[i] = a[i] + b[i - 1]\n"
    "        b[i] = b[i] * 2 + a[i - 1]\n    return a, b\n"
)


def test_results_feed_programs_and_expressions() -> None:
    running, mirrored = oc.loops(function_of(RUNNING)), oc.loops(function_of(MIRRORED))
    x = np.arange(11.0)
    with session():
        lazy = tiled(x, 2)
        found = running(mirrored(lazy, lazy, np.zeros(11)) + 1) * 2
        assert_same([found.compute()], [np.cumsum(x + x[::-1] + 1) * 2])
        assert_same([running(running(lazy)).compute()], [np.cumsum(np.cumsum(x))])
        assert oc.sum(running(lazy)).compute() == np.cumsum(x).sum()
        np.testing.assert_array_equal(lazy.compute(), x)


def test_the_same_array_may_be_read_twice_but_not_written() -> None:
    mirrored, x = oc.loops(function_of(MIRRORED)), np.arange(9.0)
    with session():
        assert_same([mirrored(x, x, np.zeros(9)).compute()], [x + x[::-1]])
        with pytest.raises(ArgumentError, match="are the same array, and one is written"):
            mirrored(x, np.ones(9), x)


def test_two_results_are_stored_together_and_alone(out: Path) -> None:
    program, x = oc.loops(function_of(PAIR)), np.arange(13.0)
    right = plain(program.plain, [x, x])
    with session():
        a, b = program(tiled(x, 2), tiled(x, 5))
        oc.store({out / "a.npy": a, out / "b.npy": b, out / "sum.npy": a + b})
        assert_same([np.load(out / f"{name}.npy") for name in ("a", "b", "sum")], [*right, right[0] + right[1]])
        assert_same([b.compute(), (a - b)[3:].compute()], [right[1], (right[0] - right[1])[3:]])


def test_pickles_of_programs_stored_arrays_and_memory(out: Path) -> None:
    program, x = oc.loops(function_of(RUNNING)), np.arange(13.0)
    np.save(out / "x.npy", x)
    with session(), pytest.raises(DTypeError, match="cannot be pickled"):
        pickle.dumps(program(tiled(x, 2) * 2))


def test_shapes_that_no_memory_holds_are_only_planned() -> None:
    function = function_of(
        "def drawn(a):\n    for i in range(1, a.shape[0]):\n        for j in range(a.shape[1]):\n"
        "            a[i, j] = a[i - 1, j] + 1\n    return a\n"
    )
    with session():
        result = oc.loops(function)(oc.zeros((10**8, 4)))
        assert result.shape == (10**8, 4)
        assert oc.explain(result[:3]).tasks > 100


@pytest.mark.parametrize(("tile", "seconds"), [(35, 0.5), (60, 0.3)])
def test_interrupts_are_heard_within_a_second(tile: int, seconds: float) -> None:
    """While the first is planned, for its many tasks, and while the second is planned or run."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    # Hypothesis hears each collection of garbage: an interrupt that is raised in there is printed, and lost.
    heard = gc.callbacks[:]
    with session(pool_limit=1 << 30):
        lazy = tiled(np.ones((1000, 1000)), tile, tile)
        gc.callbacks.clear()
        timer = threading.Timer(seconds, interrupt)
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                oc.loops(floyd_warshall)(lazy).compute()
        finally:
            timer.cancel()
            gc.callbacks.extend(heard)
        assert time.monotonic() - sent[0] < 1.5
        assert_close(as_tuple(oc.loops(floyd_warshall)(tiled(np.ones((9, 9)), 2, 4)).compute()), [np.ones((9, 9))])
