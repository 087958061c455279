"""Arguments of a call: arrays, numbers, and the refusal of two that are one array."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import numpy as np

from outcore._lazy.array import Array
from outcore._loops import reasons
from outcore._loops.syntax import Listed
from outcore._standard.creation import asarray
from outcore.errors import OutcoreError

_SHARING_WORK_MAX = 1000  # candidates of a common element; beyond, two views count as sharing


class Arguments:
    """Values of the parameters: lazy arrays, and numbers and types as they are."""

    def __init__(self, listed: Listed, values: Mapping[str, object]) -> None:
        self._listed, self._listing, self._values = listed, listed.listing, values
        self.bound = {parameter.arg: self._bound(parameter) for parameter in listed.parameters}

    def _bound(self, parameter: ast.arg) -> object:
        value = self._values[parameter.arg]
        is_number = isinstance(value, (bool, int, float, complex, np.generic))
        is_option = value is None or isinstance(value, (str, type, np.dtype))
        if parameter.arg in self._listed.array_parameters or not (is_number or is_option):
            return self._array(parameter, value)
        return value

    def _array(self, parameter: ast.arg, value: object) -> Array:
        try:
            array = asarray(value)
        except (OutcoreError, TypeError, ValueError) as error:
            raise self._listing.refusal(parameter, f"the argument `{parameter.arg}`: {error}") from None
        if not isinstance(array, Array):
            kind = type(value).__name__
            raise self._listing.refusal(parameter, f"the argument `{parameter.arg}` is no array of numbers: {kind}")
        if array.ndim == 0:
            is_array = hasattr(value, "shape")
            reason = "has no axes: pass a number of Python's, as by `.item()`" if is_array else reasons.NO_ARRAY
            raise self._listing.refusal(parameter, f"the argument `{parameter.arg}` {reason}")
        return array

    def refuse_aliases(self, written: set[str]) -> None:
        """Two arguments of the same elements, one of them written, are another program than two arrays."""
        parameters = [part for part in self._listed.parameters if isinstance(self.bound[part.arg], Array)]
        for place, later in enumerate(parameters):
            for earlier in parameters[:place]:
                is_written = earlier.arg in written or later.arg in written
                if is_written and _is_shared(self._values[earlier.arg], self._values[later.arg]):
                    said = f"the arguments `{earlier.arg}` and `{later.arg}` are the same array, and one is written"
                    raise self._listing.refusal(later, f"{said}: pass a copy of one")


def _is_shared(first: object, second: object) -> bool:
    """Whether two arguments have elements in common. Equal lazy arrays are two values, one lazy array is one."""
    if first is second:
        return True
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return False
    try:
        return np.shares_memory(first, second, max_work=_SHARING_WORK_MAX)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


__all__ = ["Arguments"]
