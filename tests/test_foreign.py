"""Arrays of others: files are read where they lie, other libraries in blocks, and nothing is loaded as a whole."""

from __future__ import annotations

import gc
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import ROOMY, session
from support.sizes import examples

import outcore as oc
from outcore.errors import DTypeError, FunctionError, MemoryLimitError, ShapeError, SourceChangedError

h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
dask_array = pytest.importorskip("dask.array")


def same(lazy: oc.Array, expected: Any) -> None:
    expected = np.asarray(expected)
    with session():
        found = oc.compute(lazy)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype.newbyteorder("="))
    np.testing.assert_array_equal(found, expected)


def sources(array: oc.Array) -> set[str]:
    """What the plan of an array reads."""
    with session():
        return {name for part in oc.explain(array).passes for name in part.inputs}


# -- mapped files -----------------------------------------------------------------------------------------------------


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(60_000.0).reshape(300, 200))
    return tmp_path / "x.npy"


VIEWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x,
    "rows": lambda x: x[10:20],
    "columns, backwards": lambda x: x[:, ::-3],
    "transposed": lambda x: x.T[5:, ::2],
    "one row": lambda x: x[7],
    "one element": lambda x: x[7:8, 9:10],
    "new axes": lambda x: x[None, ::4, None, 3],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_view_of_a_mapped_npy_is_that_part_of_the_file(view: str, order: Any, tmp_path: Path) -> None:
    values = np.arange(60_000.0).reshape(300, 200)
    np.save(tmp_path / "x.npy", np.asarray(values, order=order))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    lazy = oc.asarray(VIEWS[view](mapped))
    assert sources(lazy) == {str(tmp_path / "x.npy")}
    same(lazy, VIEWS[view](values))


def test_a_mapped_npy_is_the_node_that_open_gives(matrix: Path) -> None:
    mapped, opened = np.load(matrix, mmap_mode="r"), oc.open(matrix)
    assert oc.asarray(mapped)._expr.id == opened._expr.id
    assert oc.asarray(np.asarray(mapped))._expr.id == opened._expr.id
    assert oc.asarray(mapped[4:9, ::2])._expr.id == opened[4:9, ::2]._expr.id
    assert oc.asarray(mapped.T)._expr.id == opened.T._expr.id


def test_a_view_that_slices_cannot_say_is_read_where_it_lies(matrix: Path) -> None:
    mapped = np.load(matrix, mmap_mode="r")
    for view in (mapped[3:5].reshape(-1), mapped.reshape(150, 400)[:, :200], mapped.view(np.uint8)[2], mapped[0, 5:9]):
        lazy = oc.asarray(view)
        assert sources(lazy) == {str(matrix)}
        same(lazy, view)


def test_a_broadcast_view_is_one(matrix: Path) -> None:
    row = np.load(matrix, mmap_mode="r")[5]
    lazy = oc.asarray(np.broadcast_to(row, (1000, 200)))
    assert sources(lazy) == {str(matrix)}
    same(lazy, np.broadcast_to(row, (1000, 200)))


@pytest.mark.parametrize("dtype", ["<f4", ">i2", "?", "<c16"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0, 24, 4096])
def test_a_raw_mapping_without_a_header(dtype: str, order: Any, offset: int, tmp_path: Path) -> None:
    values = (np.arange(3000) % 7).astype(dtype).reshape(60, 50)
    (tmp_path / "x.bin").write_bytes(b"h" * offset + values.tobytes(order))
    mapped = np.memmap(tmp_path / "x.bin", dtype, "r", offset, (60, 50), order)
    lazy = oc.asarray(mapped[::-2, 3:])
    assert sources(lazy) == {str(tmp_path / "x.bin")}
    same(lazy, values[::-2, 3:])


def test_a_field_of_mapped_records(tmp_path: Path) -> None:
    records = np.zeros(100, [("a", "i8"), ("b", "f8", 3)])
    records["b"] = np.arange(300.0).reshape(100, 3)
    np.save(tmp_path / "x.npy", records)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")["b"]
    assert sources(oc.asarray(mapped[:, 1])) == {str(tmp_path / "x.npy")}
    same(oc.asarray(mapped), records["b"])


