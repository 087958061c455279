"""Entries become tiles and tiles entries: every reader, writer and generator against SciPy, within little memory."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import files_below, session
from support.sizes import examples

import outcore as oc
from outcore import _core
from outcore._command.cli import main
from outcore._session import session as _session
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    MissingFileError,
    ShapeError,
    TargetExistsError,
    UnsupportedFormatError,
)

SLOW = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = ("bool", "int8", "uint16", "int64", "float32", "float64", "complex128")


def dense(matrix: Any) -> Any:
    return matrix.to_scipy().toarray()


def drawn(seed: int, shape: tuple[int, int], count: int, dtype: str = "float64") -> tuple[Any, Any, Any]:
    """Entries with duplicates; whole numbers, whose sums are exact in any order."""
    random = np.random.default_rng(seed)
    rows, columns = (random.integers(0, length, count) for length in shape)
    return rows, columns, random.integers(0, 5, count).astype(dtype)


shapes = st.tuples(st.integers(1, 40), st.integers(1, 40))


@SLOW
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=shapes,
    count=st.integers(0, 200),
    dtype=st.sampled_from(DTYPES),
    side=st.sampled_from([1, 4, 16, 16384]),
    pieces=st.integers(0, 4),
)
def test_entries_in_any_order(
    seed: int, shape: tuple[int, int], count: int, dtype: str, side: int, pieces: int, tmp_path: Path
) -> None:
    rows, columns, values = drawn(seed, shape, count, dtype)
    expected = np.zeros(shape, dtype)
    np.add.at(expected, (rows, columns), values)
    cuts = [np.array_split(column, pieces or 1) for column in (rows, columns, values)]
    entries: Any = zip(*cuts, strict=True) if pieces else (rows, columns, values)
    path, transpose = tmp_path / "a.ocs", tmp_path / "t.ocs"
    made = oc.sparse.from_entries(entries, path, shape=shape, side=side, transpose=transpose, overwrite=True)
    assert made.dtype == expected.dtype
    assert np.array_equal(dense(made), expected)
    assert np.array_equal(dense(oc.sparse.open(transpose)), expected.T)


@SLOW
@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 30),
    count=st.integers(0, 120),
    symmetrize=st.sampled_from([False, True, "skew", "hermitian"]),
    loops=st.booleans(),
    relabel=st.booleans(),
    pattern=st.booleans(),
)
def test_graphs_are_mirrored_renumbered_and_freed_of_loops(
    seed: int, length: int, count: int, symmetrize: Any, loops: bool, relabel: bool, pattern: bool, tmp_path: Path
) -> None:
    rows, columns, values = drawn(seed, (length, length), count, "complex128")
    values *= 1 + 2j
    labels = np.random.default_rng(seed).permutation(length)
    given_labels = labels if relabel else None
    new = labels if relabel else np.arange(length)
    expected = np.zeros((length, length), values.dtype)
    np.add.at(expected, (new[rows], new[columns]), values)
    mirror = (expected - np.diag(np.diag(expected))).T
    expected = expected + {False: 0 * mirror, True: mirror, "skew": -mirror, "hermitian": mirror.conj()}[symmetrize]
    if loops:
        np.fill_diagonal(expected, 0)
    entries = (rows, columns) if pattern else (rows, columns, values)
    made = oc.sparse.from_entries(
        entries,
        tmp_path / "a.ocs",
        shape=(length, length),
        symmetrize=symmetrize,
        drop_loops=loops,
        relabel=given_labels,
        overwrite=True,
    )
    if not pattern:
        assert np.array_equal(dense(made), expected)
        return
    there = np.zeros((length, length), bool)
    there[new[rows], new[columns]] = True
    there |= there.T & bool(symmetrize)
    if loops:
        np.fill_diagonal(there, False)
    assert np.array_equal(dense(made), there)


def test_numbers_by_degree_fall(tmp_path: Path) -> None:
    rows, columns, values = drawn(3, (50, 50), 400)
    made = oc.sparse.from_entries((rows, columns, values), tmp_path / "a.ocs", relabel="degree", shape=(50, 50))
    labels = np.load(tmp_path / "a.ocs.labels.npy").astype(int)
    degrees = np.bincount(rows, minlength=50) + np.bincount(columns, minlength=50)
    assert (np.diff(degrees[np.argsort(labels)]) <= 0).all()
    expected = sp.coo_array((values, (labels[rows], labels[columns])), shape=(50, 50))
    assert np.array_equal(dense(made), expected.toarray())


@pytest.mark.parametrize(("duplicates", "expected"), [("sum", 6.0), ("last", 3.0), ("any", None), ("refuse", None)])
def test_duplicates(duplicates: Any, expected: float | None, tmp_path: Path) -> None:
    entries = (np.zeros(3, int), np.zeros(3, int), np.asarray([1.0, 2.0, 3.0]))
    if duplicates == "refuse":
        with pytest.raises(ArgumentError, match="there twice"):
            oc.sparse.from_entries(entries, tmp_path / "a.ocs", duplicates=duplicates)
        assert list(tmp_path.iterdir()) == []
        return
    found = dense(oc.sparse.from_entries(entries, tmp_path / "a.ocs", duplicates=duplicates))
    assert found[0, 0] in ({1.0, 2.0, 3.0} if expected is None else {expected})


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_a_sort_larger_than_memory(dtype: str | None, data: Path, out: Path, scratch: Path) -> None:
    count, shape = 3_000_000, (300_000, 200_000)
    rows, columns, values = drawn(9, shape, count, dtype or "float64")
    np.stack([rows, columns], axis=1).astype(np.uint32).tofile(data / "pairs.bin")
    np.save(data / "v.npy", values)
    pool = 16 << 20 if dtype is None else 24 << 20  # a merge holds a tile of each column
    with session(scratch, pool_limit=pool) as current:
        if dtype is None:
            made = oc.sparse.from_binary(data / "pairs.bin", out / "a.ocs", shape=shape)
        else:
            for name, column in (("r", rows), ("c", columns)):
                np.save(data / f"{name}.npy", column)
            entries = tuple(oc.open(data / f"{name}.npy") for name in "rcv")
            made = oc.sparse.from_entries(entries, out / "a.ocs", shape=shape)
        assert current.counters()["peak_bytes"] <= pool
        parts = list(made.blocks())
    found = sp.coo_array(
        (np.concatenate([p[2] for p in parts]), [np.concatenate([p[k] for p in parts]).astype(int) for k in (0, 1)]),
        shape=shape,
    )
    expected = sp.coo_array((values, (rows, columns)), shape=shape).tocsr()
    if dtype is None:
        expected = expected.astype(bool)
        expected.data[:] = True
    assert (found.tocsr() != expected).nnz == 0
    assert files_below(scratch) == []


def test_numbers_near_the_limits(tmp_path: Path) -> None:
    rows, columns = np.asarray([2**40 - 1, 0, 2**39]), np.asarray([2**20 - 1, 2**20 - 2, 0])
    made = oc.sparse.from_entries((rows, columns, np.arange(3.0)), tmp_path / "a.ocs")
    assert made.shape == (2**40, 2**20)
    found = sorted((int(r), int(c), float(v)) for part in made.blocks() for r, c, v in zip(*part, strict=True))
    assert found == sorted(zip(rows.tolist(), columns.tolist(), [0.0, 1.0, 2.0], strict=True))
    # All 64 bits are taken: what is left out has no place behind the others.
    full = (2**32, 2**32)
    assert oc.sparse.from_entries((rows % 2**32, columns), tmp_path / "c.ocs", shape=full).nnz == 3
    with pytest.raises(ArgumentError, match="have 63 bits"):
        oc.sparse.from_entries((rows, columns), tmp_path / "d.ocs", shape=(2**64, 5))
    with pytest.raises(ArgumentError, match="tiles of 65536 rows"):
        oc.sparse.from_entries((rows, columns), tmp_path / "d.ocs", side=65536)


def test_wrong_entries(tmp_path: Path) -> None:
    def refused(error: type[Exception], match: str, entries: Any, **options: Any) -> None:
        with pytest.raises(error, match=match):
            oc.sparse.from_entries(entries, tmp_path / "a.ocs", **options)
        assert not (tmp_path / "a.ocs").exists()

    one, two = np.zeros(1, int), np.zeros(2, int)
    refused(ShapeError, r"\(1,\), \(2,\)", (one, two))
    refused(ShapeError, r"\(1,\), \(2,\)", iter([(one, two)]))
    refused(ShapeError, "1 arrays", (one,))
    refused(ShapeError, "a chunk of 2 arrays", iter([(one, one, one), (one, one)]))
    refused(DTypeError, "float64 are no integers", (one * 1.0, one))
    refused(DTypeError, "values of float64 after values of int64", iter([(one, one, one), (one, one, one * 0.5)]))
    refused(ArgumentError, "rows has 7, the matrix 5", (one + 7, one), shape=(5, 5))
    refused(ArgumentError, "columns has -1, the matrix 5", (one, one - 1), shape=(5, 5))
    refused(ArgumentError, "rows has -1", iter([(one - 1, one)]))
    refused(ArgumentError, "rows has 9, the matrix 5", (one + 9, one), shape=(5, 5), relabel="degree")
    refused(ArgumentError, "no permutation", (one, one), shape=(2, 2), relabel=[1, 1])
    refused(ShapeError, r"symmetrize of a matrix \(2, 3\)", (one, one), shape=(2, 3), symmetrize=True)
    refused(ArgumentError, "there is no option sides", (one, one), sides=4)
    many = np.arange(1 << 20)
    refused(ArgumentError, "entries or labels are in memory", (many, many), resume=True)
    refused(ArgumentError, "iterator", iter([(one, one)]), resume=True)
    oc.sparse.from_entries((one, one), tmp_path / "b.ocs")
    with pytest.raises(TargetExistsError):
        oc.sparse.from_entries((one, one), tmp_path / "b.ocs")


numbers = st.floats(allow_subnormal=True) | st.integers(-(10**17), 10**17).map(float) | st.decimals(-99, 99, places=3)


@SLOW
@given(
    edges=st.lists(st.tuples(st.integers(0, 10**17), st.integers(0, 300), numbers), max_size=30),
    between=st.sampled_from([" ", "\t", ",", "  ;", " | "]),
    ending=st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\n# a comment, 1 2 3\n", "\n  % 5\n"]),
    packed=st.booleans(),
    last=st.booleans(),
)
def test_text_of_any_form(edges: Any, between: str, ending: str, packed: bool, last: bool, tmp_path: Path) -> None:
    text = "# head\n" + ending.join(between.join(map(str, edge)) for edge in edges) + ("\n" if last else "")
    lines = _core.TextLines("edges", (0, 1), None, separators=b",;|", comments=b"#%")
    rows, columns, *values = lines.parse(_session.current()._core, text.encode())
    assert rows.tolist() == [edge[0] for edge in edges]
    assert columns.tolist() == [edge[1] for edge in edges]
    if edges:
        assert values[0].tobytes() == np.asarray([float(str(edge[2])) for edge in edges]).tobytes()
    path = tmp_path / "e.txt"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    if all(edge[0] < 10**6 for edge in edges):
        made = oc.sparse.from_edges(path, tmp_path / "a.ocs", overwrite=True, duplicates="last")
        assert made.nnz == len({edge[:2] for edge in edges})


def test_a_number_of_rows_is_no_value(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1 7 4\n0 8 2\n")
    made = oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs", columns=(2, 0))
    assert (made.is_pattern, made.shape, made.nnz) == (True, (5, 5), 2)
    with pytest.raises(ArgumentError, match="values=0"):
        oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "b.ocs", values=0)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"columns": (0, 0)}, r"columns=\(0, 0\); two different ones"),
        ({"columns": (0, 1, 2)}, r"columns=\(0, 1, 2\); two different ones"),
        ({"columns": (0, -1)}, "columns=-1; a whole number"),
        ({"columns": (0, 1.5)}, "columns=1.5; a whole number"),
        ({"columns": (0, 2**64)}, "columns=18446744073709551616; a whole number"),
        ({"values": -2}, "values=-2; a whole number"),
        ({"values": 2**63}, "values=9223372036854775808; a whole number"),
        ({"base": -1}, "base=-1; a whole number"),
        ({"base": 0.5}, "base=0.5; a whole number"),
    ],
)
def test_columns_that_are_none_are_refused(wrong: Any, match: str, tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("0 1 4\n")
    with pytest.raises(ArgumentError, match=f"from_edges: {match}"):
        oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs", **wrong)


@pytest.mark.parametrize("wrong", [{"values": 10**12}, {"columns": (0, 10**12)}, {"columns": (0, 2**63 - 1)}])
def test_columns_behind_those_of_a_line_are_refused(wrong: Any, tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    with pytest.raises(FormatError, match="line 1: '0 1': 2 numbers, not "):
        oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs", **wrong)


def test_a_transpose_where_the_matrix_is_to_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"a\.ocs is to be the matrix and its transpose"):
        oc.sparse.from_entries(([0], [1]), tmp_path / "a.ocs", transpose=f"{tmp_path}/a.ocs", overwrite=True)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint64"])
def test_values_without_negatives_have_no_skew_images(dtype: str, tmp_path: Path) -> None:
    entries = drawn(1, (4, 4), 5, dtype)
    with pytest.raises(DTypeError, match=f"those of {dtype} have no negatives"):
        oc.sparse.from_entries(entries, tmp_path / "a.ocs", symmetrize="skew")


def test_what_was_sorted_is_gone_when_the_transpose_is_made(
    out: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outcore.sparse._spool import Work

    found = []

    def clear(work: Work, name: str, *kept: str) -> None:
        before = {path.name for path in work.folder.glob("*-*")}
        original(work, name, *kept)
        found.append((before, {path.name for path in work.folder.glob("*-*")}))

    original = Work.clear
    monkeypatch.setattr(Work, "clear", clear)
    with session(scratch, pool_limit=24 << 20):
        entries = oc.sparse.rmat_edges(1 << 20, 2_000_000, seed=3)
        made = oc.sparse.from_entries(entries, out / "a.ocs", shape=(1 << 20, 1 << 20), transpose=out / "t.ocs")
        assert made.nnz > 1_900_000
    parts = ("part-0.npy", "counts.npy")
    assert found == [({f"{name}-{part}" for part in parts}, set()) for name in ("rows", "columns")]


@pytest.mark.parametrize("text", [b"0 1\r1 2\r2 3\r", b"0 1\r1 2\n", b"# a\r0 1\r\n1 2\r\n"])
def test_lines_end_with_newlines(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_bytes(text)
    with pytest.raises(FormatError, match=r"e\.txt: line 1: .* a carriage return ends no line"):
        oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs")


def test_a_file_without_lines_does_not_fill_memory(tmp_path: Path) -> None:
    with (tmp_path / "e.txt").open("wb") as file:
        file.write(b"0 1\n" * 300_000)
        file.truncate(1 << 40)
    with pytest.raises(FormatError, match=r"e\.txt: a line is longer than 16777216 bytes"):
        oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs")
    with (tmp_path / "m.mtx").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FormatError, match="line 1 is no heading"):
        oc.sparse.from_mtx(tmp_path / "m.mtx", tmp_path / "a.ocs")


def test_long_text_is_read_in_blocks(tmp_path: Path) -> None:
    rows, columns, values = drawn(1, (100_000, 1000), 200_000)
    text = "".join(f"{r + 1},{c + 1},7,{v}\n" for r, c, v in zip(rows, columns, values, strict=True))
    (tmp_path / "e.csv").write_text(text)
    made = oc.sparse.from_edges(tmp_path / "e.csv", tmp_path / "a.ocs", base=1, values=3, shape=(100_000, 1000))
    assert (made.to_scipy() != sp.coo_array((values, (rows, columns)), shape=made.shape).tocsr()).nnz == 0


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("5", "1 numbers, not 2"),
        ("5 6 7", "3 numbers, not 2"),
        ("5 x6", "not all of it is numbers"),
        ("5,,6", "an empty field"),
        ("5 6;", "an empty field"),
        ("-5 6", "not all of it is numbers"),
        ("5 6.0", "not all of it is numbers"),
        ("123456789012345678901 6", "not all of it is numbers"),
        ("0 6", "0, and numbers begin with 1"),
    ],
)
def test_bad_lines_are_named(bad: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("# from to\n" + "1 2\n" * 70_000 + f"\n{bad}\n1 2\n")
    with pytest.raises(FormatError, match=f"line 70003: '{bad}': {why}"):
        oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs", base=1)
    assert not (tmp_path / "a.ocs").exists()


def test_a_file_that_is_wrong_leaves_nothing_to_go_on_with(data: Path, out: Path, scratch: Path) -> None:
    (data / "e.txt").write_text("0 1\n1 b\n")
    with session(scratch), pytest.raises(FormatError, match="line 2"):
        oc.sparse.from_edges(data / "e.txt", out / "a.ocs", resume=True)
    assert files_below(scratch) == []


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nothing\.txt"):
        oc.sparse.from_edges(tmp_path / "nothing.txt", tmp_path / "a.ocs")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1 2\n" * 100_000)[:-40])
    with pytest.raises(FormatError, match="cannot be unpacked"):
        oc.sparse.from_edges(tmp_path / "cut.gz", tmp_path / "a.ocs")
    (tmp_path / "odd.bin").write_bytes(b"1234567890")
    with pytest.raises(FormatError, match="10 bytes are no whole number of records of 8"):
        oc.sparse.from_binary(tmp_path / "odd.bin", tmp_path / "a.ocs")
    sp.save_npz(tmp_path / "m.npz", sp.eye(500).tocsr(), compressed=False)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "m.npz").read_bytes()[:-30])
    with pytest.raises(FormatError, match=r"cut\.npz"):
        oc.sparse.from_npz(tmp_path / "cut.npz", tmp_path / "a.ocs")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(FormatError, match="save_npz"):
        oc.sparse.from_npz(tmp_path / "other.npz", tmp_path / "a.ocs")
    assert not (tmp_path / "a.ocs").exists()


def test_threads_that_read_end_with_the_call_that_fails(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_bytes(b"1 5000000000\n" * 1_000_000)
    before = threading.active_count()
    # The error is kept, and with it every frame that it went through.
    with pytest.raises(ArgumentError, match="outside") as kept:
        oc.sparse.from_edges(tmp_path / "edges.txt", tmp_path / "a.ocs", shape=(9, 9))
    assert threading.active_count() == before, kept
    heading = b"%%MatrixMarket matrix coordinate pattern general\n9 9 7\n"
    (tmp_path / "m.mtx").write_bytes(heading + b"1 2\n" * 1_000_000)
    with pytest.raises(FormatError, match="7 entries, and 1000000 are there") as kept:
        oc.sparse.from_mtx(tmp_path / "m.mtx", tmp_path / "a.ocs")
    assert threading.active_count() == before, kept


def zstandard(text: bytes) -> bytes:
    """A frame of one block that is not packed."""
    return b"\x28\xb5\x2f\xfd\x00\x58" + (len(text) << 3 | 1).to_bytes(3, "little") + text


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard,
}


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_files_of_several_members_are_whole(kind: str, tmp_path: Path) -> None:
    pack, path = PACKERS[kind], tmp_path / f"e.{kind}"
    skipped = b"\x51\x2a\x4d\x18\x03\x00\x00\x00abc" if kind == "zst" else b""
    path.write_bytes(skipped + pack(b"0 1\n2 ") + skipped + pack(b"3\n") + pack(b"") + skipped)
    assert oc.sparse.from_edges(path, tmp_path / "a.ocs").to_scipy().tocoo().coords[1].tolist() == [1, 3]


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_files_that_are_cut_off_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"e.{kind}"
    first, second = (PACKERS[kind](b"".join(b"%d %d\n" % (i, i * 7 + base) for i in range(300))) for base in (0, 1))
    for whole in (first, first + second):
        for length in (len(whole) - 1, len(whole) - 5, len(whole) // 2 + 9, len(whole) - len(second) // 2):
            path.write_bytes(whole[:length])
            if whole[:length] == first:
                continue
            with pytest.raises(FormatError, match=f"e.{kind}"):
                oc.sparse.from_edges(path, tmp_path / "a.ocs", overwrite=True)
    assert not (tmp_path / "a.ocs").exists()


def test_a_value_that_is_asked_for_has_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("# a\n0 1\n1 2\n")
    for wanted in (True, 2):
        with pytest.raises(FormatError, match=r"line 2: '0 1': 2 numbers, not 3"):
            oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs", values=wanted)
        with pytest.raises(FormatError, match=r"line 2: '0 1': 2 numbers, not 3"):
            oc.graph.from_edges(tmp_path / "e.txt", tmp_path / "a.ocg", weights=wanted)
    assert oc.sparse.from_edges(tmp_path / "e.txt", tmp_path / "a.ocs").is_pattern


@pytest.mark.parametrize("text", ["0;1;2,5\n", "1,000 2,000\n", "0 1 2,5\n", "0 1 2\n0 1 2,5\n", "0,1\n1 2\n"])
def test_commas_within_numbers_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(FormatError, match=r"e\.csv: line \d: .*say which by separators="):
        oc.sparse.from_edges(tmp_path / "e.csv", tmp_path / "a.ocs")


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_bytes(b"\xef\xbb\xbf0,1\n1,2\n")
    assert oc.sparse.from_edges(tmp_path / "e.csv", tmp_path / "a.ocs").nnz == 2
    head = "\ufeff%%MatrixMarket matrix coordinate integer general\n % a\n%b\n\n2 2 1\n1 1 -5\n"
    (tmp_path / "m.mtx").write_text(head)
    assert oc.sparse.from_mtx(tmp_path / "m.mtx", tmp_path / "m.ocs").to_scipy().sum() == -5


def test_unsigned_integers_of_matrix_market(tmp_path: Path) -> None:
    most = np.array([2**64 - 1, 7], np.uint64)
    made = oc.sparse.from_coo([0, 1], [0, 1], most, (2, 2), tmp_path / "u.ocs")
    again = oc.sparse.from_mtx(oc.sparse.to_mtx(made, tmp_path / "u.mtx"), tmp_path / "again.ocs")
    assert (again.dtype, again.to_scipy().tocoo().data.tolist()) == (np.dtype(np.uint64), most.tolist())
    scipy.io.mmwrite(tmp_path / "s.mtx", sp.coo_array(np.array([[0, 3]], np.uint32)))
    assert oc.sparse.from_mtx(tmp_path / "s.mtx", tmp_path / "s.ocs").to_scipy().sum() == 3


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_sums_of_integers_have_room_or_are_refused(dtype: str, tmp_path: Path) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    at = [0, 0, 0, 1], [1, 1, 1, 0]
    fits = np.array([high, 1, -1 if low else 0, 3], dtype)
    if low:
        made = oc.sparse.from_coo(*at, fits, (2, 2), tmp_path / "a.ocs")
        assert (made.dtype, made.to_scipy()[0, 1]) == (np.dtype(dtype), high)
    else:
        with pytest.raises(ArgumentError, match=rf"\(0, 1\) add up to {high + 1}, which {dtype} does not hold"):
            oc.sparse.from_coo(*at, fits, (2, 2), tmp_path / "a.ocs")
        with pytest.raises(ArgumentError, match=f"which {dtype} does not hold"):
            oc.sparse.from_entries((np.array(at[0]), np.array(at[1]), fits), tmp_path / "b.ocs")


def test_sums_of_narrow_floats_are_rounded_once(tmp_path: Path) -> None:
    ones = np.full(100_000, 0.1, np.float32)
    places = np.zeros(len(ones), np.int64)
    made = oc.sparse.from_coo(places, places, ones, (1, 1), tmp_path / "a.ocs")
    assert made.to_scipy()[0, 0] == np.float32(ones.astype(np.float64).sum())


def test_numbers_by_degree_within_little_memory(data: Path, out: Path, scratch: Path) -> None:
    rows, columns, _ = drawn(7, (1 << 19, 1 << 19), 3_000_000)
    rows //= 1 + rows % 7
    np.stack([rows, columns], axis=1).astype(np.uint32).tofile(data / "e.bin")
    with session(scratch, pool_limit=28 << 20) as current:
        made = oc.sparse.from_binary(data / "e.bin", out / "a.ocs", shape=(1 << 19, 1 << 19), relabel="degree")
        assert current.counters()["peak_bytes"] <= 28 << 20
    labels = np.load(out / "a.ocs.labels.npy").astype(int)
    expected = sp.coo_array((np.ones(len(rows), bool), (labels[rows], labels[columns])), made.shape).tocsr()
    assert (made.to_scipy() != expected).nnz == 0
    assert files_below(scratch) == []


@pytest.mark.parametrize("ids", ["uint32", "uint64", ">u4", "int64"])
@pytest.mark.parametrize("values", [None, "float64", "float32", "int16"])
def test_binary_records_and_back(ids: str, values: str | None, tmp_path: Path) -> None:
    rows, columns, numbers = drawn(4, (30, 30), 100, values or "float64")
    fields = [("r", ids), ("c", ids)] + ([("v", values)] if values else [])
    records = np.zeros(100, np.dtype(fields))
    records["r"], records["c"] = rows, columns
    if values:
        records["v"] = numbers
    records.tofile(tmp_path / "e.bin")
    made = oc.sparse.from_binary(tmp_path / "e.bin", tmp_path / "a.ocs", ids=ids, values=values, shape=(30, 30))
    expected = np.zeros((30, 30), values or bool)
    np.add.at(expected, (rows, columns), numbers if values else True)
    assert np.array_equal(dense(made), expected)
    oc.sparse.to_edges(made, tmp_path / "back.bin", binary=True, ids=ids)
    again = oc.sparse.from_binary(tmp_path / "back.bin", tmp_path / "b.ocs", ids=ids, values=values, shape=(30, 30))
    assert np.array_equal(dense(again), expected)


@pytest.mark.parametrize("field", ["real", "integer", "complex", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
def test_matrix_market(field: str, symmetry: str, tmp_path: Path) -> None:
    rows, columns, _ = drawn(5, (20, 20), 60)
    lower = np.zeros((20, 20), complex)
    lower[rows, columns] = np.arange(1, 61) + (1j * np.arange(60) if field == "complex" else 0)
    if symmetry != "general":
        lower = np.tril(lower, -1 if symmetry == "skew-symmetric" else 0)
    if symmetry == "hermitian":
        np.fill_diagonal(lower, lower.diagonal().real)
    mirror = np.tril(lower, -1).T
    whole = {"general": lower, "symmetric": lower + mirror, "skew-symmetric": lower - mirror}
    whole["hermitian"] = lower + mirror.conj()
    at = np.argwhere(lower)
    spell = {"real": lambda v: f"{v.real}", "integer": lambda v: f"{int(v.real)}", "pattern": lambda v: ""}
    spell["complex"] = lambda v: f"{v.real} {v.imag}"
    body = "".join(f"{i + 1} {j + 1} {spell[field](lower[i, j])}\n" for i, j in at)
    text = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% a comment\n\n20 20 {len(at)}\n{body}"
    (tmp_path / "m.mtx.gz").write_bytes(gzip.compress(text.encode()))
    made = oc.sparse.from_mtx(tmp_path / "m.mtx.gz", tmp_path / "a.ocs")
    expected = whole[symmetry]
    assert np.array_equal(dense(made), expected != 0 if field == "pattern" else expected)
    assert made.dtype.kind == {"real": "f", "integer": "i", "complex": "c", "pattern": "b"}[field]
    back = scipy.io.mmread(oc.sparse.to_mtx(made, tmp_path / "back.mtx"))
    assert np.array_equal(back.toarray(), expected != 0 if field == "pattern" else expected)


@pytest.mark.parametrize(
    ("field", "dtype"), [("real", "float64"), ("integer", "int64"), ("complex", "complex128"), ("pattern", "bool")]
)
def test_matrix_market_without_entries_keeps_its_type(field: str, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "m.mtx").write_text(f"%%MatrixMarket matrix coordinate {field} general\n3 2 0\n")
    made = oc.sparse.from_mtx(tmp_path / "m.mtx", tmp_path / "a.ocs")
    assert (made.shape, made.nnz, made.dtype, made.is_pattern) == ((3, 2), 0, np.dtype(dtype), field == "pattern")
    narrow = oc.sparse.from_mtx(tmp_path / "m.mtx", tmp_path / "b.ocs", dtype="float32")
    assert narrow.dtype == np.float32


@pytest.mark.parametrize("damage", ["cut", "no gzip", "bits"])
def test_packed_matrix_market_that_is_damaged(damage: str, tmp_path: Path) -> None:
    whole = gzip.compress(b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n")
    text = {"cut": whole[:25], "no gzip": b"\x1f\x8bno gzip", "bits": whole[:10] + b"\xff" * 20}[damage]
    (tmp_path / "m.mtx.gz").write_bytes(text)
    with pytest.raises(FormatError, match=r"m\.mtx\.gz: cannot be unpacked"):
        oc.sparse.from_mtx(tmp_path / "m.mtx.gz", tmp_path / "a.ocs")


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("1 2\n", FormatError, "line 1 is no heading"),
        ("%%MatrixMarket matrix array real general\n", UnsupportedFormatError, "line 1: layout 'array'"),
        ("%%MatrixMarket matrix coordinate real odd\n", FormatError, "symmetry 'odd'"),
        ("%%MatrixMarket matrix coordinate real general\n%\n", FormatError, "ends before its sizes"),
        ("%%MatrixMarket matrix coordinate real general\n2 x 1\n", FormatError, "line 2"),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 5\n",
            FormatError,
            "line 2 tells of 2 entries, and 1",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 5\n",
            FormatError,
            "line 3: '1 3 5': 3, and the matrix has 2 columns",
        ),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n", FormatError, "line 3: '1 1': 2 numbers, not 3"),
        ("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 5.5\n", FormatError, "line 3"),
    ],
)
def test_bad_matrix_market(text: str, error: type[Exception], match: str, tmp_path: Path) -> None:
    (tmp_path / "m.mtx").write_text(text)
    with pytest.raises(error, match=match):
        oc.sparse.from_mtx(tmp_path / "m.mtx", tmp_path / "a.ocs")


@SLOW
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=shapes,
    count=st.integers(0, 150),
    layout=st.sampled_from(["csr", "csc", "coo"]),
    packed=st.booleans(),
    dtype=st.sampled_from(DTYPES),
)
def test_scipy_files_and_back(
    seed: int, shape: tuple[int, int], count: int, layout: str, packed: bool, dtype: str, tmp_path: Path
) -> None:
    rows, columns, values = drawn(seed, shape, count, dtype)
    expected = np.zeros(shape, dtype)
    np.add.at(expected, (rows, columns), values)
    matrix = sp.coo_array(expected).asformat(layout)
    sp.save_npz(tmp_path / "m.npz", matrix, compressed=packed)
    made = oc.sparse.from_npz(tmp_path / "m.npz", tmp_path / "a.ocs", overwrite=True)
    assert np.array_equal(dense(made), expected)
    back = sp.load_npz(oc.sparse.to_npz(made, tmp_path / "b.npz", compressed=packed, overwrite=True))
    assert back.dtype == made.dtype
    assert np.array_equal(back.toarray(), expected)
    if layout != "coo":
        arrays = (oc.asarray(matrix.indptr), matrix.indices, matrix.data)
        made = oc.sparse.from_csr(*arrays, shape, tmp_path / "a.ocs", layout=layout, overwrite=True)
        assert np.array_equal(dense(made), expected)


def test_compressed_rows_that_are_none(tmp_path: Path) -> None:
    ones = np.ones(3)
    with pytest.raises(FormatError, match="indptr falls"):
        oc.sparse.from_csr(np.asarray([0, 2, 1, 3]), np.zeros(3, int), ones, (3, 3), tmp_path / "a.ocs")
    with pytest.raises(ShapeError, match="indptr ends with 4, and there are 3"):
        oc.sparse.from_csr(np.asarray([0, 2, 2, 4]), np.zeros(3, int), ones, (3, 3), tmp_path / "a.ocs")
    with pytest.raises(ArgumentError, match="columns has 9, the matrix 3"):
        oc.sparse.from_csr(np.asarray([0, 1, 2, 3]), np.full(3, 9), ones, (3, 3), tmp_path / "a.ocs")


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_anndata_groups(kind: str, tmp_path: Path) -> None:
    import h5py
    import zarr

    rows, columns, values = drawn(6, (30, 20), 90, "float32")
    matrix = sp.coo_array((values, (rows, columns)), shape=(30, 20)).asformat(kind)
    zarr_root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        for root in (file, zarr_root):
            group = root.create_group("layers/counts")
            group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": [30, 20]})
            for name in ("data", "indices", "indptr"):
                array = getattr(matrix, name)
                root.create_array(f"layers/counts/{name}", data=array) if root is zarr_root else group.create_dataset(
                    name, data=array
                )
    for name in ("a.h5ad", "a.zarr"):
        made = oc.sparse.from_anndata(tmp_path / name, tmp_path / "a.ocs", group="layers/counts", overwrite=True)
        assert np.array_equal(dense(made), matrix.toarray())
        with pytest.raises(UnsupportedFormatError, match="there is no group 'X'"):
            oc.sparse.from_anndata(tmp_path / name, tmp_path / "b.ocs")


def test_tables(tmp_path: Path) -> None:
    tables = [{"a": np.asarray([0, 1]), "b": np.asarray([2, 2]), "w": np.asarray([1.5, 2.0])}] * 2
    made = oc.sparse.from_table(tables, tmp_path / "a.ocs", rows="a", columns="b", values="w")
    assert np.array_equal(dense(made), [[0, 0, 3], [0, 0, 4], [0, 0, 0]])
    with pytest.raises(ArgumentError, match="no column 'c'"):
        oc.sparse.from_table(tables, tmp_path / "b.ocs", rows="a", columns="c")


def test_edges_go_out_and_come_back(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=50).astype(np.float32)
    matrix = sp.coo_array((values, np.divmod(np.arange(50) * 7, 19)), shape=(19, 19))
    made = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", side=4)
    oc.sparse.to_edges(made, tmp_path / "e.csv", separator=",", base=1)
    settings = {"base": 1, "shape": (19, 19), "dtype": "float32"}
    again = oc.sparse.from_edges(tmp_path / "e.csv", tmp_path / "b.ocs", **settings)
    assert np.array_equal(dense(again), matrix.toarray())
    with pytest.raises(TargetExistsError):
        oc.sparse.to_edges(made, tmp_path / "e.csv")
    wide = oc.sparse.from_entries(([0], [299]), tmp_path / "w.ocs")
    with pytest.raises(DTypeError, match="uint8"):
        oc.sparse.to_edges(wide, tmp_path / "w.bin", binary=True, ids="uint8")


def test_rmat_is_the_same_everywhere(out: Path, scratch: Path) -> None:
    found = []
    for threads, pool in ((1, 64 << 20), (2, 16 << 20)):
        with session(scratch, pool_limit=pool, threads=threads):
            path = out / f"{threads}.ocs"
            made = oc.sparse.rmat(1 << 14, 200_000, path, seed=3)
            rows, columns = oc.compute(*oc.sparse.rmat_edges(1 << 14, 200_000, seed=3))
            expected = sp.coo_array((np.ones(len(rows), bool), (rows.astype(int), columns.astype(int))), made.shape)
            assert (made.to_scipy() != expected.tocsr()).nnz == 0
            found.append(path.read_bytes())
    assert found[0] == found[1]
    quadrants = np.bincount((rows >> 13).astype(int) * 2 + (columns >> 13).astype(int)) / len(rows)
    np.testing.assert_allclose(quadrants, [0.57, 0.19, 0.19, 0.05], atol=0.005)
    assert not np.array_equal(oc.sparse.rmat_edges(1 << 14, 1000, seed=4)[0].compute(), rows[:1000])
    with pytest.raises(ArgumentError, match="1000 vertices"):
        oc.sparse.rmat(1000, 5, out / "b.ocs")


def test_threads_go_where_a_tile_row_wants_their_memory(out: Path, scratch: Path) -> None:
    found, count = [], 4_000_000
    for threads, pool in ((4, 48 << 20), (1, 1 << 30)):
        with session(scratch, pool_limit=pool, threads=threads) as current:
            path = out / f"{threads}.ocs"
            rows, columns = (oc.random.integers(count, 0, n, seed=n, dtype="uint32") for n in (100, 1 << 20))
            values = oc.random.uniform((count,), seed=5)
            oc.sparse.from_entries((rows, columns, values), path, shape=(100, 1 << 20), duplicates="last")
            found.append(path.read_bytes())
            assert current.counters()["peak_bytes"] <= pool
    assert found[0] == found[1]


@pytest.mark.parametrize("points", [7, 27])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_grids(points: Any, n: int, tmp_path: Path) -> None:
    line = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sp.eye_array(n)
    whole = sp.kron(sp.kron(line, line), line)
    if points == 7:
        steps = [sp.kron(sp.kron(line, eye), eye), sp.kron(sp.kron(eye, line), eye), sp.kron(sp.kron(eye, eye), line)]
        whole = (steps[0] + steps[1] + steps[2]) > 0
    expected = np.where(whole.toarray() != 0, -1.0, 0.0)
    np.fill_diagonal(expected, points - 1)
    assert np.array_equal(dense(oc.sparse.grid3d(n, tmp_path / "a.ocs", points=points, side=8)), expected)


def test_a_grid_whose_tile_rows_do_not_fit(out: Path, scratch: Path) -> None:
    with session(scratch, pool_limit=16 << 20):
        small = oc.sparse.grid3d(20, out / "a.ocs")
    with session(scratch):
        assert oc.sparse.grid3d(20, out / "b.ocs").nnz == small.nnz
    assert (out / "a.ocs").read_bytes() == (out / "b.ocs").read_bytes()


@SLOW
@given(n=st.integers(0, 60), offsets=st.sets(st.integers(-70, 70), min_size=1, max_size=5))
def test_bands(n: int, offsets: set[int], tmp_path: Path) -> None:
    diagonals = {offset: float(offset + 100) for offset in offsets}
    made = oc.sparse.banded(n, diagonals, tmp_path / "a.ocs", side=16, overwrite=True)
    expected = np.zeros((n, n))
    for offset, value in diagonals.items():
        expected += value * np.eye(n, k=offset)
    assert np.array_equal(dense(made), expected)


@pytest.mark.parametrize("name", ["S", "W"])
def test_the_nas_matrix_gives_the_published_zeta(name: Any, tmp_path: Path) -> None:
    from outcore.sparse._nas import NAS_CLASSES

    kind = NAS_CLASSES[name]
    matrix = oc.sparse.nas_cg(name, tmp_path / "a.ocs").to_scipy()
    x = np.ones(kind.n)
    for _ in range(kind.iterations):
        z, r = np.zeros(kind.n), x.copy()
        p, rho = r.copy(), r @ r
        for _ in range(25):
            q = matrix @ p
            alpha = rho / (p @ q)
            z, r, old = z + alpha * p, r - alpha * q, rho
            rho = r @ r
            p = r + rho / old * p
        zeta = kind.shift + 1 / (x @ z)
        x = z / np.linalg.norm(z)
    assert abs(zeta - kind.zeta) < 1e-10


CHILD = """
import sys, outcore as oc
source, target, scratch = sys.argv[1:]
with oc.Session(scratch=[scratch], memory_limit=8 << 30, pool_limit=24 << 20, threads=2, progress=False):
    if source.endswith(".bin"):
        oc.sparse.from_binary(source, target, shape=(1 << 20, 1 << 20), resume=True)
    else:
        oc.sparse.from_edges(source, target, resume=True)
