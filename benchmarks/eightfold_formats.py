"""Files of each format that are eight times as large as the memory: read, copied and written in children.

Arrays have the elements a(i) + b(j), tables the columns i, i mod 1000 / 8 and i mod 7: sums of rows, of columns and of
groups are known without the numbers themselves.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS, BLOCK = 1024, 2048
ROWS_PERIOD, COLUMNS_PERIOD = 251, 17
CHUNKS = (256, COLUMNS)
Blocks = Iterator[tuple[int, Any]]
Options = dict[str, Any]


class Numbers:
    """A matrix of whole numbers: element i, j is i mod 251 + j mod 17."""

    def __init__(self, size: int, dtype: str = "i4") -> None:
        self.dtype = np.dtype(dtype)
        self.rows = -(-size // (COLUMNS * self.dtype.itemsize * BLOCK)) * BLOCK
        self.shape = (self.rows, COLUMNS)

    def block(self, begin: int, end: int) -> np.ndarray[Any, Any]:
        row, column = np.arange(begin, end) % ROWS_PERIOD, np.arange(COLUMNS) % COLUMNS_PERIOD
        return (row[:, None] + column).astype(self.dtype)

    def blocks(self) -> Blocks:
        for begin in range(0, self.rows, BLOCK):
            yield begin, self.block(begin, begin + BLOCK)

    def sums(self) -> tuple[Any, Any]:
        """Sums of the rows, and of the columns."""
        row, column = np.arange(self.rows) % ROWS_PERIOD, np.arange(COLUMNS) % COLUMNS_PERIOD
        return row * COLUMNS + column.sum(), column * self.rows + row.sum()

    def fill(self, target: Any) -> None:
        for begin, block in self.blocks():
            target[begin : begin + len(block)] = block


def make_npy(path: Path, numbers: Numbers) -> Options:
    numbers.fill(np.lib.format.open_memmap(path, "w+", numbers.dtype, numbers.shape))
    return {}


def make_npz(path: Path, numbers: Numbers) -> Options:
    make_npy(path.with_suffix(".npy"), numbers)
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(path.with_suffix(".npy"), "x.npy")
    path.with_suffix(".npy").unlink()
    return {"member": "x"}


def make_raw(path: Path, numbers: Numbers) -> Options:
    with path.open("wb") as file:
        for _, block in numbers.blocks():
            block.tofile(file)
    return {"open": {"dtype": str(numbers.dtype), "shape": list(numbers.shape)}}


def make_zarr(path: Path, numbers: Numbers, version: int = 3, member: str = "", **options: Any) -> Options:
    import zarr

    made = {"compressors": None, "chunks": CHUNKS} | options
    place = {"store": str(path), "name": member or None, "shape": numbers.shape, "dtype": numbers.dtype}
    numbers.fill(zarr.create_array(**place, zarr_format=version, **made))
    return {"member": member}


def zarr_of(version: int, codecs: str) -> Callable[[Path, Numbers], Options]:
    def make(path: Path, numbers: Numbers) -> Options:
        import numcodecs
        from zarr import codecs as v3
        from zarr.codecs import numcodecs as others

        options: dict[str, Any] = {
            "gzip": lambda: {"compressors": v3.GzipCodec(level=1)},
            "zstd": lambda: {"compressors": v3.ZstdCodec(level=1)},
            "blosc": lambda: {"compressors": v3.BloscCodec(cname="lz4", shuffle="bitshuffle")},
            "crc32c": lambda: {"compressors": v3.Crc32cCodec()},
            "transpose": lambda: {"filters": v3.TransposeCodec(order=(1, 0))},
            "shards": lambda: {"compressors": v3.ZstdCodec(level=1), "shards": (BLOCK, COLUMNS), "chunks": (64, 256)},
            "shuffle": lambda: {
                "compressors": [others.Shuffle(elementsize=numbers.dtype.itemsize), v3.ZstdCodec(level=1)]
            },
            "delta": lambda: {"filters": [numcodecs.Delta("<i4")], "compressors": numcodecs.Zlib(level=1)},
            "zlib": lambda: {"compressors": numcodecs.Zlib(level=1)},
            "lz4": lambda: {"compressors": numcodecs.LZ4()},
            "blosc of v2": lambda: {"compressors": numcodecs.Blosc(cname="zstd", clevel=1)},
            "Fortran order": lambda: {"order": "F"},
            "plain": dict,
        }[codecs]()
        return make_zarr(path, numbers, version, **options)

    return make


def make_ome(path: Path, numbers: Numbers) -> Options:
    import zarr

    made = make_zarr(path, numbers, member="0")
    axes = [{"name": name, "type": "space"} for name in "yx"]
    scale = {"type": "scale", "scale": [1.0, 1.0]}
    levels = [{"path": "0", "coordinateTransformations": [scale]}]
    zarr.open_group(path).attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": levels}]}
    return made


def hdf5_of(**options: Any) -> Callable[[Path, Numbers], Options]:
    def make(path: Path, numbers: Numbers) -> Options:
        import h5py

        with h5py.File(path, "w") as file:
            numbers.fill(file.create_dataset("group/x", numbers.shape, numbers.dtype, **options))
        return {"member": "group/x"}

    return make


def netcdf_of(kind: str, **options: Any) -> Callable[[Path, Numbers], Options]:
    """A variable that is packed: numbers are twice as large, and one more."""

    def make(path: Path, numbers: Numbers) -> Options:
        import netCDF4

        with netCDF4.Dataset(path, "w", format=kind) as file:
            for name, length in zip("yx", numbers.shape, strict=True):
                file.createDimension(name, length)
            variable = file.createVariable("v", numbers.dtype, ("y", "x"), fill_value=False, **options)
            variable.set_auto_maskandscale(False)
            variable.setncatts({"scale_factor": 2.0, "add_offset": 1.0})
            numbers.fill(variable)
        return {"member": "v", "scale": 2, "offset": 1}

    return make


def tiff_of(**options: Any) -> Callable[[Path, Numbers], Options]:
    def make(path: Path, numbers: Numbers) -> Options:
        import tifffile

        pages = (block.reshape(-1, 512, COLUMNS) for _, block in numbers.blocks())
        images = (page for block in pages for page in block)
        shape = (numbers.rows // 512, 512, COLUMNS)
        tifffile.imwrite(
            path, images, shape=shape, dtype=numbers.dtype, photometric="minisblack", bigtiff=True, **options
        )
        return {"reshape": list(numbers.shape)}

    return make


def _references(path: Path, numbers: Numbers) -> dict[str, Any]:
    from kerchunk.hdf import SingleHdf5ToZarr

    source = path.with_suffix(".h5")
    hdf5_of(chunks=CHUNKS, compression="gzip", compression_opts=1, shuffle=True)(source, numbers)
    made: dict[str, Any] = SingleHdf5ToZarr(str(source), inline_threshold=0).translate()
    return made


# Kerchunk has the fill value of HDF5, 0, stand for what is missing.
REFERRED: Options = {"member": "group/x", "open": {"decode": False}}


def make_kerchunk(path: Path, numbers: Numbers) -> Options:
    path.write_text(json.dumps(_references(path, numbers), default=lambda text: text.decode()))
    return REFERRED


def make_kerchunk_parquet(path: Path, numbers: Numbers) -> Options:
    from fsspec.implementations.reference import LazyReferenceMapper

    mapper = LazyReferenceMapper.create(str(path), record_size=1000, engine="pyarrow")
    references = _references(path, numbers)["refs"]
    for key, entry in sorted(references.items(), key=lambda of: "/.z" not in of[0]):
        mapper[key] = entry.encode() if isinstance(entry, str) else entry
    mapper.flush()
    return REFERRED


# How a file of each format is made: the suffix, the type of its numbers, the maker.
ARRAYS: dict[str, tuple[str, str, Callable[[Path, Numbers], Options]]] = {
    ".npy": (".npy", "i4", make_npy),
    ".npz": (".npz", "i4", make_npz),
    "raw": (".bin", "i4", make_raw),
    **{
        f"Zarr v3, {codecs}": (".zarr", "i4", zarr_of(3, codecs))
        for codecs in ("plain", "gzip", "zstd", "blosc", "crc32c", "transpose", "shards", "shuffle")
    },
    **{
        f"Zarr v2, {codecs.removesuffix(' of v2')}": (".zarr", "i4", zarr_of(2, codecs))
        for codecs in ("plain", "zlib", "lz4", "blosc of v2", "delta", "Fortran order")
    },
    "OME-Zarr": (".zarr", "u2", make_ome),
    "HDF5, contiguous": (".h5", "i4", hdf5_of()),
    "HDF5, chunks": (".h5", "f8", hdf5_of(chunks=CHUNKS)),
    "HDF5, shuffle and deflate": (
        ".h5",
        "i4",
        hdf5_of(chunks=CHUNKS, compression="gzip", compression_opts=1, shuffle=True, fletcher32=True),
    ),
    "HDF5, lzf": (".h5", "i4", hdf5_of(chunks=CHUNKS, compression="lzf")),
    "HDF5, scaleoffset": (".h5", "i4", hdf5_of(chunks=CHUNKS, scaleoffset=0)),
    "NetCDF-4": (".nc", "i2", netcdf_of("NETCDF4", zlib=True, complevel=1, chunksizes=CHUNKS)),
    "NetCDF-3": (".nc", "i2", netcdf_of("NETCDF3_64BIT_DATA")),
    "TIFF": (".tif", "u2", tiff_of()),
    "TIFF, deflate and predictor": (".tif", "u2", tiff_of(compression="zlib", predictor=2, rowsperstrip=128)),
    "kerchunk, JSON": (".json", "i4", make_kerchunk),
    "kerchunk, Parquet": (".parq", "i4", make_kerchunk_parquet),
}
# Arrays that are written, of an `.npy` file: the name of the file, and what `store` is told.
WRITTEN: dict[str, tuple[str, Options]] = {
    ".npy": ("y.npy", {}),
    "Zarr, plain": ("y.zarr", {"chunks": CHUNKS}),
    **{f"Zarr, {name}": ("y.zarr", {"chunks": CHUNKS, "compression": name}) for name in ("gzip", "zstd", "blosc")},
    "Zarr, crc32c": ("y.zarr", {"chunks": CHUNKS, "compression": ["zstd", "crc32c"]}),
    "Zarr, a group": ("y.zarr", {"group": "x"}),
    "HDF5": ("y.h5/g/x", {"chunks": CHUNKS}),
    "HDF5, shuffle and gzip": ("y.h5/g/x", {"chunks": CHUNKS, "compression": ["shuffle", "gzip"]}),
    "NetCDF-4": ("y.nc", {"group": "x"}),
}
# Steps that are no one call of `store`, by the functions below.
STEPS = ("append", "region", "append, zstd", "region, zstd", "pyramid", "convert to Zarr", "convert to HDF5")


# -- in the child -----------------------------------------------------------------------------------------------------


def opened(path: str, how: Options) -> Any:
    import outcore as oc

    array = oc.open("/".join(filter(None, [path, how.get("member")])), **how.get("open", {}))
    array = array["x"] if isinstance(array, oc.Group) else array
    return oc.reshape(array, how["reshape"]) if "reshape" in how else array


def begun(limit: int) -> float:
    import outcore as oc

    oc.config.set(memory_limit=limit, threads=2, progress=False)
    return time.perf_counter()


def stored(targets: Options, **options: Any) -> dict[str, Any]:
    """One program: its bytes, and whether these are what was forecast. `explain` takes no chunks."""
    import outcore as oc

    forecast = None if options else oc.explain(targets, overwrite=True)
    done = oc.store(targets, overwrite=True, **options)
    figures = ("bytes_read", "bytes_written")
    moved = {"read": done.bytes_read, "written": done.bytes_written, "peak": done.peak_bytes}
    if forecast is None:
        return moved
    exact = [getattr(forecast, name) for name in figures] == [getattr(done, name) for name in figures]
    return moved | {"forecast": exact, "promised": forecast.exact}


def sums_of(array: Any, out: str, name: str) -> dict[str, Any]:
    import outcore as oc

    return stored({f"{out}/{name}{axis}.npy": oc.sum(array, axis=1 - axis) for axis in range(2)})


def read(path: str, how: Options, out: str, limit: int, copy: str) -> dict[str, Any]:
    """Sums along both axes, and a copy with its own."""
    begin = begun(limit)
    array = opened(path, how)
    runs = [sums_of(array, out, "read"), stored({f"{out}/{copy}": array})]
    runs.append(sums_of(opened(f"{out}/{copy}", {}), out, "copy"))
    return {"seconds": time.perf_counter() - begin, "runs": runs}


def write(source: str, name: str, options: Options, out: str, limit: int) -> dict[str, Any]:
    import outcore as oc

    begin, target, array = begun(limit), f"{out}/{name}", opened(source, {})
    options = dict(options)
    if "chunks" in options:
        options["chunks"] = {target: tuple(options["chunks"])}
    member = options.pop("group", None)
    runs = [stored({target: oc.group({member: array}) if member else array}, **options)]
    runs.append(sums_of(opened(target, {"member": member}), out, "copy"))
    return {"seconds": time.perf_counter() - begin, "runs": runs}


def step(source: str, name: str, out: str, limit: int) -> dict[str, Any]:
    """An array that is written in parts, or by another call than `store`."""
    import outcore as oc

    begin = begun(limit)
    array, target, runs = opened(source, {}), f"{out}/y.zarr", []
    kind, _, codec = name.partition(", ")
    options: Options = {"chunks": {target: CHUNKS}} | ({"compression": codec} if codec else {})
    if kind == "append":
        runs.append(stored({target: array[: CHUNKS[0] * 3 + 5]}, **options))
        done = oc.append(target, array[CHUNKS[0] * 3 + 5 :], axis=0)
        runs.append({"read": done.bytes_read, "written": done.bytes_written, "peak": done.peak_bytes})
    elif kind == "region":
        middle = slice(100, array.shape[0] - 300)
        runs.append(stored({target: array * 0}, **options))
        for part in (middle, slice(0, 100), slice(array.shape[0] - 300, None)):
            done = oc.store({oc.region(target, np.s_[part]): array[part]})
            runs.append({"read": done.bytes_read, "written": done.bytes_written, "peak": done.peak_bytes})
    elif kind == "pyramid":
        done = oc.pyramid(array, 3, target)
        runs.append({"read": done.bytes_read, "written": done.bytes_written, "peak": done.peak_bytes})
        levels = {f"{out}/level{level}.npy": oc.sum(oc.open(f"{target}/{level}")) for level in (1, 2)}
        runs.append(stored(levels))
    else:
        from outcore._command.cli import main

        target = target if kind.endswith("Zarr") else f"{out}/y.h5/x"
        main(["convert", source, target, "--memory-limit", str(limit)], standalone_mode=False)
    final = f"{target}/0" if kind == "pyramid" else target
    runs.append(sums_of(opened(final, {}), out, "copy"))
    return {"seconds": time.perf_counter() - begin, "runs": runs}


# -- checks -----------------------------------------------------------------------------------------------------------


def check(numbers: Numbers, how: Options, out: Path, names: tuple[str, ...]) -> None:
    """Sums of rows and columns are those of the numbers that the file was made of."""
    scale, offset = how.get("scale", 1), how.get("offset", 0)
    for axis, (values, length) in enumerate(zip(numbers.sums(), numbers.shape[::-1], strict=True)):
        for name in names:
            np.testing.assert_array_equal(np.load(out / f"{name}{axis}.npy"), values * scale + offset * length)
