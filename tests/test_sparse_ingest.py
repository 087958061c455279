"""Entries in any order become tiles: against SciPy, within little memory, after kills, by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from support.entries import DTYPES, SHAPES, SLOW, dense, drawn
from support.running import files_below, session

import outcore as oc
from outcore._command.cli import main
from outcore.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    TargetExistsError,
)


@SLOW
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=SHAPES,
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
    with session():
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
