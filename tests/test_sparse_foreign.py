"""Matrices of other packages, opened where they lie: SciPy's files, AnnData's and Binsparse's groups."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import covering, examples

import outcore as oc
from outcore.errors import (
    FormatError,
    InternalError,
    MemoryLimitError,
    MissingFileError,
    OutcoreError,
    UnsupportedFormatError,
)

SIDE = 64
SLOW = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def drawn(seed: int, shape: tuple[int, int], count: int, dtype: Any = np.float64, kind: str = "csr") -> Any:
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, max(length, 1), count if min(shape) else 0) for length in shape)
    values = np.ones(len(rows)) if dtype is bool else rng.integers(1, 9, len(rows))
    made = sp.coo_array((values.astype(dtype), (rows, columns)), shape=shape)
    made.sum_duplicates()
    return made.asformat(kind)


def scrambled(matrix: Any, seed: int) -> Any:
    """The same matrix, with the entries of each line in no order."""
    rng, found = np.random.default_rng(seed), matrix.copy()
    for begin, end in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        order = begin + rng.permutation(end - begin)
        found.indices[begin:end], found.data[begin:end] = found.indices[order], found.data[order]
    found.has_sorted_indices = False
    return found


def saved(folder: Path, matrix: Any) -> Path:
    sp.save_npz(folder / "a.npz", matrix, compressed=False)
    return folder / "a.npz"


@SLOW
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.sampled_from([0, 1, 63, 64, 65, 500]), st.sampled_from([0, 1, 63, 64, 65, 700])),
    count=st.sampled_from([0, 1, 50, 3000]),
    dtype=st.sampled_from(["float64", "float32", "int8", "int64", "complex128", "bool"]),
    ids=st.sampled_from(["int32", "int64"]),
    kind=st.sampled_from(["csr", "csc"]),
)
def test_products_are_those_of_scipy(
    seed: int, shape: tuple[int, int], count: int, dtype: str, ids: str, kind: str, tmp_path: Path
) -> None:
    matrix = scrambled(drawn(seed, shape, count, np.dtype(dtype).type if dtype != "bool" else bool, kind), seed)
    matrix.indptr, matrix.indices = matrix.indptr.astype(ids), matrix.indices.astype(ids)
    opened = oc.sparse.open(saved(tmp_path, matrix), side=SIDE)
    assert (opened.shape, opened.nnz, opened.dtype) == (shape, matrix.nnz, matrix.dtype)
    kept = matrix.astype(np.int64) if dtype in ("bool", "int8") else matrix
    for a, expected in ((opened, kept), (opened.T, kept.T)):
        x = np.random.default_rng(seed).integers(-5, 5, (a.shape[1], 3)).astype(kept.dtype)
        assert np.array_equal((a @ x).compute(), expected @ x)
    assert (opened.to_scipy() != matrix.tocsr()).nnz == 0


def test_what_is_forecast_is_read_and_no_bit_depends_on_limits(tmp_path: Path) -> None:
    matrix = drawn(1, (30_000, 20_000), 400_000)
    x = np.random.default_rng(2).normal(size=(20_000, 8))
    np.save(tmp_path / "x.npy", x)
    path, bits = saved(tmp_path, matrix), set()
    for pool in (24 << 20, 64 << 20, 512 << 20):
        for threads in (1, 4):
            with session(pool_limit=pool, threads=threads):
                y = oc.sparse.open(path, side=4096) @ oc.open(tmp_path / "x.npy")
                said = oc.explain({tmp_path / "y.npy": y}, overwrite=True)
                done = oc.store({tmp_path / "y.npy": y}, overwrite=True)
                assert (said.bytes_read, said.bytes_written) == (done.bytes_read, done.bytes_written)
                assert said.peak_bytes == done.peak_bytes <= pool
                bits.add(np.load(tmp_path / "y.npy").tobytes())
    assert len(bits) == 1
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), matrix @ x, rtol=1e-12)
    with session(pool_limit=1 << 20), pytest.raises(MemoryLimitError):
        (oc.sparse.open(path) @ x).compute()


def test_a_copy_in_tiles_is_the_same_matrix_and_costs_less(tmp_path: Path) -> None:
    matrix = drawn(3, (30_000, 30_000), 300_000)
    opened = oc.sparse.open(saved(tmp_path, matrix))
    x = np.arange(30_000.0)
    said = oc.explain(opened @ x)
    assert len(said.advice) == 1
    assert "a copy in tiles (.ocs)" in said.advice[0]
    assert said.advice[0] in str(said)
    tiled = opened.copy(path=tmp_path / "a.ocs")
    told = oc.explain(tiled @ x)
    assert told.advice == ()
    assert told.bytes_read < said.bytes_read
    assert (tiled @ x).compute().tobytes() == (opened @ x).compute().tobytes()
    assert oc.sparse.spgemm(opened, opened).nnz == (matrix @ matrix).nnz


def groups(folder: Path, where: str) -> tuple[Path, Any]:
    """A file of groups, and its root."""
    if where == "h5":
        return folder / "a.h5ad", h5py.File(folder / "a.h5ad", "w")
    return folder / "a.zarr", zarr.open_group(str(folder / "a.zarr"), mode="w")


def put(group: Any, name: str, array: Any, **options: Any) -> None:
    if isinstance(group, h5py.Group):
        group.create_dataset(name, data=array, **options)
    else:
        made = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=(max(1, len(array) // 3),))
        made[:] = array


@pytest.mark.parametrize("where", ["h5", "zarr"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_anndata_is_opened_where_it_lies(where: str, kind: str, tmp_path: Path) -> None:
    matrix = drawn(4, (300, 500), 5000, kind=kind)
    path, root = groups(tmp_path, where)
    for name, scale in (("X", 1), ("layers/counts", 2)):
        group = root.create_group(name)
        group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": list(matrix.shape)})
        packed = {"compression": "gzip", "chunks": (1000,)} if where == "h5" else {}
        put(group, "data", matrix.data * scale, **packed)
        put(group, "indices", matrix.indices, **packed)
        put(group, "indptr", matrix.indptr)
    if where == "h5":
        root.close()
    x = np.arange(500.0)
    assert np.array_equal((oc.sparse.open(path, side=SIDE) @ x).compute(), matrix @ x)
    counts = oc.sparse.open(path, group="layers/counts", side=SIDE)
    assert np.array_equal((counts @ x).compute(), 2 * (matrix @ x))
    with pytest.raises(UnsupportedFormatError, match="no group 'raw'"):
        oc.sparse.open(path, group="raw")


@pytest.mark.parametrize("where", ["h5", "zarr"])
@pytest.mark.parametrize("values", ["float32", "iso[float64]", "bint8"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_binsparse_is_opened_where_it_lies(where: str, values: str, kind: str, tmp_path: Path) -> None:
    matrix = drawn(5, (300, 200), 5000, np.float32, kind)
    path, root = groups(tmp_path, where)
    told = {
        "version": "0.1",
        "format": kind.upper(),
        "shape": list(matrix.shape),
        "number_of_stored_values": matrix.nnz,
        "data_types": {"pointers_to_1": "uint64", "indices_1": "uint32", "values": values},
    }
    root.attrs["binsparse"] = json.dumps({"binsparse": told}) if where == "h5" else told
    put(root, "pointers_to_1", matrix.indptr.astype(np.uint64))
    put(root, "indices_1", matrix.indices.astype(np.uint32))
    data = {"float32": matrix.data, "iso[float64]": np.ones(1), "bint8": np.ones(matrix.nnz, np.uint8)}[values]
    put(root, "values", data)
    if where == "h5":
        root.close()
    opened = oc.sparse.open(path, side=SIDE)
    ones = sp.csr_array(matrix.astype(bool).astype(np.float32))
    x = np.arange(200).astype(np.float32)
    assert np.array_equal((opened @ x).compute(), (matrix if values == "float32" else ones) @ x)
    assert opened.is_pattern == (values == "iso[float64]")


def coordinates(folder: Path, where: str, kind: str, shape: tuple[int, int], *arrays: Any, **more: Any) -> Path:
    """A file of coordinates as the specification has it: indices_0 are columns in COOC, and rows in others."""
    path, root = groups(folder, where)
    names = ("indices_0", "indices_1", "values")
    types = {name: str(array.dtype) for name, array in zip(names, arrays, strict=True)}
    told = {"version": "0.1", "format": kind, "shape": list(shape), "number_of_stored_values": len(arrays[0])}
    content = {"binsparse": {**told, "data_types": {**types, **more}}}
    root.attrs["binsparse"] = json.dumps(content) if where == "h5" else content
    for name, array in zip(names, arrays, strict=True):
        put(root, name, array)
    if where == "h5":
        root.close()
    return path


@pytest.mark.parametrize(
    ("where", "kind", "shape"),
    covering(["h5", "zarr"], ["COO", "COOR", "COOC"], [(300, 200), (5000, 3000), (7, 9), (1, 1)]),
)
def test_sorted_coordinates_are_opened_where_they_lie(
    where: str, kind: str, shape: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever rows are empty, and however many pieces their numbers and the pointers to them come in."""
    count = {(300, 200): 5000, (5000, 3000): 40, (7, 9): 0, (1, 1): 1}[shape]
    matrix = drawn(12, shape, count, np.float64, "csc" if kind == "COOC" else "csr")
    rows, columns = (index.astype(np.uint32) for index in matrix.tocoo().coords)
    first, second = (columns, rows) if kind == "COOC" else (rows, columns)
    path = coordinates(tmp_path, where, kind, shape, first, second, matrix.data)
    x = np.random.default_rng(1).integers(-5, 5, shape[1]).astype(float)
    for piece in (7, 1 << 18):
        monkeypatch.setattr("outcore.sparse._foreign._PIECE", piece)
        if shape[kind == "COOC"] > 64 * max(matrix.nnz, piece):
            assert piece == 7
            with pytest.raises(UnsupportedFormatError, match="from_binsparse"):
                oc.sparse.open(path)
            continue
        opened = oc.sparse.open(path, side=SIDE)
        assert (opened.shape, opened.nnz, opened.dtype) == (shape, matrix.nnz, np.float64)
        said = oc.explain({tmp_path / "y.npy": opened @ x})
        done = oc.store({tmp_path / "y.npy": opened @ x}, overwrite=True)
        assert said.bytes_read == done.bytes_read
        assert np.array_equal(np.load(tmp_path / "y.npy"), matrix @ x)
        (tmp_path / "y.npy").unlink()
        assert np.array_equal((x @ opened.T).compute(), matrix @ x)
    made = oc.sparse.from_binsparse(path, tmp_path / "a.ocs")
    assert (made.to_scipy() != matrix.tocsr()).nnz == 0


