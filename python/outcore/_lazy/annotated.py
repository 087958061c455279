"""Names of axes, a name and attributes: of arrays as files have them, carried from arrays to what is made of them."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeAlias

import numpy as np

from outcore import _core
from outcore._base.element_types import NAME_OF
from outcore.errors import ArgumentError, DTypeError, ShapeError

Annotation: TypeAlias = "Any"  # text, numbers, arrays of them, and what JSON has
Annotations: TypeAlias = dict[str, Annotation]  # attributes by name


def attributes_from(pairs: Iterable[tuple[str, _core.Attribute]]) -> Annotations:
    """Attributes by name: text, lists of text, NumPy's numbers and arrays, and what JSON has."""
    return {name: _value_from(value) for name, value in pairs}


def _value_from(value: _core.Attribute) -> Annotation:
    if value[0] == "json":
        return json.loads(value[1])
    if value[0] == "numbers":
        array = np.frombuffer(value[3], np.dtype(value[1])).reshape(value[2])
        return array[()] if array.ndim == 0 else array.copy()
    return value[1]


def attributes_to(attributes: Mapping[str, Annotation]) -> list[tuple[str, _core.Attribute]]:
    """The same as the core has them. Raises DTypeError for a value that no file can keep, with its name."""
    pairs = []
    for name, value in attributes.items():
        if not isinstance(name, str):
            raise DTypeError(f"attrs: {name!r} is no name; attributes have text for names")
        pairs.append((name, _value_to(name, value)))
    return pairs


def _value_to(name: str, value: Annotation) -> _core.Attribute:
    if isinstance(value, str):
        return ("text", str(value))
    if isinstance(value, (list, tuple)) and value and all(isinstance(part, str) for part in value):
        return ("texts", [str(part) for part in value])
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind in "US":
            texts = array.astype(str)
            return ("text", str(texts[()])) if array.ndim == 0 else ("texts", texts.ravel().tolist())
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        if native.dtype in NAME_OF:
            shape = list(native.shape)
            return ("numbers", NAME_OF[native.dtype], shape, np.ascontiguousarray(native).tobytes())
    if isinstance(value, float) and not math.isfinite(value):
        return _value_to(name, np.float64(value))
    try:
        return ("json", json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise DTypeError(f"attrs: {name!r} of {type(value).__name__} is nothing that files keep: {error}") from None


def fill_from(text: str) -> float | None:
    """A floating fill value as Zarr's attributes have it: by name, or as the Base64 of its eight bytes."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        stored = base64.standard_b64decode(text)
    except (binascii.Error, ValueError):
        return None
    return float(np.frombuffer(stored, "<f8")[0]) if len(stored) == 8 else None


def fill_text(value: Annotation) -> Annotation:
    """A fill value of floating numbers as xarray has it in Zarr v3, and reads it: the Base64 of its eight bytes."""
    number = np.asarray(value)
    if number.size != 1 or number.dtype.kind not in "iuf":
        return value
    return base64.standard_b64encode(number.astype("<f8").tobytes()).decode()


def place_of(name: str, axis: str, dims: tuple[str | None, ...]) -> int:
    """The axis of a name. Raises ArgumentError where no axis, or more than one, has the name."""
    places = [place for place, dim in enumerate(dims) if dim == axis]
    if len(places) == 1:
        return places[0]
    known = ", ".join(repr(dim) for dim in dims) or "none"
    several = "several axes are" if places else "no axis is"
    raise ArgumentError(f"{name}: {several} called {axis!r}; the axes are {known}")


class Annotated:
    """Names and attributes, which files keep beside the elements of an array, and which are no part of its value.

    Indexing, reductions, transposition and element-wise work carry names of axes and attributes. Where arrays meet, an
    axis has the name that they agree on, and attributes stay that are equal in all; so in xarray, from 2025.11 on,
    unless `keep_attrs=False`: units of `x > 1`, of a variance or of positions are those of `x`, for `annotate` to
    change. A product has the rows' name of the left and the columns' name of the right side.
    """

    __slots__ = ()

    _expr: _core.Expr

    @property
    def dims(self) -> tuple[str | None, ...]:
        """The name of each axis; None for an axis without one."""
        return tuple(_core.annotations(self._expr)[1])

    @property
    def attrs(self) -> Annotations:
        """Attributes by name. The dict is a copy: `annotate` gives an array other ones."""
        return attributes_from(_core.annotations(self._expr)[2])

    @property
    def name(self) -> str | None:
        """The name of the array in its file, or as `annotate` gave it."""
        return _core.annotations(self._expr)[0]

    def annotate(
        self,
        *,
        dims: Iterable[str | None] | None = None,
        attrs: Mapping[str, Annotation] | None = None,
        name: str | None = None,
    ) -> Self:
        """The same array with other names of axes, other attributes, or another name; None leaves each as it is.

        Values of attributes are text, numbers, lists of them, NumPy's numbers and arrays, and what else JSON has,
        which knows no NaN or infinity in lists and mappings. `store` writes all of it to Zarr, and numbers that are not
        finite as the text that Zarr has for fill values ("NaN", "Infinity"). Raises ShapeError for another number of
        names than axes, ArgumentError for a name that two axes have, DTypeError for attributes that no file keeps.
        I/O: none.

        >>> import outcore as oc
        >>> t = oc.zeros((4, 3)).annotate(dims=("time", "place"), attrs={"units": "K"})
        >>> t.mean(axis="time").dims, t[0].attrs
        (('place',), {'units': 'K'})
        """
        own_name, own_dims, own_attributes = _core.annotations(self._expr)
        names = list(own_dims if dims is None else dims)
        if len(names) != len(self._expr.shape):
            raise ShapeError(f"annotate: {len(names)} names for an array of {len(self._expr.shape)} axes: {names}")
        for place, dim in enumerate(names):
            if dim is not None and not isinstance(dim, str):
                raise DTypeError(f"annotate: {dim!r} is no name of an axis; names are text or None")
            if dim is not None and dim in names[:place]:
                raise ArgumentError(f"annotate: two axes are called {dim!r}")
        attributes = own_attributes if attrs is None else attributes_to(attrs)
        result = self.__copy__()  # type: ignore[attr-defined]
        result._expr = _core.with_annotations(self._expr, own_name if name is None else name, names, attributes)
        return result  # type: ignore[no-any-return]


__all__ = [
    "Annotated",
    "Annotation",
    "Annotations",
    "attributes_from",
    "attributes_to",
    "fill_from",
    "fill_text",
    "place_of",
]
