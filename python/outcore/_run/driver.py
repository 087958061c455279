"""A loop under way, of `iterate`, a fit or a solver: its history, its progress line, and its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from outcore._base.types import NDArray, Scalar
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._run import kept
from outcore._run.checkpoints import Checkpoints, History, State
from outcore._run.running import plan_and_run
from outcore._session.caller import loops
from outcore._session.figures import LoopFigures, named
from outcore._session.progress import Progress, of_loop
from outcore._session.session import current

if TYPE_CHECKING:
    from typing import Self

_COPIED_BYTES = 1 << 18


class Driver:
    """A history of numbers by name, a progress line, and checkpoints, of a loop that has come to its `step`.

    A loop goes on from the last state that was stored, and from the results that were recorded since: it follows from
    these, so that it comes to the same bits.
    """

    def __init__(self, name: str, checkpoints: Checkpoints | None = None, verbose: int = 0) -> None:
        self.name, self.checkpoints, self.verbose = name, checkpoints, verbose
        self.step, self.history = 0, History()
        self._progress: Progress | None = None
        self._figures: LoopFigures | None = None
        self._unit = "step"
        #: Steps that are expected behind what `prepare` tells of.
        self.expected = 0

    @contextmanager
    def running(
        self, progress: bool | None = None, final: tuple[type[Exception], ...] = (), *, is_bound: bool = True
    ) -> Iterator[Self]:
        """The loop from its beginning to its end: programs within show in its progress line.

        The checkpoints go when it ends, and with an error of a `final` type, to which it would come again; with others
        they stay. `is_bound` has its number of steps be the most of them, and its remaining time a bound.
        """
        is_over, token = True, loops.set(loops.get() + 1)
        with (
            of_loop(current().options, progress, self.name) as self._progress,
            self._watched(is_bound) as self._figures,
        ):
            try:
                yield self
            except BaseException as error:
                is_over = isinstance(error, final)
                if isinstance(error, KeyboardInterrupt) and (note := self._interrupted()):
                    error.add_note(note)
                raise
            finally:
                loops.reset(token)
                if self.checkpoints is not None:
                    self.checkpoints.close(is_over=is_over)

    def _interrupted(self) -> str | None:
        """The note of an interrupted loop; none for one without checkpoints within another, which tells."""
        name = self.name or "iterate"
        if self.checkpoints is not None:
            state, has_results = self.checkpoints.kept()
            return kept.of_checkpoints(name, self.step, self._unit, state, has_results=has_results)
        return kept.of_loop(name, self.step, self._unit) if loops.get() == 1 else None

    def _watched(self, is_bound: bool) -> AbstractContextManager[LoopFigures | None]:
        return nullcontext() if self._progress is None else self._progress.loop(self.name, is_bound=is_bound)

    def record(self, objective: Mapping[str, Scalar]) -> None:
        """The numbers of a step, into the history."""
        for key, value in objective.items():
            self.history.setdefault(key, []).append(value)

    def show(self, most: int, unit: str = "step", *, is_complete: bool = False) -> None:
        """The step, of so many, in the progress line, with the last numbers of the history."""
        self._unit = unit
        if self._progress is not None and self._figures is not None:
            self._figures.further = 0
            complete = self.step if is_complete else max(self.step - 1, 0)
            self._progress.show(self._figures, self.step, complete, most, unit, self._last())

    def prepare(self, step: int, most: int, unit: str) -> None:
        """A step, of so many, of the work before the loop's own steps, which are taken to be as long."""
        if self._progress is not None and self._figures is not None:
            self._figures.further = self.expected
            self._progress.show(self._figures, step, step - 1, most, unit)

    def tell(self, most: int, unit: str = "iteration", **objective: float) -> None:
        """One step more, and the objective after it: into the history, the progress line, and what `verbose` prints."""
        self.step += 1
        self.record({key: float(value) for key, value in objective.items()})
        self.show(most, unit, is_complete=True)
        if self.verbose:
            print(", ".join(part for part in (f"{self.name}: {unit} {self.step}", named(self._last())) if part))

    def _last(self) -> dict[str, Scalar]:
        return {key: values[-1] for key, values in self.history.items() if values}

    def values(self, arrays: Sequence[Operand]) -> list[NDArray]:
        """The values of lazy arrays from one program, or from the checkpoints, where they are recorded."""
        return self.once(lambda: _computed(arrays))

    def once(self, results: Callable[[], list[NDArray]]) -> list[NDArray]:
        """Results of a function, which is not called where a process before has recorded them."""
        recorded = None if self.checkpoints is None else self.checkpoints.recall()
        if recorded is not None:
            return recorded
        new = results()
        if self.checkpoints is not None:
            self.checkpoints.record(new)
        return new

    def restore(self, is_usable: Callable[[State], bool] = lambda state: True) -> State | None:
        """The last state that is stored whole and usable; step and history become those of it."""
        states = () if self.checkpoints is None else self.checkpoints.states()
        state = next(filter(is_usable, states), None)
        if state is not None and self.checkpoints is not None:
            self.checkpoints.follow(state.step)
            self.step, self.history = state.step, state.history
            if self._progress is not None and self._figures is not None:
                self._progress.resume(self._figures, state.step)
        return state

    def save(self, arrays: Sequence[Array], values: Sequence[npt.ArrayLike] = ()) -> None:
        """Stores the state after the step where it is due, with the history."""
        if self.checkpoints is not None:
            self.checkpoints.save(self.step, arrays, values, self.history)


def _computed(arrays: Sequence[Operand]) -> list[NDArray]:
    results, _ = plan_and_run([node(array) for array in arrays], [None] * len(arrays))
    # Small ones as copies: memory of results that are held would be missing to the next program.
    values = [np.asarray(value) for value in results]
    return [value.copy() if value.nbytes <= _COPIED_BYTES else value for value in values]


__all__ = ["Driver"]
