"""Nests that read a row and a column of pivots which they change: cut in blocks of pivots, to the same bits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loop_orders import conflicts, planned
from support.loop_runs import ROOM, assert_same, lazy, plain, run_within, stored
from support.running import session
from support.sizes import sized

import outcore as oc


def shortest(d: Any) -> Any:
    """Floyd and Warshall's: d may be wider than high, where pivots are."""
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[1]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def by_columns(d: Any) -> Any:
    for k in range(d.shape[0]):
        for j in range(d.shape[1]):
            for i in range(d.shape[0]):
                d[i, j] = max(d[i, j], min(d[i, k], d[k, j]))
    return d


def guarded(d: Any) -> Any:
    """Rows of pivots stay as they are, so only the columns change on the way."""
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[1]):
                if i != k:
                    d[i, j] = d[i, j] - d[i, k] * d[k, j]
    return d


def triangle(d: Any) -> Any:
    """Pivots begin at another place than rows and columns, and the loops go as far as the diagonal of the pivots."""
    for k in range(2, d.shape[0]):
        for i in range(1, d.shape[0]):
            for j in range(d.shape[1] - 1):
                if i + j >= k:
                    step = 0.5 * d[i, k - 1] + d[k - 2, j] - k
                    d[i, j] = step if step < d[i, j] else d[i, j] + 1
    return d


def weighed(d: Any, w: Any, s: Any) -> Any:
    """Other arrays beside, and a nest before and after that is not cut over pivots."""
    for i in range(d.shape[0]):
        d[i, i] = s[i]
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[1]):
                d[i, j] += w[k, j] * d[i, k] - s[k] * d[k, j]
    for i in range(d.shape[0]):
        s[i] = d[i, i]
    return d, s


def beyond(d: Any) -> Any:
    """A guard alone keeps elements within the array."""
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(-3, d.shape[1]):
                if j >= 0:
                    d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def in_a_band(d: Any) -> Any:
    for k in range(d.shape[0]):
        for i in range(max(0, k - 20), min(d.shape[0], k + 8)):
            for j in range(max(0, k - 22), d.shape[1]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


FUNCTIONS = (shortest, by_columns, guarded, triangle, weighed, beyond, in_a_band)
PROGRAMS = {function.__name__: oc.loops(function) for function in FUNCTIONS}


@settings(max_examples=sized(5, 40), deadline=None)
@given(st.data())
def test_tiles_go_through_blocks_of_pivots_to_the_same_bits(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(PROGRAMS)))
    rows = data.draw(st.integers(3, 26))
    columns = rows + data.draw(st.integers(0, 9))
    side = data.draw(st.integers(2, 11))
    # Values that are below 0 on the diagonal too: pivots then change their own lines.
    dtype = data.draw(st.sampled_from(["f8", "f4", "i8", "i4"] if name in ("shortest", "by_columns") else ["f8", "f4"]))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    values: list[Any] = [(random.random((rows, columns)) * 40 - 10).astype(dtype) / np.asarray(8, dtype)]
    values[0] = values[0].astype(dtype)
    tiles: list[Any] = [(side, side)]
    if name == "weighed":
        values += [random.random((rows, columns)) / 50, random.random(rows) / 50]
        tiles += [(side, side), None]
    function = PROGRAMS[name].plain
    expected = plain(function, values)
    with tempfile.TemporaryDirectory() as folder:
        arguments = stored(Path(folder), values, tiles)
        wide = run_within(Path(folder), PROGRAMS[name], arguments, pool_limit=ROOM, threads=2)
        assert_same(wide.results, expected)
        narrow = run_within(Path(folder), PROGRAMS[name], arguments, pool_limit=4 << 10, threads=3)
        assert_same(narrow.results, expected)


@pytest.mark.parametrize("name", ["shortest", "by_columns"])
def test_a_task_goes_through_a_block_of_pivots(name: str, tmp_path: Path) -> None:
    blocks, side = 6, 8
    values = np.random.default_rng(0).random((blocks * side, blocks * side))
    with session(tmp_path, pool_limit=ROOM):
        arguments = stored(tmp_path, [values], [(side, side)])
        plan = planned({str(tmp_path / "r.zarr"): lazy(PROGRAMS[name], arguments)[0]})
    boxes = [task for task in plan.tasks if task.updated]
    assert len(boxes) == blocks**3
    # The tile of the pivots with its own lines before and after; others have fewer.
    assert max(len(task.read) + len(task.updated) for task in boxes) == 5
    assert conflicts(plan.in_text_order())


@pytest.mark.parametrize("pool", [64 << 20, 128 << 20])
def test_shortest_paths_move_a_few_times_the_least(pool: int, tmp_path: Path) -> None:
    """As many bytes as a product of three loops must move, 2 n^3 / sqrt(S) elements, beside the matrix itself twice."""
    n = 8192
    np.lib.format.open_memmap(tmp_path / "d.npy", mode="w+", dtype="f4", shape=(n, n)).flush()
    with session(tmp_path, pool_limit=pool):
        said = oc.explain({tmp_path / "r.npy": PROGRAMS["shortest"](oc.open(tmp_path / "d.npy"))})
    least = (2 * n**3 / (pool / 4) ** 0.5 + 2 * n**2) * 4
    assert said.bytes_read + said.bytes_written < 2.3 * least


def test_pivots_of_two_columns_at_once_are_not_cut() -> None:
    """A pattern that is another stays what it is, one pivot after the other."""
    both: Callable[..., Any] = oc.loops(neighbours)
    values = [np.random.default_rng(1).random((20, 20))]
    assert_same((both(oc.rechunk(oc.asarray(values[0]), (6, 6))).compute(),), plain(neighbours, values))


def neighbours(d: Any) -> Any:
    for k in range(1, d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[1]):
                d[i, j] = d[i, j] + 0.01 * d[i, k] * d[k, j] - 0.02 * d[i, k - 1]
    return d
