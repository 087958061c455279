"""The sort benchmark's own parts: its keys are what they are called, its checks see what is wrong, its expert sorts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import keys, sorters

COUNT = 200_000
# Runs of some forty thousand keys, and pieces of two thousand.
SMALL = {"limit": int((sorters.INTERPRETER_BYTES + (640 << 10)) / 0.85), "piece_bytes": 16 << 10}


@pytest.fixture(params=keys.PATTERNS)
def pattern(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(pattern: str, data: Path) -> tuple[Path, dict[str, int]]:
    path = data / "keys.npy"
    return path, keys.write(path, pattern, COUNT)


def test_a_digest_is_of_the_values_in_any_order(made: tuple[Path, dict[str, int]]) -> None:
    path, digest = made
    values = np.sort(np.load(path))
    assert keys.wrong(np.array_split(values, 7), digest) is None
    assert keys.wrong([values], digest) is None


def test_a_sorted_file_that_is_not_is_found(data: Path) -> None:
    digest = keys.write(data / "keys.npy", "random", 1000)
    values = np.sort(np.load(data / "keys.npy"))
    assert "not sorted" in str(keys.wrong([values[::-1]], digest))
    assert "not sorted" in str(keys.wrong([values[500:], values[:500]], digest))
    assert "other values" in str(keys.wrong([values[:-1]], digest))
    assert "other values" in str(keys.wrong([np.maximum(values, values[1])], digest))


@pytest.mark.parametrize("order", [[1.0, np.nan, 2.0], [np.nan, 1.0, 2.0], [2.0, 1.0, np.nan]])
def test_a_nan_that_is_not_last_is_found(order: list[float]) -> None:
    digest = keys.Digest()
    digest.add(np.array([1.0, 2.0, np.nan]))
    wanted = vars(digest)
    assert keys.wrong([np.array([1.0, 2.0, np.nan])], wanted) is None
    assert "not sorted" in str(keys.wrong([np.array(order)], wanted))
    assert "not sorted" in str(keys.wrong([np.array(order[:1]), np.array(order[1:])], wanted))


def test_zeros_of_both_signs_and_all_nans_are_alike() -> None:
    one, other = keys.Digest(), keys.Digest()
    one.add(np.array([0.0, np.nan]))
    other.add(np.array([-np.nan, -0.0]))
    assert one == other


def test_patterns_are_what_they_are_called(data: Path) -> None:
    made: dict[str, Any] = {}
    for name in keys.PATTERNS:
        keys.write(data / f"{name}.npy", name, COUNT)
        made[name] = np.load(data / f"{name}.npy")
    assert (np.diff(made["presorted"]) > 0).all()
    assert (np.diff(made["reversed"]) < 0).all()
    assert np.unique(made["equal"]).size == 1
    assert 0.89 < 1 - np.unique(made["duplicates"]).size / COUNT < 0.91
    assert [round(float((made["zipf"] >= key).mean()), 2) for key in (1, 2, 4, 100)] == [1.0, 0.71, 0.5, 0.1]
    assert 0.045 < np.isnan(made["nan"]).mean() < 0.055
    assert all(keys.MEANING[name].startswith(values.dtype.name) for name, values in made.items())


def test_the_expert_sorts_every_pattern_in_even_pieces(made: tuple[Path, dict[str, int]], out: Path) -> None:
    path, digest = made
    told = sorters.expert(str(path), str(out), **SMALL)
    assert told["runs"] > 3
    assert told["pieces"] > 50
    assert told["largest_piece"] <= 2 * SMALL["piece_bytes"] // 8
    assert keys.wrong(keys.npy_blocks(out / "sorted.npy"), digest) is None
    assert [path.name for path in out.iterdir()] == ["sorted.npy"]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_sorting_in_memory_sorts_on_any_number_of_threads(made: tuple[Path, dict[str, int]], threads: int) -> None:
    """It raises where the parts are not sorted as a whole."""
    assert sorters.in_memory(str(made[0]), COUNT - 3, threads)["count"] == COUNT - 3
