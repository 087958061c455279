"""Fields of records in `.npy` and HDF5 files, dates, text, and files read as another type: strided reads, never the
whole of a record's bytes in memory."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np

from outcore import _core
from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.files import Header, npy_header
from outcore._base.types import DType, JSONObject
from outcore._lazy.array import Array
from outcore._lazy.typed import Typed
from outcore.dates import Dates
from outcore.errors import DTypeError, FormatError, MissingFileError, PermissionDeniedError, UnsupportedFormatError
from outcore.text import Text


def is_typed(path: str) -> bool:
    """Whether a path is a `.npy` file of dates, durations or fixed-length strings. Raises FormatError, with their
    fields, for one of records."""
    if not os.path.isfile(path):
        return False
    try:
        dtype = npy_header(path).dtype
        typed = _carrier(path, dtype) != (dtype, ())
    except Exception:  # what is wrong with the file the engine has said already
        return False
    if dtype.names is not None:
        raise FormatError(f"{path}: {_records(dtype)}: oc.open(path, field={dtype.names[0]!r})", {"path": path})
    return typed


def _records(record: DType) -> str:
    return f"elements are records; name one of their fields: {', '.join(record.names or ())}"


def open_part(session: _core.Session, path: str, field: str | None, view: DTypeLike) -> Any:
    """A field of a structured `.npy` file, or all of one, its bytes read as `view` if given.

    `Dates` of dates and durations, `Text` of strings, else an `Array`.
    """
    if os.path.isdir(path):
        raise UnsupportedFormatError(f"{path}: field= and view= are for .npy files, and this is a folder")
    try:
        header = npy_header(path)
    except ValueError as error:
        raise FormatError(f"{path}: {error}") from None
    except (FileNotFoundError, PermissionError) as error:
        refusal = MissingFileError if isinstance(error, FileNotFoundError) else PermissionDeniedError
        details = {"path": path, "action": "open", "cause": error.strerror, "errno": error.errno}
        raise refusal(f"{path}: cannot be opened: {error.strerror}", details) from None
    return open_placed(session, path, header, field, view)


def open_placed(session: _core.Session, path: str, header: Header, field: str | None, view: DTypeLike) -> Any:
    """As `open_part`, of an array that lies in a file as a header says."""
    record, start, reverse = header.dtype, header.offset, header.fortran
    shape = header.shape[::-1] if reverse else header.shape
    kind, read_as, offset, inner = _placed(path, record, field, view)
    if record.itemsize == read_as.itemsize * math.prod(inner):
        name = dtype_of(read_as).name
        made = _core.open_raw(session, path, start, [*shape, *inner], name, not read_as.isnative)
    else:
        made = _strided(session, path, start + offset, math.prod(shape), record.itemsize, read_as, math.prod(inner))
        made = _core.reshape(made, [*shape, *inner])
    order = (*reversed(range(len(shape))), *range(len(shape), len(shape) + len(inner)))
    return typed(Array(_core.permute_dims(made, list(order)) if reverse else made), kind)


def open_records(path: str, stored: _core.StoredRecords, field: str | None, view: DTypeLike) -> Array | Typed:
    """As `open_part`, of an array of records or of text in a file of several arrays."""
    try:
        record = _described(json.loads(stored.record))
    except ValueError as error:
        raise FormatError(f"{path}: no type of records: {error}", {"path": path}) from None
    if field is None and record.names is not None:
        raise FormatError(f"{path}: {_records(record)}: oc.open(path, field={record.names[0]!r})", {"path": path})
    kind, read_as, offset, inner = _placed(path, record, field, view)
    made = stored.field(offset, list(inner), dtype_of(read_as).name, not read_as.isnative)
    array: Array | Typed = typed(Array(made), kind)
    return array


def _described(about: JSONObject) -> DType:
    """The type that a file has elements of, of what the core says of them."""
    if "fields" in about:
        names, offsets, types = zip(*about["fields"], strict=True) if about["fields"] else ((), (), ())
        return np.dtype(
            {"names": names, "offsets": offsets, "formats": [*map(_described, types)], "itemsize": about["bytes"]}
        )
    if "of" in about:
        return np.dtype((_described(about["of"]), tuple(about["shape"])))
    kind: DType = np.dtype(about["type"])
    return kind.newbyteorder() if about["swapped"] else kind


def _placed(path: str, record: DType, field: str | None, view: DTypeLike) -> tuple[DType, DType, int, tuple[int, ...]]:
    """The type of a field, the numbers that carry it, its first byte in a record, and its axes there."""
    of, offset = _field(path, record, field)
    base, inner = (of.subdtype[0], of.subdtype[1]) if of.subdtype else (of, ())
    kind: DType = base if view is None else np.dtype(view)
    if kind.itemsize != base.itemsize:
        raise DTypeError(f"{path}: elements of {base} have {base.itemsize} bytes, those of {kind} {kind.itemsize}")
    read_as, letters = _carrier(path, kind)
    return kind, read_as.newbyteorder(base.byteorder), offset, (*inner, *letters)


def _carrier(path: str, kind: DType) -> tuple[DType, tuple[int, ...]]:
    """The numbers that an element lies in the file as, and how many there are where these are letters."""
    if (kind.kind in "SU" and not kind.itemsize) or (kind.kind in "mM" and np.datetime_data(kind)[0] == "generic"):
        raise DTypeError(f"{path}: elements of {kind} have no {'letters' if kind.kind in 'SU' else 'unit'}")
    if kind.kind in "SU":
        letter = np.dtype(np.uint8 if kind.kind == "S" else np.uint32)
        return letter, (kind.itemsize // letter.itemsize,)
    return (np.dtype(np.int64) if kind.kind in "mM" else kind), ()


def typed(numbers: Array, kind: DType) -> Any:
    """Numbers as what they stand for in elements of a type."""
    if kind.kind in "mM":
        return Dates(numbers, kind)
    if kind.kind in "SU":
        return Text(numbers, kind)
    return numbers


def _field(path: str, record: DType, field: str | None) -> tuple[DType, int]:
    """The type of a field and where in the record it begins; of all of an element where none is named."""
    if field is None:
        if record.fields is not None:
            raise DTypeError(f"{path}: {_records(record)}")
        return record, 0
    fields = {} if record.fields is None else dict(record.fields)
    if field not in fields:
        raise DTypeError(
            f"{path}: there is no field {field!r}; elements have {', '.join(record.names or ()) or 'none'}"
        )
    return fields[field][0], fields[field][1]


def _strided(
    session: _core.Session, path: str, start: int, count: int, record: int, kind: DType, inner: int
) -> _core.Expr:
    """`inner` elements from the beginning of each of `count` records, of so many bytes, as a matrix.

    A file is read as elements of one size, but records need not be a whole number of them. Every so many records are:
    those with the same rest form one matrix, whose first columns are the field's.
    """
    name, size, swapped = dtype_of(kind).name, kind.itemsize, not kind.isnative
    if count == 0:
        return _core.full([0, inner], 0, name)

    def raw(first: int, shape: list[int]) -> _core.Expr:
        return _core.open_raw(session, path, start + first * record, shape, name, swapped)

    apart = size // math.gcd(record, size)
    # The row of the last records would reach beyond the file: they are read one by one.
    rows = max(count // apart - 1, 0)
    parts = []
    if rows:
        row = apart * record // size
        columns = [_core.slice(raw(at, [rows, row]), [0, 0], [1, 1], [rows, inner]) for at in range(apart)]
        one = columns[0] if apart == 1 else _core.concat([_core.expand_dims(column, [1]) for column in columns], 1)
        parts.append(_core.reshape(one, [rows * apart, inner]))
    parts += [raw(at, [1, inner]) for at in range(rows * apart, count)]
    return _core.concat(parts, 0) if len(parts) > 1 else parts[0]


__all__ = ["is_typed", "open_part", "open_placed", "open_records", "typed"]
