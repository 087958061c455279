"""xarray over lazy arrays: its methods give what they give of NumPy's arrays, and NumPy never sees a whole one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import xarray
import zarr
from support.xarray_methods import METHODS, dataset
from xarray.computation import fit
from xarray.core import dataset as dataset_module
from xarray.core import duck_array_ops, groupby, indexing, resample

import outcore as oc
from outcore._run import run
from outcore._xarray.generalized import Signature
from outcore._xarray.manager import Manager
from outcore._xarray.packed import forward_filled
from outcore._xarray.storing import blocks_of
from outcore.errors import ArgumentError, ShapeError

EAGER = dataset()
WHOLE_BYTES = EAGER.t.nbytes
CHUNKS = (50, 4, 6)


@pytest.fixture(scope="module")
def path(shared: Path) -> Path:
    EAGER.to_zarr(shared / "x.zarr", consolidated=False, encoding={name: {"chunks": CHUNKS} for name in "tu"})
    return shared / "x.zarr"


@pytest.fixture(scope="module", autouse=True)
def _chosen() -> Iterator[None]:
    with xarray.set_options(chunk_manager="outcore"):
        yield


@pytest.fixture
def lazy(path: Path) -> xarray.Dataset:
    return xarray.open_dataset(path, engine="outcore", chunks={})


def test_what_the_engine_opens_is_lazy_whichever_manager_is_chosen(path: Path) -> None:
    with xarray.set_options(chunk_manager="dask"):
        opened = xarray.open_dataset(path, engine="outcore", chunks={})
        assert isinstance(opened.t.data, oc.Array)
        assert isinstance(opened.chunk(time=10).t.data, oc.Array)
        assert isinstance(opened.t.chunk({"time": 10}).data, oc.Array)
        anomaly = opened.t.groupby("time.month") - opened.t.groupby("time.month").mean("time")
        assert isinstance(anomaly.data, oc.Array)
        assert type(EAGER.chunk(time=10).t.data).__module__.startswith("dask.")


class Guard:
    """Refuses programs that bring more than a quarter of a variable into memory, until it is lifted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.plan_and_run = monkeypatch, run.plan_and_run
        monkeypatch.setattr(run, "plan_and_run", self.checked)

    def checked(self, exprs: Any, targets: Any, progress: Any = None) -> Any:
        for expr, target in zip(exprs, targets, strict=True):
            size = int(np.prod(expr.shape)) * np.dtype(expr.dtype).itemsize
            assert target is not None or size <= WHOLE_BYTES // 4, f"{expr.op} of {expr.shape} comes into memory"
        return self.plan_and_run(exprs, targets, progress)

    def computed(self, result: Any) -> Any:
        self.monkeypatch.setattr(run, "plan_and_run", self.plan_and_run)
        return result.compute()


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Guard:
    return Guard(monkeypatch)


def variables(result: Any) -> list[xarray.Variable]:
    return [result.variable] if isinstance(result, xarray.DataArray) else [part.variable for part in result.values()]


# -- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_methods_are_lazy_and_give_what_they_give_of_numpy(name: str, lazy: xarray.Dataset, guard: Guard) -> None:
    method = METHODS[name]
    result = method(lazy)
    assert all(isinstance(part._data, oc.Array) for part in variables(result))
    expected = method(EAGER)
    xarray.testing.assert_allclose(guard.computed(result), expected, rtol=1e-9, atol=1e-12)
    assert [part.dtype for part in variables(result)] == [part.dtype for part in variables(expected)]


@pytest.mark.parametrize("fold", ["mean", "first", "median"])
def test_groups_are_the_first_axis_of_datasets_and_keep_their_place_in_arrays(fold: str, tmp_path: Path) -> None:
    values = np.random.default_rng(4).random((6, 4, 5))
    data = xarray.Dataset({"t": (("time", "lat", "lon"), values)}, coords={"site": ("lat", list("abab"))})
    data.to_zarr(tmp_path / "x.zarr", consolidated=False)
    opened = xarray.open_dataset(tmp_path / "x.zarr", engine="outcore", chunks={})
    result = getattr(opened.groupby("site"), fold)()
    assert result.t.dims == ("site", "time", "lon")
    assert getattr(opened.t.groupby("site"), fold)().dims == ("time", "site", "lon")
    xarray.testing.assert_identical(result.compute(), getattr(data.groupby("site"), fold)())


