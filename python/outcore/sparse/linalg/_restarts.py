"""How far an eigensolver has come: its restarts, whose states are stored where they may have to be gone on with."""

from __future__ import annotations

from typing import Any

from outcore._array import Array
from outcore._checkpoints import Checkpoints
from outcore.sparse.linalg._krylov import Krylov


class Restarts:
    """The restarts of a Krylov space, from its beginning or from the last state that was stored.

    `done` counts them; estimates of residuals have to be `stricter` times as small as asked for.
    """

    def __init__(self, space: Krylov, first: Array | None, saved: Checkpoints | None) -> None:
        self.done, self.stricter = 0, 1.0
        self._space, self._saved = space, saved
        last = None if saved is None else saved.last()
        if last is None:
            space.begin(first)
        else:
            self.done, state, kept = last
            self.stricter = kept["stricter"][0]
            space.resume(state, kept["seed"][0])

    def count(self, most: int) -> None:
        """One more of `most`; stores the state where it is due."""
        self.done += 1
        if self._saved is not None:
            state, seed = self._space.state()
            kept: dict[str, list[Any]] = {"stricter": [self.stricter], "seed": [seed]}
            self._saved.save(self.done, state, kept, due=self.done < most)

    def finish(self) -> None:
        """Removes what was stored: there are no more."""
        if self._saved is not None:
            self._saved.finish()


__all__ = ["Restarts"]
