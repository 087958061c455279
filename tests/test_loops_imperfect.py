"""Imperfect nests cut along all loops of their deepest statement: factors are made tile by tile, as by blocked ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.loop_fixed import product
from support.loop_orders import conflicts, planned
from support.loop_runs import ROOM, assert_close, assert_same, lazy, plain, run_within, stored
from support.running import session

import outcore as oc

TILES = 12


def lu(a: Any) -> Any:
    for k in range(len(a)):
        for i in range(k + 1, len(a)):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, len(a)):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def lu_by_rows(a: Any) -> Any:
    """Doolittle's order: the pivot is the innermost loop."""
    for i in range(1, len(a)):
        for k in range(i):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, len(a)):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def cholesky(a: Any) -> Any:
    for k in range(len(a)):
        a[k, k] = np.sqrt(a[k, k])
        for i in range(k + 1, len(a)):
            a[i, k] = a[i, k] / a[k, k]
        for j in range(k + 1, len(a)):
            for i in range(j, len(a)):
                a[i, j] = a[i, j] - a[i, k] * a[j, k]
    return a


def solve(a: Any, b: Any) -> Any:
    """Substitution with many right sides, the division after the sums."""
    for i in range(len(a)):
        for k in range(i):
            for j in range(b.shape[1]):
                b[i, j] = b[i, j] - a[i, k] * b[k, j]
        for j in range(b.shape[1]):
            b[i, j] = b[i, j] / a[i, i]
    return b


def definite(n: int) -> Any:
    a = np.random.default_rng(n).random((n, n))
    return a @ a.T + n * np.eye(n)


CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "lu": (lu, 1),
    "lu by rows": (lu_by_rows, 1),
    "cholesky": (cholesky, 1),
    "solve": (solve, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_nests_are_cut_along_all_loops(name: str, tmp_path: Path) -> None:
    function, count = CASES[name]
    n, tile = 8 * TILES, 8
    values = [definite(n), np.random.default_rng(1).random((n, n))][:count]
    arguments = stored(tmp_path, values, [(tile, tile)] * count)
    program = oc.loops(function)
    with session(tmp_path, pool_limit=ROOM):
        plan = planned({str(tmp_path / "r.zarr"): lazy(program, arguments)[0]})
    boxes = [task for task in plan.tasks if task.updated]
    # Blocks of rows, columns and pivots: a task for each, and no more.
    assert len(boxes) <= TILES**3
    assert all(len(task.read) + len(task.updated) <= 4 for task in boxes)
    assert conflicts(plan.in_text_order())


@pytest.mark.parametrize("tile", [(8, 8), (5, 11), (32, 3)])
@pytest.mark.parametrize("name", CASES)
def test_nests_come_to_the_bits_of_the_plain_function(name: str, tile: tuple[int, int], tmp_path: Path) -> None:
    function, count = CASES[name]
    values = [definite(32), np.random.default_rng(1).random((32, 32))][:count]
    arguments = stored(tmp_path, values, [tile] * count)
    program = oc.loops(function)
    expected = plain(function, values)
    first = run_within(tmp_path, program, arguments, pool_limit=ROOM, threads=1)
    assert_same(first.results, expected)
    least = run_within(tmp_path, program, arguments, pool_limit=64 << 10, threads=3)
    assert_same(least.results, expected)


def scaled(a: Any, b: Any, c: Any) -> Any:
    """A statement before the innermost loop, and one after."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 1.5 * c[i, j]
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
            c[i, j] = c[i, j] / 2
    return c


def scaled_by_rows(a: Any, b: Any, c: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 1.5 * c[i, j]
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@pytest.mark.parametrize("function", [scaled, scaled_by_rows])
def test_what_stands_beside_a_loop_goes_with_its_first_or_last_iteration(
    function: Callable[..., Any], tmp_path: Path
) -> None:
    """The whole product was one task for each row of tiles before."""
    values = [np.random.default_rng(number).random((96, 96)) for number in range(3)]
    arguments = stored(tmp_path, values, [(8, 8)] * 3)
    program = oc.loops(function)
    with session(tmp_path, pool_limit=ROOM):
        plan = planned({str(tmp_path / "r.zarr"): lazy(program, arguments)[0]})
    boxes = [task for task in plan.tasks if task.updated]
    assert len(boxes) == TILES**3
    assert all(len(task.read) + len(task.updated) <= 3 for task in boxes)
    assert conflicts(plan.in_text_order())
    found = run_within(tmp_path, program, arguments, pool_limit=8 << 10, threads=3)
    assert_close(found.results, plain(function, values))


def triangle(a: Any, c: Any) -> Any:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(i + 1):
                c[i, j] += a[i, k] * a[j, k]
    return c


@pytest.mark.parametrize("n", [8000, 8200])
def test_triangles_of_files_are_cut_along_all_loops(n: int, tmp_path: Path) -> None:
    """Tasks of one row each were planned, and 2.2 TiB."""
    for name in "ac":
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", mode="w+", dtype="f8", shape=(n, n)).flush()
    with session(tmp_path, pool_limit=64 << 20):
        said = oc.explain(
            {tmp_path / "r.npy": oc.loops(triangle)(*(oc.open(tmp_path / f"{name}.npy") for name in "ac"))}
        )
    least = n**3 / (64 << 20 >> 3) ** 0.5 / 2**0.5 * 8
    assert said.bytes_read + said.bytes_written < 10 * least


def test_products_of_files_move_a_few_times_the_least(tmp_path: Path) -> None:
    """Row-major files are read in wide tiles: 2 m n k / sqrt(S) elements are the least (Irony, Toledo, Tiskin 2004)."""
    n, pool = 8000, 128 << 20
    for name in "ab":
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", mode="w+", dtype="f8", shape=(n, n)).flush()
    with session(tmp_path, pool_limit=pool):
        a, b = (oc.open(tmp_path / f"{name}.npy") for name in "ab")
        said = oc.explain({tmp_path / "c.npy": oc.loops(product)(a, b, oc.zeros((n, n)))})
    least = 2 * n**3 / (pool / 8) ** 0.5 * 8
    assert said.bytes_read + said.bytes_written < 2.4 * least


def backwards(a: Any) -> Any:
    n = len(a)
    for i in range(n - 1, 0, -1):
        for j in range(i + 1, n):
            a[i - 1, j] = a[i - 1, j - 1] + a[j, j]
        a[i, i] = 0.5 * a[i, i]
    return a


@pytest.mark.parametrize("tile", [(1, 1), (3, 2), (2, 3), (2, 2)])
def test_pieces_of_loops_that_go_backwards_are_counted_from_the_least(tile: tuple[int, int], tmp_path: Path) -> None:
    """Their counters are negative, and planning went over four billion blocks."""
    values = [np.random.default_rng(2).random((7, 7))]
    arguments = stored(tmp_path, values, [tile])
    found = run_within(tmp_path, oc.loops(backwards), arguments, pool_limit=64 << 10, threads=2)
    assert_same(found.results, plain(backwards, values))