def test_a_plain_mapping_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(np.arange(1000.0).tobytes())
    with open(tmp_path / "x.bin", "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    lazy = oc.asarray(np.frombuffer(whole, "f8")[10:])
    assert sources(lazy) == {str(tmp_path / "x.bin")}
    same(lazy, np.arange(10.0, 1000.0))


def test_what_is_not_in_the_file_stays_in_memory(matrix: Path) -> None:
    changed = np.load(matrix, mmap_mode="c")
    changed[0] = -1.0
    gone = np.load(matrix, mmap_mode="r")
    matrix.unlink()
    for array in (changed, gone):
        assert sources(oc.asarray(array)) == {"array in memory"}
        same(oc.asarray(array), array)


def test_a_mapping_that_can_only_be_borrowed_must_fit(tmp_path: Path) -> None:
    with open(tmp_path / "x.bin", "wb") as file:
        file.truncate(4 << 30)
    mapped = np.memmap(tmp_path / "x.bin", "f8", "c")
    with (
        session(memory_limit=1 << 30),
        pytest.raises(MemoryLimitError, match=r"4294967296 bytes .*numpy\.save") as refused,
    ):
        oc.asarray(mapped)
    assert refused.value.need == 4 << 30
    assert refused.value.limit < 1 << 30


def test_shared_memory_is_memory() -> None:
    block = shared_memory.SharedMemory(create=True, size=2 << 30)
    try:
        array = np.ndarray((1 << 28,), "f8", buffer=block.buf)
        with session(memory_limit=1 << 30):
            lazy = oc.asarray(array)[:10]
        assert sources(lazy) == {"array in memory"}
        same(lazy, np.zeros(10))
        del array, lazy
        gc.collect()
    finally:
        block.unlink()
        block.close()


def test_what_is_written_through_a_mapping_is_seen_or_refused(matrix: Path) -> None:
    mapped = np.load(matrix, mmap_mode="r+")
    mapped[3] = 7.0
    lazy = oc.asarray(mapped)
    same(lazy[3], np.full(200, 7.0))
    mapped[4] = 8.0
    mapped.flush()
    with session(), pytest.raises(SourceChangedError):
        oc.compute(lazy)


def test_operators_and_numpy_functions_take_mappings(matrix: Path) -> None:
    mapped = np.load(matrix, mmap_mode="r")
    x = oc.open(matrix)
    for lazy in (x + mapped, mapped + x, np.add(mapped, x), oc.add(mapped, mapped)):
        assert sources(lazy) == {str(matrix)}
        same(lazy, mapped + mapped)


cuts = st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.sampled_from([1, 2, 3, -1, -2])).map(
    lambda cut: slice(*cut)
)


@given(
    key=st.tuples(*[cuts | st.integers(0, 3)] * 3),
    axes=st.permutations(range(3)),
    more=cuts,
)
@settings(deadline=None, max_examples=examples(200))
def test_any_view_by_slices_is_found(tmp_path_factory: Any, key: Any, axes: list[int], more: slice) -> None:
    path = tmp_path_factory.getbasetemp() / "views.npy"
    values = np.arange(4 * 5 * 6, dtype="i4").reshape(4, 5, 6)
    if not path.exists():
        np.save(path, values)
    mapped = np.load(path, mmap_mode="r").transpose(axes)
    view, expected = mapped[key], values.transpose(axes)[key]
    if view.ndim:
        view, expected = view[..., more], expected[..., more]
    lazy = oc.asarray(view)
    if view.size and view.ndim:
        assert sources(lazy) == {str(path)}
    same(lazy, expected)


CONFINED = """
import json, sys
import numpy as np
import outcore as oc
from outcore import _core

x = np.load(sys.argv[1], mmap_mode="r")
with oc.Session(memory_limit=int(sys.argv[2]), progress=False):
    total = float(oc.compute(oc.asarray(x).sum()))
print(json.dumps({"total": total, "peak": _core.rss()["peak"]}))
"""


