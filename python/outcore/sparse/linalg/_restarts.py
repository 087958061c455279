"""How far an eigensolver has come: its restarts, whose states are stored where they may have to be gone on with."""

from __future__ import annotations

from outcore._lazy.array import Array
from outcore._run.checkpoints import Checkpoints
from outcore.sparse.linalg._copies import Copies
from outcore.sparse.linalg._krylov import Krylov


class Restarts:
    """The restarts of a Krylov space, from its beginning or from the last state that was stored.

    `done` counts them, of `most`; estimates of residuals have to be `stricter` times as small as asked for. `copies`
    are looked for where all values that are wanted converged.
    """

    def __init__(
        self, space: Krylov, first: Array | None, saved: Checkpoints | None, each: int, hermitian: bool
    ) -> None:
        self.done, self.stricter, self.most = 0, 1.0, each
        self.copies: Copies | None = None
        self._each = each
        self._space, self._saved = space, saved
        last = None if saved is None else saved.last()
        if last is None:
            space.begin(first)
        else:
            self.done, state, kept = last
            self.stricter, self.most = kept["stricter"][0], kept["most"][0]
            space.resume(state, kept["seed"][0], kept["locked"][0])
            if kept["copies"]:
                self.copies = Copies.resumed(kept["copies"], len(space.b), hermitian)

    def change(self, copies: Copies | None) -> None:
        """Looks for copies, or for what is wanted again: with as many restarts as at first."""
        self.copies, self.most = copies, self.done + self._each

    def count(self) -> None:
        """One more; stores the state where it is due."""
        self.done += 1
        if self._saved is not None:
            state, seed = self._space.state()
            kept: dict[str, list[object]] = {"stricter": [self.stricter], "seed": [seed], "most": [self.most]}
            kept["locked"] = [self._space.locked]
            kept["copies"] = [] if self.copies is None else self.copies.kept()
            self._saved.save(self.done, state, kept, due=self.done < self.most)

    def finish(self) -> None:
        """Removes what was stored: there are no more."""
        if self._saved is not None:
            self._saved.finish()


__all__ = ["Restarts"]
