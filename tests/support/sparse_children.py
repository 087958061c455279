"""Programs with sparse matrices for processes of their own: under a real limit, or ended by a kill."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import outcore as oc


def products(matrix: str, x: str, out: str, memory_limit: int) -> dict[str, Any]:
    """A @ X, A.T @ X and PageRank of A, stored."""
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False, scratch=[out]):
        a, wide = oc.sparse.open(matrix), oc.open(x)
        moved = {}
        for name, product in (("forward", a @ wide), ("transposed", a.T @ wide)):
            targets = {f"{out}/{name}.npy": product}
            said, done = oc.explain(targets), oc.store(targets)
            moved[name] = [said.bytes_read, done.bytes_read, said.bytes_written, done.bytes_written]
        ranks, loop = oc.sparse.pagerank(a, iterations=5, tol=0.0, full_output=True)
        oc.store({f"{out}/ranks.npy": ranks})
    return moved | {"ranks": [outcome.bytes_read for outcome in loop.outcomes]}


# -- iterations that are killed ---------------------------------------------------------------------------------------


def dying(after: int) -> Callable[..., None]:
    """What kills the process when it has been called so often; never for 0."""
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == after:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def run(name: str, matrix: str, b: str, out: str, after: int) -> None:
    """An iteration with a checkpoint at every third step, killed in the step after one that `after` counts."""
    a = oc.sparse.open(matrix)
    if name == "cg":
        # The callback sees an iterate when the next step is prepared.
        x, _ = oc.sparse.linalg.cg(a, oc.open(b), rtol=1e-9, callback=dying(after), checkpoint=3)
        oc.store({out: x}, overwrite=True)
        return
    from outcore._run import iterate

    # Each step is planned and run by this: it dies before the last one's state is stored.
    count, ran = dying(after), 0
    real = iterate._held

    def counted(*given: Any) -> Any:
        nonlocal ran
        found = real(*given)
        ran += 1
        count()
        return found

    iterate._held = counted
    solvers: dict[str, Callable[[], Any]] = {
        "pagerank": lambda: oc.sparse.pagerank(a, iterations=14, tol=0.0, checkpoint=3),
        "hits": lambda: oc.sparse.hits(a, iterations=14, tol=0.0, checkpoint=3)[0],
        "nmf": lambda: oc.sparse.nmf(a, 3, 14, 0.0, checkpoint=3)[0],
        "minres": lambda: oc.sparse.linalg.minres(a, oc.open(b), rtol=1e-9, checkpoint=3)[0],
        "bicgstab": lambda: oc.sparse.linalg.bicgstab(a, oc.open(b), rtol=1e-9, checkpoint=3)[0],
        "lsmr": lambda: oc.sparse.linalg.lsmr(a, oc.open(b), atol=1e-9, btol=1e-9, checkpoint=3).x,
    }
    oc.store({out: solvers[name]()}, overwrite=True)
    Path(out).with_suffix(".ran").write_text(str(ran))


def main() -> None:
    name, matrix, b, out, scratch, pool, threads, after = sys.argv[1:]
    given = {"pool_limit": int(pool), "threads": int(threads), "scratch": [scratch], "memory_limit": 8 << 30}
    with oc.Session(progress=False, **given):
        run(name, matrix, b, out, int(after))


if __name__ == "__main__":
    main()
