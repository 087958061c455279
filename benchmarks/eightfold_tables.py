"""Tables, matrices and graphs in files eight times as large as the memory: read, copied and written in children.

A table has the columns id = i, x = (i mod 1000) / 8 and k = i mod 7. A matrix of n rows has ones at (i, 2i + step · s)
for step 0 to DEGREE - 1, all modulo n: as many in each row.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.eightfold_formats import begun, stored

PERIOD, GROUPS, BLOCK = 7000, 7, 700_000
ROW_BYTES = 8 + 8 + 4
DEGREE, STRIDE = 64, 4099


class Rows:
    """The table of a size, and what is known of it."""

    def __init__(self, size: int) -> None:
        self.count = -(-size // (ROW_BYTES * BLOCK)) * BLOCK

    def blocks(self) -> Iterator[Any]:
        import pyarrow as pa

        for begin in range(0, self.count, BLOCK):
            number = np.arange(begin, begin + BLOCK)
            columns = {"id": number, "x": number % 1000 / 8, "k": (number % GROUPS).astype("i4")}
            yield pa.record_batch(columns)

    def expected(self) -> dict[str, Any]:
        period = np.arange(PERIOD)
        sums = np.bincount(period % GROUPS, period % 1000 / 8)
        return {
            "ids": self.count * (self.count - 1) // 2,
            "x": float(sums.sum()) * (self.count // PERIOD),
            "groups": (sums * (self.count // PERIOD)).tolist(),
        }


def _written(rows: Rows, writer: Callable[[Any], Any]) -> None:
    """All blocks by a writer of pyarrow's that is made for their schema."""
    first = next(rows.blocks())
    with writer(first.schema) as sink:
        for block in rows.blocks():
            sink.write_batch(block)


def make_parquet(path: Path, rows: Rows) -> None:
    import pyarrow.parquet as pq

    _written(rows, lambda schema: pq.ParquetWriter(path, schema, compression="zstd"))


def make_arrow(path: Path, rows: Rows) -> None:
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="lz4")
    _written(rows, lambda schema: pa.ipc.new_file(str(path), schema, options=options))


def make_csv(path: Path, rows: Rows) -> None:
    import pyarrow as pa
    from pyarrow import csv

    options = csv.WriteOptions(delimiter="\t" if ".tsv" in path.suffixes else ",")
    with ExitStack() as opened:
        sink: Any = str(path)
        if path.suffix == ".gz":  # pyarrow's gzip is of level 9, which takes minutes
            sink = opened.enter_context(gzip.open(path, "wb", compresslevel=1))
        elif path.suffix == ".zst":
            sink = opened.enter_context(pa.CompressedOutputStream(sink, "zstd"))
        _written(rows, lambda schema: csv.CSVWriter(sink, schema, write_options=options))


def make_folder(path: Path, rows: Rows) -> None:
    import pyarrow as pa

    import outcore as oc

    schema = next(rows.blocks()).schema
    oc.from_arrow(pa.RecordBatchReader.from_batches(schema, rows.blocks()), path=path)


def make_nothing(path: Path, rows: Rows) -> None:
    pass


TABLES: dict[str, tuple[str, Callable[[Path, Rows], None]]] = {
    "Parquet": (".parquet", make_parquet),
    "Arrow IPC": (".arrow", make_arrow),
    "CSV": (".csv", make_csv),
    "CSV, gzip": (".csv.gz", make_csv),
    "TSV": (".tsv", make_csv),
    "TSV, zstd": (".tsv.zst", make_csv),
    "folder of columns": (".columns", make_folder),
    "Arrow's C stream": (".stream", make_nothing),
}


def table_of(path: str, size: int, folder: str) -> Any:
    import outcore as oc

    suffix = path[path.rindex("/") :].partition(".")[2]
    if suffix == "stream":
        import pyarrow as pa

        rows = Rows(size)
        return oc.from_arrow(pa.RecordBatchReader.from_batches(next(rows.blocks()).schema, rows.blocks()), path=folder)
    if suffix.startswith(("csv", "tsv")):
        return oc.read_csv(path, folder=folder)
    if suffix == "columns":
        return oc.open_table(path)
    return oc.read_arrow(path, folder=folder) if suffix == "arrow" else oc.read_parquet(path)


def table(path: str, size: int, out: str, limit: int, target: str) -> dict[str, Any]:
    """Sums of columns and of groups, a copy in Parquet or in a folder, and the sums of that."""
    import outcore as oc

    begin, results, runs = begun(limit), [], []
    for place in (path, f"{out}/copy{target}"):
        rows = table_of(place, size, f"{out}/{'read' if place == path else 'again'}.columns")
        runs.append(stored({f"{out}/ids.npy": rows["id"].sum(), f"{out}/x.npy": rows["x"].sum()}))
        groups = rows.groupby("k").agg(total=("x", "sum")).sort_by("k").compute()["total"]
        sums = [np.load(f"{out}/{name}.npy") for name in ("ids", "x")]
        results.append({"ids": int(sums[0]), "x": float(sums[1]), "groups": groups.tolist()})
        if place == path and target == ".parquet":
            oc.to_parquet(rows, f"{out}/copy.parquet")
        elif place == path:
            oc.from_arrow(rows, path=f"{out}/copy{target}")
    return {"seconds": time.perf_counter() - begin, "runs": runs, "results": results}


# -- matrices and graphs ----------------------------------------------------------------------------------------------


