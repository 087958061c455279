"""Files of edges and Matrix Market's, read into stored matrices as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Unpack

import numpy as np

from outcore import _core
from outcore._base.arguments import whole
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.files import reading
from outcore._base.system_errors import refusing
from outcore._base.types import PathLike
from outcore._lazy.array import Array
from outcore._opening.records import _strided
from outcore._session.session import current
from outcore.errors import ArgumentError, FormatError, UnsupportedFormatError
from outcore.sparse._foreseen import check_matrix, looked_at
from outcore.sparse._ingest import Options, Settings, Symmetry, stored
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._packed import unpacked, unpacking
from outcore.sparse._spool import Chunk, Done, stamp_of
from outcore.sparse._text import BYTE_ORDER_MARK, LINE_MAX, Columns, ahead, blocks_of, parse_behind

_NUMBER_MAX = 2**63 - 1
_FIELDS = {
    "real": "float64",
    "double": "float64",
    "integer": "int64",
    "unsigned-integer": "uint64",
    "complex": "complex128",
    "pattern": "pattern",
}
_SYMMETRIES: dict[str, Symmetry] = {
    "general": False,
    "symmetric": True,
    "skew-symmetric": "skew",
    "hermitian": "hermitian",
}


def opened(path: PathLike) -> IO[bytes]:
    """A file of text, unpacked where it begins as gzip, Zstandard, bzip2 or xz do."""
    with refusing(path, "open"):
        return unpacked(Path(path), reading(path))


def _blocks(path: PathLike, file: IO[bytes]) -> Iterator[bytes]:
    blocks = blocks_of(path, file)
    while True:
        with unpacking(path):
            block = next(blocks, None)
        if block is None:
            return
        yield block


def from_edges(
    source: PathLike,
    path: PathLike | None = None,
    *,
    columns: tuple[int, int] = (0, 1),
    values: int | bool | None = None,
    separators: str = ",;|",
    comments: str = "#%",
    base: int = 0,
    **options: Unpack[Options],
) -> SparseMatrix:
    """Stores the matrix of a text file with an edge in each line: row, column and, where there is one, a value.

    `columns` says which numbers of a line are the row and the column, `values` which is the value: None takes a third
    one where there is one, True the third one, which has to be there, False none. The first of `separators` in the
    first line with numbers keeps these apart in all lines, with white space around; no field beside it may be empty.
    Where there is none of them, white space does. Numbers are written with a decimal point and without separators of
    thousands: `1,000 2,000` and `0;1;2,5` are refused. Lines that begin with one of `comments` are passed over, and so
    is a byte order mark. Rows and columns count from `base`. Files of gzip, Zstandard, bzip2 and xz are unpacked on the
    way. Without a `shape` the matrix is square. Values are float64. `path` and `options` are those of `from_entries`.

    Raises FormatError that names the line which is not as it should be, ArgumentError for `columns`, `values` or `base`
    that are none; errors else as `from_entries`. I/O: one read of the file, one write of 8 to 16 bytes an edge and its
    value, then as `from_entries`.

    >>> import outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.txt").write_text("# from to\\n0 1\\n2 1\\n")
    >>> oc.sparse.from_edges(folder / "edges.txt", folder / "a.ocs").shape
    (3, 3)
    """
    if values is True:
        values = 2
    places = None if values is None else () if values is False else (values,)
    if len(columns) != 2 or columns[0] == columns[1]:
        raise ArgumentError(f"from_edges: columns={columns!r}; two different ones are right")
    for column in columns:
        whole("from_edges", _NUMBER_MAX, columns=column)
    whole("from_edges", _NUMBER_MAX, base=base, **({"values": values} if places else {}))
    if places and places[0] in columns:
        raise ArgumentError(f"from_edges: values={values} is a number of rows or columns: columns={columns}")
    begin = partial(text_lines, source, columns, places, separators, comments, base)
    lines = begin()

    @contextmanager
    def chunks(done: Done) -> Iterator[Iterator[Chunk]]:
        with opened(source) as file, _parsed(lines, done, source, file) as blocks:
            yield blocks

    _exists(source)
    check_matrix("from_edges", looked_at(source, begin), places != ())
    read_as = f"{stamp_of(source)} {columns} {values} {separators} {comments} {base}"
    return stored(chunks, path, read_as, options, square=True)


def text_lines(
    source: PathLike,
    columns: tuple[int, int] = (0, 1),
    places: tuple[int, ...] | None = (),
    separators: str = ",;|",
    comments: str = "#%",
    base: int = 0,
) -> _core.TextLines:
    """The parser of the lines of a file of edges."""
    return _core.TextLines(
        str(source), columns, places, separators=separators.encode(), comments=comments.encode(), base=base
    )


@contextmanager
def _parsed(lines: _core.TextLines, done: Done, source: PathLike, file: IO[bytes]) -> Iterator[Iterator[Columns]]:
    """The columns behind those that are done; one thread reads, and another parses."""
    with ahead(_blocks(source, file)) as blocks, ahead(parse_behind(lines, done.chunks, blocks)) as parsed:
        yield parsed


def _exists(path: PathLike) -> None:
    opened(path).close()


def from_binary(
    source: PathLike,
    path: PathLike | None = None,
    *,
    ids: DTypeLike = np.uint32,
    values: DTypeLike = None,
    **options: Unpack[Options],
) -> SparseMatrix:
    """Stores the matrix of a file of pairs (row, column), or of triples whose third is a value of type `values`.

    `ids` is the integer type of rows and columns, which `np.dtype(">u4")` and such may tell in the other byte order.
    Without a `shape` the matrix is square. `path` and `options` are those of `from_entries`. Raises FormatError for a
    file that is no whole number of pairs or triples. I/O: as `from_entries`; the file is read where it lies.

    >>> import numpy as np, outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.asarray([[0, 1], [2, 1]], dtype=np.uint32).tofile(folder / "edges.bin")
    >>> oc.sparse.from_binary(folder / "edges.bin", folder / "a.ocs").nnz
    2
    """
    _exists(source)
    kind = np.dtype(ids)
    if kind.kind not in "iu":
        raise ArgumentError(f"from_binary: ids of {kind} are no integers")
    value = None if values is None else np.dtype(values)
    record = 2 * kind.itemsize + (0 if value is None else value.itemsize)
    size = os.stat(source).st_size
    if size % record:
        raise FormatError(f"{source}: {size} bytes are no whole number of records of {record} bytes")
    core, name = current()._core, str(Path(source).absolute())
    pairs = Array(_strided(core, name, 0, size // record, record, kind, 2))
    columns = [pairs[:, 0], pairs[:, 1]]
    if value is not None:
        dtype_of(value)
        columns.append(Array(_strided(core, name, 2 * kind.itemsize, size // record, record, value, 1))[:, 0])
    return stored(tuple(columns), path, None, options, square=True)


def from_mtx(source: PathLike, path: PathLike | None = None, **options: Unpack[Settings]) -> SparseMatrix:
    """Stores the matrix of a Matrix Market file: coordinates, of any field and symmetry, packed or not.

    Values of field "integer" are int64, "unsigned-integer" uint64, "real" float64, "complex" complex128; those of
    "pattern" are none. `path` and `options` are those of `from_entries` but for `shape` and `symmetrize`, which the
    file tells. Packed files are those of `from_edges`. Raises FormatError that names the line which is not as it should
    be, UnsupportedFormatError for dense arrays. I/O: as `from_edges`.

    Source: Boisvert, Pozo, Remington: The Matrix Market exchange formats, NISTIR 5935 (1996).

    >>> import outcore as oc, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> head = "%%MatrixMarket matrix coordinate real symmetric"
    >>> _ = (folder / "a.mtx").write_text(head + "\\n2 2 1\\n2 1 5.0\\n")
    >>> oc.sparse.from_mtx(folder / "a.mtx", folder / "a.ocs").to_scipy().toarray()
    array([[0., 5.],
           [5., 0.]])
    """
    if "symmetrize" in options:
        raise ArgumentError(f"from_mtx: symmetrize={options['symmetrize']!r} is given, and the file tells it")
    with opened(source) as file, unpacking(source):
        field, symmetry, shape, _, _ = _heading(source, file)
    options["symmetrize"] = _SYMMETRIES[symmetry]
    options.setdefault("dtype", _FIELDS[field])
    return stored(partial(_market_entries, source), path, stamp_of(source), Options(**options, shape=shape))


def _heading(source: PathLike, file: IO[bytes]) -> tuple[str, str, tuple[int, int], int, int]:
    """Field, symmetry, shape, entries and the lines of the heading."""
    first = file.readline(LINE_MAX).removeprefix(BYTE_ORDER_MARK).decode("ascii", "replace").lower().split()
    if len(first) != 5 or first[:2] != ["%%matrixmarket", "matrix"]:
        raise FormatError(f"{source}: line 1 is no heading of a Matrix Market file")
    layout, field, symmetry = first[2:]
    if layout != "coordinate":
        raise UnsupportedFormatError(f"{source}: line 1: layout {layout!r}; only 'coordinate' is of sparse matrices")
    if field not in _FIELDS or symmetry not in _SYMMETRIES:
        raise FormatError(f"{source}: line 1: field {field!r}, symmetry {symmetry!r}")
    number = 1
    while True:
        line, number = file.readline(LINE_MAX), number + 1
        if not line:
            raise FormatError(f"{source}: line {number}: the file ends before its sizes")
        if line.strip() and not line.lstrip().startswith(b"%"):
            break
    try:
        rows, columns, count = map(int, line.split())
        if min(rows, columns, count) < 0:
            raise ValueError
    except ValueError:
        raise FormatError(f"{source}: line {number}: {line[:60]!r} is not rows, columns and entries") from None
    return field, symmetry, (rows, columns), count, number


@contextmanager
def _market_entries(source: PathLike, done: Done) -> Iterator[Iterator[Chunk]]:
    with opened(source) as file:
        with unpacking(source):
            field, _, shape, count, number = _heading(source, file)
        places = {"pattern": (), "complex": (2, 3)}.get(field, (2,))
        lines = _core.TextLines(
            str(source),
            (0, 1),
            places,
            separators=b"",
            comments=b"%",
            base=1,
            limits=shape,
            numbers={"integer": "int64", "unsigned-integer": "uint64"}.get(field, "float64"),
        )
        lines.skip(number)

        def entries(parsed: Iterator[Columns]) -> Iterator[Chunk]:
            entries_read = done.entries
            for parts in parsed:
                entries_read += len(parts[0])
                yield _valued(parts, field)
            if entries_read != count:
                raise FormatError(f"{source}: line {number} tells of {count} entries, and {entries_read} are there")

        with _parsed(lines, done, source, file) as parsed:
            yield entries(parsed)


def _valued(parts: Columns, field: str) -> Chunk:
    if field == "complex":
        made: Any = np.empty(len(parts[2]), np.complex128)
        made.real, made.imag = parts[2], parts[3]
        return [parts[0], parts[1], made]
    return parts


__all__ = ["from_binary", "from_edges", "from_mtx", "opened", "text_lines"]
