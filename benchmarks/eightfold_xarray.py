"""Datasets of xarray that are eight times as large as the memory, and its methods over them, in children.

`t` has numbers with gaps, `u` numbers packed into int16. Both repeat along lon after PERIOD places: what a method gives
of all of them follows from what xarray gives of NumPy's arrays of a few places.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.eightfold_formats import begun, stored

PERIOD, LATITUDES, DAYS_MIN = 8, 91, 400
LON_STEP, LAT_STEP = 0.75, 4 / 3
LAST_DAYS = 500
CHUNKS = (50, LATITUDES, 104)
SCALE, OFFSET, GAP = 0.01, 0.5, -32768
# Methods that are looked at along time, since more than the first longitudes make what these give.
BY_TIME = {"sel, nearest", "sel of points", "interp of two axes", "pad", "sortby"}


class Field:
    """The dataset of a size: its shape, and the numbers of its first PERIOD longitudes."""

    def __init__(self, size: int, days: int) -> None:
        self.days = max(days, DAYS_MIN)
        step = CHUNKS[2]
        self.longitudes = max(-(-size // (8 * self.days * LATITUDES * step)), 1) * step

    @property
    def nbytes(self) -> int:
        return 8 * self.days * LATITUDES * self.longitudes

    def values(self, begin: int, end: int) -> np.ndarray[Any, Any]:
        """Numbers of some days, whose hundredths are whole; NaN at gaps of each kind."""
        rows = []
        for day in range(begin, end):
            random = np.random.default_rng(day)
            row = np.round(random.normal(size=(LATITUDES, PERIOD)) * 100) / 100
            if 3 <= day < 9:
                row[2, 5] = np.nan
            if day % 7 == 2 and day > 100:
                row[1] = np.nan
            if day < 20:
                row[0, 0] = np.nan
            if day == 50:
                row[:] = np.nan
            rows.append(row)
        return np.stack(rows)

    def part(self, longitudes: Any = slice(PERIOD), days: Any = slice(None)) -> Any:
        """A part of the dataset in memory."""
        import pandas as pd
        import xarray

        places = np.arange(self.longitudes)[longitudes]
        numbers = np.arange(self.days)[days]
        values = np.stack([self.values(day, day + 1)[0] for day in numbers])[..., places % PERIOD]
        axes = ("time", "lat", "lon")
        return xarray.Dataset(
            {"t": (axes, values), "u": (axes, unpacked(packed(values)))},
            coordinates(pd.date_range("2000-01-01", periods=self.days)[numbers], places),
            attrs={"title": "weather"},
        )


def packed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(np.isnan(values), GAP, np.rint(np.nan_to_num(values) * 200)).astype("i2")


def unpacked(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(values == GAP, np.nan, values * SCALE + OFFSET)


def coordinates(times: Any, longitudes: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"time": times, "lat": np.arange(LATITUDES) * LAT_STEP - 60.0, "lon": longitudes * LON_STEP}


def make(path: Path, field: Field) -> Path:
    """The dataset in a Zarr store, written by zarr-python day by day."""
    import pandas as pd
    import xarray
    import zarr

    if path.exists():
        return path
    shape, axes = (field.days, LATITUDES, field.longitudes), ("time", "lat", "lon")
    times = pd.date_range("2000-01-01", periods=field.days)
    whole = xarray.Dataset(coords=coordinates(times, np.arange(field.longitudes)), attrs={"title": "weather"})
    whole.to_zarr(path, consolidated=False)
    group, options = zarr.open_group(path), {"compressors": None, "dimension_names": axes, "chunks": CHUNKS}
    t = group.create_array("t", shape=shape, dtype="f8", fill_value=np.nan, **options)
    u = group.create_array("u", shape=shape, dtype="i2", fill_value=GAP, **options)
    u.attrs.update(scale_factor=SCALE, add_offset=OFFSET, _FillValue=GAP)
    for begin in range(0, field.days, CHUNKS[0]):
        values = field.values(begin, min(begin + CHUNKS[0], field.days))
        wide = (1, 1, field.longitudes // PERIOD)
        t[begin : begin + len(values)], u[begin : begin + len(values)] = (
            np.tile(values, wide),
            np.tile(packed(values), wide),
        )
    return path


def opened(path: str, door: str) -> Any:
    """The dataset by the engine, or by zarr-python's with the chunk manager."""
    import xarray

    xarray.set_options(chunk_manager="outcore")
    options: dict[str, Any] = {"engine": "outcore"} if door == "engine" else {"engine": "zarr", "consolidated": False}
    return xarray.open_dataset(path, chunks={}, **options)


def variables(result: Any) -> dict[str, Any]:
    import xarray

    if isinstance(result, xarray.DataArray):
        return {"_": result.variable}
    return {str(name): part.variable for name, part in result.data_vars.items()}


def looked_at(variable: Any, axis: str) -> Any:
    """The part of a result that is compared: some days, or the first longitudes of the last days."""
    if axis == "time":
        return variable.isel(time=days_of(variable.sizes["time"]))
    places = {"lon": slice(2), "time": slice(-LAST_DAYS, None)}
    return variable.isel({dim: place for dim, place in places.items() if dim in variable.dims})


