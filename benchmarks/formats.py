"""Formats read and written, cold, beside the libraries that people use for them, in one process.

    python -m benchmarks.formats [--size 512MiB] [--rounds 3] [--folder bench-data]

Reading ends with the sums of all elements that were read, writing with a synced file. A library has all of the values
in memory; ours has its tiles. Ways alternate, and the least time of each counts: ratios are what to look at, times are
those of one machine and its neighbours.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import cgroup, common

COLUMNS = ("format", "beside", "file", "read", "× library", "written", "× library")
WIDTH, ROWS_OF_CHUNK = 1024, 512  # 2 MiB of float32
NAMES = ("price", "shares")
Way = Callable[[Path], object]


class Case(NamedTuple):
    """A format, and both ways to read it and to write it; the library's way to write makes the file that is read."""

    name: str
    library: str
    path: str
    ours_read: Way
    theirs_read: Way
    ours_write: Way | None
    theirs_write: Way


def arrays(values: np.ndarray) -> list[Case]:
    """Formats of arrays."""
    import h5py
    import netCDF4
    import tifffile
    import zarr

    import outcore as oc

    chunks = (ROWS_OF_CHUNK, WIDTH)

    def total(member: str = "") -> Way:
        return lambda path: oc.sum(oc.open(path / member if member else path), dtype="float64").compute()

    def stored(member: str = "", compression: Any = None, chunked: bool = False) -> Way:
        def store(path: Path) -> None:
            target = path / member if member else path
            oc.store({target: values}, compression=compression, chunks={target: chunks} if chunked else None)

        return store

    def hdf5(**options: Any) -> Way:
        def write(path: Path) -> None:
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=values, **options)

        return write

    def read_hdf5(path: Path) -> object:
        with h5py.File(path) as file:
            return file["x"][...].sum(dtype="f8")

    def zarr_of(compressors: Any) -> Way:
        return lambda path: zarr.create_array(path, data=values, chunks=chunks, compressors=compressors)

    def netcdf3(path: Path) -> None:
        with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
            file.createDimension("row", len(values))
            file.createDimension("column", WIDTH)
            file.createVariable("x", "f4", ("row", "column"))[:] = values

    def read_netcdf3(path: Path) -> object:
        with netCDF4.Dataset(path) as file:
            return file["x"][:].sum(dtype="f8")

    def tiff(path: Path) -> None:
        tifffile.imwrite(path, values, compression="zlib", rowsperstrip=ROWS_OF_CHUNK)

    shuffled = {"chunks": chunks, "compression": "gzip", "shuffle": True}
    zstd = zarr.codecs.ZstdCodec(level=3)
    read_zarr: Way = lambda path: zarr.open_array(path)[...].sum(dtype="f8")  # noqa: E731
    return [
        Case(
            *(".npy", "numpy", "a.npy", total(), lambda path: np.load(path).sum(dtype="f8"), stored()),
            lambda path: np.save(path, values),
        ),
        Case("Zarr v3, no codec", "zarr", "a.zarr", total(), read_zarr, stored(chunked=True), zarr_of(None)),
        Case("Zarr v3, zstd", "zarr", "z.zarr", total(), read_zarr, stored("", ("zstd", 3), True), zarr_of([zstd])),
        Case("HDF5, in one piece", "h5py", "a.h5", total("x"), read_hdf5, stored("x"), hdf5()),
        Case(
            *("HDF5, NetCDF-4: shuffle, deflate", "h5py", "z.h5", total("x"), read_hdf5),
            *(stored("x", ["shuffle", ("gzip", 4)], True), hdf5(**shuffled)),
        ),
        Case("NetCDF-3, 64-bit offset", "netCDF4", "a.nc", total("x"), read_netcdf3, None, netcdf3),
        Case(
            *("TIFF, deflate", "tifffile", "a.tif", total()),
            *(lambda path: tifffile.imread(path).sum(dtype="f8"), None, tiff),
        ),
    ]


