"""A fit under way: its programs, what comes along with them, and refusals before any."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from joblib import hash as content_hash
from sklearn.utils import check_random_state

from outcore import _api as oc
from outcore._base.sizes import format_size
from outcore._base.types import NDArray, RandomState
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._run.checkpoints import Checkpoints, content
from outcore._run.driver import Driver
from outcore._session.reached import refused
from outcore._session.session import current, leave_room
from outcore.errors import ArgumentError, MemoryLimitError

_MEBIBYTE = 1 << 20
_REMEMBERED = 1 << 18
_LITTLE = 8 << 20


class Beside:
    """Results that a fit needs beside those of its first sweep, from the same read where one comes before they are."""

    def __init__(self, results: Sequence[Operand], settle: Callable[[list[NDArray]], Any]) -> None:
        self.terms, self._settle = list(results), settle
        self._value: Any = None
        self.is_due = True

    def settled(self, value: object) -> None:
        """Has the value be this one, without results."""
        self._value, self.is_due = value, False

    def take(self, results: list[NDArray]) -> None:
        """Makes the value of the results."""
        self.settled(self._settle(results))

    def value(self) -> Any:
        """The value; a sweep of its own where no sweep has computed it."""
        if self.is_due:
            self.take(values(self.terms))
        return self._value


def foresee(*programs: Sequence[Operand]) -> None:
    """Refuses a fit whose later programs do not fit the memory before it begins, with the limit that all fit."""
    refusals: list[MemoryLimitError] = []
    for program in programs:
        nodes = [node(array) for array in program]
        try:
            current().plan(nodes, [None] * len(nodes))
        except MemoryLimitError as error:
            refusals.append(error)
    if refusals:
        refusal = _refusal(max(refusals, key=lambda error: error.smallest or 0))
        refused(refusal)
        raise refusal


def _refusal(error: MemoryLimitError) -> MemoryLimitError:
    """A refusal with a limit in whole MiB, in which small results remembered on the way have room too."""
    if error.smallest is None or error.need is None or error.limit is None:
        return error
    smallest = _whole(error.smallest)
    need, limit = format_size(error.need), format_size(error.limit)
    return MemoryLimitError(
        f"a sweep needs {need} of memory at once, and the limit leaves {limit}; "
        f"the smallest limit that works is {smallest // _MEBIBYTE} MiB",
        error.details | {"smallest": smallest},
    )


def _whole(smallest: int) -> int:
    return -(-(smallest + _REMEMBERED) // _MEBIBYTE) * _MEBIBYTE


def refusal_of(method: str, error: MemoryLimitError) -> MemoryLimitError:
    """A refusal under the name of an estimator's method, with a limit in whole MiB as those of `foresee`."""
    text, details = str(error).removeprefix(f"{error.operator}: "), error.details | {"operator": method}
    if error.smallest is not None and error.smallest % _MEBIBYTE:
        smallest = _whole(error.smallest)
        text = re.sub(r"limit that works is .*$", f"limit that works is {smallest // _MEBIBYTE} MiB", text)
        details["smallest"] = smallest
    return MemoryLimitError(f"{method}: {text}", details)


