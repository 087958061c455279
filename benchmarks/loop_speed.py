"""Loop programs over arrays in memory beside the same functions under `numba.njit`: medians of runs in turn.

    python -m benchmarks.loop_speed [--runs 5]

Both take copies of their arrays, since the programs write in place. numba runs on one thread, and on two where a
function has a loop without dependences, with `prange` in its place.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import outcore as oc
from benchmarks import common


def seidel(u: Any, steps: Any) -> Any:
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def jacobi(u: Any, v: Any, steps: Any) -> Any:
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1])
    return u


def jacobi_on_threads(u: Any, v: Any, steps: Any) -> Any:
    for _ in range(steps):
        for i in numba.prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        for i in numba.prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1])
    return u


def recurrence(x: Any, y: Any) -> Any:
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


def product(c: Any, a: Any, b: Any) -> Any:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


class SpeedCase(NamedTuple):
    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    iterations: float
    on_threads: Callable[..., Any] | None = None


CASES = {
    "seidel, 4000², 20 steps": SpeedCase(seidel, lambda random: (random.random((4000, 4000)), 20), 20 * 16e6),
    "jacobi, 4000², 40 steps": SpeedCase(
        jacobi, lambda random: (random.random((4000, 4000)), np.zeros((4000, 4000)), 20), 40 * 16e6, jacobi_on_threads
    ),
    "recurrence, 4·10⁷": SpeedCase(recurrence, lambda random: (random.random(40_000_000), np.zeros(40_000_000)), 4e7),
    "product, 1000³": SpeedCase(product, lambda random: (np.zeros((1000, 1000)), *random.random((2, 1000, 1000))), 1e9),
}


def copies(arguments: tuple[Any, ...]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]


TITLES = ("outcore", "without numba", "njit", "njit, two threads")


def timed(call: Callable[[], Any]) -> Callable[[], dict[str, Any]]:
    def run() -> dict[str, Any]:
        begun = time.perf_counter()
        call()
        return {"seconds": time.perf_counter() - begun}

    return run


def calls(case: SpeedCase) -> dict[str, Callable[[], Any]]:
    """By title, with what is compiled compiled already."""
    arguments = case.arguments(np.random.default_rng(0))
    programs = [oc.loops(case.function, compiled=compiled) for compiled in (True, False)]
    rivals = [numba.njit(case.function)]
    if case.on_threads is not None:
        rivals.append(numba.njit(case.on_threads, parallel=True))
    ours = [functools.partial(lambda program: program(*arguments).compute(), program) for program in programs]
    theirs = [functools.partial(lambda rival: rival(*copies(arguments)), rival) for rival in rivals]
    found = dict(zip(TITLES, [*ours, *theirs], strict=False))
    for call in found.values():
        call()
    return found


def measured(name: str, case: SpeedCase, runs: int) -> list[str]:
    print(name)
    outcomes = common.alternating({title: timed(call) for title, call in calls(case).items()}, runs)
    middle = {title: outcome["seconds"] for title, outcome in outcomes.items()}
    best = min(value for title, value in middle.items() if title.startswith("njit"))
    cells = [f"{middle[title]:.3f}" if title in middle else "" for title in TITLES]
    speed = f"{case.iterations / middle['outcore'] / 1e6:.0f}"
    return [name, *cells, speed, f"{middle['outcore'] / best:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    numba.set_num_threads(min(2, os.cpu_count() or 1))
    columns = ["program", *(f"{title}, s" for title in TITLES), "10⁶ iterations/s", "times the faster njit"]
    with oc.Session(memory_limit="4GiB", threads=2, progress=False):
        rows = [measured(name, case, chosen.runs) for name, case in CASES.items()]
    title = "Loops in memory beside numba"
    common.write_record("loop-speed", title, Path.cwd(), [common.table(columns, rows)], {"rows": rows}, ["numba"])


if __name__ == "__main__":
    main()
