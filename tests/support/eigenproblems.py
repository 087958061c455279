"""Eigenproblems that are killed on their way: what is solved, and processes that are ended at random moments."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import outcore as oc
from outcore.sparse import linalg
from support.running import session

Solver = Callable[..., Any]
SOLVERS: dict[str, Solver] = {
    "eigsh": lambda a, **more: linalg.eigsh(a, k=3, which="LA", tol=1e-4, block_size=2, ncv=12, **more),
    "eigsh, sigma": lambda a, **more: linalg.eigsh(a, k=3, sigma=10.0, tol=1e-9, ncv=6, **more),
    "eigs": lambda a, **more: linalg.eigs(a, k=2, tol=1e-5, **more),
    "svds": lambda a, **more: linalg.svds(a, k=5, tol=1e-6, **more),
}


def symmetric(order: int, seed: int = 0) -> Any:
    """A sparse matrix with some entries in each row and a diagonal from 0 to 20."""
    found = scipy.sparse.random_array((order, order), density=6 / order, format="csr", rng=np.random.default_rng(seed))
    return (found + found.T + scipy.sparse.diags_array(np.linspace(0, 20, order))).tocsr()


def digest(found: Any) -> str:
    """What a solver found, bit for bit."""
    told = hashlib.sha256()
    for part in found:
        told.update(np.ascontiguousarray(part.compute() if isinstance(part, oc.Array) else part).data)
    return told.hexdigest()


def solve(name: str, matrix: Path, scratch: Path, checkpoint: int | None) -> str:
    with session(scratch):
        return digest(SOLVERS[name](oc.sparse.open(matrix), checkpoint=checkpoint))


def _write(name: str, matrix: Path, scratch: Path, checkpoint: int | None, out: Path) -> None:
    out.write_text(solve(name, matrix, scratch, checkpoint))


def main(name: str, matrix: str, scratch: str, kills: str) -> None:
    """Solves without checkpoints, then with them in processes that are killed until so many were, then once more.

    Prints what was found each time that one came to its end, and how often one was killed.
    """
    fork, moments = multiprocessing.get_context("fork"), random.Random(5)
    out = Path(matrix).with_suffix(".found")
    found, killed = [], 0

    def child(checkpoint: int | None, seconds: float | None) -> bool:
        process = fork.Process(target=_write, args=(name, Path(matrix), Path(scratch), checkpoint, out))
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        if process.exitcode == 0:
            found.append(out.read_text())
        return process.exitcode != 0

    begin = time.monotonic()
    child(None, None)
    whole = time.monotonic() - begin
    while killed < int(kills):
        killed += child(1, moments.uniform(0, 0.9 * whole))
    child(1, None)
    print(json.dumps([found, killed]))


if __name__ == "__main__":
    main(*sys.argv[1:])
