"""The benchmarks' programs run by outcore, in a child under the limit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks import programs

FIGURES = ("bytes_read", "bytes_written", "bytes_spilled", "peak_bytes")


def expressions(program: str, inputs: Mapping[str, str], out: str, iterations: int = 1) -> dict[str, Any]:
    """The targets {path: lazy array} of a program by name, over input files by name."""
    import outcore as oc

    given = {name: oc.open(path) for name, path in inputs.items()}
    if program == "nmf":
        w, h = programs.nmf(given["X"], given["W0"], given["H0"], iterations)
        return {f"{out}/W.zarr": w, f"{out}/H.npy": h}
    if program == "logistic":
        start = oc.zeros((given["X"].shape[1], 1))
        return {f"{out}/w.npy": programs.logistic(oc, given["X"], given["y"], start, iterations)}
    if program == "product":
        return {f"{out}/C.zarr": programs.product(given["A"], given["B"])}
    if program == "transpose":
        return {f"{out}/T.zarr": programs.transpose(given["A"])}
    if program == "gram_of_sum":
        return {f"{out}/G.zarr": programs.gram_of_sum(given["A"], given["B"])}
    raise ValueError(f"no program is called {program!r}")


def run(
    program: str,
    inputs: Mapping[str, str],
    out: str,
    iterations: int = 1,
    session: Mapping[str, Any] | None = None,
    before: str | None = None,
) -> dict[str, Any]:
    """Plans and runs; "seconds" covers opening, planning, running and syncing, as a user would wait for it.

    A session that read `before` first has its memory at hand; nothing of that array is of use to the program.
    """
    import outcore as oc

    with oc.Session(progress=False, **(session or {})):
        if before is not None:
            oc.compute(oc.max(oc.open(before)))
        started = time.perf_counter()
        targets = expressions(program, inputs, out, iterations)
        outcome = oc.store(targets, overwrite=True)
        seconds = time.perf_counter() - started
    return {"seconds": seconds} | {name: getattr(outcome, name) for name in FIGURES}


def forecast(
    program: str, inputs: Mapping[str, str], out: str, iterations: int = 1, session: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What `run` would do, without doing it: everything the planner says, and how long it took to say it."""
    import outcore as oc

    with oc.Session(progress=False, **(session or {})):
        targets = expressions(program, inputs, out, iterations)
        started = time.perf_counter()
        said = oc.explain(targets, overwrite=True).to_dict()
    return {"explain_seconds": time.perf_counter() - started} | said


def product_in_memory(side: int, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The rate of the same product with everything in memory."""
    import outcore as oc

    random = np.random.default_rng(0)
    with oc.Session(progress=False, **(session or {})):
        a, b = oc.asarray(random.random((side, side))), oc.asarray(random.random((side, side)))
        started = time.perf_counter()
        oc.compute(a @ b)
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "flops_per_second": 2 * side**3 / seconds}
