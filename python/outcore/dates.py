"""Dates and times: NumPy's datetime64 and timedelta64, of any unit, as lazy arrays of the integers they are."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from outcore._base.element_types import DTypeLike, dtype_of
from outcore._base.types import DType, NDArray
from outcore._lazy import foreign
from outcore._lazy.array import Array, oc
from outcore._lazy.hooks import above
from outcore._lazy.indexing import Assignable
from outcore._lazy.node import Axis, Operand, axis_of, is_weak, node
from outcore._lazy.typed import Typed
from outcore._standard.manipulation import part_along
from outcore._typed.calendar import NAT, converted, unit_of
from outcore._typed.formulas import COMPARISONS, FORMULAS, is_nat, last_is_nat
from outcore._typed.operators import DateOperators
from outcore._typed.parts import part_of
from outcore.errors import ArgumentError, DTypeError

_INT = np.dtype(np.int64)


class Dates(DateOperators, Typed):
    """A lazy array of dates and times (datetime64) or of durations (timedelta64), with their unit.

    Made by `open` of a file of them, by `asarray`, or by `outcore.dates.view` of integers. Behaves as NumPy's: a date
    less a date is a duration, units meet in the finer one, NaT is before, behind and equal to nothing and comes last in
    order, `astype("datetime64[M]")` goes towards the past. Years and months do not mix with days, of which they are no
    multiple: DTypeError, as all that NumPy refuses. Numbers that 64 bits do not hold wrap around.

    Comparisons also take ISO 8601 text. As labels of `groupby`, NaT is one group, the last; `x.month`, `x.season` and
    the like are labels for climatologies. Everything is computed on the integers, fused as their arithmetic is;
    functions of outcore that are no method here take `x.integers`.

    >>> import numpy as np, outcore as oc
    >>> when = oc.asarray(np.asarray(["2024-02-28T12", "2024-03-01", "NaT"], dtype="datetime64[s]"))
    >>> (when - np.datetime64("2024-02-28")).compute()
    array([ 43200, 172800,  'NaT'], dtype='timedelta64[s]')
    >>> when.astype("datetime64[M]").compute()
    array(['2024-02', '2024-03',     'NaT'], dtype='datetime64[M]')
    >>> (when < "2024-03").compute()
    array([ True, False, False])
    """

    __slots__ = ()
    __array_priority__ = 1.0

    def __init__(self, integers: Array, dtype: DTypeLike) -> None:
        kind = np.dtype(dtype).newbyteorder("=")
        if kind.kind not in "mM" or integers.dtype != _INT:
            raise DTypeError(f"Dates of {integers.dtype} as {kind}: they are int64, as datetime64 or timedelta64")
        super().__init__(integers, kind)

    @property
    def unit(self) -> str:
        """The step that the integers count: "Y", "M", "W", "D", "h", "m", "s", "ms", …; "25s" where a step is several
        of it."""
        unit, count = unit_of(self._dtype)
        return unit if count == 1 else f"{count}{unit}"

    @property
    def integers(self) -> Array:
        """The integers, int64: since 1970-01-01 for dates. The least of all stands for NaT."""
        return self._carrier

    @property
    def year(self) -> Array:
        """The year. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "year")

    @property
    def month(self) -> Array:
        """The month, 1 to 12. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "month")

    @property
    def season(self) -> Array:
        """The season: 0 for December to February, 1 to 3 for the others; int64, -1 of NaT. As `month`."""
        return part_of(self._carrier, self._dtype, "season")

    @property
    def day(self) -> Array:
        """The day of the month, from 1 on. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "day")

    @property
    def dayofyear(self) -> Array:
        """The day of the year, from 1 on. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "dayofyear")

    @property
    def weekday(self) -> Array:
        """The day of the week: Monday is 0. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "weekday")

    @property
    def hour(self) -> Array:
        """The hour of the day. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "hour")

    @property
    def minute(self) -> Array:
        """The minute of the hour. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "minute")

    @property
    def second(self) -> Array:
        """The second of the minute. int64, -1 of NaT; no I/O of its own. Raises DTypeError for durations."""
        return part_of(self._carrier, self._dtype, "second")

    @property
    def T(self) -> Dates:
        """The array with its axes reversed."""
        return self._like(self._carrier.T)

    def _decoded(self, numbers: NDArray) -> NDArray:
        return numbers.view(self._dtype)

    def _columns(self, descending: bool = False) -> list[Array]:
        return [~self._carrier if descending else last_is_nat(self._carrier)]

    def _of_columns(self, columns: list[Array], descending: bool = False) -> Self:
        return self._like(~columns[0] if descending else columns[0] + 1)

    def _missing(self, columns: list[Array]) -> Array | None:
        return columns[0] == np.iinfo(_INT).max

    def __iter__(self) -> Iterator[Any]:
        """As `Array`'s: NumPy scalars of a row, computed a block at a time; lazy parts where there are further axes."""
        if self.ndim != 1:
            yield from super().__iter__()
            return
        for value in self._carrier:
            yield value.view(self._dtype)

    def __setitem__(self, key: Assignable, value: object) -> None:
        """A functional update, as that of `Array`; the value is cast to this array's unit."""
        changed = self._carrier.copy()
        changed[key] = as_dates(value, self._dtype).integers
        self._carrier = changed

    def astype(self, dtype: DTypeLike) -> Any:
        """Dates of another unit, towards the past; or the integers as a type of numbers, an `Array`.

        A duration of years or months counts 365.2425 days a year, as in NumPy. Raises DTypeError for a type that is
        neither, RangeError for units of which one takes more than 2⁶³ of the other. I/O: fused with what reads it.
        """
        new = np.dtype(dtype).newbyteorder("=")
        if new.kind not in "mM":
            return self._carrier.astype(dtype_of(new))
        if new.kind != self._dtype.kind:
            raise DTypeError(f"astype: {self._dtype} is not {new}; subtract a date, or add one, or view x.integers")
        if unit_of(new)[0] == "generic":
            return self.copy()
        return Dates(converted(self._carrier, self._dtype, new), new)

    def reshape(self, *shape: int | Sequence[int]) -> Dates:
        """The array with another shape, in C order; one length may be -1."""
        return self._like(self._carrier.reshape(*shape))

    # -- reductions: NaT among the elements makes the result NaT, as in NumPy -------------------------------------

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        """The earliest or shortest along the given axes; NaT where there is one. I/O: one read."""
        return self._like(oc.min(self._carrier, axis=axis, keepdims=keepdims))  # NaT is the least integer

    def argmin(self, axis: int | str | None = None, *, keepdims: bool = False) -> Array:
        """Index of the first NaT, or else of the first smallest element, int64. I/O: one read."""
        return oc.argmin(self._carrier, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | str | None = None, *, keepdims: bool = False) -> Array:
        """Index of the first NaT, or else of the first largest element, int64. I/O: one read."""
        return oc.argmax(self._keys(), axis=axis, keepdims=keepdims)

    def ptp(self, axis: Axis = None, *, keepdims: bool = False) -> Dates:
        """Largest element less the smallest, a duration. I/O: one read."""
        duration: Dates = self.max(axis, keepdims=keepdims) - self.min(axis, keepdims=keepdims)
        return duration

    def _durations(self, name: str) -> Array:
        if self._dtype.kind != "m":
            raise DTypeError(f"{name}: {self._dtype} are dates, which have no {name}; durations between dates have one")
        return self._carrier

    def sum(self, axis: Axis = None, *, keepdims: bool = False) -> Dates:
        """Sum of durations. Raises DTypeError for dates. I/O: one read."""
        counts = self._durations("sum")
        missing = oc.any(is_nat(counts), axis=axis, keepdims=keepdims)
        return self._like(oc.where(missing, NAT, oc.sum(counts, axis=axis, keepdims=keepdims)))

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Dates:
        """Mean of durations, towards zero; NaT of none. Raises DTypeError for dates. I/O: one read."""
        self._durations("mean")
        total = self.sum(axis, keepdims=keepdims)
        parts: Dates = total / (self.size // max(total.size, 1) if total.size else 0)
        return parts

    def cumsum(self, axis: int | str | None = None) -> Dates:
        """Running sums of durations; NaT from the first NaT on. I/O: one read, one write of the result."""
        counts = self._durations("cumsum")
        counts, place = (counts.ravel(), 0) if axis is None else (counts, axis)
        missing = oc.cummax(is_nat(counts).astype(np.uint8), axis=place) == 1
        sums = oc.cumulative_sum(oc.where(is_nat(counts), 0, counts), axis=place)
        return self._like(oc.where(missing, NAT, sums))

    def diff(self, n: int = 1, axis: int = -1) -> Dates:
        """Each element less the one before it along an axis, n times: durations. I/O: one read."""
        if n < 0:
            raise ArgumentError(f"diff: n={n} is below 0")
        place, differences = axis_of("diff", axis, self), self
        for _ in range(n):
            later = differences._like(part_along(differences._carrier, place, 1, None))
            differences = later - differences._like(part_along(differences._carrier, place, 0, -1))
        return differences

    def searchsorted(self, values: object, side: str = "left") -> Array:
        """Where values would have to be put in this row, which is in order, to keep it so. I/O: as the function's."""
        first, second = meet(self, as_dates(values, self._dtype.kind))
        return oc.searchsorted(first._keys(), second._keys(), side=side)

    def isin(self, values: object) -> Array:
        """Which elements are among some values; NaT is among none. I/O: as that of `outcore.isin`."""
        first, second = meet(self, as_dates(values, self._dtype.kind))
        return oc.isin(first._carrier, second._carrier) & oc.logical_not(is_nat(first._carrier))

    # -- operators ------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        if method != "__call__" or options:
            how = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
            raise DTypeError(f"{how}: of dates, only plain calls without {', '.join(options) or method} are supported")
        return apply(ufunc, *inputs)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Iterable[type],
        args: tuple[object, ...],
        options: dict[str, object],
    ) -> object:
        return above.apply_to_dates(function, args, options)

    def _applied(self, ufunc: np.ufunc, *inputs: object) -> Any:
        return apply(ufunc, *inputs)