"""


@pytest.mark.parametrize("kind", ["bin", "txt"])
def test_a_killed_ingest_goes_on(kind: str, data: Path, out: Path, scratch: Path) -> None:
    rows, columns, _ = drawn(8, (1 << 20, 1 << 20), 2_000_000)
    source = data / f"e.{kind}"
    if kind == "bin":
        np.stack([rows, columns], axis=1).astype(np.uint32).tofile(source)
    else:
        source.write_text("".join(f"{r} {c}\n" for r, c in zip(rows.tolist(), columns.tolist(), strict=True)))
    command = [sys.executable, "-c", CHILD, str(source), str(out / "a.ocs"), str(scratch)]
    seen = set()
    for wait_for in ("rows-cuts.json", "rows-parts.json", None):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while child.poll() is None and wait_for is not None:
            notes = {Path(path).name for path in glob(f"{scratch}/*/notes/*.json")}
            if wait_for in notes:
                child.kill()
                seen |= notes
            time.sleep(0.001)
        text, _ = child.communicate()
        assert child.returncode in ((0,) if wait_for is None else (0, -9)), text
        if child.returncode == 0 and wait_for is not None:
            pytest.fail("it ended before it could be killed")
    assert {"rows-cuts.json", "rows-parts.json"} <= seen
    assert files_below(scratch) == []
    expected = sp.coo_array((np.ones(len(rows), bool), (rows, columns)), (1 << 20, 1 << 20)).tocsr()
    found = oc.sparse.open(out / "a.ocs")
    assert found.nnz == expected.nnz
    assert (expected[: found.shape[0], : found.shape[1]] != found.to_scipy()).nnz == 0


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(main, ["sparse", *map(str, arguments)])


def test_the_command_line_converts_and_tells(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("# a b\n0 1\n1 2\n1 1\n")
    done = invoke("convert", tmp_path / "e.txt", tmp_path / "a.ocs", "--symmetrize", "--drop-loops", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["entries"] == 4
    told = json.loads(invoke("info", tmp_path / "a.ocs", "--json").output)
    assert (told["shape"], told["entries"], told["degrees"]) == ([3, 3], 4, [0, 2, 1])
    # Three columns, a number and a pointer each, and two bytes an entry; four bytes for all that SciPy stores.
    assert (told["dcsc_bytes"], told["csr_bytes"]) == (3 * 8 + 4 * 2, 4 * (4 + 4))
    shown = invoke("info", tmp_path / "a.ocs", "--svg", tmp_path / "a.svg").output
    assert "3 × 3" in shown
    assert "2-3" in shown
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    expected = dense(oc.sparse.open(tmp_path / "a.ocs"))
    for name in ("b.mtx", "b.npz", "b.bin", "b.edges"):
        assert invoke("convert", tmp_path / "a.ocs", tmp_path / name).exit_code == 0
        back = invoke("convert", tmp_path / name, tmp_path / "c.ocs", "--overwrite")
        assert back.exit_code == 0, back.output
        found = dense(oc.sparse.open(tmp_path / "c.ocs"))
        assert np.array_equal(found[:3, :3] != 0, expected)
    done = invoke("convert", tmp_path / "a.ocs", tmp_path / "d.ocs", "--side", 16, "--transpose", tmp_path / "t.ocs")
    assert done.exit_code == 0, done.output
    assert np.array_equal(dense(oc.sparse.open(tmp_path / "d.ocs")), expected)


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("0 1\n1 b\n")
    result = invoke("convert", tmp_path / "e.txt", tmp_path / "a.ocs")
    assert result.exit_code == 1
    assert "line 2: '1 b'" in result.output
    assert "[format]" in result.output
    result = invoke("convert", tmp_path / "e.txt", tmp_path / "a.mtx", "--json")
    assert json.loads(result.output)["error"]["code"] == "invalid"
    assert invoke("convert", tmp_path / "e.txt", tmp_path / "a.ocs", "--shape", "3").exit_code == 2
    assert invoke("info", tmp_path / "none.ocs").exit_code == 1
