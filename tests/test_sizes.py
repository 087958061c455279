"""Sweeps of calls that fail reach the first and the last of them, and their ends are found."""

from __future__ import annotations

import itertools
from collections.abc import Container

import pytest
from support import sizes
from support.sizes import Sweep, alternating, covering, examples, sized, spread


def tried(failing: Container[int], quiet: int = 1) -> tuple[list[int], Sweep]:
    sweep, numbers = Sweep("read:{n}", 500, quiet), []
    for n in sweep:
        numbers.append(n)
        if n in failing:
            sweep.failed()
    return numbers, sweep


@pytest.mark.parametrize("quiet", [1, 3])
def test_every_call_fails_at_full_size(quiet: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGE", True)
    numbers, sweep = tried(range(1, 101), quiet)
    assert numbers == list(range(1, 101 + quiet))
    assert (sweep.last, sweep.count) == (100, 100)


def test_the_first_and_the_last_calls_fail_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGE", False)
    for last in range(1, 300):
        numbers, sweep = tried(range(1, last + 1))
        assert len(numbers) == len(set(numbers)) <= 24
        assert set(numbers) >= {*range(1, min(5, last + 2)), *range(max(1, last - 1), last + 2)}
        assert sweep.last == last


@pytest.mark.parametrize("large", [False, True])
def test_some_calls_are_not_missed(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGE", large)
    numbers, sweep = tried({2, 3, *range(6, 41)}, quiet=3)
    assert {1, 2, 3, 4, 5, 6, 40, 41} <= set(numbers)
    assert sweep.last == 40


@pytest.mark.parametrize("quiet", [1, 4])
def test_a_sweep_that_ends_just_before_the_most_calls_is_none_without_an_end(
    quiet: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "LARGE", False)
    for last in (250, 499 - quiet):
        assert tried(range(1, last + 1), quiet)[1].last == last


@pytest.mark.parametrize("large", [False, True])
def test_a_sweep_without_a_failure_or_an_end_is_an_error(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGE", large)
    with pytest.raises(AssertionError, match="never fired"):
        tried(())
    with pytest.raises(AssertionError, match="still fires"):
        tried(range(1, 1000))


def test_some_of_a_sequence_are_spread_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGE", False)
    assert list(spread(range(11), 3)) == [0, 5, 10]
    assert list(spread(range(3), 3)) == list(spread(range(3), 8)) == [0, 1, 2]
    assert (sized(1, 2), examples(8), examples(100)) == (1, 8, 16)
    monkeypatch.setattr(sizes, "LARGE", True)
    assert list(spread(range(11), 3)) == list(range(11))
    assert (sized(1, 2), examples(100)) == (2, 100)


def test_each_two_choices_of_different_kinds_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [list("abcdefg"), [False, True], [0, 3, None]]
    every = list(itertools.product(*kinds))
    monkeypatch.setattr(sizes, "LARGE", False)
    some = covering(*kinds)
    assert len(some) == len(set(some)) <= 24
    for first, second in itertools.combinations(range(3), 2):
        assert {(one[first], one[second]) for one in some} == {(one[first], one[second]) for one in every}
    monkeypatch.setattr(sizes, "LARGE", True)
    assert covering(*kinds) == every


@pytest.mark.parametrize(("items", "choices"), [("abcde", [1, 2]), ("ab", [1, 2, 3, 4, 5])])
def test_items_and_choices_alternate(items: str, choices: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LARGE", False)
    some = alternating(items, choices)
    assert len(some) == 5
    assert ({item for item, _ in some}, {choice for _, choice in some}) == (set(items), set(choices))
    monkeypatch.setattr(sizes, "LARGE", True)
    assert alternating(items, choices) == list(itertools.product(items, choices))
