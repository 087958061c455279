"""Few entries in a matrix so wide and so long that their places need more than 64 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import files_below, session
from support.sizes import sized

import outcore as oc
from outcore.errors import ArgumentError
from outcore.sparse._places import is_wide, keys_of, order_of

LENGTH = 1 << 40
SHAPE = (LENGTH, LENGTH)
# Both spellings of the order are held against each other where either can be had.
NARROW = (1 << 30, 1 << 30)


def drawn(count: int = sized(700, 4000), seed: int = 5) -> tuple[Any, Any, Any]:
    """Entries of which some are there twice, some on the diagonal, and some in one tile."""
    random = np.random.default_rng(seed)
    rows, columns = (random.integers(0, LENGTH, count) for _ in range(2))
    rows[:50], columns[:30] = rows[50:100], columns[50:80]
    rows[200:300] = columns[200:300]
    rows[300:600] = LENGTH - 1 - rows[300:600] % 16384
    columns[300:600] = LENGTH - 1 - columns[300:600] % 16384
    return rows, columns, random.integers(1, 9, count).astype(np.float64)


def summed(rows: Any, columns: Any, values: Any) -> dict[tuple[int, int], float]:
    found: dict[tuple[int, int], float] = {}
    for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        found[row, column] = found.get((row, column), 0.0) + value
    return found


def entries_of(a: Any) -> dict[tuple[int, int], float]:
    found: dict[tuple[int, int], float] = {}
    for part in a.blocks():
        new = summed(*part)
        assert not found.keys() & new.keys()
        found |= new
    assert len(found) == a.nnz
    return found


def test_two_keys_order_entries_as_one_does() -> None:
    rows, columns, _ = drawn()
    rows, columns = rows % NARROW[0], columns % NARROW[1]
    assert is_wide(SHAPE, 16384)
    assert not is_wide(NARROW, 16384)
    assert is_wide(NARROW, 16384, spare=5)
    one = keys_of(rows, columns, NARROW, 16384)
    two = keys_of(rows, columns, NARROW, 16384, wide=True)
    assert (len(one), len(two)) == (1, 2)
    assert np.array_equal(order_of(one), order_of(two))
    lazy = keys_of(oc.asarray(rows), oc.asarray(columns), NARROW, 16384, wide=True)
    for key, expected in zip(oc.compute(*lazy), two, strict=True):
        assert np.array_equal(key, expected)


def test_what_no_number_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="have 63 bits"):
        oc.sparse.from_entries(drawn(), tmp_path / "a.ocs", shape=(2**64, 5))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pattern", [False, True])
def test_every_way_in(pattern: bool, data: Path, out: Path, scratch: Path) -> None:
    rows, columns, values = drawn()
    expected = summed(rows, columns, values)
    if pattern:
        expected = dict.fromkeys(expected, 1.0)
    given = (rows, columns) if pattern else (rows, columns, values)
    fields = [("r", "<u8"), ("c", "<u8")] + ([] if pattern else [("v", "<f8")])
    np.rec.fromarrays(given, dtype=np.dtype(fields)).tofile(data / "e.bin")
    lines = [" ".join(map(str, line)) for line in zip(*(column.tolist() for column in given), strict=True)]
    (data / "e.txt").write_text("\n".join(lines))
    head = f"%%MatrixMarket matrix coordinate {'pattern' if pattern else 'real'} general\n{LENGTH} {LENGTH} {len(rows)}"
    places = zip((rows + 1).tolist(), (columns + 1).tolist(), *(column.tolist() for column in given[2:]), strict=True)
    (data / "e.mtx").write_text("\n".join([head, *(" ".join(map(str, line)) for line in places)]))
    value = None if pattern else "float64"
    table = dict(zip("rcv", given, strict=False))
    with session(scratch):
        made = [
            oc.sparse.from_coo(rows, columns, None if pattern else values, SHAPE, out / "1.ocs"),
            oc.sparse.from_entries(given, out / "2.ocs", shape=SHAPE),
            oc.sparse.from_entries(zip(*(np.array_split(column, 7) for column in given), strict=True), out / "3.ocs"),
            oc.sparse.from_binary(data / "e.bin", out / "4.ocs", ids="uint64", values=value, resume=True),
            oc.sparse.from_edges(data / "e.txt", out / "5.ocs", resume=True),
            oc.sparse.from_mtx(data / "e.mtx", out / "6.ocs"),
            oc.sparse.from_table(
                [table], out / "7.ocs", rows="r", columns="c", values=None if pattern else "v", shape=SHAPE
            ),
        ]
        for a in made:
            assert entries_of(a) == expected
    assert files_below(scratch) == []


def test_mirror_images_loops_and_the_transpose(out: Path, scratch: Path) -> None:
    rows, columns, values = drawn()
    apart = rows != columns
    mirrored = summed(*(np.concatenate(pair) for pair in ((rows, columns), (columns, rows), (values, values))))
    with session(scratch):
        for loops in (False, True):
            made = oc.sparse.from_entries(
                (rows, columns, values),
                out / "a.ocs",
                shape=SHAPE,
                symmetrize=True,
                drop_loops=loops,
                transpose=out / "t.ocs",
                overwrite=True,
            )
            # Those on the diagonal have no image.
            expected = {
                at: value / (1 + (at[0] == at[1])) for at, value in mirrored.items() if not loops or at[0] != at[1]
            }
            assert entries_of(made) == expected
            assert entries_of(oc.sparse.open(out / "t.ocs")) == expected
        freed = oc.sparse.from_entries((rows, columns, values), out / "b.ocs", shape=SHAPE, drop_loops=True)
        assert entries_of(freed) == summed(rows[apart], columns[apart], values[apart])


def test_what_is_left_out_of_places_that_take_all_64_bits(out: Path) -> None:
    rows, columns, values = drawn()
    rows, columns = rows % 2**32, columns % 2**32
    apart = rows != columns
    made = oc.sparse.from_entries((rows, columns, values), out / "a.ocs", shape=(2**32, 2**32), drop_loops=True)
    assert entries_of(made) == summed(rows[apart], columns[apart], values[apart])


def test_rewriting(out: Path, scratch: Path) -> None:
    rows, columns, values = drawn()
    a = summed(rows, columns, values)
    turned = {(column, row): value for (row, column), value in a.items()}
    with session(scratch):
        A = oc.sparse.from_coo(rows, columns, values, SHAPE, out / "a.ocs")
        assert entries_of(A.multiply(3.0)) == {at: 3 * value for at, value in a.items()}
        assert entries_of(A.T.copy()) == turned
        assert entries_of(A.tril()) == {at: value for at, value in a.items() if at[1] <= at[0]}
        both = {at: a.get(at, 0.0) + turned.get(at, 0.0) for at in a.keys() | turned.keys()}
        assert entries_of(A + A.T) == both
        assert entries_of(A + A) == {at: 2 * value for at, value in a.items()}
        assert entries_of(A.multiply(A.T)) == {at: a[at] * turned[at] for at in a.keys() & turned.keys()}
        half = LENGTH // 2
        part = {(row - half, column): value for (row, column), value in a.items() if row >= half}
        assert entries_of(A[half:, :]) == part
        assert entries_of(oc.sparse.open(out / "a.ocs")) == a


def test_more_than_memory(data: Path, out: Path, scratch: Path) -> None:
    count, pool = 1_500_000, 40 << 20
    random = np.random.default_rng(6)
    for name in "rc":
        np.save(data / f"{name}.npy", random.integers(0, 1 << 8, count) << 32 | random.integers(0, 1 << 12, count))
    np.save(data / "v.npy", np.ones(count))
    with session(scratch, pool_limit=pool) as current:
        made = oc.sparse.from_entries(
            tuple(oc.open(data / f"{name}.npy") for name in "rcv"), out / "a.ocs", shape=SHAPE
        )
        assert current.counters()["peak_bytes"] <= pool
        total = sum(float(part[2].sum()) for part in made.blocks())
    places = np.load(data / "r.npy"), np.load(data / "c.npy")
    assert made.nnz == len(np.unique(np.stack(places, axis=1), axis=0))
    assert total == count
    assert files_below(scratch) == []
