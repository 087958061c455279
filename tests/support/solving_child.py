"""Factors and solutions by a child that may be killed.

`python -m support.solving_child kind data out scratch [resume]`
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import outcore as oc
from support.definite import grid
from support.indefinite import convection, shifted
from support.running import session

POOL = 20 << 20  # so that contribution blocks and finished tiles leave memory
SPARSE: dict[str, Any] = {
    "spd": lambda: grid(22, 22, 22),
    "sym": lambda: shifted(18, 1.7),
    "lu": lambda: convection(16, 0.7),
    "low rank": lambda: grid(30, 30, 30),
}
DENSE: dict[str, tuple[Any, tuple[int, int]]] = {
    "dense lu": (oc.linalg.lu_factor, (1700, 1700)),
    "dense ldl": (oc.linalg.ldl_factor, (1700, 1700)),
    "dense qr": (oc.linalg.qr_factor, (1800, 1500)),
}


# Matrices whose factors take a second and more, and what they go by.
LARGE_POOL = 3 * POOL
LARGE: dict[str, Any] = {
    "spd": lambda: grid(36, 36, 36),
    "sym": lambda: shifted(32, 1.7),
    "lu": lambda: convection(28, 0.7),
    "low rank": lambda: grid(34, 34, 34),
    "dense lu": (2100, 2100),
    "dense ldl": (2100, 2100),
    "dense qr": (2300, 1800),
}


def make_inputs(kind: str, data: Path, is_large: bool = False) -> None:
    if kind in SPARSE:
        oc.sparse.from_scipy((LARGE if is_large else SPARSE)[kind](), data / "a.ocs")
    else:
        shape = LARGE[kind] if is_large else DENSE[kind][1]
        x = oc.random.normal(shape, seed=1)
        oc.store({data / "a.npy": x + x.T if kind == "dense ldl" else x})


def matrix_of(kind: str, data: Path) -> Any:
    return oc.sparse.open(data / "a.ocs") if kind in SPARSE else oc.open(data / "a.npy")


def factor(kind: str, data: Path, path: Path, resume: bool = False) -> Any:
    matrix = matrix_of(kind, data)
    if kind in DENSE:
        return DENSE[kind][0](matrix, path=path, overwrite=not resume, resume=resume)
    kind, low_rank = ("spd", 1e-6) if kind == "low rank" else (kind, None)
    analysis = oc.sparse.linalg.analyze(matrix, kind, ordering="nd", low_rank=low_rank)
    return analysis.factorize(path, overwrite=not resume, resume=resume)


def opened(kind: str, data: Path, path: Path) -> Any:
    opener = oc.linalg.open_factor if kind in DENSE else oc.sparse.linalg.open_factor
    return opener(path, matrix_of(kind, data))


def right_of(made: Any) -> Any:
    return np.random.default_rng(0).normal(size=(made.shape[0], 3))


def main(kind: str, data: str, out: str, scratch: str, resume: str = "") -> None:
    options: dict[str, Any] = {"pool_limit": LARGE_POOL if resume else POOL}
    if resume and kind in DENSE:
        # Its name comes late: whoever kills the child at a tile of the factor is never too late for that.
        options["faults"] = "delay-rename:1:60000"
    with session(Path(scratch), **options):
        print("ready", flush=True)
        made = factor(kind, Path(data), Path(out) / "f.ocf", resume == "resume")
        x = made.solve(oc.asarray(right_of(made)))
        oc.store({Path(out) / "x.npy": x}, overwrite=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
