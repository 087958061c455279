"""A monthly climatology and the anomalies' variance of a (time, lat, lon) field larger than memory, in a real group.

    python -m benchmarks.climatology [--size 4GiB] [--limit 1GiB]

The field lies in a NetCDF-4 file (chunks of one time, deflate and shuffle, packed as int16) and in a Zarr group that
`oc.store` wrote (float32). It goes through outcore's own functions and through xarray with `engine="outcore"`. Wanted:
every byte of the file is read at most twice, forecast and outcome are equal, and nothing is killed in the group.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common

LAT, LON = 361, 720
COLUMNS = (
    "file",
    "way",
    "stored",
    "seconds",
    "reads of the file",
    "spilled",
    "forecast is outcome",
    "peak of the group",
)


def make(folder: Path, size: int) -> tuple[Path, Path]:
    """The files, where they are not there yet: packed values, and the same decoded."""
    import h5py

    import outcore as oc

    times = size // (4 * LAT * LON)
    packed, plain = folder / f"climate-{times}.nc", folder / f"climate-{times}.zarr"
    if not packed.exists():
        random = np.random.default_rng(7)
        with h5py.File(packed.with_suffix(".part"), "w") as file:
            file["time"], file["lat"], file["lon"] = np.arange(times), np.linspace(-90, 90, LAT), np.arange(LON) / 2
            file["time"].attrs["units"] = "hours since 1980-01-01"
            field = file.create_dataset(
                "t2m",
                (times, LAT, LON),
                "i2",
                chunks=(1, LAT, LON),
                compression="gzip",
                compression_opts=1,
                shuffle=True,
            )
            field.attrs.update(scale_factor=np.float32(0.01), add_offset=np.float32(270), units="K")
            for place, name in enumerate(("time", "lat", "lon")):
                file[name].make_scale(name)
                field.dims[place].attach_scale(file[name])
            noise = random.integers(-300, 300, (LAT, LON)).astype(np.int16)
            for step in range(times):
                field[step] = np.roll(noise, step, axis=1) + np.int16(step % 24)
        packed.with_suffix(".part").rename(packed)
    if not plain.exists():
        oc.store({plain: oc.open(packed)}, overwrite=True)
    return packed, plain


def ours(path: str, limit: int) -> dict[str, Any]:
    """By outcore's functions."""
    import outcore as oc

    oc.config.set(memory_limit=limit, progress=False)
    field = oc.open(path)
    months, t2m = oc.groupby(field["time"].month), field["t2m"]
    anomaly = t2m - months.transform(t2m, "mean")
    return _stored(Path(path), "ours", months.mean(t2m), oc.var(anomaly, axis="time"))


def through_xarray(path: str, limit: int) -> dict[str, Any]:
    """By xarray's methods over lazy arrays."""
    import xarray as xr

    import outcore as oc

    oc.config.set(memory_limit=limit, progress=False)
    months = xr.open_dataset(path, engine="outcore", chunks={})["t2m"].groupby("time.month")
    mean = months.mean("time")
    spread = (months - mean).var("time")
    return _stored(Path(path), "xarray", mean.data, spread.data)


def _stored(path: Path, way: str, mean: Any, spread: Any) -> dict[str, Any]:
    """Both results stored in one program: seconds, bytes, and how often the file is read by its passes."""
    import outcore as oc

    folder = path.parent / f"out-{way}"
    folder.mkdir(exist_ok=True)
    targets = {folder / "mean.npy": mean, folder / "spread.npy": spread}
    plan, begin = oc.explain(targets, overwrite=True), time.perf_counter()
    done = oc.store(targets, overwrite=True)
    # Bytes of the passes that have the field among their inputs: spilled tiles are read by others.
    ours = [
        step["bytes_read"] for step in plan.to_dict()["passes"] if any(str(path) in name for name in step["inputs"])
    ]
    return {
        "seconds": time.perf_counter() - begin,
        "read of the file": sum(ours),
        "read": done.bytes_read,
        "spilled": done.bytes_spilled,
        "forecast": [plan.bytes_read, plan.bytes_written] == [done.bytes_read, done.bytes_written],
    }


def check(folder: Path) -> float:
    """The largest relative difference between the results of both ways."""
    worst = 0.0
    for name in ("mean.npy", "spread.npy"):
        one, other = (np.load(folder / f"out-{way}" / name).astype("f8") for way in ("ours", "xarray"))
        worst = max(worst, float(np.max(np.abs(one - other) / np.abs(one))))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--size", type=common.parse_size, default="4GiB")
    parser.add_argument("--limit", type=common.parse_size, default="1GiB")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    rows, results = [], {}
    for path in make(options.folder, options.size):
        stored = sum(part.stat().st_size for part in ([path] if path.is_file() else path.rglob("*")) if part.is_file())
        for way in ("ours", "through_xarray"):
            cgroup.drop_page_cache(options.folder)
            given = {"path": str(path.absolute()), "limit": options.limit - (64 << 20)}
            outcome = cgroup.run_limited(f"benchmarks.climatology:{way}", given, options.limit)
            if outcome.value is None:
                raise SystemExit(f"{path.name}, {way}: {outcome.reason}\n{outcome.stderr}")
            value: dict[str, Any] = outcome.value
            peak = outcome.cgroup_peak_bytes or outcome.peak_rss_bytes
            of_file = value["read of the file"] / stored
            results[f"{path.suffix} {way}"] = value | {"reads of the file": of_file, "peak": peak, "stored": stored}
            rows.append(
                [
                    path.suffix,
                    way.replace("_", " "),
                    common.show_bytes(stored),
                    f"{value['seconds']:.1f}",
                    f"{of_file:.2f}",
                    common.show_bytes(value["spilled"]),
                    "yes" if value["forecast"] else "no",
                    common.show_bytes(peak),
                ]
            )
            print(rows[-1], flush=True)
        results[f"{path.suffix} difference"] = {"relative": check(options.folder)}
    common.write_record(
        "climatology",
        "A monthly climatology and the variance of anomalies, of a field larger than memory",
        options.folder,
        [
            f"{common.show_bytes(options.size)} of numbers in a group of {common.show_bytes(options.limit)}, from a "
            "cold page cache. Reads of the file are those of the passes that have the field as an input, "
            "by its stored bytes.",
            common.table(COLUMNS, rows),
        ],
        {"cases": results},
        ["xarray", "h5py"],
    )


if __name__ == "__main__":
    main()