@pytest.mark.parametrize("name", ["groupby month", "groupby median", "anomaly", "resample", "resample with gaps"])
@pytest.mark.filterwarnings("ignore")
def test_groups_go_the_same_way_with_flox_and_without(name: str, lazy: xarray.Dataset, guard: Guard) -> None:
    with xarray.set_options(use_flox=False):
        result, expected = METHODS[name](lazy), METHODS[name](EAGER)
    assert all(isinstance(part._data, oc.Array) for part in variables(result))
    xarray.testing.assert_allclose(guard.computed(result), expected)


@pytest.mark.parametrize("limit", [None, 2])
def test_gaps_are_filled_by_what_is_before_and_behind(limit: int | None, lazy: xarray.Dataset, guard: Guard) -> None:
    frame = pandas.DataFrame(EAGER.t.values.reshape(EAGER.sizes["time"], -1))
    for result, expected in (
        (lazy.t.ffill("time", limit), frame.ffill(limit=limit)),
        (lazy.t.bfill("time", limit), frame.bfill(limit=limit)),
        (lazy.t.astype("f4").ffill("time", limit), frame.astype("f4").ffill(limit=limit)),
    ):
        assert isinstance(result.data, oc.Array)
        values = Guard.computed(guard, result).values
        np.testing.assert_array_equal(values, expected.values.reshape(values.shape))


def test_signs_and_infinities_survive_packing() -> None:
    row = np.asarray([np.nan, -0.0, np.nan, -np.inf, np.nan, 5e-324, np.nan, -1.5])
    for kind in ("f2", "f4", "f8"):
        values = row.astype(kind)
        expected = pandas.Series(values.astype("f8")).ffill().values
        found = forward_filled(oc.asarray(values)).compute()
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[1:]), np.signbit(expected[1:]))


def test_names_of_axes_go_on_to_xarray() -> None:
    Manager()
    named = oc.zeros((2, 3)).annotate(dims=("time", None), attrs={"units": "K"})
    assert xarray.DataArray(named).dims == ("time", "dim_1")
    assert xarray.DataArray(named).attrs == {"units": "K"}
    assert xarray.DataArray(oc.zeros((2, 3))).dims == ("dim_0", "dim_1")


def test_what_people_look_at_reads_little(lazy: xarray.Dataset, guard: Guard) -> None:
    assert "outcore.Array" in repr(lazy)
    assert "outcore.Array" in repr(lazy.t)
    assert "weather" in lazy._repr_html_()
    assert float(lazy.t.mean()) == pytest.approx(float(EAGER.t.mean()))
    np.testing.assert_array_equal(lazy.t.isel(time=7).values, EAGER.t.isel(time=7).values)
    assert lazy.t.isel(lat=0, lon=1).to_pandas().shape == (400,)
    assert lazy.identical(lazy.copy())
    assert isinstance(lazy.isel(time=slice(90)).persist().t.data, oc.Array)


def test_plots_draw_small_parts(lazy: xarray.Dataset, guard: Guard) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="plots are matplotlib's")
    matplotlib.use("Agg")
    assert lazy.t.isel(time=3).plot() is not None
    assert lazy.t.mean(("lat", "lon")).plot() is not None


def test_functions_that_are_replaced_exist() -> None:
    Manager()
    for owner, name in (
        (indexing.ArrayApiIndexingAdapter, "_vindex_get"),
        (indexing.NumpyIndexingAdapter, "_vindex_get"),
        (duck_array_ops, "_push"),
        (duck_array_ops, "array_any"),
        (fit, "least_squares"),
        (dataset_module, "get_chunksizes"),
        (groupby.GroupBy, "_flox_reduce"),
        (resample.Resample, "_flox_reduce"),
        (groupby.GroupBy, "_flox_scan"),
        (groupby.GroupBy, "_first_or_last"),
        (groupby.DataArrayGroupByBase, "reduce"),
        (groupby.DatasetGroupByBase, "reduce"),
    ):
        assert hasattr(vars(owner)[name], "_outcore"), f"{owner.__name__}.{name}"
    eager = EAGER.t.isel(lon=0)
    xarray.testing.assert_identical(eager.isel(lat=xarray.DataArray([0], dims="p")).squeeze("p"), eager.isel(lat=0))


