"""Binary records, Matrix Market, SciPy, AnnData and tables: what comes in, and what is refused."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from support.entries import DTYPES, SHAPES, SLOW, dense, drawn

import outcore as oc
from outcore.errors import (
    ArgumentError,
    FormatError,
    ShapeError,
    UnsupportedFormatError,
)


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


def test_unsigned_integers_of_matrix_market(tmp_path: Path) -> None:
    most = np.array([2**64 - 1, 7], np.uint64)
    made = oc.sparse.from_coo([0, 1], [0, 1], most, (2, 2), tmp_path / "u.ocs")
    again = oc.sparse.from_mtx(oc.sparse.to_mtx(made, tmp_path / "u.mtx"), tmp_path / "again.ocs")
    assert (again.dtype, again.to_scipy().tocoo().data.tolist()) == (np.dtype(np.uint64), most.tolist())
    scipy.io.mmwrite(tmp_path / "s.mtx", sp.coo_array(np.array([[0, 3]], np.uint32)))
    assert oc.sparse.from_mtx(tmp_path / "s.mtx", tmp_path / "s.ocs").to_scipy().sum() == 3


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
    shape=SHAPES,
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
