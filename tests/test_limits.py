"""A refusal names the function that was called, and a limit under which all of it works."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore._base.sizes import parse_size
from outcore.errors import MemoryLimitError

PROGRAMS = sized(40, 2_000)

Operator = Callable[[oc.Array, np.random.Generator], Any]


def row(x: oc.Array) -> oc.Array:
    return oc.reshape(x, -1)


def keys(x: oc.Array, most: int) -> oc.Array:
    return oc.astype(oc.floor(row(x) * most), oc.int64)


def square(x: oc.Array) -> oc.Array:
    side = min(*x.shape, 300)
    return x[:side, :side] + 2 * oc.eye(side) * side


OPERATORS: dict[str, Operator] = {
    "element-wise": lambda x, _: oc.exp(x) * 2 - x,
    "sum": lambda x, random: (x * 2).sum(axis=int(random.integers(2))),
    "var": lambda x, _: oc.var(x, axis=0),
    "product": lambda x, _: x.T @ x[:, :50],
    "transpose": lambda x, _: x.T + 1,
    "reshape of a transpose": lambda x, _: oc.reshape(x.T, -1) * 2,
    "sort": lambda x, _: oc.sort(row(x)),
    "argsort": lambda x, _: oc.argsort(row(x)),
    "sort of a sort": lambda x, _: oc.sort(oc.sort(row(x)) * -1.0),
    "median": lambda x, _: oc.median(row(x)),
    "quantile": lambda x, random: oc.quantile(x, [0.1, 0.5], axis=int(random.integers(2))),
    "mean of groups": lambda x, _: oc.groupby(keys(x, 50)).mean(row(x)),
    "take": lambda x, random: oc.take(x, random.integers(0, x.shape[0], 1000), axis=0),
    "take along": lambda x, _: oc.take_along_axis(row(x), keys(x, x.size), axis=0),
    "repeat": lambda x, _: oc.repeat(row(x), 3),
    "scan": lambda x, random: oc.cumulative_sum(x, axis=int(random.integers(2))),
    "qr": lambda x, _: oc.linalg.qr(x[:, :40]),
    "solve": lambda x, _: oc.linalg.solve(square(x), square(x)[:, :3]),
    "svdvals": lambda x, _: oc.linalg.svdvals(x[:, :30]),
    "fft": lambda x, random: oc.fft.fft(x, axis=int(random.integers(2))),
    "window": lambda x, _: oc.rolling_sum(x, 5, axis=0),
    "search": lambda x, _: oc.searchsorted(oc.sort(row(x)), row(x) * 0.5),
    "lexsort": lambda x, _: oc.lexsort((row(x), keys(x, 9))),
    "mask": lambda x, _: x[x > 0.5],
}


# Operators that count, or look at labels, before their result has a shape.
COUNTING: dict[str, Operator] = {
    "unique": lambda x, _: oc.unique_all(keys(x, 1000)),
    "mode": lambda x, _: oc.mode(keys(x, 50)),
    "bincount": lambda x, _: oc.bincount(keys(x, 500)),
    "exclusive": lambda x, _: oc.setxor1d(keys(x, 100), keys(x, 50)),
    "convolution": lambda x, _: oc.convolve(row(x), row(x[:1, :3])),
    "own group": lambda x, _: oc.groupby(keys(x, 10)).transform(row(x), "median"),
    "rank": lambda x, _: oc.groupby(keys(x, 10)).rank(row(x)),
}


def drawn(random: np.random.Generator) -> tuple[str, list[Any]]:
    shape = int(10 ** random.uniform(2, 4.5)), int(10 ** random.uniform(0.5, 2))
    x = oc.random.uniform(shape, seed=int(random.integers(9)))
    if random.random() < 0.5:
        x = oc.asarray(np.random.default_rng(7).random(shape))
    names = random.choice(list(OPERATORS), int(random.integers(1, 3)), replace=False)
    made: list[Any] = []
    for name in names:
        found = OPERATORS[name](x, random)
        made += found if isinstance(found, tuple) else [found]
    return f"{', '.join(names)} of {shape}", made


def refusal(option: str, limit: int, seed: int) -> MemoryLimitError | None:
    """The refusal of a drawn program under a limit, if there is one."""
    try:
        with session(**{option: limit}):
            oc.explain(*drawn(np.random.default_rng(seed))[1])
    except MemoryLimitError as error:
        return error
    return None


@pytest.mark.parametrize("part", range(4))
def test_the_limit_that_a_refusal_names_is_accepted(part: int) -> None:
    refused = 0
    for number in range(part, PROGRAMS, 4):
        random = np.random.default_rng(number)
        option = ["pool_limit", "memory_limit"][int(random.random() < 0.3)]
        limit = int(2 ** random.uniform(16, 23)) if option == "pool_limit" else 64 << 20
        seed = int(random.integers(1 << 30))
        error = refusal(option, limit, seed)
        if error is None:
            continue
        refused += 1
        assert error.smallest is not None
        assert error.smallest > limit
        again = refusal(option, error.smallest, seed)
        assert again is None, f"program {number}, {option} {error.smallest}: {again}"
    assert refused > 2


@pytest.mark.parametrize("limit", [1 << 17, 1 << 19, 1 << 21])
@pytest.mark.parametrize("name", COUNTING)
def test_what_follows_a_count_is_in_the_limit_that_is_named(name: str, limit: int) -> None:
    x = oc.asarray(np.random.default_rng(7).random((20_000, 12)))

    def refused(pool: int) -> MemoryLimitError | None:
        try:
            with session(pool_limit=pool):
                made = COUNTING[name](x, np.random.default_rng(0))
                oc.explain(*(made if isinstance(made, tuple) else [made]))
        except MemoryLimitError as error:
            return error
        return None

    error = refused(limit)
    assert error is not None
    assert error.smallest is not None
    assert refused(error.smallest) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda x, k: oc.groupby(k).median(x),
        lambda x, k: oc.groupby(k % 100).mean(x),
        lambda x, k: oc.repeat(x, k % 5),
        lambda x, k: oc.unique_counts(k).counts,
        lambda x, k: oc.unique_inverse(k).inverse_indices,
        lambda x, k: oc.sort(x[k > 50_000]),
        lambda x, k: oc.nonzero(x > 0.5)[0],
    ],
)
def test_a_run_that_counts_first_is_refused_for_what_follows_too(call: Callable[..., oc.Array]) -> None:
    random = np.random.default_rng(3)
    x, k = oc.asarray(random.random(1_000_000)), oc.asarray(random.integers(0, 100_000, 1_000_000))
    with session(pool_limit=1 << 19), pytest.raises(MemoryLimitError) as refused:
        call(x, k).compute()
    assert refused.value.smallest is not None
    with session(pool_limit=refused.value.smallest):
        call(x, k).compute()


def test_what_a_refused_run_foresaw_is_not_remembered() -> None:
    random = np.random.default_rng(3)
    x, k = random.random(300_000), random.integers(0, 1000, 300_000) * 1000
    groups, chosen = oc.groupby(oc.asarray(k) * 1), oc.asarray(x)[oc.asarray(k) > 500_000]
    sums = groups.sum(oc.asarray(x))
    with session(pool_limit=1 << 17):
        for array in (sums, chosen, groups.keys):
            with pytest.raises(MemoryLimitError):
                array.compute()
    with session():
        np.testing.assert_array_equal(chosen.compute(), x[k > 500_000])
        np.testing.assert_array_equal(groups.keys.compute(), np.unique(k))
        np.testing.assert_allclose(sums.compute(), np.bincount(k // 1000, x))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: oc.linalg.solve(square(x), square(x)[:, :3]), "solve"),
        (lambda x: oc.quantile(x, 0.3, axis=0), "quantile"),
        (lambda x: oc.lexsort((row(x), oc.arange(x.size))), "lexsort"),
        (lambda x: oc.take_along_axis(row(x), keys(x, x.size), axis=0), "take_along_axis"),
        (lambda x: oc.sort(row(x)), "sort"),
        (lambda x: oc.unique_values(oc.round(row(x) * 1000)), "unique_values"),
        (lambda x: oc.unique(keys(x, 1000)), "unique"),
        (lambda x: oc.mode(keys(x, 1000)), "mode"),
        (lambda x: oc.setxor1d(keys(x, 1000), keys(x, 500)), "setxor1d"),
        (lambda x: oc.round(x * 2), "round"),
        (lambda x: oc.logaddexp(x, 1.0), "logaddexp"),
        (lambda x: x[x > 0.5], "getitem"),
        (lambda x: oc.groupby(keys(x, 9)).agg(row(x), "median"), "agg"),
        (lambda x: oc.groupby(keys(x, 9)).transform(row(x), "mean"), "transform"),
        (lambda x: oc.groupby((keys(x, 9), keys(x, 5))).mean(row(x)), "mean"),
        (lambda x: oc.convolve(row(x), row(x[:1, :9])), "convolve"),
    ],
)
def test_a_refusal_names_the_function_that_was_called(call: Callable[[oc.Array], Any], name: str) -> None:
    x = oc.asarray(np.random.default_rng(0).random((4000, 100)))
    with session(pool_limit=1 << 18), pytest.raises(MemoryLimitError) as refused:
        oc.explain(call(x))
    assert refused.value.operator == name
    assert str(refused.value).startswith(f"{name}: needs")


def test_a_refusal_shows_sizes_that_can_be_typed_in() -> None:
    x = oc.asarray(np.random.default_rng(0).random(400_000))
    with session(pool_limit=1 << 18), pytest.raises(MemoryLimitError) as refused:
        oc.explain(oc.sort(x))
    shown = re.search(r"the smallest limit that works is ([\d.]+ [KMG]iB)$", str(refused.value))
    assert shown is not None
    assert refused.value.smallest is not None
    assert refused.value.smallest <= parse_size(shown.group(1)) <= 1.02 * refused.value.smallest


def test_a_long_chain_of_sorts_is_planned_in_linear_time() -> None:
    """3,000 took two minutes: each was looked for, and put in its place, by a walk over all of them."""
    x = oc.asarray(np.random.default_rng(0).random(10))
    for _ in range(3000):
        x = oc.sort(x * 1.0)
    with session():
        np.testing.assert_array_equal(x.compute(), np.sort(np.random.default_rng(0).random(10)))