# -- bytes ------------------------------------------------------------------------------------------------------------


def test_a_climatology_reads_the_store_once_and_an_anomaly_twice(tmp_path: Path) -> None:
    days, shape = 730, (730, 60, 120)
    values = np.random.default_rng(1).normal(size=shape).astype("f4")
    source = xarray.DataArray(
        values, dims=("time", "lat", "lon"), coords={"time": pandas.date_range("2001", periods=days)}, name="t"
    )
    source.to_dataset().to_zarr(
        tmp_path / "t.zarr", consolidated=False, encoding={"t": {"chunks": (73, 60, 120), "compressors": None}}
    )
    lazy = xarray.open_dataset(tmp_path / "t.zarr", engine="outcore", chunks={}).t
    expected = source.groupby("time.month") - source.groupby("time.month").mean()
    for use_flox in (True, False):
        oc.clear()
        with xarray.set_options(use_flox=use_flox):
            climatology = lazy.groupby("time.month").mean()
            anomaly = lazy.groupby("time.month") - climatology
        assert oc.explain(climatology.data).bytes_read <= 1.01 * values.nbytes
        targets = {tmp_path / f"anomaly-{use_flox}.zarr": anomaly.data}
        forecast = oc.explain(targets)
        assert forecast.bytes_read <= 2.01 * values.nbytes
        outcome = oc.store(targets)
        assert outcome.bytes_read == forecast.bytes_read
        found = zarr.open_array(tmp_path / f"anomaly-{use_flox}.zarr", mode="r")[...]
        np.testing.assert_allclose(found, expected.values, rtol=1e-5, atol=1e-5)


def test_tables_of_many_groups_are_filled_by_one_read(monkeypatch: pytest.MonkeyPatch, lazy: xarray.Dataset) -> None:
    monkeypatch.setattr("outcore._xarray.grouped._TABLE_BYTES", 40 * 4 * 6 * 8)
    for method in (
        lambda d: d.t.groupby("time.dayofyear").mean(),
        lambda d: d.t.resample(time="3D").max(),
        lambda d: d.t.groupby("time.month").var(),
    ):
        oc.clear()
        result = method(lazy)
        assert oc.explain(result.data).bytes_read <= 2.2 * WHOLE_BYTES
        xarray.testing.assert_allclose(result.compute(), method(EAGER))


# -- files ------------------------------------------------------------------------------------------------------------


def packed(path: Path) -> None:
    data = EAGER.isel(time=slice(60)).assign(
        n=("time", np.arange(60, dtype="i2")), flag=("lat", np.asarray([True, False, True, True]))
    )
    encoding: dict[str, dict[str, Any]] = {
        "t": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 0.5, "_FillValue": -999, "chunks": (7, 4, 6)},
        "u": {"dtype": "f4", "_FillValue": -1.0},
        "n": {"scale_factor": np.float32(0.1), "dtype": "i2"},
    }
    data.to_zarr(path, consolidated=False, encoding=encoding)


def test_packed_variables_are_decoded_to_the_bit(tmp_path: Path) -> None:
    packed(tmp_path / "p.zarr")
    expected = xarray.open_dataset(tmp_path / "p.zarr", engine="zarr", consolidated=False, chunks=None).load()
    for options in ({"engine": "outcore"}, {"engine": "zarr", "consolidated": False}):
        lazy = xarray.open_dataset(tmp_path / "p.zarr", chunks={}, **options)
        assert isinstance(lazy.t.data, oc.Array)
        assert "map_blocks" not in str(oc.explain(lazy.t.data))
        xarray.testing.assert_identical(lazy.compute(), expected)
    unchunked = xarray.open_dataset(tmp_path / "p.zarr", engine="outcore")
    part = {"time": [3, 5], "lat": slice(0, 3, 2)}
    xarray.testing.assert_identical(unchunked.isel(part).load(), expected.isel(part))
    raw = xarray.open_dataset(tmp_path / "p.zarr", engine="outcore", chunks={}, mask_and_scale=False)
    assert raw.t.dtype == np.int16


