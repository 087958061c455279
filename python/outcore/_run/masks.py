"""Elements that a mask chooses: arrays whose length is found by one counting pass when something needs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from outcore import _core
from outcore._lazy.array import Array
from outcore._lazy.calling import called, calling
from outcore._run import foresight
from outcore._run.running import plan_and_run
from outcore._session.session import current
from outcore.errors import IndexingError, MemoryLimitError

_COUNTED_MAX = 16
_lock = Lock()


class Chosen(Array):
    """An array whose node is made when something needs it, because its shape depends on data."""

    __slots__ = ("_called", "_make", "_node")

    def __init__(self, make: Callable[[], _core.Expr], name: str | None = None) -> None:
        self._make: Any = cache(make)  # copies share what is found
        self._node: _core.Expr | None = None
        self._called = name or called(sys._getframe(1))

    def __copy__(self) -> Array:
        return Array(self._expr) if self._make is None else Chosen(self._make, self._called)

    def _is_pending(self) -> bool:
        return self._node is None

    def _maker(self) -> str | None:
        return self._called

    def _named(self, expr: _core.Expr) -> _core.Expr:
        if self._called is not None:
            expr.call_as(self._called)
        return expr

    @property
    def _expr(self) -> _core.Expr:  # a slot of the base class
        if self._node is not None:
            return self._node
        assert self._make is not None
        make = self._make
        token = calling.set(self._called)
        try:
            if foresight.is_foreseeing():
                return self._named(make.__wrapped__())
            expr = foresight.for_all(make, lambda: _plan_stored(self._expr))
        except MemoryLimitError as refused:
            raise refused.of(self._called) from None
        finally:
            calling.reset(token)
        self._node, self._make = self._named(expr), None
        return self._node

    @_expr.setter
    def _expr(self, expr: _core.Expr) -> None:
        self._node = expr


def _plan_stored(array: _core.Expr) -> None:
    """Plans an array as if it went to a file, the least that any use of it takes."""
    session = current()
    session.plan([array], [{"path": session._core.unused_path(), "overwrite": False, "chunks": None}])


def hold(*arrays: _core.Expr) -> list[_core.Expr]:
    """The values of nodes in scratch, for as long as something reads them; all from one program."""
    if foresight.is_foreseeing():
        return [foresight.stored(array) for array in arrays]
    core = current()._core
    paths = [core.unused_path() for _ in arrays]
    targets: list[_core.Target | None] = [{"path": path, "overwrite": False, "chunks": None} for path in paths]
    plan_and_run(list(arrays), targets)
    return [core.hold(path) for path in paths]


def hold_counted(arrays: list[_core.Expr], mask: Callable[[list[_core.Expr]], _core.Expr]) -> list[_core.Expr]:
    """The values of nodes in scratch, and from the same program the counts of a mask over them."""
    if foresight.is_foreseeing():
        return hold(*arrays)
    core = current()._core
    paths = [core.unused_path() for _ in arrays]
    targets: list[_core.Target | None] = [{"path": path, "overwrite": False, "chunks": None} for path in paths]
    results, _ = plan_and_run([*arrays, _core.count_granules(mask(arrays))], [*targets, None])
    held = [core.hold(path) for path in paths]
    _remember(mask(held), results[-1])
    return held


def _remember(mask: _core.Expr, counted: Any, held: _core.Expr | None = None) -> list[int]:
    counts = [] if counted is None else [int(count) for count in counted]
    known = current().counted_masks
    with _lock:
        # By digest: what is remembered keeps no other array's files or memory from going when its last reader does.
        known[mask.digest] = (held, counts)
        while len(known) > _COUNTED_MAX:
            known.popitem(last=False)
    return counts


def counts_of(mask: _core.Expr) -> tuple[_core.Expr, list[int]]:
    """The mask and how many elements of each granule are true: counted once in a session for each mask.

    A mask that takes more than reading stored arrays again is held in scratch, and what is held is given back.
    """
    known = current().counted_masks
    with _lock:
        if mask.digest in known:
            known.move_to_end(mask.digest)
            held, counts = known[mask.digest]
            return held or mask, counts
    if foresight.is_foreseeing():
        used = mask if _core.is_made_of_stored(mask) else foresight.stored(mask)
        return used, _core.full_counts(mask.shape[0])
    held = None if _core.is_made_of_stored(mask) else hold(mask)[0]
    used = held or mask
    results, _ = plan_and_run([_core.count_granules(used)], [None])
    return used, _remember(mask, results[0], held)


def check_leading(flags: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuses a mask whose axes are not the leading ones of an array. Raises IndexingError."""
    if not flags or shape[: len(flags)] != flags:
        raise IndexingError(
            f"a mask of shape {flags} does not choose from shape {shape}: its axes are not the leading ones"
        )


def choose(x: _core.Expr, mask: _core.Expr) -> Array:
    """The parts of `x` along its leading axes for which the mask, which has those axes, is true: in C order."""
    shape, flags = tuple(x.shape), tuple(mask.shape)
    if np.dtype(mask.dtype) != np.dtype(bool):
        raise IndexingError(f"a mask is bool, not {mask.dtype}")
    check_leading(flags, shape)
    rows = int(np.prod(flags, dtype=object))
    flat = x if len(flags) == 1 else _core.reshape(x, [rows, *shape[len(flags) :]])
    row = flatten(mask)
    name, dims, attributes = _core.annotations(x)
    kept = list(dims) if len(flags) == 1 else [None, *dims[len(flags) :]]
    is_annotated = name is not None or bool(attributes) or any(dims)

    def make() -> _core.Expr:
        used, counts = counts_of(row)
        chosen = _core.compress(flat, used, counts)
        return _core.with_annotations(chosen, name, kept, attributes) if is_annotated else chosen

    return Chosen(make, called(sys._getframe()) or "getitem")


def flatten(x: _core.Expr) -> _core.Expr:
    """All elements in C order, in one axis."""
    shape: tuple[int, ...] = tuple(x.shape)
    return x if len(shape) == 1 else _core.reshape(x, [int(np.prod(shape, dtype=object))])


def positions(mask: _core.Expr) -> Array:
    """Where a mask of one axis is true, int64."""

    def make() -> _core.Expr:
        used, counts = counts_of(mask)
        return _core.nonzero(used, counts)

    return Chosen(make)
