"""The checks of the algorithms benchmark pass what NumPy computes, and see every way in which it could be wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks import algorithms

SIZE = 1 << 18


def sort_by(key: Any, *values: Any) -> list[Any]:
    order = np.argsort(key, kind="stable")
    return [column[order] for column in (key, *values)]


class Groups:
    """Means of rows by label, as a sum over each label's rows."""

    def __init__(self, labels: Any) -> None:
        self.keys, self.place = np.unique(labels, return_inverse=True)

    def mean(self, rows: Any) -> Any:
        member = (self.place[None, :] == np.arange(self.keys.size)[:, None]).astype(np.float64)
        return member @ rows / member.sum(axis=1, keepdims=True)


NUMPY = SimpleNamespace(
    groupby=Groups,
    sort_by=sort_by,
    argsort=lambda x: np.argsort(x, kind="stable"),
    quantile=np.quantile,
    nonzero=np.nonzero,
    unique_values=np.unique,
    cumulative_sum=np.cumsum,
    take=np.take,
)


@pytest.fixture
def attempt(data: Path, out: Path) -> Callable[..., str | None]:
    """Runs a program in NumPy, lets `spoil` change a result, and checks."""

    def run(name: str, spoil: Callable[[Any], Any] | None = None, result: str | None = None) -> str | None:
        program = algorithms.PROGRAMS[name]
        given = program.make(data, SIZE)
        made = program.build(NUMPY, {key: np.load(path) for key, path in given.items()})
        if spoil is not None:
            chosen = result or next(iter(made))
            made[chosen] = spoil(made[chosen])
        for key, array in made.items():
            np.save(out / f"{key}.npy", array)
        return program.check(given, {key: out / f"{key}.npy" for key in made})

    return run


@pytest.mark.parametrize("name", algorithms.PROGRAMS)
def test_what_numpy_computes_passes(name: str, attempt: Callable[..., str | None]) -> None:
    assert attempt(name) is None


def changed(values: Any) -> Any:
    return np.concatenate([values[:-1], values[-1:] + 1])


def swapped(values: Any) -> Any:
    return np.concatenate([values[-1:], values[1:-1], values[:1]])


@pytest.mark.parametrize("spoil", [changed, swapped])
@pytest.mark.parametrize("name", [name for name in algorithms.PROGRAMS if name != "argsort"])
def test_a_wrong_value_is_found(name: str, spoil: Any, attempt: Callable[..., str | None]) -> None:
    assert attempt(name, spoil)


@pytest.mark.parametrize("name", ["mask", "nonzero", "unique", "sort_by"])
def test_a_missing_row_is_found(name: str, attempt: Callable[..., str | None]) -> None:
    assert attempt(name, lambda values: values[:-1])


def test_a_column_that_lost_its_keys_is_found(attempt: Callable[..., str | None]) -> None:
    assert attempt("sort_by", swapped, "value3")


def test_an_order_that_is_none_is_found(attempt: Callable[..., str | None]) -> None:
    assert attempt("argsort", lambda order: np.maximum(order, 1)) == "not a permutation"
    assert attempt("argsort", swapped) == "not sorted"


def test_an_order_that_is_not_stable_is_found(attempt: Callable[..., str | None], data: Path) -> None:
    values = np.load(algorithms.make_keys(data, SIZE)["keys"])

    def unstable(order: Any) -> Any:
        place = int(np.flatnonzero(np.diff(values[order]) == 0)[0])
        order[[place, place + 1]] = order[[place + 1, place]]
        return order

    assert attempt("argsort", unstable) == "not stable"
