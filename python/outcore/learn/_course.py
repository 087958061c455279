"""How a fit goes: its objective step by step, its progress, and the journal it can be gone on with from."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from outcore._node import Operand, node
from outcore._progress import live
from outcore._run import plan_and_run
from outcore._session import current
from outcore.errors import ArgumentError
from outcore.learn._journal import Journal

Numbers = npt.NDArray[Any]


class Course:
    """What happens to a fit on its way, of whichever estimator."""

    def __init__(self, name: str, verbose: int, journal: Journal | None, bar: Any) -> None:
        self.name, self.verbose, self.journal, self.bar = name, verbose, journal, bar
        self.history: dict[str, list[float]] = {}

    def tell(self, step: int, most: int, unit: str = "iteration", **objective: float) -> None:
        """The objective after a step: into the history, the progress line, and what `verbose` prints."""
        for name, value in objective.items():
            self.history.setdefault(name, []).append(float(value))
        said = ", ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in objective.items())
        if self.bar is not None:
            self.bar.label = f"{self.name}: {unit} {step} of {most}, {said}"
        if self.verbose:
            print(f"{self.name}: {unit} {step}, {said}")

    def random(self, state: Any) -> np.random.RandomState:
        """The generator that `random_state` means. Where none is said its seed is a result like any other."""
        if state is not None or self.journal is None:
            return check_random_state(state)  # type: ignore[no-any-return]
        seed = self._once(lambda: [np.asarray(secrets.randbits(32))])[0]
        return np.random.RandomState(int(seed))

    def values(self, arrays: Sequence[Operand]) -> list[Numbers]:
        """The values of lazy arrays from one program, or from the journal."""
        report = None if self.bar is None else self.bar.report
        nodes = [node(array) for array in arrays]
        return self._once(lambda: [np.asarray(v) for v in plan_and_run(nodes, [None] * len(nodes), report=report)[0]])

    def _once(self, find: Callable[[], list[Numbers]]) -> list[Numbers]:
        found = None if self.journal is None else self.journal.recall()
        if found is None:
            found = find()
            if self.journal is not None:
                self.journal.record(found)
        return found

    def kept(self) -> list[Numbers] | None:
        """The state that `keep` kept last in the run before."""
        return None if self.journal is None else self.journal.kept()

    def keep(self, step: int, state: Sequence[Any]) -> None:
        """Keeps the state after every so many steps, as `checkpoint` says: for fits whose sweeps leave more than sums.

        It becomes the place to go on from; results before it are not needed any more.
        """
        if self.journal is not None and step % self.journal.every == 0:
            self.journal.keep([np.asarray(part) for part in state])


_running: ContextVar[Course | None] = ContextVar("outcore_fit", default=None)


@contextmanager
def course(estimator: Any, *data: Any, shown: bool = True, durable: bool = True) -> Iterator[Course]:
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
    wanted = current().options["progress"] if shown and not verbose and outer is None else False
    ended = False
    with live(wanted) as bar:
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
    _, words, *rest = random.get_state()
    return [words, rest]


def restored(state: Sequence[Numbers]) -> np.random.RandomState:
    """The generator of a `generator_state`."""
    words, (place, has_gauss, gauss) = state
    random = np.random.RandomState()
    random.set_state(("MT19937", words, int(place), int(has_gauss), float(gauss)))
    return random


def values(arrays: Sequence[Operand]) -> list[Numbers]:
    """The values of lazy arrays from one program, as a list however few they are.

    Within a fit they are its results: small beside the data, and in the journal where there is one.
    """
    going = _running.get() or Course("", 0, None, None)
    return going.values(arrays)


__all__ = ["Course", "course", "generator_state", "restored", "values"]
