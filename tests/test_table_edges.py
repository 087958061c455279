"""Tables at the edges: quotes that are not closed, functions that are not known, keys that no common type holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, FormatError

BIG, EXACT = 2**63, 2**53


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n1,x\n2,"y\n3,z\n4,w\n', 3),
        ('a,b\n1,"x, ""x"""\n2,y\n3,"z', 4),
        ('a,b\n1,x\n2,"y\n3,z\n4,"w"\n', 3),
        ('a,b\n"', 2),
    ],
)
def test_records_are_not_swallowed_by_a_quote(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=rf"t\.csv: line {line}: a field in quotes") as refused:
        oc.read_csv(path)
    assert refused.value.details == {"path": str(path), "line": line}


def test_an_open_quote_behind_many_blocks_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + '1,"two, ""2"""\n' * 150_000 + '3,"z\n' + "4,w\n" * 1000)
    with pytest.raises(FormatError, match="line 150002: a field in quotes is never closed"):
        oc.read_csv(path)


def test_quotes_that_are_text_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,5" pipe\n2,""\n3,"""q"""\n4,"two\nlines"\n5,"a,b"\n')
    labels = oc.read_csv(path)["b"].compute().tolist()
    assert labels[0] == '5" pipe'
    assert labels[2:] == ['"q"', "two\nlines", "a,b"]


def test_functions_of_groups_are_refused_at_once() -> None:
    t = oc.table(k=[1, 2], v=[1.0, 2.0], day=oc.Dates(oc.arange(2), "datetime64[D]"))
    with pytest.raises(ArgumentError, match="agg: 'total' is not one of sum"):
        t.groupby("k").agg(x=("v", "total"))
    with pytest.raises(ArgumentError, match="a function is named by text"):
        t.groupby("k").agg(x=("v", np.sum))  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="'mean' of day"):
        t.groupby("k").agg(x=("day", "mean"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([1, EXACT + 1, -5], "i8"), np.array([2.0**53, 1.0, -5.0, 0.5, np.inf, np.nan])),
        (np.array([2.0**53, 1.5, np.nan, -np.inf, 7.0, 2.0**63]), np.array([EXACT, EXACT + 1, 7, BIG - 1], "i8")),
        (np.array([EXACT, EXACT + 1, 3], "i8"), np.array([EXACT + 1, BIG + 1, 3], "u8")),
        (np.array([BIG + 1, 5, BIG], "u8"), np.array([BIG, 5, BIG + 1], "u8")),
        (np.array([-1, 4], "i4"), np.array([2**64 - 1, 4], "u8")),
        (np.array([1.5, 2.0], "f4"), np.array([2, 1], "i8")),
    ],
)
@pytest.mark.parametrize("kind", ["inner", "semi", "anti"])
def test_keys_of_two_types_meet_exactly(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any], kind: Any) -> None:
    ours, theirs = oc.table(k=left, v=np.arange(len(left))), oc.table(k=right, w=np.arange(len(right)))
    pairs = [(i, j) for i, a in enumerate(left.tolist()) for j, b in enumerate(right.tolist()) if a == b]
    joined = ours.join(theirs, on="k", how=kind).compute()
    if kind == "inner":
        assert sorted(zip(joined["v"].tolist(), joined["w"].tolist(), strict=True)) == pairs
    else:
        has = {i for i, _ in pairs}
        assert joined["v"].tolist() == [i for i in range(len(left)) if (i in has) == (kind == "semi")]


def test_large_integers_are_kept(tmp_path: Path) -> None:
    keys = np.array([BIG + 1, 5, BIG + 1], "u8")
    t = oc.table(k=keys, v=[1, 2, 3])
    assert t.groupby("k").agg(s=("v", "sum")).compute()["k"].tolist() == [5, BIG + 1]
    assert t.sort_by("k")["v"].compute().tolist() == [2, 1, 3]
    (tmp_path / "t.csv").write_text(f"a\n{BIG + 1}\n5\n")
    assert oc.read_csv(tmp_path / "t.csv", dtypes={"a": "uint64"})["a"].compute().tolist() == [BIG + 1, 5]