def of_numpy(array: NDArray | np.generic) -> Dates:
    """The lazy array of NumPy's dates or durations; borrowed, or read from the file they are mapped from."""
    if isinstance(array, np.generic):
        return Dates(Array(node(array.view(np.int64))), array.dtype)
    return Dates(Array(node(array.view(_INT.newbyteorder(array.dtype.byteorder)))), array.dtype)


def as_dates(value: object, dtype: DType | str) -> Dates:
    """Dates of a type; or of a kind, "M" or "m", in any unit. Takes what NumPy casts to it: text, Python's dates."""
    new = np.dtype(f"{dtype}8") if isinstance(dtype, str) else dtype
    if isinstance(value, Dates):
        if value.dtype.kind != new.kind:
            raise DTypeError(f"{value.dtype} where {new} is wanted")
        dates: Dates = value.astype(new)
        return dates
    try:
        array = np.asarray(value)
        return of_numpy(array.astype(new) if array.dtype.kind in "mM" else np.asarray(value, dtype=new))
    except (TypeError, ValueError) as error:
        raise DTypeError(f"{value!r} is not {new}: {error}") from None


def meet(*arrays: Dates) -> tuple[Dates, ...]:
    """Dates, or durations, in the unit that NumPy has them meet in."""
    try:
        common = np.result_type(*(array.dtype for array in arrays))
    except TypeError as error:
        raise DTypeError(str(error)) from None
    if len({array.dtype.kind for array in arrays}) > 1:
        raise DTypeError(f"{' and '.join(str(array.dtype) for array in arrays)} do not go together")
    return tuple(array.astype(common) for array in arrays)