def test_the_limit_holds_over_a_mapping(tmp_path: Path) -> None:
    """The pages of a mapping that is read through count as resident; the file's own source leaves them alone."""
    x = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype="f8", shape=(1 << 16, 512))
    x[:] = 1.0
    x.flush()
    del x
    limit = 192 << 20
    command = [sys.executable, "-c", CONFINED, str(tmp_path / "x.npy"), str(limit)]
    done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert done["total"] == 1 << 25
    assert done["peak"] <= limit


# -- other libraries' arrays ------------------------------------------------------------------------------------------


def test_a_zarr_array_in_a_folder_is_opened(tmp_path: Path) -> None:
    stored: Any = zarr.create_array(str(tmp_path / "x.zarr"), shape=(50, 40), dtype="f8", chunks=(8, 8))
    stored[...] = np.arange(2000.0).reshape(50, 40)
    group: Any = zarr.open_group(str(tmp_path / "group"), mode="w")
    inner = group.create_array("deep", shape=(30,), dtype="i4", chunks=(7,))
    inner[...] = np.arange(30)
    assert oc.asarray(stored)._expr.id == oc.open(tmp_path / "x.zarr")._expr.id
    assert oc.asarray(inner)._expr.id == oc.open(tmp_path / "group" / "deep")._expr.id
    same(oc.asarray(inner), np.arange(30, dtype=np.int32))
    older = zarr_2(tmp_path / "older", np.arange(60.0).reshape(10, 6))
    assert oc.asarray(older)._expr.id == oc.open(tmp_path / "older" / "x.zarr")._expr.id


def test_a_dataset_of_a_file_that_is_read_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).random((311, 207))
    with h5py.File(tmp_path / "x.h5", "w") as written:
        kept = written.create_dataset("a/x", data=values, chunks=(64, 32), compression="gzip")
        assert sources(oc.asarray(kept)) == {"h5py.Dataset /a/x"}  # may be ahead of its file
    monkeypatch.chdir(tmp_path)
    with h5py.File("x.h5") as file:
        lazy = oc.asarray(file["a/x"])
        monkeypatch.chdir("/")
        assert lazy._expr.id == oc.open(tmp_path / "x.h5" / "a" / "x")._expr.id
        same(lazy, values)
    same(lazy + 1, values + 1)  # with their file closed
    with h5py.File(tmp_path / "x.h5") as file:
        os.replace(tmp_path / "x.h5", tmp_path / "moved.h5")
        np.save(tmp_path / "x.h5.npy", values)
        os.replace(tmp_path / "x.h5.npy", tmp_path / "x.h5")
        same(oc.asarray(file["a/x"]), values)


def hdf5(tmp_path: Path, values: Any) -> Any:
    return h5py.File(tmp_path / "x.h5", "w").create_dataset("x", data=values, chunks=(64, 32))


def hdf5_unchunked(tmp_path: Path, values: Any) -> Any:
    return h5py.File(tmp_path / "x.h5", "w").create_dataset("x", data=values.astype(">f8"))


def zarr_2(tmp_path: Path, values: Any) -> Any:
    stored: Any = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=values.shape, dtype=values.dtype, chunks=(50, 50), zarr_format=2
    )
    stored[...] = values
    return stored


def zarr_in_memory(tmp_path: Path, values: Any) -> Any:
    stored: Any = zarr.create_array(zarr.storage.MemoryStore(), shape=values.shape, dtype=values.dtype, chunks=(50, 50))
    stored[...] = values
    return stored


