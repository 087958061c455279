"""A call of every public function on stored arrays of several tiles, for tests that walk the whole namespace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import outcore as oc

Call = Callable[["Given"], Any]

MODULES = {"": oc, "linalg.": oc.linalg, "fft.": oc.fft, "stats.": oc.stats, "random.": oc.random}
COLUMNS = 1024
GROUPS = 50


def save(folder: Path, mebibytes: int) -> None:
    """Writes the inputs, each of about so many MiB, but for a square matrix of 8."""
    random = np.random.default_rng(7)
    size = mebibytes << 20
    rows = size // (8 * COLUMNS)
    matrix = random.uniform(-1, 1, (rows, COLUMNS))
    small = random.normal(size=(size // (8 * 32 * 32), 32, 32))
    arrays = {
        "x": matrix,
        "y": random.permutation(matrix),
        "n": random.integers(0, 8, (2 * rows, COLUMNS), dtype=np.int32),
        "flags": random.random((8 * rows, COLUMNS)) < 0.5,
        "z": matrix.view(np.complex128),
        "v": matrix.reshape(-1),
        "w": random.uniform(0.5, 1.5, matrix.size),
        "labels": random.integers(0, GROUPS, matrix.size),
        "places": random.integers(0, matrix.size, matrix.size),
        "order": random.permutation(matrix.size),
        "lanes": random.integers(0, COLUMNS, matrix.shape),
        "tall": matrix.reshape(-1, 16),
        "threes": matrix[: rows // 3 * 3].reshape(-1, 3),
        "small": small,  # matrices of 32 × 32, one after another
        "definite": small @ small.transpose(0, 2, 1) + 32 * np.eye(32),
        "square": random.normal(size=(COLUMNS, COLUMNS)),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


class Given:
    """The inputs of a call, by name, as lazy arrays of the session in use; `bytes_used` are those of what was named."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._used: dict[str, oc.Array] = {}

    def __getattr__(self, name: str) -> oc.Array:
        if name not in self._used:
            self._used[name] = oc.open(self._folder / f"{name}.npy")
        return self._used[name]

    @property
    def bytes_used(self) -> int:
        return sum(array.nbytes for array in self._used.values())


def arrays_in(result: Any) -> Iterator[oc.Array]:
    """The lazy arrays of what a function gives: one, or a tuple or list of them, of any depth."""
    if isinstance(result, oc.Array):
        yield result
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from arrays_in(part)


def targets_of(result: Any, out: Path) -> dict[str, oc.Array]:
    return {str(out / f"{number}.npy"): array for number, array in enumerate(arrays_in(result))}


def public_functions() -> set[str]:
    """Names of all public functions, those of a chapter behind its name, and the methods of groups."""
    functions = {
        prefix + name
        for prefix, module in MODULES.items()
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    chapters = {name for name in oc.__all__ if isinstance(getattr(oc, name), ModuleType)}
    # The last seven have no functions that are not in `outcore` too, none of arrays, or none that gives an `Array`.
    assert chapters == {
        "fft",
        "linalg",
        "random",
        "stats",
        "config",
        "constants",
        "elementwise",
        "errors",
        "dates",
        "graph",
        "io",
        "sparse",
    }
    groups = {f"GroupBy.{name}" for name in dir(oc.GroupBy) if not name.startswith("_")}
    return functions | groups


def function(name: str) -> Any:
    """What a name of the table stands for."""
    chapter, _, own = name.rpartition(".")
    return getattr(getattr(oc, chapter) if chapter else oc, own)