def test_coordinates_that_are_not_sorted_are_converted(tmp_path: Path) -> None:
    rows, columns = np.asarray([2, 0, 1], np.int64), np.asarray([0, 1, 2], np.int64)
    path = coordinates(tmp_path, "h5", "COO", (3, 4), rows, columns, np.asarray([1.0, 2, 3]))
    with pytest.raises(
        UnsupportedFormatError, match=r"not sorted by rows; convert it by outcore\.sparse\.from_binsparse"
    ):
        oc.sparse.open(path)
    made = oc.sparse.from_binsparse(path, tmp_path / "a.ocs")
    assert made.to_scipy().toarray().tolist() == [[0, 2, 0, 0], [0, 0, 3, 0], [1, 0, 0, 0]]
    path = coordinates(tmp_path, "h5", "COOC", (3, 4), columns[::-1].copy(), rows, np.asarray([1.0, 2, 3]))
    with pytest.raises(UnsupportedFormatError, match="not sorted by columns"):
        oc.sparse.open(path)


@pytest.mark.parametrize(
    ("rows", "columns", "values", "why"),
    [
        ([0, 3], [0, 0], [1.0, 1], "row 3 of 3"),
        ([-1, 0], [0, 0], [1.0, 1], "row|sorted"),
        ([0, 1], [0, 4], [1.0, 1], "a column lies outside"),
        ([1, 1], [2, 2], [1.0, 1], "at one place"),
        ([0, 1], [0], [1.0, 1], "shapes"),
        ([0, 1], [0, 1], [1.0], "shapes"),
        ([0.0, 1.0], [0, 1], [1.0, 1], "float64"),
    ],
)
def test_lies_of_coordinates_are_errors(rows: Any, columns: Any, values: Any, why: str, tmp_path: Path) -> None:
    arrays = (np.asarray(part) for part in (rows, columns, values))
    path = coordinates(tmp_path, "h5", "COO", (3, 4), *arrays)
    with pytest.raises((FormatError, UnsupportedFormatError), match=why):
        (oc.sparse.open(path) @ np.ones(4)).compute()


