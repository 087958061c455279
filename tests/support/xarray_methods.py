"""What xarray's users do with a dataset of two variables along time, lat and lon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import xarray

Method = Callable[[xarray.Dataset], Any]

DAYS, LATITUDES, LONGITUDES = 400, 4, 6


def dataset() -> xarray.Dataset:
    """Numbers with gaps: single ones, a whole day, the beginning of a series."""
    random = np.random.default_rng(0)
    values = random.normal(size=(DAYS, LATITUDES, LONGITUDES))
    values[3:9, 2, 5] = values[100:300:7, 1] = values[50] = values[:20, 0, 0] = np.nan
    return xarray.Dataset(
        {"t": (("time", "lat", "lon"), values), "u": (("time", "lat", "lon"), values[::-1] * 2 + 1)},
        coords={
            "time": pandas.date_range("2000-01-01", periods=DAYS),
            "lat": np.linspace(-60.0, 60.0, LATITUDES),
            "lon": np.arange(LONGITUDES) * 60.0,
        },
        attrs={"title": "weather"},
    )


def _cosine(data: xarray.Dataset) -> xarray.DataArray:
    return np.cos(np.deg2rad(data.lat))


def _between(data: xarray.Dataset) -> xarray.DataArray:
    return data.time[:20] + np.timedelta64(6, "h")


def _points(axis: str, places: list[int]) -> dict[str, xarray.DataArray]:
    return {axis: xarray.DataArray(places, dims="point")}


METHODS: dict[str, Method] = {
    # arithmetic, alignment
    "add": lambda d: d.t + d.u,
    "align": lambda d: d.t - d.u.isel(time=slice(10, 300), lat=slice(1, None)),
    "ufunc of numpy": lambda d: np.exp(d.t / 3) * _cosine(d),
    "where": lambda d: d.t.where(d.t > 0, -1.0),
    "where, dropped": lambda d: d.t.where(d.lat > 0, drop=True),
    "three-argument where": lambda d: xarray.where(d.t > 0, d.t, d.u),
    "clip": lambda d: d.clip(-1, 1),
    "fillna": lambda d: d.t.fillna(d.t.mean("time")),
    "isnull": lambda d: d.t.isnull(),
    "isin": lambda d: d.t.isin([0.0, 1.0]),
    "round": lambda d: d.t.round(1),
    "astype": lambda d: d.t.astype("f4"),
    "map": lambda d: d.map(lambda a: a * 2),
    "full_like": lambda d: xarray.full_like(d.t, 3.0),
    # parts
    "sel": lambda d: d.t.sel(time="2000-02"),
    "sel, nearest": lambda d: d.sel(lat=33, lon=[20, 100], method="nearest"),
    "sel by months": lambda d: d.t.sel(time=d.time.dt.month == 3),
    "isel of lists": lambda d: d.t.isel(time=[5, 3, 9], lon=[0, 2]),
    "isel of points": lambda d: d.t.isel(**_points("time", [0, 100, 2]), **_points("lon", [3, 1, 2])),
    "sel of points": lambda d: d.t.sel(**_points("lat", [-60, 20]), **_points("lon", [0, 60])),
    "head": lambda d: d.head(time=4),
    "dropna": lambda d: d.t.dropna("lat", how="all"),
    # reductions
    "mean": lambda d: d.mean("time"),
    "mean without skipping": lambda d: d.t.mean("time", skipna=False),
    "std": lambda d: d.std(("time", "lon")),
    "var": lambda d: d.t.var("time", ddof=1),
    "min": lambda d: d.min("time"),
    "max": lambda d: d.max(("lat", "lon")),
    "sum": lambda d: d.t.sum("time", min_count=3),
    "median": lambda d: d.t.median("time"),
    "quantile": lambda d: d.t.quantile([0.1, 0.5], "time"),
    "count": lambda d: d.count("time"),
    "argmax": lambda d: d.t.fillna(0).argmax("time"),
    "idxmax": lambda d: d.t.idxmax("lon"),
    "any": lambda d: (d.t > 3).any("time"),
    "dot": lambda d: d.t.fillna(0).dot(_cosine(d), dim="lat"),
    "corr": lambda d: xarray.corr(d.t, d.u, "time"),
    "weighted mean": lambda d: d.weighted(_cosine(d)).mean(("lat", "lon")),
    "weighted std": lambda d: d.t.weighted(_cosine(d)).std("lat"),
    # groups
    "groupby month": lambda d: d.groupby("time.month").mean("time"),
    "groupby season": lambda d: d.t.groupby("time.season").mean("time"),
    "groupby day": lambda d: d.t.groupby("time.dayofyear").sum(),
    "groupby std": lambda d: d.t.groupby("time.month").std(ddof=1),
    "groupby max": lambda d: d.t.groupby("time.month").max(),
    "groupby count": lambda d: d.t.groupby("time.month").count(),
    "groupby first": lambda d: d.t.groupby("time.month").first(),
    "groupby last": lambda d: d.u.astype("f4").groupby("time.month").last(),
    "groupby any": lambda d: (d.t > 2).groupby("time.month").any(),
    "groupby median": lambda d: d.t.groupby("time.season").median(),
    "groupby quantile": lambda d: d.t.groupby("time.season").quantile(0.3),
    "groupby map": lambda d: d.t.groupby("time.season").map(lambda a: a - a.mean("time")),
    "groupby all axes": lambda d: d.t.groupby("time.season").mean(...),
    "groupby bins": lambda d: d.t.groupby_bins("lat", [-90, -30, 30, 90]).mean(),
    "anomaly": lambda d: d.groupby("time.month") - d.groupby("time.month").mean("time"),
    "resample": lambda d: d.t.resample(time="MS").mean(),
    "resample with gaps": lambda d: d.t.isel(time=[0, 1, 100, 399]).resample(time="MS").max(),
    "resample first": lambda d: d.resample(time="QS-DEC").first(),
    # windows and neighbours
    "rolling mean": lambda d: d.t.rolling(time=7).mean(),
    "rolling mean, centred": lambda d: d.t.rolling(time=7, center=True, min_periods=3).mean(),
    "rolling max": lambda d: d.t.rolling(time=5).max(),
    "coarsen": lambda d: d.coarsen(time=10, lat=2).mean(),
    "coarsen, trimmed": lambda d: d.t.coarsen(time=7, boundary="trim").max(),
    "cumsum": lambda d: d.cumsum("time"),
    "cumsum without skipping": lambda d: d.t.cumsum("time", skipna=False),
    "diff": lambda d: d.diff("time", n=2, label="lower"),
    "shift": lambda d: d.t.shift(time=3),
    "roll": lambda d: d.t.roll(lon=4, roll_coords=True),
    "pad": lambda d: d.t.pad(lon=2, mode="wrap"),
    "differentiate": lambda d: d.t.differentiate("lat"),
    "integrate": lambda d: d.t.cumulative_integrate("lat"),
    "interpolate_na": lambda d: d.t.interpolate_na("time"),
    "interp": lambda d: d.t.interp(lat=[-10.0, 3.0]),
    "interp of times": lambda d: d.t.interp(time=_between(d)),
    "interp of two axes": lambda d: d.t.interp(lat=[-10.0, 30.0], lon=[10.0, 100.0]),
    "reindex": lambda d: d.t.reindex(lat=[-60.0, 0.5, 60.0]),
    # fits and functions
    "polyfit": lambda d: d.t.polyfit("time", 2).polyfit_coefficients,
    "polyfit without gaps": lambda d: d.fillna(0).polyfit("time", 1, skipna=False),
    "apply_ufunc": lambda d: xarray.apply_ufunc(np.tanh, d.t, dask="parallelized", output_dtypes=[float]),
    "apply_ufunc, whole axis": lambda d: xarray.apply_ufunc(
        lambda a: np.sort(a, axis=-1)[..., :3],
        d.t,
        input_core_dims=[["time"]],
        output_core_dims=[["least"]],
        dask="parallelized",
        output_dtypes=[float],
        dask_gufunc_kwargs={"output_sizes": {"least": 3}},
    ),
    "apply_ufunc, vectorized": lambda d: xarray.apply_ufunc(
        lambda a, b: np.nanmax(a) - np.nanmin(b),
        d.t,
        d.u,
        input_core_dims=[["lon"], ["lon"]],
        vectorize=True,
        dask="parallelized",
        output_dtypes=[float],
    ),
    # shapes
    "concat": lambda d: xarray.concat([d.isel(time=slice(0, 300)), d.isel(time=slice(300, None))], "time"),
    "merge": lambda d: xarray.merge([d[["t"]].isel(lat=slice(0, 3)), d[["u"]]], join="outer"),
    "stack": lambda d: d.t.stack(z=("lat", "lon")).mean("z"),
    "unstack": lambda d: d.t.stack(z=("lat", "lon")).unstack("z"),
    "transpose": lambda d: d.transpose("lon", "time", "lat"),
    "to_array": lambda d: d[["t", "u"]].to_array("name"),  # zarr lists variables in any order
    "expand_dims": lambda d: d.t.expand_dims(z=3),
    "sortby": lambda d: d.sortby((d.lon + 180) % 360),
    "broadcast_like": lambda d: d.t.mean("time").broadcast_like(d.t),
}
