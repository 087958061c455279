"""`Explanation.least_bytes`: below what every plan moves, and near to that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import loop_polybench_programs as programs
from support.running import session

import outcore as oc

MIB = 1 << 20


def stored(folder: Path, name: str, *shape: int) -> oc.Array:
    """A file of zeros without blocks on disk."""
    np.lib.format.open_memmap(folder / name, mode="w+", dtype="f8", shape=shape)
    return oc.open(folder / name)


def explained(result: Any, folder: Path) -> oc.Explanation:
    results = result if isinstance(result, tuple) else (result,)
    return oc.explain({folder / f"out{number}.npy": one for number, one in enumerate(results)})


@pytest.mark.parametrize("pool", [48, 96, 192])
@pytest.mark.parametrize("name", ["gemm", "syrk", "two_products", "lu", "cholesky_right", "floyd_warshall"])
def test_no_plan_moves_less(name: str, pool: int, tmp_path: Path) -> None:
    side = 2048
    matrices = [stored(tmp_path, f"{number}.npy", side, side) for number in range(4)]
    arguments = {
        "gemm": (1.5, 0.5, *matrices[:3]),
        "syrk": (1.5, 0.5, *matrices[:2]),
        "two_products": (1.5, 0.5, *matrices),
    }
    with session(pool_limit=pool * MIB, threads=2):
        said = explained(getattr(programs, name)(*arguments.get(name, matrices[:1])), tmp_path)
    moved = said.bytes_read + said.bytes_written
    assert (said.least_bytes or 0) <= moved
    if said.least_bytes:
        assert f"{moved / said.least_bytes:.2f} times that" in str(said)


@pytest.mark.parametrize("product", ["loops", "matmul"])
def test_a_product_is_near_to_its_least(product: str, tmp_path: Path) -> None:
    """2mnk/√S elements at least, and both matrices and the result once; written as blocks of whole tiles."""
    side, pool = 8000, 192 * MIB
    with session(pool_limit=pool, threads=2):
        a, b = stored(tmp_path, "a.npy", side, side), stored(tmp_path, "b.npy", side, side)
        result = a @ b if product == "matmul" else programs.gemm(1.0, 1.0, oc.zeros((side, side)), a, b)
        said = explained(result, tmp_path)
    assert said.least_bytes is not None
    elements = said.budget_bytes / 8
    assert 0.8 < said.least_bytes / (8 * 2 * side**3 / elements**0.5) < 1.2
    assert said.least_bytes <= said.bytes_read + said.bytes_written <= 2.4 * said.least_bytes


@pytest.mark.parametrize("of", [lambda x: 2 * x, lambda x: x.sum(axis=0), lambda x: x @ x[:, :1]])
def test_what_uses_elements_once_has_none(of: Any, tmp_path: Path) -> None:
    with session(pool_limit=24 * MIB, threads=2):
        said = explained(of(stored(tmp_path, "x.npy", 2048, 2048)), tmp_path)
    assert said.least_bytes is None
    assert "at least" not in str(said)