OTHERS: dict[str, Callable[[Path, Any], Any]] = {
    "h5py": hdf5,
    "h5py, big-endian": hdf5_unchunked,
    "zarr in memory": zarr_in_memory,
    "dask": lambda _, values: dask_array.from_array(values, chunks=(100, 70)),
    "xarray": lambda _, values: xarray.DataArray(values, dims=("a", "b")),
    "xarray over dask": lambda _, values: xarray.DataArray(dask_array.from_array(values, chunks=64), dims=("a", "b")),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_others_are_read_in_blocks(kind: str, tmp_path: Path) -> None:
    values = np.random.default_rng(3).random((311, 207))
    lazy = oc.asarray(OTHERS[kind](tmp_path, values))
    assert not sources(lazy) & {"array in memory"}
    same(lazy, values)
    same(oc.asarray(lazy[::-3, 5:100].T, dtype="f4"), values[::-3, 5:100].T.astype("f4"))
    with session():
        told = oc.explain(lazy.sum(axis=0))
        assert told.bytes_read == values.nbytes


class Loud:
    """A lazy array of ones that counts what is asked of it at once, and may never be asked for everything."""

    shape, dtype, chunks = (4096, 4096), np.dtype("f8"), (128, 4096)

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __getitem__(self, key: tuple[slice, ...]) -> Any:
        block = np.ones([part.stop - part.start for part in key])
        self.asked.append(block.nbytes)
        return block

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError("loaded as a whole")


def test_blocks_are_tiles_and_the_forecast_is_the_outcome(tmp_path: Path) -> None:
    loud = Loud()
    with session(tmp_path, pool_limit=96 << 20, io_threads=2):
        lazy = oc.asarray(loud)
        assert loud.asked == []
        told = oc.explain(oc.sum(lazy))
        outcome = oc.store({tmp_path / "y.npy": oc.sum(lazy, axis=0)})
        again = oc.explain({tmp_path / "z.npy": oc.sum(lazy, axis=0)})
    assert told.bytes_read == outcome.bytes_read == sum(loud.asked) == 128 << 20
    assert max(loud.asked) <= 16 << 20
    assert again.bytes_read < told.bytes_read  # tiles are kept from run to run as those of files are
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.full(4096, 4096.0))


def test_what_a_library_raises_reaches_the_caller() -> None:
    class Broken(Loud):
        def __getitem__(self, key: tuple[slice, ...]) -> Any:
            raise KeyError("the tape is torn")

    with session(), pytest.raises(FunctionError, match="the tape is torn") as raised:
        oc.compute(oc.asarray(Broken()).sum())
    assert isinstance(raised.value.__cause__, KeyError)


def test_masked_blocks_are_refused_where_the_mask_says_something() -> None:
    class Masked(Loud):
        shape, chunks = (10, 10), (5, 5)

        def __getitem__(self, key: tuple[slice, ...]) -> Any:
            block = super().__getitem__(key)
            return np.ma.masked_array(block, block > self.least)

    masked = Masked()
    masked.least = 1
    same(oc.asarray(masked), np.ones((10, 10)))
    masked.least = 0
    with session(), pytest.raises(FunctionError, match="masked"):
        oc.compute(oc.asarray(masked))


