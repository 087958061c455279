"""The progress of calls, where someone sees it: the receiver of what runs report, one for all programs and loops of a
call. `figures.py` keeps its numbers, `views.py` shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar

from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject, Scalar
from outcore._session import views
from outcore._session.caller import UserCall
from outcore._session.figures import Figures, LoopFigures

# A call that nobody asked to see is shown from then on; most are over by then.
_QUIET_SECONDS = 0.5
# Between two updates of a view, and two looks at the memory.
_SHOW_SECONDS = 0.1


class Progress:
    """The figures of a call, and their view: it opens with the first report, later where only a watcher is served."""

    def __init__(
        self,
        call: UserCall | str = "outcore",
        memory_limit: int | None = None,
        *,
        is_forced: bool = True,
        view: Callable[[], views.View] = views.chosen,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._new_view = clock, view
        self._view: views.View | None = None
        self._quiet = 0.0 if is_forced else _QUIET_SECONDS
        self._shown: float | None = None
        self._call = call if isinstance(call, UserCall) else UserCall(call, 0)
        self.figures = Figures(self._call.name, began=clock(), memory_limit=memory_limit)

    def begin_program(self) -> None:
        """A program is about to be planned and run."""
        self.figures.begin_program(self._clock())

    def end_program(self) -> None:
        """The program has ended."""
        self.figures.end_program()

    def go_on(self, behind: str) -> None:
        """The program goes on behind a part of it, in words, that an earlier run has done."""
        self.figures.activity = f"going on behind {behind}"
        self._show(is_new=True)

    def say(self, stage: str) -> None:
        """The part of the program that is under way, in words; none where all of it is one."""
        self.figures.stage = stage
        self._show(is_new=True)

    def report(
        self,
        bytes_done: int,
        bytes_total: int,
        tasks_done: int,
        tasks_total: int,
        fraction: float,
        seconds_left: float | None,
    ) -> None:
        """How far the program is; no tasks while it waits for its turn, or its next stage is planned."""
        figures = self.figures
        if tasks_total:
            figures.tasks_done, figures.tasks_total = tasks_done, tasks_total
            figures.report(bytes_done, bytes_total, fraction, seconds_left, self._clock())
        elif not figures.stage:
            figures.stage = "planning"
        self._show()

    def iteration(self, number: int, active: int, lists: int, bytes_read: int, hits: int) -> None:
        """Of a traversal, whose end nobody knows: the iteration that is under way, and what was done before."""
        figures = self.figures
        figures.bytes_done = bytes_read
        figures.sample(self._clock())
        figures.activity = (
            f"iteration {number:,}, {active:,} active; {lists:,} lists, {format_size(bytes_read)} read, "
            f"{hits:,} pages from the cache"
        )
        self._show()

    @contextmanager
    def loop(self, name: str, *, is_bound: bool = False) -> Iterator[LoopFigures]:
        """A loop within the call, from its beginning to its end."""
        figures, call = self.figures, UserCall.of(name)
        # A loop of the call itself needs no name, but one of another class or function that it uses.
        is_own = call.frame == self._call.frame and (not name or call.name == self._call.name)
        loop = LoopFigures("" if is_own else call.name, self._clock(), is_bound=is_bound)
        figures.loops.append(loop)
        try:
            yield loop
        except Exception:
            figures.end_loop(loop)
            raise
        else:
            figures.end_loop(loop)  # one that is interrupted stays: the last line shows how far it was

    def show(
        self,
        loop: LoopFigures,
        step: int,
        complete: int,
        most: int | None = None,
        unit: str = "step",
        values: Mapping[str, Scalar] | None = None,
    ) -> None:
        """The step of a loop, of at most so many, and its named values."""
        loop.most, loop.unit, loop.values = most, unit, dict(values or {})
        loop.show(step, complete, self._clock())
        self._show(is_new=True)

    def resume(self, loop: LoopFigures, step: int) -> None:
        """A loop goes on behind a step of an earlier process."""
        loop.resume(step, self._clock())

    def _show(self, *, is_new: bool = False) -> None:
        """Updates the view where that is due; text that is new is shown sooner."""
        now, figures = self._clock(), self.figures
        if now - figures.began < self._quiet:
            return
        if self._shown is not None and now - self._shown < (_SHOW_SECONDS / 2 if is_new else _SHOW_SECONDS):
            return
        self._shown = now
        figures.memory = _core.rss()["current"]
        figures.memory_peak = max(figures.memory_peak, figures.memory)
        with self._viewing():
            if self._view is None:
                self._view = self._new_view()
            self._view.update(figures, now)

    @contextmanager
    def _viewing(self) -> Iterator[None]:
        """Has the call go on without a view where its terminal was hung up, its file closed, or its disk is full."""
        try:
            yield
        except (OSError, ValueError):
            lost, self._view = self._view, views.HiddenView()
            if lost is not None:
                with suppress(OSError, ValueError):
                    lost.close(self.figures, self._clock(), "")

    def close(self, error: BaseException | None = None) -> None:
        """The call is over: the view says how it ended."""
        if self._view is not None:
            ending = "" if error is None else "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            share = self.figures.share(self._clock())
            if ending and share is not None:
                ending += f" at {100 * share:.0f} %"
            view, self._view = self._view, None
            with suppress(OSError, ValueError):
                view.close(self.figures, self._clock(), ending)


# The progress of the call that is under way, which is None where it shows none; empty outside of calls.
_call: ContextVar[tuple[Progress | None, ...]] = ContextVar("outcore_call", default=())


@contextmanager
def _watching(options: JSONObject, shown: bool | None, name: str, *, is_one_program: bool) -> Iterator[Progress | None]:
    """The progress of one call; None where nobody watches."""
    shown = options["progress"] if shown is None else shown
    if not (views.in_notebook() or views.on_terminal() if shown is None else shown):
        yield None
        return
    progress = Progress(UserCall.of(name), options["memory_limit"], is_forced=shown is not None)
    progress.figures.is_one_program = is_one_program
    try:
        yield progress
    except BaseException as error:
        progress.close(error)
        raise
    else:
        progress.close()


@contextmanager
def of_loop(options: JSONObject, shown: bool | None = None, name: str = "") -> Iterator[Progress | None]:
    """The progress of a call of several programs, which all within it share."""
    outer = _call.get()
    with nullcontext(outer[0]) if outer else _watching(options, shown, name, is_one_program=False) as progress:
        token = _call.set((progress,))
        try:
            yield progress
        finally:
            _call.reset(token)


@contextmanager
def of_program(options: JSONObject, shown: bool | None = None, name: str = "") -> Iterator[Progress | None]:
    """The progress of one program: that of the call which it belongs to, else one of its own."""
    outer = _call.get()
    with nullcontext(outer[0]) if outer else _watching(options, shown, name, is_one_program=True) as progress:
        if progress is None:
            yield None
            return
        progress.begin_program()
        yield progress
        progress.end_program()


__all__ = ["Progress", "of_loop", "of_program"]
