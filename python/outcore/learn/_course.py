"""How a fit goes: its objective step by step, its progress, and the journal it can be gone on with from."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from outcore._base.sizes import format_size
from outcore._base.types import NDArray, RandomState
from outcore._lazy.node import Operand, node
from outcore._run.running import plan_and_run
from outcore._session.progress import Bar, live
from outcore._session.session import current, leave_room
from outcore.errors import ArgumentError, MemoryLimitError
from outcore.learn._journal import Journal

_MEBIBYTE = 1 << 20
_REMEMBERED = 1 << 18
_LITTLE = 8 << 20
_COPIED = 1 << 18


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
    refused: list[MemoryLimitError] = []
    for program in programs:
        nodes = [node(array) for array in program]
        try:
            current().plan(nodes, [None] * len(nodes))
        except MemoryLimitError as error:
            refused.append(error)
    if refused:
        raise _refusal(max(refused, key=lambda error: error.smallest or 0))


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


class Course:
    """The course of a fit of any estimator: its programs, history, journal and progress."""

    def __init__(self, name: str, verbose: int, journal: Journal | None, bar: Bar | None) -> None:
        self.name, self.verbose, self.journal, self.bar = name, verbose, journal, bar
        self.history: dict[str, list[float]] = {}
        self._beside: list[Beside] = []

    def along(self, results: Sequence[Operand], settle: Callable[[list[NDArray]], Any]) -> Beside:
        """Has the next sweep find these results too; `settle` makes a value of them, or refuses the data."""
        beside = Beside(results, settle)
        self._beside.append(beside)
        return beside

    def tell(self, step: int, most: int, unit: str = "iteration", **objective: float) -> None:
        """The objective after a step: into the history, the progress line, and what `verbose` prints."""
        for name, value in objective.items():
            self.history.setdefault(name, []).append(float(value))
        said = ", ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in objective.items())
        if self.bar is not None:
            self.bar.label = f"{self.name}: {unit} {step} of {most}, {said}"
        if self.verbose:
            print(f"{self.name}: {unit} {step}, {said}")

    def random(self, state: RandomState) -> np.random.RandomState:
        """The generator that `random_state` means. Where none is said its seed is a result like any other."""
        if state is not None or self.journal is None:
            return check_random_state(state)  # type: ignore[no-any-return]
        seed = self._once(lambda: [np.asarray(secrets.randbits(32))])[0]
        return np.random.RandomState(int(seed))

    def values(self, arrays: Sequence[Operand]) -> list[NDArray]:
        """The values of lazy arrays from one program, or from the journal."""
        nodes = [node(array) for array in arrays]

        def run() -> list[NDArray]:
            results = [np.asarray(value) for value in plan_and_run(nodes, [None] * len(nodes), bar=self.bar)[0]]
            # Small ones as copies: memory of results that are held would be missing to the next program.
            return [value.copy() if value.nbytes <= _COPIED else value for value in results]

        return self._once(run)

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

    def _once(self, find: Callable[[], list[NDArray]]) -> list[NDArray]:
        results = None if self.journal is None else self.journal.recall()
        if results is None:
            results = find()
            if self.journal is not None:
                self.journal.record(results)
        return results

    def kept(self) -> list[NDArray] | None:
        """The state that `keep` kept last in the run before."""
        return None if self.journal is None else self.journal.kept()

    def keep(self, step: int, state: Sequence[object]) -> None:
        """Keeps the state after every so many steps, as `checkpoint` says: for fits whose sweeps leave more than sums.

        It becomes the place to go on from; results before it are not needed any more.
        """
        if self.journal is not None and step % self.journal.every == 0:
            self.journal.keep([np.asarray(part) for part in state])


_running: ContextVar[Course | None] = ContextVar("outcore_fit", default=None)


@contextmanager
def course(estimator: Any, *data: object, shown: bool = True, durable: bool = True) -> Iterator[Course]:
    """The course of a fit over `data`; its history becomes `history_`.

    `checkpoint` of the estimator keeps a journal, which goes when the fit ends, or its data is refused; none where the
    course is not `durable`. A fit inside another one writes to the journal of that.
    """
    name = type(estimator).__name__
    outer = _running.get()
    every = getattr(estimator, "checkpoint", None) if durable else None
    journal = outer.journal if outer is not None else None
    if journal is None and every is not None:
        params = {key: value for key, value in estimator.get_params().items() if key not in ("checkpoint", "verbose")}
        journal = Journal(int(every), name, [params, *data])
    verbose = int(getattr(estimator, "verbose", 0))
    is_shown = current().options["progress"] if shown and not verbose and outer is None else False
    ended = False
    with live(is_shown) as bar:
        going = Course(name, verbose, journal, outer.bar if outer is not None else bar)
        token = _running.set(going)
        try:
            yield going
            ended = True
        except ArgumentError:
            ended = True  # it would be refused again
            raise
        finally:
            _running.reset(token)
            if journal is not None and outer is None:
                journal.close(ended=ended)
    estimator.history_ = {key: np.asarray(values) for key, values in going.history.items()}


def generator_state(random: np.random.RandomState) -> list[Any]:
    """The state of a generator as numbers: its words, and where it is in them."""
    _, words, *position = random.get_state()
    return [words, position]


def restored(state: Sequence[NDArray]) -> np.random.RandomState:
    """The generator of a `generator_state`."""
    words, (place, has_gauss, gauss) = state
    random = np.random.RandomState()
    random.set_state(("MT19937", words, int(place), int(has_gauss), float(gauss)))
    return random


def clear_room(numbers: int) -> None:
    """Has kept tiles give way to work of so many float64 numbers in memory. Little of it is within fixed allowances."""
    if 8 * numbers > _LITTLE:
        leave_room(8 * numbers)


def values(arrays: Sequence[Operand]) -> list[NDArray]:
    """The values of lazy arrays from one program, as a list however few they are.

    Within a fit they are its results: small beside the data, and in the journal where there is one.
    """
    going = _running.get() or Course("", 0, None, None)
    return going.values(arrays)


def sweep(arrays: Sequence[Operand]) -> list[NDArray]:
    """As `values`, of a program that reads all of the data: what the fit needs beside comes along."""
    going = _running.get() or Course("", 0, None, None)
    return going.sweep(arrays)


__all__ = [
    "Beside",
    "Course",
    "clear_room",
    "course",
    "foresee",
    "generator_state",
    "refusal_of",
    "restored",
    "sweep",
    "values",
]
