"""Reading k rows of many costs about k rows, and the forecast says how many bytes exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session
from support.sizes import sized

import outcore as oc

PAGE = 4096
# 5 GB where a large disk may be filled for the test, 100 MB else: the tiles of either are 4 MiB.
ROWS = sized(125_000, 6_250_000)
COLUMNS = 100


@pytest.fixture(scope="module")
def table(shared: Path) -> Path:
    """Row i holds 100 i … 100 i + 99."""
    path = shared / "x.npy"
    made = np.lib.format.open_memmap(path, "w+", np.float64, (ROWS, COLUMNS))
    for start in range(0, ROWS, 62_500):
        stop = min(start + 62_500, ROWS)
        made[start:stop] = np.arange(start * COLUMNS, stop * COLUMNS, dtype=float).reshape(-1, COLUMNS)
    return path


def rows(positions: Any) -> np.ndarray[Any, Any]:
    return np.asarray(positions)[:, None] * float(COLUMNS) + np.arange(COLUMNS)


def compute(*arrays: oc.Array, **options: Any) -> tuple[Any, int]:
    """The values, and the bytes that were read, which are those forecast."""
    with session(**options) as one:
        told = oc.explain(*arrays)
        before = one.counters()["bytes_read"]
        values = oc.compute(*arrays)
        read = one.counters()["bytes_read"] - before
    assert read == told.bytes_read
    return values, read


@pytest.fixture(scope="module")
def scattered() -> list[int]:
    return [int(row) for row in np.random.default_rng(0).choice(ROWS, 2000, replace=False)]


def test_ten_rows_read_ten_rows(table: Path, scattered: list[int]) -> None:
    chosen = sorted(scattered[:10])
    values, read = compute(oc.take(oc.open(table), chosen, axis=0), pool_limit=8 << 20)
    np.testing.assert_array_equal(values, rows(chosen))
    assert read <= 10 * 2 * PAGE


def test_two_thousand_rows_in_one_call_need_little_memory(table: Path, scattered: list[int]) -> None:
    x = oc.open(table)
    values, read = compute(*[x[row] for row in scattered], pool_limit=64 << 20)
    np.testing.assert_array_equal(np.stack(values), rows(scattered))
    assert read <= 2000 * 2 * PAGE


def test_rows_of_a_product_of_steps_are_read_alone(table: Path) -> None:
    x = oc.open(table)
    step = 10_000
    values, read = compute(x[::step, 0], pool_limit=8 << 20)
    np.testing.assert_array_equal(values, rows(np.arange(0, ROWS, step))[:, 0])
    assert read <= 2 * PAGE * len(values)
    values, read = compute(x[::-step, 5:3:-1], pool_limit=8 << 20)
    np.testing.assert_array_equal(values, rows(np.arange(ROWS)[::-step])[:, 5:3:-1])
    assert read <= 2 * PAGE * len(values)


def test_element_wise_steps_are_computed_for_the_chosen_rows_only(table: Path) -> None:
    x = oc.open(table)
    values, read = compute(((x - 1) * 2).T[:, ::10_000].sum(axis=1), pool_limit=8 << 20)
    np.testing.assert_allclose(values, ((rows(np.arange(0, ROWS, 10_000)) - 1) * 2).sum(axis=0))
    assert read <= 2 * PAGE * len(range(0, ROWS, 10_000))


def test_neighbouring_rows_come_in_tiles(table: Path) -> None:
    """Page by page they would cost more than the tile that holds them."""
    x = oc.open(table)
    _, read = compute(*[x[row] for row in range(2000)], pool_limit=64 << 20)
    assert read <= 8 << 20


def test_a_sweep_beside_few_rows_stays_one_sweep(table: Path) -> None:
    x = oc.open(table)
    (total, few), read = compute(x.sum(axis=0), x[::10_000].mean(axis=0), pool_limit=64 << 20)
    np.testing.assert_allclose(few, rows(np.arange(0, ROWS, 10_000)).mean(axis=0))
    np.testing.assert_allclose(total, rows(np.arange(ROWS)).sum(axis=0), rtol=1e-12)
    assert read <= x.nbytes * 1.02 + 2 * PAGE * len(range(0, ROWS, 10_000))


def test_few_rows_of_chunks(tmp_path: Path) -> None:
    values = np.arange(40_000 * 50, dtype=np.float32).reshape(40_000, 50)
    oc.store({tmp_path / "x.zarr": oc.asarray(values)}, chunks={tmp_path / "x.zarr": (8000, 50)})
    found, read = compute(oc.take(oc.open(tmp_path / "x.zarr"), [7, 9000, 39_999], axis=0))
    np.testing.assert_array_equal(found, values[[7, 9000, 39_999]])
    assert read <= 3 * 2 * PAGE


def test_few_elements_in_reverse_order_in_chunks_of_any_length(tmp_path: Path) -> None:
    values = np.arange(5 * 9).reshape(5, 9)
    oc.store({tmp_path / "x.zarr": oc.asarray(values)}, chunks={tmp_path / "x.zarr": (1, 2)})
    x = oc.open(tmp_path / "x.zarr")
    for length in range(1, 6):
        targets = {tmp_path / "y.zarr": x[2:3, ::-2] * 2, tmp_path / "z.zarr": x[2:3, ::2] + x[2:3, ::-2]}
        oc.store(targets, chunks=dict.fromkeys(targets, (1, length)), overwrite=True)
        np.testing.assert_array_equal(oc.open(tmp_path / "y.zarr").compute(), values[2:3, ::-2] * 2)
        np.testing.assert_array_equal(oc.open(tmp_path / "z.zarr").compute(), values[2:3, ::2] + values[2:3, ::-2])


@pytest.mark.parametrize("replace", [False, True])
def test_a_random_sample_reads_the_rows_that_are_drawn(table: Path, replace: bool) -> None:
    x = oc.open(table)
    values, read = compute(oc.random.choice(x, 50, replace, seed=5), pool_limit=8 << 20)
    drawn = (values[:, 0] / COLUMNS).astype(int)
    np.testing.assert_array_equal(values, rows(drawn))
    assert len(set(drawn.tolist())) == 50
    assert read <= 50 * 2 * PAGE
    again, _ = compute(oc.random.choice(x, 50, replace, seed=5))
    np.testing.assert_array_equal(again, values)


def test_many_operators_make_a_short_message(table: Path) -> None:
    x = oc.open(table)
    with session(pool_limit=1 << 20), pytest.raises(oc.errors.MemoryLimitError) as refused:
        oc.compute(*[x[row : row + 100] * 2 for row in range(0, 50_000, 25)])
    assert len(str(refused.value)) < 600
    assert "× 2000" in str(refused.value)
