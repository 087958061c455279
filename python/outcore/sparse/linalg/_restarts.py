"""How far an eigensolver has come: its restarts, and what it looks for."""

from __future__ import annotations

from outcore._lazy.array import Array
from outcore._run.checkpoints import Checkpoints
from outcore._run.driver import Driver
from outcore.sparse.linalg._copies import Copies
from outcore.sparse.linalg._krylov import Krylov

_OF_SPACE = 4  # values of a state of a Krylov space


class Restarts(Driver):
    """The restarts of a Krylov space, which are the steps of its loop, `most` at most.

    Estimates of residuals have to be `stricter` times as small as asked for. `copies` are looked for where all values
    that are wanted converged.
    """

    def __init__(self, name: str, saved: Checkpoints | None, space: Krylov, each: int) -> None:
        super().__init__(name, saved)
        self.stricter, self.most = 1.0, each
        self.copies: Copies | None = None
        self._each, self._space = each, space

    def begin(self, first: Array | None, hermitian: bool) -> None:
        """Begins from a vector, or with the last state that was stored."""
        last = self.restore()
        if last is None:
            self._space.begin(first)
            return
        stricter, most, *values = last.values
        self.stricter, self.most = float(stricter), int(most)
        self._space.resume(last.arrays, values[:_OF_SPACE])
        if len(values) > _OF_SPACE:
            self.copies = Copies.resumed(values[_OF_SPACE:], hermitian)

    def change(self, copies: Copies | None) -> None:
        """Looks for copies, or for what is wanted again: with as many restarts as at first."""
        self.copies, self.most = copies, self.step + self._each

    def count(self, converged: int) -> None:
        """One more, after which so many eigenvalues converged; stores the state where it is due."""
        self.tell(self.most, "restart", converged=converged)
        if self.step < self.most:
            arrays, values = self._space.state()
            copies = [] if self.copies is None else self.copies.state()
            self.save(arrays, [self.stricter, self.most, *values, *copies])


__all__ = ["Restarts"]