def test_other_numbers_than_zero_elsewhere_are_refused(tmp_path: Path) -> None:
    path, root = groups(tmp_path, "h5")
    told = {"format": "COO", "shape": [2, 2], "fill": True, "data_types": {"values": "float64"}}
    root.attrs["binsparse"] = json.dumps({"binsparse": told})
    root["indices_0"], root["indices_1"], root["values"], root["fill_value"] = [0], [1], [5.0], [1.0]
    root.close()
    with pytest.raises(UnsupportedFormatError, match="another number than 0"):
        oc.sparse.open(path)
    with h5py.File(path, "a") as root:
        root["fill_value"][0] = 0.0
    assert oc.sparse.open(path).nnz == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda m: m.indptr.__setitem__(10, m.nnz + 5), "indptr"),
        (lambda m: m.indptr.__setitem__(10, 0), "indptr"),
        (lambda m: m.indptr.__setitem__(10, -1), "negative"),
        (lambda m: m.indptr.__setitem__(0, 1), "indptr"),
        (lambda m: m.indptr.__setitem__(-1, m.nnz - 1), "indptr ends with"),
        (lambda m: m.indices.__setitem__(7, 500), "a column lies outside"),
        (lambda m: m.indices.__setitem__(7, -1), "negative"),
        (lambda m: m.indices.__setitem__(slice(m.indptr[3], m.indptr[4]), 5), "at one place"),
    ],
)
def test_lies_are_errors(change: Any, why: str, tmp_path: Path) -> None:
    matrix = drawn(6, (300, 500), 5000)
    assert matrix.indptr[9] > 0
    assert matrix.indptr[4] - matrix.indptr[3] > 1
    change(matrix)
    parts = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
    np.savez(tmp_path / "a.npz", format=b"csr", shape=(300, 500), **parts)
    with pytest.raises(FormatError, match=why):
        (oc.sparse.open(tmp_path / "a.npz", side=SIDE) @ np.ones(500)).compute()


