"""Input files of the benchmarks, written block by block so that making them needs no memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

COLUMNS, FACTORS = 100, 10
BLOCK_ROWS = 1 << 16


def write_npy(path: Path, shape: tuple[int, ...], seed: int | None, dtype: str = "<f8") -> Path:
    """A C-ordered .npy of uniform numbers in [0, 1); with seed None a sparse file of zeros, which takes no disk."""
    kind = np.dtype(dtype)
    rows, row_items = shape[0], int(np.prod(shape[1:], dtype=np.int64))
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": shape})
        if seed is None:
            file.truncate(file.tell() + rows * row_items * kind.itemsize)
            return path
        random = np.random.default_rng(seed)
        block = max(1, BLOCK_ROWS * COLUMNS // max(row_items, 1))
        for start in range(0, rows, block):
            random.random((min(block, rows - start), row_items)).astype(kind, copy=False).tofile(file)
    return path


def write_labels(path: Path, rows: int, seed: int) -> Path:
    """A column of zeros and ones."""
    np.save(path, np.random.default_rng(seed).integers(0, 2, (rows, 1)).astype("<f8"))
    return path


def write_zarr(path: Path, source: Path, chunk_rows: int = 16384) -> Path:
    """The same numbers as plain (uncompressed) Zarr v3 chunks."""
    import zarr

    x = np.load(source, mmap_mode="r")
    target: Any = zarr.create_array(
        str(path), shape=x.shape, dtype=x.dtype, chunks=(chunk_rows, x.shape[1]), compressors=None
    )
    for start in range(0, x.shape[0], chunk_rows):
        target[start : start + chunk_rows] = x[start : start + chunk_rows]
    return path


def factorization(folder: Path, x_bytes: int, sparse: bool = False, zarr: bool = False) -> dict[str, str]:
    """X (N×100), W0 (N×10), H0 (10×100), labels y (N×1) in `folder`; files of the right size are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = x_bytes // (8 * COLUMNS)
    tag = f"{rows}{'-sparse' if sparse else ''}"
    paths = {name: folder / f"{name}-{tag}.npy" for name in ("X", "W0", "H0", "y")}
    shapes = {"X": (rows, COLUMNS), "W0": (rows, FACTORS), "H0": (FACTORS, COLUMNS), "y": (rows, 1)}
    for seed, (name, path) in enumerate(paths.items()):
        if path.exists():
            continue
        if sparse:
            write_npy(path, shapes[name], None)
        elif name == "y":
            write_labels(path, rows, seed)
        else:
            write_npy(path, shapes[name], seed)
    made = {name: str(path) for name, path in paths.items()}
    if zarr:
        made["X.zarr"] = str(folder / f"X-{tag}.zarr")
        if not Path(made["X.zarr"]).exists():
            write_zarr(Path(made["X.zarr"]), paths["X"])
    return made
