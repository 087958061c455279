"""Basic indexing: integers, slices with any step, `...` and None, as one slice node and its axes squeezed or added."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from outcore import _core
from outcore._base.types import NDArray
from outcore.errors import IndexingError


class Lazy(Protocol):
    """A lazy array, as far as its node goes."""

    @property
    def _expr(self) -> _core.Expr: ...


KeyPart: TypeAlias = "SupportsIndex | slice | EllipsisType | None"
Choice: TypeAlias = "Lazy | NDArray"  # a mask, or positions
Gathering: TypeAlias = "KeyPart | Choice | list[int] | list[list[int]]"
Assignable: TypeAlias = "KeyPart | Choice | tuple[KeyPart, ...]"  # what can be assigned to
Index: TypeAlias = "Gathering | tuple[Gathering, ...]"


def position_of(part: SupportsIndex, axis: int, length: int) -> int:
    """An integer of an index, counted from the front. Raises IndexingError where the axis has no such place."""
    position = operator.index(part)
    if not -length <= position < length:
        raise IndexingError(f"index {position} is out of bounds for axis {axis} with length {length}")
    return position % length


def split_mask(key: Index) -> tuple[Any, Any]:
    """A boolean array that leads an index, and what follows it; nothing and the key where none does."""
    parts = key if isinstance(key, tuple) else (key,)
    if parts and getattr(parts[0], "dtype", None) == np.dtype(bool) and getattr(parts[0], "ndim", 0) > 0:
        return parts[0], parts[1:]
    return None, key


def is_flag(key: Index) -> bool:
    """Whether an index is one truth value, which chooses a number or nothing."""
    return isinstance(key, bool) or (getattr(key, "dtype", None) == np.dtype(bool) and getattr(key, "ndim", 1) == 0)


def _plain(part: object) -> Any:
    """A NumPy integer without axes as Python's, a list as an array, which is one of integers where it is empty."""
    if isinstance(part, np.ndarray) and part.ndim == 0 and part.dtype.kind in "iu":
        return int(part)
    if isinstance(part, list):
        array = np.asarray(part)
        return array if array.size else array.astype(np.int64)
    return part


def _is_positions(part: object) -> bool:
    """Whether a part of an index is an array of integers."""
    part = _plain(part)
    dtype = getattr(part, "dtype", None)
    return dtype is not None and np.dtype(dtype).kind in "iu" and getattr(part, "ndim", 0) > 0


def find_positions(key: Index, ndim: int) -> list[int]:
    """The axes that arrays of integers index, and with them single integers: those broadcast together, as in NumPy.

    Nothing where there is no array. Beside them there may be slices and `...` only. Raises IndexingError.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    if not any(_is_positions(part) for part in parts):
        return []
    if any(part is None for part in parts):
        raise IndexingError("beside an array of integers an index may not have None; see outcore.expand_dims")
    return [place for place, part in enumerate(expanded(key, ndim)) if not isinstance(part, slice)]


def _refuse(part: object) -> None:
    """Indices whose result depends on data, or that gather, have no node yet; say what does the same."""
    if isinstance(part, (bool, np.bool_)) or getattr(part, "dtype", None) == np.dtype(bool):
        raise IndexingError(
            "a boolean mask may only lead an index: x[mask] or x[mask, ...], with one axis or more; beside positions, "
            "use those of the mask: x[oc.nonzero(mask)[0], positions]"
        )
    if _is_positions(part):
        return
    if isinstance(part, (list, tuple, np.ndarray)) or getattr(part, "ndim", None):
        raise IndexingError(f"an array in an index holds integers or booleans, not {getattr(part, 'dtype', part)!r}")
    if not isinstance(part, slice) and not hasattr(part, "__index__"):
        raise IndexingError(f"an index is an integer, a slice, `...` or None, not {type(part).__name__}")


def expanded(key: Index, ndim: int) -> list[Any]:
    """The key with `...` written out and missing axes added at the end; integers without axes are plain integers."""
    parts = [_plain(part) for part in (key if isinstance(key, tuple) else (key,))]
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexingError("an index can have only one `...`")
    for part in parts:
        if part is not None and part is not Ellipsis:
            _refuse(part)
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if named > ndim:
        raise IndexingError(f"too many indices: the array has {ndim} dimensions, the index names {named}")
    fill = [slice(None)] * (ndim - named)
    at = dots[0] if dots else len(parts)
    return parts[:at] + fill + parts[at + len(dots) :]


def index(x: _core.Expr, key: Index) -> _core.Expr:
    """The node of `x[key]`. Raises IndexingError. I/O: the tiles the result touches, or its own pages if few."""
    shape = tuple(x.shape)
    starts: list[int] = []
    steps: list[int] = []
    counts: list[int] = []
    dropped: list[int] = []
    added: list[int] = []
    place = 0  # in the result
    for part in expanded(key, len(shape)):
        axis = len(starts)
        if part is None:
            added.append(place)
            place += 1
        elif isinstance(part, slice):
            try:
                start, stop, step = part.indices(shape[axis])
            except (TypeError, ValueError) as error:
                raise IndexingError(f"slice of axis {axis}: {error}") from None
            count = len(range(start, stop, step))
            starts.append(start if count else 0)
            steps.append(step if count > 1 else 1)
            counts.append(count)
            place += 1
        elif _is_positions(part):
            raise IndexingError(
                "a mask and an array of positions do not go together in an index; use the positions of the mask: "
                "x[oc.nonzero(mask)[0], positions]"
            )
        else:
            starts.append(position_of(part, axis, shape[axis]))
            steps.append(1)
            counts.append(1)
            dropped.append(axis)
    if counts != list(shape) or any(step != 1 for step in steps):
        x = _core.slice(x, starts, steps, counts)
    if dropped:
        x = _core.squeeze(x, dropped)
    return _core.expand_dims(x, added) if added else x