def test_lengths_that_do_not_go_together_are_errors(tmp_path: Path) -> None:
    matrix = drawn(7, (300, 500), 5000)
    for name, array in (("indptr", matrix.indptr[:-1]), ("indices", matrix.indices[1:]), ("data", matrix.data[1:])):
        parts = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data} | {name: array}
        np.savez(tmp_path / "a.npz", format=b"csr", shape=(300, 500), **parts)
        with pytest.raises(FormatError, match="shape"):
            oc.sparse.open(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-300])
    with pytest.raises(FormatError, match=r"b\.npz"):
        oc.sparse.open(tmp_path / "b.npz")


def test_what_is_not_opened_says_what_to_do(tmp_path: Path) -> None:
    matrix = drawn(8, (30, 50), 100)
    sp.save_npz(tmp_path / "a.npz", matrix)
    with pytest.raises(UnsupportedFormatError, match="compressed=False"):
        oc.sparse.open(tmp_path / "a.npz")
    sp.save_npz(tmp_path / "b.npz", matrix.tocoo(), compressed=False)
    with pytest.raises(UnsupportedFormatError, match="'coo'"):
        oc.sparse.open(tmp_path / "b.npz")
    with pytest.raises(MissingFileError):
        oc.sparse.open(tmp_path / "c.npz")
    (tmp_path / "d.h5ad").write_text("nothing")
    with pytest.raises(FormatError, match=r"d\.h5ad"):
        oc.sparse.open(tmp_path / "d.h5ad")
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file.attrs["binsparse"] = json.dumps({"format": "DMAT", "shape": [3, 3], "data_types": {}})
    with pytest.raises(UnsupportedFormatError, match="'DMAT'"):
        oc.sparse.open(tmp_path / "e.h5")


def test_a_file_that_changed_is_not_read(tmp_path: Path) -> None:
    path = saved(tmp_path, drawn(9, (300, 500), 5000))
    opened = oc.sparse.open(path)
    saved(tmp_path, drawn(10, (300, 500), 5000))
    with pytest.raises(oc.errors.SourceChangedError):
        (opened @ np.ones(500)).compute()


