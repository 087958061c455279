"""Loop programs that go over their arrays once: every tile of an argument is read once, every tile of a result written
once, and nothing else is moved, in memory for a few tiles or for a few rows of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.loop_nests import TILE_BYTES, chunked
from support.loop_orders import planned
from support.running import session

import outcore as oc


def pair(a: Any, b: Any) -> Any:
    for i in range(1, len(a)):
        a[i] = 0.5 * a[i - 1] + b[i]
        b[i] = a[i] * 2
    return a, b


def temporaries(a: Any) -> Any:
    u = np.zeros(len(a))
    v = np.zeros(len(a))
    w = np.zeros(len(a))
    for i in range(1, len(a)):
        u[i] = a[i] * a[i - 1]
        v[i] = a[i] + u[i]
        w[i] = v[i] * a[i]
    return v, w


def reflected(a: Any) -> Any:
    u = np.zeros(len(a))
    for i in range(len(a) - 1, 0, -1):
        u[i] = 0.5 * a[i] + a[i - 1]
    return (u,)


def five_points(u: Any, v: Any, f: Any) -> Any:
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            v[i, j] = u[i - 1, j] + u[i, j - 1] + u[i, j] + u[i, j + 1] + u[i + 1, j] - f[i, j]
    return (v,)


def nine_points(u: Any, v: Any, f: Any) -> Any:
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            above = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
            below = u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
            v[i, j] = above + u[i, j - 1] + u[i, j] + u[i, j + 1] + below - f[i, j]
    return (v,)


def affine_gaps(a: Any) -> Any:
    n, m = a.shape
    h = np.zeros((n, m))
    e = np.zeros((n, m))
    f = np.zeros((n, m))
    g = np.zeros(m)
    for i in range(1, n):
        for j in range(1, m):
            e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 3)
            f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 3)
            h[i, j] = max(g[j], h[i - 1, j - 1] + a[i, j], e[i, j], f[i, j])
    return (h,)


@pytest.mark.parametrize(
    ("function", "tiles", "pool_tiles"),
    [
        (pair, (48,), 16),
        (temporaries, (48,), 16),
        (reflected, (48,), 16),
        (five_points, (9, 4), 40),
        (nine_points, (9, 4), 40),
        (affine_gaps, (9, 4), 60),
    ],
)
def test_one_sweep_moves_each_tile_once(
    function: Callable[..., Any], tiles: tuple[int, ...], pool_tiles: int, tmp_path: Path
) -> None:
    count = function.__code__.co_argcount
    with session(tmp_path, pool_limit=pool_tiles * TILE_BYTES):
        results = oc.loops(function)(*(oc.open(chunked(tmp_path, tiles, number)) for number in range(count)))
        targets = {str(tmp_path / f"out{number}.zarr"): result for number, result in enumerate(results)}
        said, program = oc.explain(targets), planned(targets)
    sources = {tile for task in program.tasks for tile in task.read if program.tiles[tile].is_there}
    # Each tile of a result is made, and swept once.
    made = sum(not facts.is_there for facts in program.tiles)
    assert len(program.tasks) <= 2 * made
    assert said.bytes_spilled == 0
    assert said.bytes_read == sum(program.tiles[tile].read_bytes for tile in sources)
