"""Kernels of PolyBench over files of four times the memory for tiles: bytes beside lower bounds, and speed.

    python -m benchmarks.loop_polybench [--pool 64MiB] [--times 4] [--only gemm,lu] [--plan]

Each program is planned, run, and checked against NumPy, SciPy or its plain function on parts of the results; counters
are held against the forecast. With --plan nothing runs. Programs that are refused, or whose forecast is far above the
bound, have the reason in place of figures.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import outcore as oc
from benchmarks import common
from benchmarks import loop_polybench_programs as programs
from benchmarks.loop_polybench_checks import CHECKS
from benchmarks.loops import WRITTEN
from outcore._loops import compiling
from outcore.errors import ArgumentError, MemoryLimitError

ALPHA, BETA = 1.5, 1.2
STEPS = 20
LETTERS = 4
FAR = 20  # times the bound: what a program may move and still be run
SEED = 8


class Kernel(NamedTuple):
    """A program at a size: arrays (shape, type, kind of content), scalars before and after them, work, and a bound."""

    program: Any
    arrays: Sequence[tuple[tuple[int, ...], str, str]]
    work: float  # floating-point operations, or updates of elements
    unit: str
    bound: float = 0  # elements moved at least, beyond the compulsory ones
    before: tuple[float, ...] = ()
    after: tuple[int, ...] = ()
    check: str = ""

    @property
    def inputs(self) -> int:
        return sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind, _ in self.arrays)


FLOP, UPDATE = "Gflop/s", "10⁹ updates/s"
# Parts of the memory for programs of more work, and their data as much less.
PARTS = {"floyd-warshall": 4, "nussinov": 4}


def side(size: int, arrays: int = 1, item: int = 8) -> int:
    """Rows of square arrays that have `size` bytes together."""
    return int((size / item / arrays) ** 0.5) // 8 * 8


def square(n: int, content: str = "random", kind: str = "f8") -> tuple[tuple[int, int], str, str]:
    return ((n, n), kind, content)


def dense(size: int, memory: int) -> dict[str, Kernel]:
    """Products and factorizations; `memory` in elements."""
    root = memory**0.5
    n, m, p, f = side(size, 3), side(size, 2), side(size, 4), side(size)
    product = {"work": 2.0 * n**3, "unit": FLOP, "bound": 2 * n**3 / root, "before": (ALPHA, BETA), "check": "gemm"}
    twice = {"work": 4.0 * p**3, "unit": FLOP, "bound": 4 * p**3 / root, "before": (ALPHA, BETA), "check": "2mm"}
    triangle = {"work": f**3 / 3, "unit": FLOP, "bound": f**3 / (3 * (2 * memory) ** 0.5), "check": "cholesky"}
    halves = {"work": 2 * f**3 / 3, "unit": FLOP, "bound": 2 * f**3 / (3 * root), "check": "lu"}
    gram = Kernel(programs.syrk, (square(m),) * 2, m**3, FLOP, m**3 / (2 * memory) ** 0.5, (ALPHA, BETA))
    return {
        "gemm": Kernel(programs.gemm, (square(n),) * 3, **product),
        "gemm, nests": Kernel(programs.gemm_in_nests, (square(n),) * 3, **product),
        "syrk": gram,
        "2mm": Kernel(programs.two_products, (square(p),) * 4, **twice),
        "2mm, nests": Kernel(programs.two_products_in_nests, (square(p),) * 4, **twice),
        "atax": Kernel(programs.atax, (square(f), ((f,), "f8", "random")), 4.0 * f**2, FLOP),
        "cholesky": Kernel(programs.cholesky, (square(f, "definite"),), **triangle),
        "cholesky, k outermost": Kernel(programs.cholesky_right, (square(f, "definite"),), **triangle),
        "lu": Kernel(programs.lu, (square(f, "dominant"),), **halves),
        "lu, k outermost": Kernel(programs.lu_right, (square(f, "dominant"),), **halves),
        "doitgen": Kernel(
            programs.doitgen,
            (((size // (8 * 256 * 256), 256, 256), "f8", "random"), square(256)),
            2.0 * 256 * (size // 8),
            FLOP,
        ),
    }


def others(size: int) -> dict[str, Kernel]:
    """Stencils and dynamic programming."""
    n, m, f = side(size, 2), side(size, 3), side(size)
    small, letters = side(size // PARTS["floyd-warshall"]), side(size // PARTS["nussinov"], item=4)
    return {
        "floyd-warshall": Kernel(programs.floyd_warshall, (square(small),), float(small) ** 3, UPDATE),
        "jacobi-2d": Kernel(programs.jacobi_2d, (square(n),) * 2, 2.0 * STEPS * n**2, UPDATE, after=(STEPS,)),
        "seidel-2d": Kernel(programs.seidel_2d, (square(f),), float(STEPS) * f**2, UPDATE, after=(STEPS,)),
        "fdtd-2d": Kernel(programs.fdtd_2d, (square(m),) * 3, 3.0 * STEPS * m**2, UPDATE, after=(STEPS,)),
        "nussinov": Kernel(
            programs.nussinov,
            (((letters,), "i4", "letters"), square(letters, "zeros", "i4")),
            float(letters) ** 3 / 6,
            UPDATE,
        ),
    }


def without_data(path: Path, shape: tuple[int, ...], kind: str, _content: str) -> Path:
    np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape).flush()
    return path


def written(path: Path, shape: tuple[int, ...], kind: str, content: str) -> Path:
    random = np.random.default_rng(SEED + int(path.stem))
    if content == "zeros":
        values = np.zeros(shape, kind)
    elif content == "letters":
        values = random.integers(0, LETTERS, shape, dtype=kind)
    else:
        values = random.random(shape)
    if content == "definite":
        values = values + values.T
    if content in ("definite", "dominant"):
        values[np.diag_indices(len(values))] += 2 * len(values)
    np.save(path, values)
    return path


class Blocks:
    """How many blocks numba was asked to compile, and how many came out."""

    def __init__(self) -> None:
        self.asked = self.taken = 0

    def __str__(self) -> str:
        if self.taken == self.asked:
            return "yes" if self.asked else "no"
        return f"{self.taken} of {self.asked}" if self.taken else "no"


@contextmanager
def counted_blocks() -> Iterator[Blocks]:
    counts, compile_long = Blocks(), compiling.compile_long

    def counted(*block: Any) -> int | None:
        address = compile_long(*block)
        counts.asked += 1
        counts.taken += address is not None
        return address

    compiling.compile_long = counted
    try:
        yield counts
    finally:
        compiling.compile_long = compile_long


def measured(name: str, kernel: Kernel, pool: int, options: argparse.Namespace) -> dict[str, Any]:
    """A kernel planned, run and checked."""
    folder = options.folder
    make = without_data if options.plan else written
    paths = [make(folder / f"{number}.npy", *array) for number, array in enumerate(kernel.arrays)]
    targets: dict[Path, Any] = {}
    chosen = {"pool_limit": pool, "memory_limit": "4GiB", "threads": 2, "scratch": [str(folder)], "progress": False}
    with counted_blocks() as blocks, oc.Session(**chosen):
        try:
            results = kernel.program(*kernel.before, *(oc.open(path) for path in paths), *kernel.after)
            results = results if isinstance(results, tuple) else (results,)
            targets |= {folder / f"out{number}.npy": result for number, result in enumerate(results)}
            said = oc.explain(targets)
        except (ArgumentError, MemoryLimitError) as error:
            return {"data": kernel.inputs, "refused": str(error)}
        figures = forecast(kernel, said, pool, sum(result.nbytes for result in results))
        if figures["moved"] > FAR * figures["least"]:
            return figures | {"refused": f"not run: more than {FAR} times the bound"}
        if options.plan:
            return figures
        outcome = oc.store(targets)
    moved = outcome.bytes_read, outcome.bytes_written, outcome.peak_bytes
    error = CHECKS[kernel.check or name](paths, list(targets), *kernel.before, *kernel.after)
    return figures | {
        "exact": moved == (said.bytes_read, said.bytes_written, said.peak_bytes),
        "seconds": outcome.seconds,
        "speed": kernel.work / outcome.seconds / 1e9,
        "unit": kernel.unit,
        "compiled": str(blocks),
        "error": error,
    }


def forecast(kernel: Kernel, said: Any, pool: int, results: int) -> dict[str, Any]:
    tried = {order["order"]: order["bytes_read"] + order["bytes_written"] for order in said.candidates}
    moved = said.bytes_read + said.bytes_written
    compulsory = kernel.inputs + results
    return {
        "data": kernel.inputs,
        "pool": pool,
        "text": tried.get(WRITTEN),
        "moved": moved,
        "compulsory": compulsory,
        "bound": 8 * kernel.bound,
        "least": max(compulsory, 8 * kernel.bound),
        "order": said.order,
        "tasks": said.tasks,
    }


def row(name: str, found: dict[str, Any], pool: int) -> list[str]:
    head = [name, common.show_bytes(found["data"]), common.show_bytes(pool)]
    if "moved" not in found:
        return [*head, "refused", *[""] * 9]
    is_bound = found["bound"] > found["compulsory"]
    bytes_of = [common.show_bytes(found[part]) for part in ("text", "moved")]
    least = f"{common.show_bytes(found['least'])} ({'bound' if is_bound else 'once'})"
    cells = [*head, *bytes_of, least, f"{found['moved'] / found['least']:.2f}", str(found["tasks"]), found["order"]]
    if "seconds" not in found:
        return [*cells, *["not run" if "refused" in found else ""], *[""] * 3]
    exact = "yes" if found["exact"] else "NO"
    return [*cells, exact, f"{found['seconds']:.1f}", f"{found['speed']:.2f} {found['unit']}", found["compiled"]]


COLUMNS = ["kernel", "data", "for tiles", "order of the text", "order chosen", "at least", "times", "tasks", "order"]
RUN_COLUMNS = ["counters as forecast", "s", "speed", "compiled"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pool", type=common.parse_size, default=64 * common.MIB)
    parser.add_argument("--times", type=int, default=4, help="bytes of inputs over bytes for tiles")
    parser.add_argument("--only", default="")
    parser.add_argument("--plan", action="store_true", help="run nothing")
    parser.add_argument("--folder", type=Path, default=Path("data/bench/loop_polybench"))
    return parser.parse_known_args()[0]  # flags of bench-loops come here too


def section(options: argparse.Namespace, pool: int, times: int) -> tuple[str, dict[str, Any]]:
    kernels = dense(times * pool, pool // 8) | others(times * pool)
    wanted = options.only.split(",")
    figures: dict[str, Any] = {}
    rows = []
    for name, kernel in kernels.items():
        if options.only and name.split(", ")[0] not in wanted:
            continue
        shutil.rmtree(options.folder, ignore_errors=True)
        options.folder.mkdir(parents=True)
        memory = pool // PARTS.get(name, 1)
        figures[name] = measured(name, kernel, memory, options)
        rows.append(row(name, figures[name], memory))
        print(rows[-1], figures[name].get("error", figures[name].get("refused", "")), flush=True)
    shutil.rmtree(options.folder, ignore_errors=True)
    refused = [f"- {name}: {found['refused']}" for name, found in figures.items() if "refused" in found]
    errors = [found["error"] for found in figures.values() if "error" in found]
    worst = f"The largest relative difference in what was checked is {max(errors):.1e}." if errors else ""
    parts = [common.table([*COLUMNS, *RUN_COLUMNS], rows), worst, "\n".join(refused)]
    return "\n\n".join(part for part in parts if part), figures


MEANING = """Inputs have {times} times the bytes for tiles. "At least" is the larger of inputs and results once ("once")
and the lower bound ("bound") of a memory of S elements: products 2n³/√S, for 2mm of each of the two; syrk n³/√(2S);
cholesky n³/(3√(2S)); lu 2n³/(3√S). The order of the text is task by task; all bytes are exact forecasts. "Compiled"
says whether numba compiled the bodies. Factorizations move whole matrices, the other triangle too. Stencils go {steps}
steps. Programs named "nests" have their statements in perfect nests, those named "k outermost" are right-looking."""


def main() -> None:
    options = arguments()
    ran, figures = section(options, options.pool, options.times)
    options.plan = True
    planned, more = section(options, options.pool, 4 * options.times)
    sections = [
        MEANING.format(times=options.times, steps=STEPS).replace("\n", " "),
        ran,
        f"## Four times the data\n\nForecasts alone.\n\n{planned}",
    ]
    common.write_record(
        "loop-polybench",
        "Kernels of PolyBench over files",
        options.folder.parent,
        sections,
        {"run": figures, "more data": more},
        ["numba"],
    )


if __name__ == "__main__":
    main()