def edges(order: int) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    rows = np.arange(order)
    for step in range(DEGREE):
        yield rows, (2 * rows + step * STRIDE) % order


def make_binary(path: Path, order: int) -> None:
    with path.open("wb") as file:
        for rows, columns in edges(order):
            np.stack([rows, columns], axis=1).astype("<u4").tofile(file)


def _text(path: Path, order: int, base: int, head: bytes = b"") -> None:
    import pyarrow as pa
    from pyarrow import csv

    options = csv.WriteOptions(include_header=False, delimiter=" ")
    with path.open("wb") as file:
        file.write(head)
        for rows, columns in edges(order):
            csv.write_csv(pa.table({"i": rows + base, "j": columns + base}), file, options)


def make_text(path: Path, order: int) -> None:
    _text(path, order, 0)


def make_mtx(path: Path, order: int) -> None:
    head = f"%%MatrixMarket matrix coordinate pattern general\n{order} {order} {order * DEGREE}\n"
    _text(path, order, 1, head.encode())


def _compressed(order: int) -> Any:
    """The matrix in SciPy's form, in the memory of the process that makes files."""
    from scipy import sparse

    columns = np.sort(np.stack([part for _, part in edges(order)], axis=1).astype("i4"), axis=1)
    starts = np.arange(order + 1, dtype="i8") * DEGREE
    return sparse.csr_array((np.ones(columns.size, "f4"), columns.ravel(), starts), (order, order))


def make_scipy(path: Path, order: int) -> None:
    from scipy import sparse

    sparse.save_npz(path, _compressed(order), compressed=False)


def make_anndata(path: Path, order: int) -> None:
    import h5py

    matrix = _compressed(order)
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [order, order]})
        for name in ("data", "indices", "indptr"):
            group.create_dataset(name, data=getattr(matrix, name), chunks=(1 << 16,), compression="lzf")


def make_pairs(path: Path, order: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("i", pa.int64()), ("j", pa.int64())])
    with pq.ParquetWriter(path, schema) as file:
        for rows, columns in edges(order):
            file.write_table(pa.table({"i": rows, "j": columns}))


# Suffix, bytes of an entry in the file, maker.
MATRICES: dict[str, tuple[str, int, Callable[[Path, int], None]]] = {
    "edges as binary numbers": (".bin", 8, make_binary),
    "edges as text": (".txt", 13, make_text),
    "Matrix Market": (".mtx", 13, make_mtx),
    "SciPy's .npz": (".npz", 8, make_scipy),
    "AnnData": (".h5ad", 8, make_anndata),
    "Parquet with places": (".parquet", 16, make_pairs),
    ".ocg, of edges as text": (".txt", 13, make_text),
}


def matrix(path: str, name: str, order: int, out: str, limit: int) -> dict[str, Any]:
    """A matrix in `.ocs`, or a graph in `.ocg`: the sums of all rows and columns, and its texts written again."""
    import outcore as oc

    begin, shape = begun(limit), (order, order)
    if name.startswith(".ocg"):
        graph = oc.graph.from_edges(path, f"{out}/a.ocg", vertices=order)
        degrees = oc.graph.open(f"{out}/a.ocg").degrees("out")
        result = {"least": int(degrees.min()), "largest": int(degrees.max()), "file": graph.file_bytes}
        return {"seconds": time.perf_counter() - begin, "runs": [], "results": [result]}
    target = f"{out}/a.ocs"
    made = {
        "edges as binary numbers": lambda: oc.sparse.from_binary(path, target, shape=shape),
        "edges as text": lambda: oc.sparse.from_edges(path, target, shape=shape),
        "Matrix Market": lambda: oc.sparse.from_mtx(path, target),
        "SciPy's .npz": lambda: oc.sparse.from_npz(path, target),
        "AnnData": lambda: oc.sparse.from_anndata(path, target),
        "Parquet with places": lambda: oc.sparse.from_table(path, target, rows="i", columns="j", shape=shape),
    }[name]()
    results, ones = [], oc.ones((order,), dtype="f8")
    runs = [stored({f"{out}/rows.npy": oc.sparse.open(target) @ ones})]
    if name == "edges as text":
        oc.sparse.to_edges(made, f"{out}/again.txt")
    elif name == "Matrix Market":
        oc.sparse.to_mtx(made, f"{out}/again.mtx")
    elif name == "SciPy's .npz":
        oc.sparse.to_npz(made, f"{out}/again.npz")
    elif name == "edges as binary numbers":
        oc.sparse.to_edges(made, f"{out}/again.bin", binary=True)
    sums = np.load(f"{out}/rows.npy", mmap_mode="r")
    results.append({"least": int(sums.min()), "largest": int(sums.max()), "file": Path(target).stat().st_size})
    return {"seconds": time.perf_counter() - begin, "runs": runs, "results": results}


def again(name: str, order: int, out: Path) -> None:
    """What a child wrote as text or binary numbers has all entries: their places are summed."""
    expected = [DEGREE * (order * (order - 1) // 2)] * 2
    if (path := out / "again.bin").exists():
        pairs = np.fromfile(path, "<u4").reshape(-1, 2)
        assert pairs.sum(axis=0, dtype="i8").tolist() == expected, name
    for path, base in ((out / "again.txt", 0), (out / "again.mtx", 1)):
        if path.exists():
            lines = (line for line in path.open("rb") if line[:1].isdigit())
            skipped = [next(lines)] if base else []
            assert sum(1 for _ in lines) == order * DEGREE, (name, skipped)