class Fit(Driver):
    """A fit of an estimator: the loop over its programs, and results that come along with a sweep.

    Its programs are recorded where the estimator has a `checkpoint`. A fit within another one leaves them to that.
    """

    def __init__(
        self, name: str = "", checkpoints: Checkpoints | None = None, verbose: int = 0, outer: Fit | None = None
    ) -> None:
        super().__init__(name, checkpoints, verbose)
        self._outer = outer
        self._beside: list[Beside] = []

    def along(self, results: Sequence[Operand], settle: Callable[[list[NDArray]], Any]) -> Beside:
        """Has the next sweep find these results too; `settle` makes a value of them, or refuses the data."""
        beside = Beside(results, settle)
        self._beside.append(beside)
        return beside

    def random(self, state: RandomState) -> np.random.RandomState:
        """The generator that `random_state` means. Where none is said its seed is a result like any other."""
        if state is not None or self.checkpoints is None:
            return check_random_state(state)  # type: ignore[no-any-return]
        seed = self.once(lambda: [np.asarray(secrets.randbits(32))])[0]
        return np.random.RandomState(int(seed))

    def once(self, results: Callable[[], list[NDArray]]) -> list[NDArray]:
        return super().once(results) if self._outer is None else self._outer.once(results)

    def sweep(self, arrays: Sequence[Operand]) -> list[NDArray]:
        """As `values`, with those results that are to come along."""
        beside = [part for part in self._beside if part.is_due]
        self._beside = []
        results = self.values([*arrays, *(array for part in beside for array in part.terms)])
        remaining = results[len(arrays) :]
        for part in beside:
            part.take(remaining[: len(part.terms)])
            remaining = remaining[len(part.terms) :]
        return results[: len(arrays)]


_running: ContextVar[Fit | None] = ContextVar("outcore_fit", default=None)


@contextmanager
def fitting(estimator: Any, *data: object, progress: bool | None = None, durable: bool = True) -> Iterator[Fit]:
    """A fit over `data`, whose history becomes `history_`; with checkpoints where the estimator has them, unless it is
    not `durable`. Its progress line gives way to what `verbose` prints. Data that is refused ends it for good."""
    name, verbose = type(estimator).__name__, int(getattr(estimator, "verbose", 0))
    outer, checkpoints = _running.get(), None
    every = getattr(estimator, "checkpoint", None) if durable and outer is None else None
    if every is not None:
        if every < 1:
            raise ArgumentError(f"{name}: checkpoint must be at least 1, not {every}")
        params = {key: value for key, value in estimator.get_params().items() if key not in ("checkpoint", "verbose")}
        # Lazy arrays by their files and formulas, others by their values.
        parts = [content(part) if isinstance(part, Array) else content_hash(part) for part in (params, *data)]
        checkpoints = Checkpoints.known_by(int(every), f"a fit of {name}", [name, oc.__version__, *parts])
    shown = False if verbose and progress is None else progress
    with Fit(name, checkpoints, verbose, outer).running(shown, final=(ArgumentError,)) as fit:
        fit.expected = int(getattr(estimator, "max_iter", 0))
        token = _running.set(fit)
        try:
            yield fit
        finally:
            _running.reset(token)
    estimator.history_ = {key: np.asarray(values) for key, values in fit.history.items()}


def restored(state: Sequence[NDArray]) -> np.random.RandomState:
    """The generator whose `get_state` gave this behind its name."""
    random = np.random.RandomState()
    random.set_state(("MT19937", *state))  # type: ignore[arg-type]
    return random


def clear_room(numbers: int) -> None:
    """Has kept tiles give way to work of so many float64 numbers in memory. Little of it is within fixed allowances."""
    if 8 * numbers > _LITTLE:
        leave_room(8 * numbers)


def values(arrays: Sequence[Operand]) -> list[NDArray]:
    """The values of lazy arrays from one program, as a list however few they are.

    Within a fit they are its results: small beside the data, and recorded where it has checkpoints.
    """
    return (_running.get() or Fit()).values(arrays)


def preparing(step: int, most: int, unit: str) -> None:
    """Shows a step, of so many, before the iterations of the fit that is under way."""
    fit = _running.get()
    if fit is not None:
        fit.prepare(step, most, unit)


def sweep(arrays: Sequence[Operand]) -> list[NDArray]:
    """As `values`, of a program that reads all of the data: what the fit needs beside comes along."""
    return (_running.get() or Fit()).sweep(arrays)


__all__ = [
    "Beside",
    "Fit",
    "clear_room",
    "fitting",
    "foresee",
    "preparing",
    "refusal_of",
    "restored",
    "sweep",
    "values",
]