def test_groups_of_a_file_are_a_tree(tmp_path: Path) -> None:
    tree = xarray.DataTree.from_dict({"/": EAGER[["t"]].head(9), "/inner": EAGER[["u"]].head(9)})
    tree.to_zarr(tmp_path / "tree.zarr", consolidated=False)
    lazy = xarray.open_datatree(tmp_path / "tree.zarr", engine="outcore", chunks={})
    assert isinstance(lazy["inner/u"].data, oc.Array)
    np.testing.assert_array_equal(lazy["inner/u"].values, EAGER.u.head(9).values)
    inner = xarray.open_dataset(tmp_path / "tree.zarr", engine="outcore", group="inner", chunks={})
    assert list(inner.data_vars) == ["u"]
    with pytest.raises(FileNotFoundError, match="nothing"):
        xarray.open_dataset(tmp_path / "nothing.zarr", engine="outcore")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcore._xarray.storing._room", lambda: WHOLE_BYTES // 5)


def written(path: Path) -> xarray.Dataset:
    return xarray.open_zarr(path, consolidated=False, chunks=None).load()


@pytest.mark.usefixtures("small_blocks")
def test_datasets_are_written_to_zarr_in_blocks(lazy: xarray.Dataset, guard: Guard, tmp_path: Path) -> None:
    (lazy * 2).chunk(time=50).to_zarr(tmp_path / "a.zarr", consolidated=False)
    xarray.testing.assert_identical(written(tmp_path / "a.zarr"), EAGER * 2)
    several_stages = lazy[["t"]].rolling(time=3).mean()
    several_stages.drop_encoding().chunk(time=60, lat=3).to_zarr(tmp_path / "b.zarr", consolidated=False)
    xarray.testing.assert_allclose(written(tmp_path / "b.zarr"), EAGER[["t"]].rolling(time=3).mean())
    assert zarr.open_array(tmp_path / "b.zarr" / "t", mode="r").chunks == (60, 3, 6)


