"""How far an eigensolver has come: its restarts, and what it looks for."""

from __future__ import annotations

from outcore._lazy.array import Array
from outcore._run.driver import Driver
from outcore.sparse.linalg._copies import Copies
from outcore.sparse.linalg._krylov import Krylov

_OF_SPACE = 4  # values of a state of a Krylov space


class Restarts:
    """The restarts of a Krylov space, from its beginning or from the last state that was stored.

    `done` counts them, of `most`; estimates of residuals have to be `stricter` times as small as asked for. `copies`
    are looked for where all values that are wanted converged.
    """

    def __init__(self, space: Krylov, first: Array | None, driver: Driver, each: int, hermitian: bool) -> None:
        self.done, self.stricter, self.most = 0, 1.0, each
        self.copies: Copies | None = None
        self._each, self._space, self._driver = each, space, driver
        last = driver.restore()
        if last is None:
            space.begin(first)
            return
        stricter, most, *values = last.values
        self.done, self.stricter, self.most = last.step, float(stricter), int(most)
        space.resume(last.arrays, values[:_OF_SPACE])
        if len(values) > _OF_SPACE:
            self.copies = Copies.resumed(values[_OF_SPACE:], hermitian)

    def change(self, copies: Copies | None) -> None:
        """Looks for copies, or for what is wanted again: with as many restarts as at first."""
        self.copies, self.most = copies, self.done + self._each

    def count(self, converged: int) -> None:
        """One more, after which so many eigenvalues converged; stores the state where it is due."""
        self.done += 1
        self._driver.tell(self.done, self.most, "restart", converged=converged)
        if self.done < self.most:
            arrays, values = self._space.state()
            copies = [] if self.copies is None else self.copies.state()
            self._driver.save(self.done, arrays, [self.stricter, self.most, *values, *copies])


__all__ = ["Restarts"]
