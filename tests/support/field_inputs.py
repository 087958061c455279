"""The stored inputs of the calls of `field_calls.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.sparse
from conftest import LARGE

import outcore as oc
from support.running import session

# Points along each axis of a grid, whose factor is larger than the least memory.
GRID = 48 if LARGE else 30
ORDER, SIDE, EACH = (1 << 18, 16384, 48) if LARGE else (1 << 15, 4096, 64)
# Columns of a dense operand, and the shape of a table: 8 times the memory limit, or 8 times the least pool.
COLUMNS, ROWS, FEATURES = (640, 7_000_000, 32) if LARGE else (64, 200_000, 16)


def _table(folder: Path, random: np.random.Generator) -> None:
    """Data in clusters, labels, targets that follow from it, probabilities, and codes of categories."""
    table = np.lib.format.open_memmap(folder / "table.npy", "w+", np.float64, (ROWS, FEATURES))
    goal = np.empty(ROWS)
    for start in range(0, ROWS, 100_000):
        part = random.random((min(100_000, ROWS - start), FEATURES))
        table[start : start + len(part)] = part
        goal[start : start + len(part)] = part @ np.arange(FEATURES) + random.normal(size=len(part))
    np.save(folder / "t.npy", goal)
    np.save(folder / "y.npy", (goal > goal.mean()).astype(np.int64))
    np.save(folder / "p.npy", random.uniform(0.01, 0.99, ROWS))
    np.save(folder / "codes.npy", random.integers(0, 5, size=(ROWS, 3)))


def _vectors(folder: Path, random: np.random.Generator) -> None:
    np.save(folder / "x.npy", random.random((ORDER, COLUMNS)))
    np.save(folder / "wide.npy", random.random((COLUMNS, ORDER)))
    np.save(folder / "v.npy", random.random(ORDER))
    np.save(folder / "starts.npy", random.random((ORDER, 2)))
    np.save(folder / "grid.npy", random.random(GRID**3))
    np.save(folder / "grids.npy", random.random((GRID**3, 24)))
    np.save(folder / "places.npy", random.permutation(ORDER))
    labels = np.full(ORDER, -1)
    labels[::500] = np.arange(len(labels[::500])) % 3
    np.save(folder / "labels.npy", labels)


def _matrices(folder: Path, random: np.random.Generator) -> None:
    for name, order, count in (("a", ORDER, EACH * ORDER), ("b", ORDER, 4 * ORDER), ("small", 1000, 9000)):
        found = _drawn(random, order, count)
        oc.sparse.from_scipy(found, folder / f"{name}.ocs", side=SIDE)
        if name == "a":
            _as_files(folder, found)
    oc.sparse.from_scipy(_drawn(random, 20, 60), folder / "tiny.ocs")
    half = _drawn(random, ORDER, 3 * ORDER)
    diagonal = np.full(ORDER, 30.0) + random.random(ORDER)
    diagonal[:6] = np.linspace(1000.0, 500.0, 6)
    definite = (half + half.T + scipy.sparse.diags_array(diagonal)).tocsr()
    oc.sparse.from_scipy(definite, folder / "s.ocs", side=SIDE)
    oc.sparse.grid3d(GRID, folder / "grid.ocs")


def _drawn(random: np.random.Generator, order: int, count: int) -> Any:
    rows, columns = random.integers(0, order, (2, count))
    return scipy.sparse.coo_array((random.random(count), (rows, columns)), shape=(order, order)).tocsr()


def _as_files(folder: Path, matrix: Any) -> None:
    """A matrix in the files of others, and as arrays of its entries."""
    stored = oc.sparse.open(folder / "a.ocs")
    oc.sparse.to_edges(stored, folder / "a.txt")
    oc.sparse.to_edges(stored, folder / "a.bin", binary=True)
    oc.sparse.to_mtx(stored, folder / "a.mtx")
    scipy.sparse.save_npz(folder / "a.npz", matrix, compressed=False)
    parts = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
    with h5py.File(folder / "a.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": matrix.shape})
        for name, part in parts.items():
            group.create_dataset(name, data=part)
    for name, part in zip(("starts", "columns", "values"), parts.values(), strict=True):
        np.save(folder / f"csr-{name}.npy", part)
    entries = matrix.tocoo()
    np.save(folder / "rows.npy", entries.coords[0])
    np.save(folder / "columns.npy", entries.coords[1])
    np.save(folder / "values.npy", entries.data)
    _binsparse(folder / "a.h5", parts, matrix)


def _binsparse(path: Path, parts: dict[str, Any], matrix: Any) -> None:
    import json

    head = {
        "version": "0.1",
        "format": "CSR",
        "shape": list(matrix.shape),
        "number_of_stored_values": int(matrix.nnz),
        "data_types": {"pointers_to_1": "int32", "indices_1": "int32", "values": "float64"},
    }
    names = {"indptr": "pointers_to_1", "indices": "indices_1", "data": "values"}
    with h5py.File(path, "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": head})
        for name, part in parts.items():
            file.create_dataset(names[name], data=part)


def _graphs(folder: Path) -> None:
    rows, columns = np.load(folder / "rows.npy"), np.load(folder / "columns.npy")
    weights = np.load(folder / "values.npy")
    oc.graph.from_arrays(rows, columns, folder / "way.ocg", weights=weights, vertices=ORDER, side=SIDE)
    oc.graph.from_arrays(rows, columns, folder / "both.ocg", vertices=ORDER, directed=False, side=SIDE)
    apart = rows != columns
    forward = np.minimum(rows, columns)[apart], np.maximum(rows, columns)[apart]
    oc.graph.from_arrays(*forward, folder / "order.ocg", vertices=ORDER, side=SIDE)


def save(folder: Path) -> None:
    """Writes all inputs."""
    random = np.random.default_rng(11)
    with session(folder):
        _vectors(folder, random)
        _table(folder, random)
        _matrices(folder, random)
        _graphs(folder)