def _operand(value: object) -> Any:
    """A value as `apply` takes it: dates, an array of numbers, or a Python number; NotImplemented for a stranger."""
    if isinstance(value, (Dates, Array)) or is_weak(value):
        return value
    if isinstance(value, (datetime.date, np.datetime64)):
        return of_numpy(np.datetime64(value))
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        return of_numpy(np.timedelta64(value))
    if isinstance(value, (np.ndarray, np.generic, list, tuple)):
        array = np.asarray(value)
        return of_numpy(array) if array.dtype.kind in "mM" else Array(node(array))
    return NotImplemented


def _loop_type(value: Any) -> Any:
    if is_weak(value):
        return np.dtype(bool) if isinstance(value, bool) else type(value)
    return value.dtype


def apply(ufunc: np.ufunc, *inputs: object) -> Any:
    """A ufunc of dates and what goes with them. Types are NumPy's; raises DTypeError where it refuses them."""
    if ufunc.__name__ in COMPARISONS and any(isinstance(value, str) for value in inputs):
        kinds = [value.dtype.kind for value in inputs if isinstance(value, Dates)]
        inputs = tuple(as_dates(value, kinds[0]) if isinstance(value, str) else value for value in inputs)
    operands = [_operand(value) for value in inputs]
    if any(value is NotImplemented for value in operands):
        return NotImplemented
    try:
        *types, result = ufunc.resolve_dtypes((*map(_loop_type, operands), *(None,) * ufunc.nout))
    except TypeError as error:
        raise DTypeError(f"{ufunc.__name__}: {error}") from None
    formula = FORMULAS.get((ufunc.__name__, "".join(kind.kind.replace("u", "i") for kind in types)))
    if formula is None:
        raise DTypeError(f"{ufunc.__name__} of {' and '.join(map(str, types))} is not supported for outcore's dates")
    numbers = formula(*(_numbers(value, kind) for value, kind in zip(operands, types, strict=True)))
    return Dates(numbers, result) if result.kind in "mM" else numbers