CONTRADICTIONS: dict[str, tuple[Any, Any, tuple[int, int]]] = {
    "entries without columns": ([0, 1], [0], (1, 0)),
    "more entries than columns": ([0, 3, 3], [0, 1, 2], (2, 2)),
    "no rows": ([0], [0], (0, 3)),
    "pointers of no rows": ([1], [0], (0, 3)),
    "too few rows": ([0, 1], [0], (2, 2)),
}


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_pointers_and_shapes_that_contradict_each_other_are_errors(name: str, kind: str, tmp_path: Path) -> None:
    indptr, indices, shape = CONTRADICTIONS[name]
    shape = shape if kind == "csr" else shape[::-1]
    parts = {"indptr": np.array(indptr, "i4"), "indices": np.array(indices, "i4"), "data": np.ones(len(indices))}
    np.savez(tmp_path / "a.npz", format=np.array(kind.encode()), shape=np.array(shape), **parts)
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": shape})
        for part, values in parts.items():
            group[part] = values
    for path in (tmp_path / "a.npz", tmp_path / "a.h5ad"):
        with pytest.raises(FormatError, match=path.name):
            oc.sparse.open(path)


def test_a_file_of_hdf5_can_be_written_again_while_its_matrix_is_there(tmp_path: Path) -> None:
    def write(value: float) -> None:
        with h5py.File(tmp_path / "a.h5ad", "w") as file:
            group = file.create_group("X")
            group.attrs.update({"encoding-type": "csr_matrix", "shape": (1, 2)})
            group["indptr"], group["indices"], group["data"] = [0, 1], [1], [value]

    write(2.0)
    before = oc.sparse.open(tmp_path / "a.h5ad")
    assert (before @ np.ones(2)).compute().tolist() == [2.0]
    write(3.0)
    assert (oc.sparse.open(tmp_path / "a.h5ad") @ np.ones(2)).compute().tolist() == [3.0]
    assert not [fd for fd in Path("/proc/self/fd").iterdir() if str(fd.resolve()).endswith("a.h5ad")]


@pytest.mark.parametrize("layout", ["CSR", "COOR"])
@pytest.mark.parametrize("value", [1.0, 2.5])
def test_one_value_of_all_entries(value: float, layout: str, tmp_path: Path) -> None:
    told = {"version": "0.1", "format": layout, "shape": [2, 3], "data_types": {"values": "iso[float64]"}}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": told})
        if layout == "CSR":
            file["pointers_to_1"], file["indices_1"] = [0, 2, 3], [0, 2, 1]
        else:
            file["indices_0"], file["indices_1"] = [0, 0, 1], [0, 2, 1]
        file["values"] = np.array([value])
    wanted = [[value, 0, value], [0, value, 0]]
    assert oc.sparse.open(tmp_path / "a.h5").to_scipy().toarray().tolist() == wanted
    assert oc.sparse.from_binsparse(tmp_path / "a.h5", tmp_path / "a.ocs").to_scipy().toarray().tolist() == wanted


@SLOW
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 30), packed=st.booleans(), near=st.booleans())
def test_damaged_files_of_scipy_are_one_of_our_errors(
    seed: int, flips: int, packed: bool, near: bool, tmp_path: Path
) -> None:
    path, chance = tmp_path / "a.npz", np.random.default_rng(seed)
    sp.save_npz(path, drawn(3, (30, 40), 100), compressed=packed)
    content = bytearray(path.read_bytes())
    for _ in range(flips):
        at = chance.integers(max(0, len(content) - 600) if near else 0, len(content))
        content[at] ^= 1 << chance.integers(8)
    path.write_bytes(content)
    for call in (
        lambda: (oc.sparse.open(path) @ np.ones(40)).compute(),
        lambda: oc.sparse.from_npz(path, tmp_path / "a.ocs", overwrite=True),
    ):
        with contextlib.suppress(OutcoreError):
            call()


@pytest.mark.parametrize("read", [oc.sparse.open, oc.sparse.from_anndata])
def test_damaged_hdf5_files_raise_no_errors_of_their_library(read: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.h5ad"
    S = sp.random_array((60, 50), density=0.2, rng=np.random.default_rng(3), format="csr")
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": S.shape})
        group["indptr"], group["indices"], group["data"] = S.indptr, S.indices, S.data
    whole, draw, refused = path.read_bytes(), np.random.default_rng(5), 0
    for _ in range(60):
        damaged = bytearray(whole)
        begin = int(draw.integers(len(whole)))
        damaged[begin : begin + 32] = draw.bytes(len(damaged[begin : begin + 32]))
        path.write_bytes(damaged[: int(draw.integers(len(whole) // 2, len(whole) + 1))])
        try:
            read(path).sum().compute()
        except InternalError:
            raise
        except OutcoreError:
            refused += 1
    assert refused > 30
