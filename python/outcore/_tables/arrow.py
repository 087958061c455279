"""Arrow's types and outcore's columns: the one place where they meet.

**Contract.** A `Field` says for one column of Arrow's which column of outcore's it becomes, or why none: so files and
streams are opened whatever they hold, and a column that has no place here is refused when its name is used.

| Arrow | outcore | missing elements |
| --- | --- | --- |
| integers, truths | the same; float64 where elements are missing and `nulls="nan"` | NaN, exact or refused |
| floating point | the same | NaN |
| date32, date64, timestamp, duration, time | `Dates`: days, ms, the unit; instants of a time zone are in UTC | NaT |
| dictionary of strings, strings with the dtype "category" | `Categorical` | no label |
| binary of fixed size, strings with a dtype such as "S12", "U12" | `Text` | refused, or empty with `nulls="mask"` |
| decimals, lists, structures, other strings and binaries | refused by name | |

With `nulls="mask"` missing integers are 0 and missing truths false, in their own types. With `nulls="error"` every
missing element is refused. pyarrow is the optional extra `outcore[arrow]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from outcore._base.arrow_numbers import array_of, filled, indices_of, strings_of
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._session.session import leave_room
from outcore._tables.categorical import Categorical
from outcore._tables.columns import TableColumn
from outcore._typed.calendar import unit_of
from outcore.dates import Dates
from outcore.errors import ArgumentError, DTypeError, RangeError
from outcore.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

Nulls = Literal["nan", "mask", "error"]
ColumnTypes: TypeAlias = "Mapping[str, str]"  # by column "category", or the name of a NumPy type
# Memory that pyarrow takes when it is loaded.
_LOADED_BYTES = 48 << 20
_TEXT_KEY = b"outcore:text"
_UNITS = ("s", "ms", "us", "ns")
# Units of dates that Arrow has not, as those that it has.
_DATE_UNITS = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}
_LABELS_MAX, _LABEL_BYTES_MAX = 1 << 20, 64 << 20


def arrow(what: str) -> None:
    """Raises ImportError, naming the function, where pyarrow is not installed; its memory is made room for."""
    leave_room(_LOADED_BYTES, unless="pyarrow")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(f"{what} needs pyarrow: pip install outcore[arrow]") from None


def check_nulls(what: str, nulls: str) -> None:
    """Raises ArgumentError for what is no choice."""
    if nulls not in get_args(Nulls):
        raise ArgumentError(f"{what}: nulls={nulls!r}; {', '.join(get_args(Nulls))} are right")


class Field:
    """A column of Arrow's as one of outcore's.

    `dtype` is that of the numbers which carry the column, `kind` that of its elements, `refusal` why there is no such
    column. `has_nulls` is None where only the elements can tell.
    """

    def __init__(
        self, field: pa.Field, nulls: Nulls = "nan", wish: str | None = None, has_nulls: bool | None = None
    ) -> None:
        self.name: str = field.name
        self.nulls = nulls
        self.has_nulls = has_nulls
        self.refusal: str | None = None
        self.labels: tuple[str, ...] | None = None
        self.is_category = False
        self.is_natural = wish is None  # of the type that Arrow has
        self.type: pa.DataType = field.type
        if wish is None and field.metadata:
            wish = field.metadata.get(_TEXT_KEY, b"").decode() or None
        try:
            self.kind: DType = self._kind(wish)
        except DTypeError as error:
            self.kind, self.refusal = np.dtype(object), str(error)
        self.dtype = self._carrier()

    def _kind(self, wish: str | None) -> DType:
        import pyarrow as pa

        of = self.type
        values = of.value_type if pa.types.is_dictionary(of) else of
        is_text = pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_string_view(values)
        is_bytes = pa.types.is_binary(values) or pa.types.is_large_binary(values) or pa.types.is_binary_view(values)
        if wish == "category" or (is_text and values is not of and wish is None):
            if not is_text:
                raise DTypeError(f"column {self.name!r} of {of} holds no strings; labels are strings")
            self.is_category = True
            return np.dtype(object)
        if is_text or is_bytes or pa.types.is_fixed_size_binary(values):
            return self._text(values, wish)
        if wish is not None:
            kind = np.dtype(wish)
            if kind.kind not in "iufbmM":
                raise DTypeError(f"column {self.name!r} of {of} is not {wish}")
            return kind
        if pa.types.is_decimal(values) or pa.types.is_nested(values) or pa.types.is_null(values):
            raise DTypeError(f"column {self.name!r} is of {of}; name a dtype for it, such as float64, or leave it out")
        return self._number(values)

    def _text(self, of: pa.DataType, wish: str | None) -> DType:
        import pyarrow as pa

        if wish is None and pa.types.is_fixed_size_binary(of):
            return np.dtype(f"S{of.byte_width}")
        kind = None if wish is None else np.dtype(wish)
        if kind is None or kind.kind not in "SU" or not kind.itemsize:
            raise DTypeError(
                f"column {self.name!r} of {self.type} has elements of any length; outcore's have one: pass "
                f"dtypes={{{self.name!r}: 'category'}} for few distinct strings, or a length, such as 'U12'"
            )
        return kind

    def _number(self, of: pa.DataType) -> DType:
        import pyarrow as pa

        if pa.types.is_date32(of):
            return np.dtype("datetime64[D]")
        if pa.types.is_date64(of):
            return np.dtype("datetime64[ms]")
        if pa.types.is_timestamp(of):
            return np.dtype(f"datetime64[{of.unit}]")
        if pa.types.is_duration(of) or pa.types.is_time(of):
            return np.dtype(f"timedelta64[{of.unit}]")
        try:
            kind: DType = np.dtype(of.to_pandas_dtype())
        except NotImplementedError:
            kind = np.dtype(object)
        if kind.kind not in "iufb":
            raise DTypeError(f"column {self.name!r} is of {self.type}, which outcore has no elements for")
        return kind

    def _carrier(self) -> DType:
        if self.is_category:
            return np.dtype(np.int32)
        if self.kind.kind in "mM":
            return np.dtype(np.int64)
        if self.kind.kind in "SU":
            return np.dtype(np.uint8 if self.kind.kind == "S" else np.uint32)
        if self.is_widened:
            return np.dtype(np.float64)
        return self.kind

    @property
    def is_widened(self) -> bool:
        """Whether integers or truths stand as float64, NaN among them."""
        return self.nulls == "nan" and self.has_nulls is not False and self.kind.kind in "iub"

    @property
    def letters(self) -> int | None:
        """How many letters an element has; None for what is no text."""
        return self.kind.itemsize // self.dtype.itemsize if self.kind.kind in "SU" else None

    @property
    def word(self) -> str:
        """The type of the elements, as `Table.dtypes` says it."""
        if self.refusal is not None:
            return f"{self.type}, refused"
        if self.is_category:
            return "category"
        kind = np.dtype(np.float64) if self.is_widened else self.kind
        return kind.str.lstrip("|<") if kind.kind in "SU" else str(kind)

    def column(self, numbers: Array) -> TableColumn:
        """The column that numbers carry."""
        if self.is_category:
            assert self.labels is not None
            return Categorical(numbers, self.labels)
        if self.kind.kind in "SU":
            return Text(numbers, self.kind)
        return Dates(numbers, self.kind) if self.kind.kind in "mM" else numbers

    def check(self, what: str) -> None:
        """Raises DTypeError where the column has no place here."""
        if self.refusal is not None:
            raise DTypeError(f"{what}: {self.refusal}")

    # -- elements -------------------------------------------------------------------------------------------------

    def numbers(self, part: pa.Array, what: str) -> NDArray:
        """The numbers of some elements. Raises DTypeError for missing ones that have no place, RangeError for integers
        that float64 does not hold."""
        import pyarrow as pa

        if part.null_count and (self.nulls == "error" or (self.kind.kind in "SU" and self.nulls != "mask")):
            raise DTypeError(f"{what}: {part.null_count} missing elements in column {self.name!r}, {self.word}")
        if self.is_category:
            return self._codes(part)
        if pa.types.is_dictionary(part.type):
            part = part.dictionary_decode()
        if self.kind.kind in "SU":
            return self._letters(part, what)
        if self.kind.kind in "mM":
            return self._integers(part)
        return self._plain(part, what)

    def _codes(self, part: pa.Array) -> NDArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = strings_of(self.labels or ())
        if not pa.types.is_dictionary(part.type):
            return filled(pc.index_in(part.cast(pa.string()), value_set=labels), -1)
        places = filled(pc.index_in(part.dictionary.cast(pa.string()), value_set=labels), -1)
        table = np.append(places, np.int32(-1))
        codes: NDArray = table[indices_of(part, len(table) - 1)]
        return codes

    def _letters(self, part: pa.Array, what: str) -> NDArray:
        import pyarrow as pa

        strings = part.fill_null(b"" if not _is_string(part.type) else "") if part.null_count else part
        if pa.types.is_fixed_size_binary(strings.type) and strings.type.byte_width == self.kind.itemsize:
            letters = np.frombuffer(strings.buffers()[1], np.uint8)
            begin = strings.offset * self.kind.itemsize
            return letters[begin : begin + len(strings) * self.kind.itemsize].reshape(len(strings), -1)
        if self.kind.kind == "S":
            of_bytes = strings.cast(pa.large_binary())
            values = np.array(of_bytes.to_numpy(zero_copy_only=False), dtype=bytes)
        else:
            values = np.array(strings.cast(pa.large_string()).to_numpy(zero_copy_only=False), dtype=str)
        if values.itemsize > self.kind.itemsize:
            longest = values.itemsize // self.dtype.itemsize
            raise RangeError(f"{what}: column {self.name!r} has an element of {longest} letters, more than {self.kind}")
        return np.ascontiguousarray(values.astype(self.kind)).view(self.dtype).reshape(len(values), -1)

    def _integers(self, part: pa.Array) -> NDArray:
        """Dates as the integers they are."""
        import pyarrow as pa

        of = part.type
        if not pa.types.is_integer(of):
            part = part.view(pa.int64() if of.bit_width == 64 else pa.int32())
        # Only integers of 64 bits have the one that stands for NaT.
        part = part.cast(pa.int64()) if part.type != pa.int64() else part
        integers = filled(part, np.iinfo(np.int64).min)
        stored = None if pa.types.is_integer(of) else self._number(of)
        if stored is None or stored == self.kind:
            return integers
        return integers.view(stored).astype(self.kind).view(np.int64)

    def _plain(self, part: pa.Array, what: str) -> NDArray:
        import pyarrow as pa

        dtype, missing = self.dtype, 0.0
        if part.null_count and not (self.nulls == "mask" and self.kind.kind in "iub"):
            if dtype.kind != "f":
                raise DTypeError(f"{what}: {part.null_count} missing elements in column {self.name!r}, {self.word}")
            if not pa.types.is_floating(part.type):
                return self._widened(part, what)
            missing = np.nan
        elif not part.null_count and self.is_widened and pa.types.is_integer(part.type):
            return self._widened(part, what)
        target = pa.from_numpy_dtype(dtype)
        if part.type != target and not pa.types.is_boolean(part.type):
            part = part.cast(target)
        return filled(part, missing).astype(dtype, copy=False)

    def _widened(self, part: pa.Array, what: str) -> NDArray:
        import pyarrow as pa

        if pa.types.is_boolean(part.type):
            part = part.cast(pa.uint8())
        try:
            return filled(part.cast(pa.float64()), np.nan)
        except pa.ArrowInvalid as error:
            raise RangeError(
                f"{what}: column {self.name!r} has missing elements, and integers that float64 does not hold exactly: "
                f"{error}; nulls='mask' keeps them integers"
            ) from None


def _is_string(of: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))


class LabelCount:
    """The distinct strings of a column, as parts of it come. Raises DTypeError where they are more than memory has
    room for: 2²⁰ of them, or 64 MiB."""

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, what
        self._strings: set[str] = set()
        self._bytes = 0

    def add(self, part: pa.Array) -> None:
        """Takes note of the strings of a part."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = part.dictionary if pa.types.is_dictionary(part.type) else pc.unique(part)
        new = {label for label in values.to_pylist() if label is not None} - self._strings
        self._strings |= new
        self._bytes += sum(map(len, new))
        if len(self._strings) > _LABELS_MAX or self._bytes > _LABEL_BYTES_MAX:
            raise DTypeError(
                f"{self._what}: column {self._name!r} has more than {_LABELS_MAX} distinct strings, or "
                f"{_LABEL_BYTES_MAX >> 20} MiB of them; read it as text of a length, such as 'U12'"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The strings, ascending."""
        return tuple(sorted(self._strings))


# -- outwards ---------------------------------------------------------------------------------------------------------


def field_of(name: str, column: TableColumn) -> pa.Field:
    """Arrow's field of a column. Raises DTypeError for complex numbers and for units that Arrow has not."""
    import pyarrow as pa

    if isinstance(column, Categorical):
        return pa.field(name, pa.dictionary(pa.int32(), pa.string()))
    if isinstance(column, Text):
        return pa.field(name, pa.string(), nullable=False, metadata={_TEXT_KEY: column.dtype.str[1:].encode()})
    if isinstance(column, Dates):
        unit = unit_for(name, column)
        if column.dtype.kind == "m":
            return pa.field(name, pa.duration(unit))
        return pa.field(name, pa.date32() if unit == "D" else pa.timestamp(unit))
    if column.dtype.kind == "c":
        raise DTypeError(f"column {name!r} of {column.dtype}: Arrow has no complex numbers; give it .real and .imag")
    return pa.field(name, pa.from_numpy_dtype(column.dtype), nullable=False)


def unit_for(name: str, column: Dates) -> str:
    """Arrow's unit for dates: their own, or the next finer one. Raises DTypeError where there is none."""
    unit, count = unit_of(column.dtype)
    if column.dtype.kind == "M" and unit == "D" and count == 1:
        return unit
    if column.dtype.kind == "m" and unit in ("Y", "M"):
        raise DTypeError(f"column {name!r} of {column.dtype}: Arrow has no durations of months")
    unit = "s" if column.dtype.kind == "m" and unit in ("W", "D") else _DATE_UNITS.get(unit, unit)
    if unit == "D" or unit in _UNITS:
        return unit
    raise DTypeError(f"column {name!r} of {column.dtype}: Arrow's finest unit is ns")


def as_arrow(field: pa.Field, column: TableColumn, values: NDArray) -> pa.Array:
    """Computed elements of a column, as its field has them; numbers are borrowed where they lie."""
    import pyarrow as pa

    if isinstance(column, Categorical):
        codes = array_of(values, pa.int32(), values < 0)
        return pa.DictionaryArray.from_arrays(codes, strings_of(column.labels))
    if isinstance(column, Dates):
        unit = "D" if field.type == pa.date32() else field.type.unit
        dates = values.astype(f"{column.dtype.kind}8[{unit}]", copy=False)
        integers = array_of(dates.view(np.int64), pa.int64(), np.isnat(dates))
        return (integers.cast(pa.int32()) if unit == "D" else integers).view(field.type)
    if isinstance(column, Text):
        strings = values if column.dtype.kind == "U" else np.char.decode(values, "utf-8")
        return pa.array(strings, pa.string())
    return array_of(values, field.type)


__all__ = [
    "ColumnTypes",
    "Field",
    "LabelCount",
    "Nulls",
    "arrow",
    "as_arrow",
    "check_nulls",
    "field_of",
]
