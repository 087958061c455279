"""Random samples of rows: which are drawn, how often, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, ShapeError


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(1, 40), st.data(), st.integers(0, 2**63 - 1))
def test_a_sample_without_replacement_holds_each_row_once(rows: int, data: st.DataObject, seed: int) -> None:
    size = data.draw(st.integers(0, rows))
    drawn = oc.random.choice(rows, size, replace=False, seed=seed).compute()
    assert len(set(drawn.tolist())) == size
    assert set(drawn.tolist()) <= set(range(rows))
    with_it = oc.random.choice(rows, size, seed=seed).compute()
    assert with_it.shape == (size,)
    assert set(with_it.tolist()) <= set(range(rows))


def test_every_row_is_drawn_as_often_as_any_other() -> None:
    counts = np.bincount(oc.random.choice(7, 70_000, seed=1).compute(), minlength=7)
    assert np.all(np.abs(counts - 10_000) < 500)
    firsts = [oc.random.choice(5, 2, replace=False, seed=seed).compute()[0] for seed in range(400)]
    assert np.all(np.abs(np.bincount(firsts, minlength=5) - 80) < 45)


def test_a_sample_of_columns_and_of_one_row() -> None:
    x = np.arange(12).reshape(3, 4)
    columns = oc.random.choice(x, 2, False, axis=1, seed=3).compute()
    assert all(column in x.T.tolist() for column in columns.T.tolist())
    assert oc.random.choice(x, seed=3).compute().tolist() in x.tolist()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: oc.random.choice(3, 4, replace=False), ArgumentError, "size=4 of 3 rows; pass replace=True"),
        (lambda: oc.random.choice(np.zeros((0, 2)), 1), ArgumentError, "no rows to draw from"),
        (lambda: oc.random.choice(3, -1), ArgumentError, "at least 0"),
        (lambda: oc.random.choice(np.asarray(1.0), 1), ShapeError, "a number has no rows"),
    ],
)
def test_samples_that_cannot_be_are_refused(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
