"""The command line of sparse matrices: `outcore sparse convert | info`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

from outcore import config
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject, Keywords
from outcore._command.shared import errors_in_one_line, json_option, limit_option, main, show
from outcore._show.degrees import bars, draw
from outcore.errors import ArgumentError
from outcore.sparse._compressed import from_anndata, from_npz, from_table
from outcore.sparse._convert import open
from outcore.sparse._exports import to_edges, to_mtx, to_npz
from outcore.sparse._ingest import Options, Settings, stored
from outcore.sparse._layout import layout
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._readers import from_binary, from_edges, from_mtx

_KINDS = ("ocs", "edges", "binary", "mtx", "npz", "anndata", "parquet")
# The content of a file by the ending of its name before .gz and .zst; edges in any other.
_ENDINGS = {
    ".ocs": "ocs",
    ".mtx": "mtx",
    ".npz": "npz",
    ".h5ad": "anndata",
    ".h5": "anndata",
    ".zarr": "anndata",
    ".parquet": "parquet",
    ".bin": "binary",
}


@main.group()
def sparse() -> None:
    """Sparse matrices on disk."""


def _kind(path: str, kind: str | None) -> str:
    name = Path(path).name
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    return kind or _ENDINGS.get(Path(name).suffix, "edges")


@sparse.command()
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@click.option("--format", "kind", type=click.Choice(_KINDS), help="What SOURCE holds, unless its name tells.")
@click.option("--shape", help="Rows and columns, such as 1000,2000.")
@click.option("--dtype", help='Type of the values; "pattern" for none.')
@click.option("--duplicates", type=click.Choice(["sum", "last", "any", "refuse"]), default="sum", show_default=True)
@click.option("--symmetrize", is_flag=True, help="Also store each entry's mirror image.")
@click.option("--drop-loops", is_flag=True, help="Leave away the diagonal.")
@click.option("--by-degree", is_flag=True, help="Number rows and columns by falling degree.")
@click.option("--transpose", type=click.Path(), help="Also store the transpose, there.")
@click.option("--side", type=int, help="Rows and columns of a tile.")
@click.option("--ids", default="uint32", show_default=True, help="Type of the numbers in a binary file.")
@click.option("--values", help="Type of the values in a binary file; the column of them in a Parquet file.")
@click.option("--columns", default="row,column", show_default=True, help="Columns of a Parquet file.")
@click.option("--group", default="X", show_default=True, help="Group of an AnnData file.")
@click.option("--base", type=int, default=0, show_default=True, help="What rows and columns in text count from.")
@click.option("--resume", is_flag=True, help="Go on where the same command was killed.")
@click.option("--overwrite", is_flag=True, help="Replace what is at TARGET.")
@limit_option
@json_option
@errors_in_one_line
def convert(source: str, target: str, memory_limit: int | None, as_json: bool, **asked: Any) -> None:
    """Stores the matrix in SOURCE at TARGET: to .ocs from a file of edges, .bin, .mtx, .npz, .h5ad, .zarr or .parquet;
    from .ocs to a file of edges, .bin, .mtx or .npz. Text may be packed by gzip or Zstandard."""
    begin = time.perf_counter()
    with config.set(memory_limit=memory_limit):
        if _kind(target, None) == "ocs":
            matrix = _read(source, target, asked)
        else:
            if _kind(source, asked["kind"]) != "ocs":
                raise ArgumentError(f"convert: from {source} to {target}, and neither is a .ocs file")
            matrix = open(source)
            _write(matrix, target, asked)
    content: JSONObject = {
        "target": target,
        "shape": list(matrix.shape),
        "entries": matrix.nnz,
        "bytes": Path(target).stat().st_size,
        "seconds": time.perf_counter() - begin,
    }
    rows, columns = matrix.shape
    text = f"{target}: {rows} × {columns}, {matrix.nnz:,} entries, {format_size(content['bytes'])}"
    show(content, as_json, f"{text} in {content['seconds']:.1f} s")


def _options(asked: Keywords) -> Options:
    """Options of the command line that were set."""
    options: Keywords = {
        name: asked[name] for name in ("duplicates", "symmetrize", "drop_loops", "resume", "overwrite") if asked[name]
    }
    options |= {name: asked[name] for name in ("dtype", "transpose", "side") if asked[name] is not None}
    if asked["by_degree"]:
        options["relabel"] = "degree"
    if asked["shape"] is not None:
        try:
            rows, columns = map(int, asked["shape"].split(","))
        except ValueError:
            raise click.BadParameter(f"{asked['shape']!r} is not rows,columns", param_hint="--shape") from None
        options["shape"] = (rows, columns)
    return cast(Options, options)


def _read(source: str, target: str, asked: Keywords) -> SparseMatrix:
    kind, options = _kind(source, asked["kind"]), _options(asked)
    if "shape" in options and kind in ("mtx", "npz", "anndata", "ocs"):
        raise ArgumentError(f"convert: --shape is given, and {source} tells it")
    if kind == "binary":
        return from_binary(source, target, ids=asked["ids"], values=asked["values"], **options)
    if kind == "parquet":
        names = asked["columns"].split(",")
        if len(names) != 2:
            raise click.BadParameter(f"{asked['columns']!r} is not two columns", param_hint="--columns")
        return from_table(source, target, rows=names[0], columns=names[1], values=asked["values"], **options)
    if kind == "edges":
        return from_edges(source, target, base=asked["base"], **options)
    if kind == "ocs":
        matrix = open(source)
        parts = matrix.blocks()
        entries = ((rows, columns) if matrix.is_pattern else (rows, columns, values) for rows, columns, values in parts)
        return stored(entries, target, None, Options(**{**options, "shape": matrix.shape}))
    settings = cast(Settings, options)  # without a shape, as was seen above
    if kind == "mtx":
        return from_mtx(source, target, **settings)
    if kind == "npz":
        return from_npz(source, target, **settings)
    return from_anndata(source, target, group=asked["group"], **settings)


def _write(matrix: SparseMatrix, target: str, asked: Keywords) -> None:
    kind, overwrite = _kind(target, None), bool(asked["overwrite"])
    if kind == "mtx":
        to_mtx(matrix, target, overwrite=overwrite)
    elif kind == "npz":
        to_npz(matrix, target, overwrite=overwrite)
    elif kind in ("edges", "binary"):
        ids = np.dtype(asked["ids"])
        to_edges(matrix, target, binary=kind == "binary", ids=ids, base=asked["base"], overwrite=overwrite)
    else:
        raise ArgumentError(f"convert: {target} is of a format that is read, and not written")


@sparse.command()
@click.argument("path", type=click.Path())
@click.option("--svg", "drawing", type=click.Path(), help="Also draw the histogram of degrees there.")
@limit_option
@json_option
@errors_in_one_line
def info(path: str, drawing: str | None, memory_limit: int | None, as_json: bool) -> None:
    """Shape and entries of the matrix at PATH, its bytes beside those of CSR and DCSC, and a histogram of degrees."""
    with config.set(memory_limit=memory_limit):
        content = layout(open(path))
    if drawing is not None:
        draw(drawing, path, content["degrees"])
    rows, columns = content["shape"]
    per = {name: content[name] / max(content["entries"], 1) for name in ("bytes", "csr_bytes", "dcsc_bytes")}
    text = [
        f"shape     {rows} × {columns}, tiles of {content['tile']}",
        f"entries   {content['entries']:,}, values {content['values']}",
        f"bytes     {format_size(content['bytes'])}, {per['bytes']:.2f} for each entry",
        f"CSR       {format_size(content['csr_bytes'])}, {per['csr_bytes']:.2f}",
        f"DCSC      {format_size(content['dcsc_bytes'])}, {per['dcsc_bytes']:.2f} on the same tiles",
        f"degrees   up to {content['degree_max']:,}; rows by their entries, bars by logarithm:",
        bars(content["degrees"]),
    ]
    show(content, as_json, "\n".join(text))


__all__ = ["sparse"]
