"""Loop programs on stored arrays with small tiles, run within several limits beside their plain functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import outcore as oc
from outcore.errors import MemoryLimitError
from support.running import FIGURES, forecast, load, run, session

ROOM = 64 << 20


class LoopRun(NamedTuple):
    results: tuple[Any, ...]
    pool_limit: int
    figures: dict[str, int]


def plain(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a function over copies of NumPy arrays."""
    own = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # integers that wrap around do so on both sides
        return as_tuple(function(*own))


def random_values(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape)


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def saved(path: Path, values: Any) -> Path:
    np.save(path, values)
    return path


class Tiled(NamedTuple):
    """An array in a file, and the tiles that it is cut into: smaller ones than a file is read in."""

    path: Path
    tile: tuple[int, ...]

    def lazy(self) -> Any:
        return oc.rechunk(oc.open(str(self.path)), self.tile)


def stored(folder: Path, arguments: Sequence[Any], tiles: Sequence[tuple[int, ...] | None]) -> list[Any]:
    """Arguments with arrays replaced by files that have these tiles."""
    return [
        value if tile is None else Tiled(saved(folder / f"in{number}.npy", value), tile)
        for number, (value, tile) in enumerate(zip(arguments, tiles, strict=True))
    ]


def lazy(program: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a program over what files hold."""
    return as_tuple(program(*(value.lazy() if isinstance(value, Tiled) else value for value in arguments)))


def run_within(
    folder: Path, program: Callable[..., Any], arguments: Sequence[Any], suffix: str = ".zarr", **options: Any
) -> LoopRun:
    """Stores the results within a limit, or the least above that works; counters are those of the forecast."""
    limit = options.pop("pool_limit")
    results: tuple[Any, ...] = ()
    while True:
        with session(folder, pool_limit=limit, **options):
            # Bound once for all limits: of programs over small arrays this takes longer than the run.
            results = results or lazy(program, arguments)
            targets = {str(folder / f"out{number}{suffix}"): result for number, result in enumerate(results)}
            try:
                said, figures = forecast(targets), run(targets)
            except MemoryLimitError as error:
                limit = max(limit + 1, error.smallest or 0)
                continue
        assert {name: figures[name] for name in FIGURES} == said
        return LoopRun(tuple(load(Path(path)) for path in targets), limit, figures)


def assert_same(results: Sequence[Any], expected: Sequence[Any]) -> None:
    for values, right in zip(results, expected, strict=True):
        assert values.dtype == right.dtype
        np.testing.assert_array_equal(values, right)


def assert_close(results: Sequence[Any], expected: Sequence[Any]) -> None:
    """Sums in another order: as close as rounding lets them be."""
    for values, right in zip(results, expected, strict=True):
        assert values.dtype == right.dtype
        large = max(1.0, float(np.abs(right).max(initial=0)))
        np.testing.assert_allclose(values, right, rtol=0, atol=large * 1e6 * np.finfo(right.dtype).eps)