@pytest.mark.usefixtures("small_blocks")
def test_datasets_are_appended_and_written_in_regions(lazy: xarray.Dataset, guard: Guard, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    lazy.isel(time=slice(0, 133)).to_zarr(path, consolidated=False)
    lazy.isel(time=slice(133, None)).to_zarr(path, append_dim="time", consolidated=False)
    xarray.testing.assert_equal(written(path), EAGER)
    part = slice(57, 171)
    (-lazy).isel(time=part).drop_vars(["lat", "lon"]).to_zarr(path, region={"time": part}, consolidated=False)
    xarray.testing.assert_equal(written(path).isel(time=part), -EAGER.isel(time=part))
    xarray.testing.assert_equal(written(path).isel(time=slice(171, None)), EAGER.isel(time=slice(171, None)))


def test_a_delayed_write_is_dasks(lazy: xarray.Dataset, tmp_path: Path) -> None:
    pytest.importorskip("dask", reason="xarray delays writes by dask.delayed")
    delayed = lazy.to_zarr(tmp_path / "a.zarr", compute=False, consolidated=False)
    assert np.isnan(written(tmp_path / "a.zarr").t).all()
    delayed.compute()
    xarray.testing.assert_equal(written(tmp_path / "a.zarr"), EAGER)


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_netcdf4_files_are_opened_by_the_engine(engine: str, tmp_path: Path) -> None:
    pytest.importorskip(engine.replace("netcdf4", "netCDF4"), reason="writes the file")
    encoding = {"t": {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -999, "zlib": True, "chunksizes": (50, 4, 6)}}
    EAGER.to_netcdf(tmp_path / "a.nc", engine=engine, encoding=encoding)
    lazy = xarray.open_dataset(tmp_path / "a.nc", engine="outcore", chunks={})
    assert isinstance(lazy.t.data, oc.Array)
    with xarray.open_dataset(tmp_path / "a.nc", engine=engine) as expected:
        xarray.testing.assert_identical(lazy.compute(), expected.load())


@pytest.mark.usefixtures("small_blocks")
def test_netcdf_files_are_written_and_read_in_blocks(lazy: xarray.Dataset, guard: Guard, tmp_path: Path) -> None:
    lazy.to_netcdf(tmp_path / "a.nc", engine="scipy")
    opened = xarray.open_dataset(tmp_path / "a.nc", engine="scipy", chunks={})
    assert isinstance(opened.t.data, oc.Array)
    xarray.testing.assert_allclose(guard.computed(opened.mean("time")), EAGER.mean("time"))
    xarray.testing.assert_equal(opened.compute(), EAGER)


# -- the chunk manager ------------------------------------------------------------------------------------------------


def test_chunks_are_lengths_of_tiles_or_what_was_asked_for(lazy: xarray.Dataset) -> None:
    array = oc.zeros((7, 4))
    assert array.chunks == ((7,), (4,))
    assert oc.rechunk(array, (3, -1)).chunks == ((3, 3, 1), (4,))
    assert oc.zeros((0, 3)).chunks == ((0,), (3,))
    assert oc.asarray(3).chunks == ()
    assert lazy.t.chunks == ((50,) * 8, (4,), (6,))
    assert lazy.t.chunk(time=150).chunks == ((150, 150, 100), (4,), (6,))
    assert dict(lazy.unify_chunks().chunks) == {"time": (50,) * 8, "lat": (4,), "lon": (6,)}
    assert (lazy.t.chunk(time=150) + 1).data._expr.id == (lazy.t + 1).data._expr.id


def test_variables_of_different_tiles_have_the_chunks_of_both(lazy: xarray.Dataset) -> None:
    mixed = xarray.Dataset({"a": lazy.t.chunk(time=150), "b": lazy.u.chunk(time=200)})
    assert mixed.chunks["time"] == (150, 50, 100, 100)
    assert mixed.a.assign_coords(b=mixed.b).chunksizes["time"] == (150, 50, 100, 100)
    xarray.testing.assert_allclose(
        (mixed.groupby("time.month") - mixed.groupby("time.month").mean()).a.compute(),
        EAGER.t.groupby("time.month") - EAGER.t.groupby("time.month").mean(),
    )


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (4, ((4, 4, 2), (4, 2))),
        ((4, -1), ((4, 4, 2), (6,))),
        ({0: 5}, ((5, 5), (6,))),
        (((3, 7), None), ((3, 7), (6,))),
        ("auto", ((5, 5), (3, 3))),
        (("auto", 6), ((3, 3, 3, 1), (6,))),
    ],
)
def test_notations_of_chunks(chunks: Any, expected: Any) -> None:
    assert Manager().normalize_chunks(chunks, (10, 6), limit=18 * 8, dtype=np.dtype("f8")) == expected


def test_refusals_of_chunks() -> None:
    manager = Manager()
    for chunks, shape, text in (
        ((2, 2, 2), (4, 4), "axes"),
        (((1, 2), 4), (4, 4), "add up"),
        ((2, 2), None, "without a shape"),
    ):
        with pytest.raises(ArgumentError, match=text):
            manager.normalize_chunks(chunks, shape)
    with pytest.raises(ArgumentError, match="drop_axis"):
        manager.map_blocks(np.sum, oc.zeros(3), drop_axis=0)
    with pytest.raises(ArgumentError, match="adjust_chunks"):
        manager.blockwise(np.add, "i", oc.zeros(3), "i", adjust_chunks={"i": 2})
    with pytest.raises(ArgumentError, match="keepdims"):
        manager.apply_gufunc(np.sum, "(i)->()", oc.zeros(3), keepdims=True)


