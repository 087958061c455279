"""Edges and entries as text: separators, numbers, packed files and the lines that are refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from support.entries import SLOW, dense, drawn
from support.running import files_below, session

import outcore as oc
from outcore import _core
from outcore._session import session as _session
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    MissingFileError,
    TargetExistsError,
)

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
