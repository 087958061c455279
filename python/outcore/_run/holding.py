"""Arrays whose values are held from one program to the next: in memory, or in files of scratch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outcore import _core
from outcore._lazy.array import Array
from outcore._run.running import plan_and_run
from outcore._session.reached import tentative
from outcore._session.record import Outcome
from outcore._session.session import current
from outcore.errors import MemoryLimitError

_SHARE = 3  # a third of the budget for what is held; what it is made of and the work have the others
_SMALL_BYTES = 1 << 20  # arrays of a state up to this size stay in memory whatever the limit
_VECTOR_BYTES = 1 << 16  # vectors do that too, unless a program does not fit beside them


class Holder:
    """Holds arrays that outlast a program: in memory while all fit into a third of it, else in files of scratch.

    `Holder(bytes_each, count)` is for so many vectors at once, which lie all in memory or all in files. A file goes
    when nothing refers to its array any more. `outcome` is that of the last program.
    """

    outcome: Outcome

    def __init__(self, bytes_each: int, count: int) -> None:
        room = current().counters()["budget_bytes"] // _SHARE
        # By place in a state, whether it is in a file; and whether it is where the program would not fit else.
        self._on_disk, self._most = [bytes_each > _VECTOR_BYTES and bytes_each * count > room], [True]

    @classmethod
    def of_state(cls, state: Sequence[Array]) -> Holder:
        """Holds arrays of the sizes of a state: its largest lie in files where it takes more than a third."""
        holder = cls(0, 0)
        room, remaining = current().counters()["budget_bytes"] // _SHARE, sum(array.nbytes for array in state)
        holder._most = [array.nbytes > _SMALL_BYTES for array in state]
        holder._on_disk = [False] * len(state)
        for place in sorted(range(len(state)), key=lambda place: -state[place].nbytes):
            holder._on_disk[place] = holder._most[place] and remaining > room
            remaining -= state[place].nbytes
        return holder

    @property
    def is_in_files(self) -> bool:
        """Whether arrays lie in files of scratch."""
        return any(self._on_disk)

    def held(
        self, arrays: Sequence[Array], beside: Sequence[Array] = (), places: Sequence[int] | None = None
    ) -> tuple[list[Array], list[Any]]:
        """The arrays with their values computed, and the values of others, all by one program."""
        while True:
            on_disk = [self._on_disk[place] for place in places or [0] * len(arrays)]
            if self._on_disk == self._most:
                return self._held(arrays, beside, on_disk)
            try:
                with tentative():
                    return self._held(arrays, beside, on_disk)
            except MemoryLimitError:
                self._on_disk = self._most

    def _held(
        self, arrays: Sequence[Array], beside: Sequence[Array], on_disk: list[bool]
    ) -> tuple[list[Array], list[Any]]:
        core = current()._core
        paths = [core.unused_path() if away else None for away in on_disk]
        targets: list[_core.Target | None] = [
            None if path is None else {"path": path, "overwrite": False, "chunks": None} for path in paths
        ]
        exprs = [array._expr for array in (*arrays, *beside)]
        values, self.outcome = plan_and_run(exprs, targets + [None] * len(beside), progress=False)
        held = [
            Array(core.hold(path) if path is not None else _core.from_numpy(value))  # type: ignore[arg-type]
            for path, value in zip(paths, values, strict=False)
        ]
        return held, list(values[len(arrays) :])


__all__ = ["Holder"]