def test_generalized_functions() -> None:
    manager, random = Manager(), np.random.default_rng(2)
    a, b = random.normal(size=(5, 3, 4)), random.normal(size=(4, 2))
    x = oc.asarray(a)
    product = manager.apply_gufunc(np.matmul, "(m,k),(k,n)->(m,n)", x, oc.asarray(b), output_dtypes=[float])
    np.testing.assert_allclose(product.compute(), a @ b)
    np.testing.assert_allclose(manager.apply_gufunc(np.matmul, "(m,k),(k,n)->(m,n)", x, b).compute(), a @ b)
    least, both = manager.apply_gufunc(
        lambda t: (t.min(-1), np.stack([t.sum(-1), t.max(-1)], -1)), "(k)->(),(q)", x, output_sizes={"q": 2}
    )
    np.testing.assert_allclose(least.compute(), a.min(-1))
    np.testing.assert_allclose(both.compute(), np.stack([a.sum(-1), a.max(-1)], -1))
    wide = manager.apply_gufunc(lambda t: np.stack([t] * 9, -1), "()->(q)", x, output_sizes={"q": 9})
    assert wide.shape == (5, 3, 4, 9)
    flags = manager.apply_gufunc(lambda t: (t > 0).all(-1), "(k)->()", x, output_dtypes=bool)
    np.testing.assert_array_equal(flags.compute(), (a > 0).all(-1))
    assert Signature.parsed("(i, j),()->(k)") == ([("i", "j"), ()], [("k",)])
    with pytest.raises(ArgumentError, match="output_sizes"):
        manager.apply_gufunc(np.sum, "(i)->(q)", x)
    with pytest.raises(ArgumentError, match="signature"):
        manager.apply_gufunc(np.sum, "(i)", x)
    with pytest.raises(ShapeError, match="lengths 4 and 2"):
        manager.apply_gufunc(np.dot, "(i),(i)->()", x, oc.asarray(b))


def test_reductions_scans_and_blocks() -> None:
    manager, random = Manager(), np.random.default_rng(3)
    a, b = random.normal(size=(6, 5)), random.normal(size=(5, 4))
    x, y = oc.asarray(a), oc.asarray(b)
    total = manager.reduction(x, np.sum, aggregate_func=np.sum, axis=0, dtype="f8", keepdims=True)
    np.testing.assert_allclose(total.compute(), a.sum(0, keepdims=True))
    running = manager.scan(np.cumsum, np.add, 0, x, axis=0, dtype="f8")
    np.testing.assert_allclose(running.compute(), np.cumsum(a, 0))
    product = manager.blockwise(np.dot, "ik", x, "ij", y, "jk", dtype="f8")
    np.testing.assert_allclose(product.compute(), a @ b)
    turned = manager.blockwise(lambda t, c: (t * c).T, "ji", x, "ij", 3.0, None, dtype="f8")
    np.testing.assert_allclose(turned.compute(), 3 * a.T)
    longer = manager.blockwise(lambda t: np.stack([t, -t], -1), "ijz", x, "ij", dtype="f8", new_axes={"z": 2})
    np.testing.assert_allclose(longer.compute(), np.stack([a, -a], -1))
    doubled = manager.map_blocks(lambda t, by: t * by, x, dtype="f8", by=2)
    np.testing.assert_allclose(doubled.compute(), 2 * a)
    assert manager.persist(x, 3)[1] == 3
    assert manager.array_api.full((2,), 1.5, chunks=-1).shape == (2,)


def test_blocks_end_where_chunks_end() -> None:
    for shape, starts, chunk, room in (
        ((10, 6), (0, 0), (4, 3), 12),
        ((10, 6), (3, 0), (4, 6), 24),
        ((10, 6), (3, 2), (4, 3), 1000),
        ((7,), (2,), (5,), 1),
    ):
        covered = np.zeros(shape, int)
        for block in blocks_of(shape, starts, chunk, room):
            covered[block] += 1
            size = np.prod([part.stop - part.start for part in block])
            assert size <= max(room, np.prod(chunk))
            for part, start, length, whole in zip(block, starts, chunk, shape, strict=True):
                assert (part.start + start) % length == 0 or part.start == 0
                assert (part.stop + start) % length == 0 or part.stop == whole
        assert (covered == 1).all()


def test_text_and_dates_stay_numpys(tmp_path: Path) -> None:
    data = (
        EAGER[["t"]]
        .head(5)
        .assign(name=("lat", np.asarray(["a", "bb", "c", "d"])), day=("time", EAGER.time.values[:5]))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # text has no specification in Zarr yet
        data.to_zarr(tmp_path / "a.zarr", consolidated=False)
        lazy = xarray.open_dataset(tmp_path / "a.zarr", engine="outcore", chunks={})
    assert isinstance(lazy.day.data, np.ndarray)
    assert lazy.name.values.tolist() == ["a", "bb", "c", "d"]
    xarray.testing.assert_equal(lazy.compute(), data)
    assert isinstance(data.chunk().t.data, oc.Array)