def _numbers(value: object, kind: DType) -> Array:
    """An operand in the type that a formula computes in; integers beside durations are counts of their unit."""
    if isinstance(value, Dates):
        return value.astype(kind).integers  # type: ignore[no-any-return]
    return Array(node(value)).astype(_INT if kind.kind in "mM" else kind)


def view(x: Operand, /, dtype: DTypeLike) -> Dates:
    """Integers as the dates (`"datetime64[s]"`) or durations (`"timedelta64[s]"`) they count. No I/O of its own.

    Integers of any type are taken as int64; the least of those is NaT. The array of integers is `.integers` of the
    result. Raises DTypeError for numbers that are no integers, and for a type that is no date or has no unit.

    >>> import numpy as np, outcore as oc
    >>> oc.dates.view(np.asarray([0, 86400]), "datetime64[s]").compute()
    array(['1970-01-01T00:00:00', '1970-01-02T00:00:00'],
          dtype='datetime64[s]')
    """
    array, kind = Array(node(x)), np.dtype(dtype)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"dates.view: {array.dtype} is no type of integers, and dates count whole steps of their unit")
    if kind.kind not in "mM" or unit_of(kind)[0] == "generic":
        raise DTypeError(f"dates.view: {kind} is no date or duration with a unit, such as datetime64[s]")
    return Dates(array.astype(_INT), kind)


def of_stored(value: Any) -> Dates | None:
    """The dates in another library's array that is not in memory, read by it in blocks; None for anything else."""
    made = foreign.stored_dates(value)
    return None if made is None else Dates(Array(made), np.dtype(value.dtype))


__all__ = ["Dates", "view"]