def test_variables_of_netcdf4_have_the_type_that_their_scale_makes(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    quarters = xarray.Dataset({"v": ("x", np.arange(10) / 4)})
    quarters.to_netcdf(tmp_path / "a.nc", encoding={"v": {"dtype": "int16", "scale_factor": 0.25, "_FillValue": -1}})
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        same(oc.asarray(file["v"]), np.arange(10) / 4)
        file.set_auto_scale(False)
        same(oc.asarray(file["v"]), np.arange(10, dtype="int16"))


def test_blocks_of_a_wider_type_are_refused() -> None:
    class Wider(Loud):
        def __getitem__(self, key: tuple[slice, ...]) -> Any:
            return super().__getitem__(key) + 0.5j

    with session(), pytest.raises(FunctionError, match="a block of complex128 in an array of float64"):
        oc.compute(oc.asarray(Wider())[:3])


def test_arrays_of_xarray_keep_the_names_of_their_axes_and_lazy_ones_are_not_read_in_blocks(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    xarray.Dataset({"v": (("time", "lat"), values)}).to_netcdf(tmp_path / "a.nc")
    assert oc.asarray(xarray.open_dataset(tmp_path / "a.nc")["v"]).dims == ("time", "lat")
    for chunks in ({}, None):
        opened = xarray.open_dataset(tmp_path / "a.nc", engine="outcore", chunks=chunks)["v"]
        lazy = oc.asarray(opened)
        assert (lazy.dims, {Path(name).name for name in sources(lazy)}) == (("time", "lat"), {"a.nc"})
        same(oc.asarray(opened.isel(lat=slice(1, None)) * 2), values[:, 1:] * 2)


def test_a_computation_within_a_read_is_an_error_and_no_deadlock() -> None:
    class Nested(Loud):
        def __getitem__(self, key: tuple[slice, ...]) -> Any:
            return super().__getitem__(key) + oc.arange(3).sum().item()

    with session(), pytest.raises(FunctionError, match="started inside a running one"):
        oc.compute(oc.asarray(Nested())[:3])


def test_blocks_of_another_shape_are_refused() -> None:
    class Wrong(Loud):
        def __getitem__(self, key: tuple[slice, ...]) -> Any:
            return np.ones(3)

    with session(), pytest.raises(FunctionError, match=r"shape \[3\]"):
        oc.compute(oc.asarray(Wrong()))


def test_lists_of_stored_arrays_are_refused(tmp_path: Path) -> None:
    stored = hdf5(tmp_path, np.ones((64, 64)))
    with pytest.raises(DTypeError, match=r"stack\(\)"):
        oc.asarray([stored, stored])
    same(oc.stack([stored, stored]), np.ones((2, 64, 64)))


def test_lists_of_arrays_must_fit(tmp_path: Path) -> None:
    with open(tmp_path / "x.bin", "wb") as file:
        file.truncate(1 << 30)
    mapped = np.memmap(tmp_path / "x.bin", "f8", "r")
    with session(memory_limit=1 << 30), pytest.raises(MemoryLimitError, match=r"2147483648 bytes .*stack\(\)"):
        oc.asarray([mapped, mapped])


def test_a_copy_must_fit(tmp_path: Path) -> None:
    with open(tmp_path / "x.bin", "wb") as file:
        file.truncate(2 << 30)
    mapped = np.memmap(tmp_path / "x.bin", "f8", "r")
    with session(memory_limit=1 << 30), pytest.raises(MemoryLimitError, match="copy=True"):
        oc.asarray(mapped, copy=True)
    small = oc.asarray(mapped[:10], copy=True)
    assert sources(small) == {"array in memory"}


def test_lengths_must_be_known() -> None:
    unknown = dask_array.from_array(np.arange(10.0), chunks=5)
    with pytest.raises(ShapeError, match="must be known"):
        oc.asarray(unknown[unknown > 3])


def test_types_without_kernels_are_refused_at_once(tmp_path: Path) -> None:
    stored = h5py.File(tmp_path / "x.h5", "w").create_dataset("x", data=np.array([b"a", b"b"]))
    with pytest.raises(DTypeError, match="not supported"):
        oc.asarray(stored)


# -- iteration --------------------------------------------------------------------------------------------------------


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one for each program that is run."""
    run: list[int] = []
    whole = oc.Session.run

    def counted(self: Any, *args: Any) -> Any:
        run.append(1)
        return whole(self, *args)

    monkeypatch.setattr(oc.Session, "run", counted)
    return run


def test_the_values_of_a_column_take_one_program(matrix: Path, programs: list[int]) -> None:
    column = np.load(matrix)[:, 0]
    with session():
        found = list(oc.open(matrix)[:, 0])
        assert len(programs) == 1
        assert sum(oc.open(matrix)[:, 0]) == column.sum()
        assert max(oc.open(matrix)[:, 0]) == column.max()
    assert len(programs) == 3
    assert found == list(column)
    assert all(type(value) is np.float64 for value in found)


def test_long_columns_are_computed_in_blocks(programs: list[int]) -> None:
    with session(pool_limit=32 << 20):
        values = iter(oc.arange(3_000_000))
        assert [next(values) for _ in range(3)] == [0, 1, 2]
        assert len(programs) == 1
        assert sum(1 for _ in values) == 3_000_000 - 3
    assert 1 < len(programs) < 20


def test_rows_are_lazy(matrix: Path, programs: list[int]) -> None:
    first, *_, last = oc.open(matrix)
    assert programs == []
    same(last - first, np.load(matrix)[-1] - np.load(matrix)[0])


def test_nothing_is_computed_while_a_function_is_traced(programs: list[int]) -> None:
    def norm(point: Any) -> Any:
        x, y, z = point
        return np.sqrt(x * x + y * y + z * z)

    lazy = oc.map(norm, oc.asarray([2.0, 3.0, 6.0]))
    assert programs == []
    with session(memory_limit=ROOMY):
        assert oc.compute(lazy) == 7.0