def days_of(count: int) -> slice:
    return slice(0, count, count // 2)


def filled(data: Any, backwards: bool = False) -> Any:
    """Gaps filled by what is before, or behind; by pandas for arrays in memory, for which xarray needs bottleneck."""
    import pandas as pd

    if not isinstance(data.t.data, np.ndarray):
        return data.t.bfill("time") if backwards else data.t.ffill("time")
    frame = pd.DataFrame(data.t.values.reshape(data.sizes["time"], -1))
    values = frame.bfill() if backwards else frame.ffill()
    return data.t.copy(data=values.values.reshape(data.t.shape))


def methods() -> dict[str, Callable[[Any], Any]]:
    """Methods that make arrays of a dataset."""
    from support.xarray_methods import METHODS

    own = {
        "ffill": filled,
        "bfill": lambda data: filled(data, backwards=True),
        "coarsen": lambda data: data.coarsen(time=10, lat=7).mean(),
    }
    return METHODS | own


def method(name: str, door: str, path: str, out: str, limit: int) -> dict[str, Any]:
    """All that a method gives is computed: its total, and a part that is stored as it is."""
    import outcore as oc

    warnings.simplefilter("ignore")
    begin = begun(limit)
    result = methods()[name](opened(path, door))
    axis = "time" if name in BY_TIME else "lon"
    targets: dict[str, Any] = {}
    for key, variable in variables(result).items():
        lazy = oc.asarray(variable.data)
        targets[f"{out}/{key} part.npy"] = oc.asarray(looked_at(variable, axis).data)
        targets[f"{out}/{key} total.npy"] = oc.nansum(lazy.astype("f8"))
    runs = [stored(targets)]
    shape = {key: part.shape for key, part in variables(result).items()}
    return {"seconds": time.perf_counter() - begin, "runs": runs, "shape": shape}


# Methods that write files or draw: what a child does, and where the dataset is then.
FILES = ("to_zarr", "to_zarr, append", "to_zarr, region", "to_netcdf", "plot")


def files(name: str, door: str, path: str, out: str, limit: int) -> dict[str, Any]:
    """The dataset written by xarray, and opened again: its sums over days, which are stored."""
    import xarray

    import outcore as oc

    warnings.simplefilter("ignore")
    begin, data, target = begun(limit), opened(path, door)[["t"]].drop_encoding(), f"{out}/y.zarr"
    half, plain = data.sizes["time"] // 2 + 7, {"consolidated": False}
    if name == "to_netcdf":
        target = f"{out}/y.nc"
        data.to_netcdf(target, engine="h5netcdf")
    elif name == "to_zarr":
        (data * 2 / 2).to_zarr(target, **plain)
    elif name == "to_zarr, append":
        data.isel(time=slice(half)).to_zarr(target, **plain)
        data.isel(time=slice(half, None)).to_zarr(target, append_dim="time", **plain)
    elif name == "to_zarr, region":
        (data * 0).to_zarr(target, **plain)
        for part in (slice(half), slice(half, None)):
            written = data.isel(time=part).drop_vars(["lat", "lon"])
            written.to_zarr(target, region={"time": part}, **plain)
    else:
        import matplotlib

        matplotlib.use("Agg")
        data.t.isel(time=3).plot()
        series = data.t.mean(("lat", "lon"))
        (line,) = series.plot()
        np.save(f"{out}/line.npy", line.get_ydata())
        return {"seconds": time.perf_counter() - begin, "runs": []}
    again = xarray.open_dataset(target, engine="outcore", chunks={}).t
    by_place, by_day = again.sum("time").data, again.sum(("lat", "lon")).data
    runs = [stored({f"{out}/places.npy": by_place, f"{out}/days.npy": oc.asarray(by_day)})]
    return {"seconds": time.perf_counter() - begin, "runs": runs}


def check_files(name: str, field: Field, out: Path) -> None:
    values, times = field.values(0, field.days), field.longitudes // PERIOD
    if name == "plot":
        np.testing.assert_allclose(np.load(out / "line.npy"), np.nanmean(values, axis=(1, 2)), atol=1e-9)
        return
    places = np.tile(np.nansum(values, axis=0), (1, times))
    np.testing.assert_allclose(np.load(out / "places.npy"), places, atol=1e-8)
    np.testing.assert_allclose(np.load(out / "days.npy"), np.nansum(values, axis=(1, 2)) * times, atol=1e-6)


def check(name: str, field: Field, out: Path, shape: dict[str, list[int]]) -> None:
    """What a child stored is what xarray gives of arrays in memory."""
    warnings.simplefilter("ignore")
    axis = "time" if name in BY_TIME else "lon"
    days = days_of(field.days)
    expected = methods()[name](field.part(slice(None), days) if axis == "time" else field.part())
    for key, variable in variables(expected).items():
        part, total = np.load(out / f"{key} part.npy"), float(np.load(out / f"{key} total.npy"))
        if axis == "lon":
            values = variable.values.astype("f8")
            times = shape[key][variable.dims.index("lon")] // variable.sizes["lon"] if "lon" in variable.dims else 1
            difference = abs(total - float(np.nansum(values)) * times)
            assert difference <= 1e-9 * float(np.nansum(np.abs(values))) * times, f"{name}: total {total}"
            variable = looked_at(variable, axis)
        np.testing.assert_allclose(part.astype("f8"), variable.values.astype("f8"), rtol=1e-7, atol=1e-9, err_msg=name)