def tables(rows: int) -> list[Case]:
    """Formats of tables."""
    import polars
    import pyarrow as pa
    import pyarrow.parquet as parquet

    import outcore as oc

    random = np.random.default_rng(2)
    columns = {
        "id": np.arange(rows),
        "price": random.integers(100, 100_000, rows) / 100,
        "shares": random.integers(1, 1000, rows),
    }
    theirs, ours = pa.table(columns), oc.table(columns)

    def sums(table: Any) -> object:
        return oc.compute(*(table[name].sum() for name in NAMES))

    def sums_of_arrow(path: Path) -> object:
        table = parquet.read_table(path, columns=list(NAMES))
        return [pa.compute.sum(table[name]) for name in NAMES]

    def sums_of_polars(path: Path) -> object:
        table = polars.read_csv(path)
        return [table[name].sum() for name in NAMES]

    return [
        Case(
            *("Parquet, zstd, 2 of 3 columns", "pyarrow", "a.parquet", lambda path: sums(oc.read_parquet(path))),
            *(sums_of_arrow, lambda path: oc.to_parquet(ours, path)),
            lambda path: parquet.write_table(theirs, path, compression="zstd"),
        ),
        Case(
            *("CSV", "Polars", "a.csv", lambda path: sums(oc.read_csv(path)), sums_of_polars, None),
            lambda path: polars.from_arrow(theirs).write_csv(path),
        ),
    ]


def _removed(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def _files(path: Path) -> list[Path]:
    return [part for part in ([path] if path.is_file() else path.rglob("*")) if part.is_file()]


def _seconds(way: Way, path: Path, writes: bool) -> float:
    import outcore as oc

    oc.clear()
    if writes:
        _removed(path)
    cgroup.drop_page_cache(*_files(path))
    begin = time.perf_counter()
    way(path)
    for part in _files(path) if writes else ():
        with part.open("rb") as file:
            os.fsync(file.fileno())
    return time.perf_counter() - begin


def measured(case: Case, folder: Path, rounds: int) -> dict[str, Any]:
    """Least seconds of each way, in turns, and the bytes of the file."""
    path, other = folder / case.path, folder / f"ours-{case.path}"
    ways = {"theirs written": (case.theirs_write, path, True)}
    if case.ours_write is not None:
        ways["ours written"] = (case.ours_write, other, True)
    ways |= {"theirs read": (case.theirs_read, path, False), "ours read": (case.ours_read, path, False)}
    least: dict[str, Any] = {}
    for _ in range(rounds):
        for name, (way, place, writes) in ways.items():
            least[name] = min(_seconds(way, place, writes), least.get(name, np.inf))
    least["file"] = sum(part.stat().st_size for part in _files(path))
    _removed(path)
    _removed(other)
    return least


def row_of(case: Case, least: dict[str, Any], size: int) -> list[str]:
    """A row of the table: rates of ours by the bytes of values, and how many times the library's they are."""
    row = [case.name, case.library, common.show_bytes(least["file"])]
    for verb in ("read", "written"):
        ours = least.get(f"ours {verb}")
        if ours is None:
            row += ["–", "–"]
        else:
            row += [f"{size / ours / common.GIB:.2f} GiB/s", f"{least[f'theirs {verb}'] / ours:.1f} ×"]
    return row


def main() -> None:
    import outcore as oc

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--size", type=common.parse_size, default="512MiB")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = options.folder / "formats"
    folder.mkdir(parents=True, exist_ok=True)
    oc.config.set(progress=False)
    count = options.size // 4 // WIDTH
    wave = np.sin(np.arange(count) / 50)[:, None] * 10 + np.random.default_rng(1).normal(280, 1, WIDTH)
    noise = np.random.default_rng(3).integers(0, 100, (count, WIDTH), dtype="i2")
    values = ((wave + noise / 100).round(2)).astype("f4")
    rows, results = [], {}
    for case in [*arrays(values), *tables(options.size // 24)]:
        least = measured(case, folder, options.rounds)
        results[case.name] = least
        rows.append(row_of(case, least, options.size))
        print(rows[-1], flush=True)
    common.write_record(
        "formats",
        "Formats read and written, beside their libraries",
        folder,
        [
            f"{common.show_bytes(options.size)} of values in memory, from a cold page cache; the least of "
            f"{options.rounds} alternating rounds. Rates are ours, by the bytes of values; behind them how many times "
            "as fast as the library that is. Neighbours were busy: the ratios are what to look at.",
            common.table(COLUMNS, rows),
        ],
        {"size": options.size, "cases": results},
        ["zarr", "h5py", "netCDF4", "tifffile", "pyarrow", "polars"],
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
