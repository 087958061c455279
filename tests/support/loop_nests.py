"""Loop programs of few tasks that are drawn: nests over arrays of a few tiles, for plans that never run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import zarr

from support.loop_sources import INDENT, Pick, function_of

ROWS, COLUMNS = 512, 1024
LENGTH = ROWS * COLUMNS
TILE_BYTES = 8 * LENGTH
SUMS = {"s": "1", "p": "n", "q": "m"}


class DrawnNests(NamedTuple):
    """A function, and the tiles along each axis of each of its arguments."""

    function: Callable[..., Any]
    source: str
    tiles: tuple[tuple[int, ...], ...]


def chunked(folder: Path, tiles: tuple[int, ...], number: int) -> Path:
    """A Zarr array of whole tiles. Its chunks are files of holes, of the right size, that take nothing of a disk."""
    path = folder / f"{'x'.join(map(str, tiles))}-{number}.zarr"
    if not path.exists():
        chunks = (LENGTH,) if len(tiles) == 1 else (ROWS, COLUMNS)
        shape = [count * length for count, length in zip(tiles, chunks, strict=True)]
        zarr.create_array(path, shape=shape, chunks=chunks, dtype="f8", compressors=None)
        for at in product(*map(range, tiles)):
            chunk = path.joinpath("c", *map(str, at))
            chunk.parent.mkdir(parents=True, exist_ok=True)
            with chunk.open("wb") as file:
                file.truncate(TILE_BYTES)
    return path


class NestWriter:
    """Writes a program of several nests over vectors or matrices: steps from array to array, stencils, sweeps in place,
    sums, steps through time, and parts of arrays. Tiles of matrices are as large as those of vectors."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.lines: list[str] = []
        self.is_flat = bool(pick([True, True, False]))
        self.tiles: tuple[int, ...] = (pick([2, 3, 3, 4]),)
        if not self.is_flat:
            self.tiles = pick([(2, 2), (1, 3), (3, 1), (2, 1), (1, 2), (2, 3), (3, 2)])
        self.inputs = "abc"[: pick([1, 2, 2, 3])]
        self.made = "uvw"[: pick([0, 1, 1, 2, 3])]
        self.written: list[str] = []

    def write(self, depth: int, line: str) -> None:
        self.lines.append(INDENT * depth + line)

    def element(self, name: str) -> str:
        row = self.pick(["i", "i", "i", "i - 1", "i + 1"])
        if self.is_flat:
            return f"{name}[{row}]" if self.pick(range(8)) else f"{name}[n - 1 - i]"
        return f"{name}[{row}, {self.pick(['j', 'j', 'j - 1', 'j + 1'])}]"

    def read(self) -> str:
        return self.element(self.pick(self.inputs + self.made))

    def statement(self, depth: int) -> None:
        if self.pick(range(8)) == 0:
            target, at = self.pick([("s", "0")] if self.is_flat else [("p", "i"), ("q", "j"), ("s", "0")])
            self.write(depth, f"{target}[{at}] += {self.read()}")
        else:
            target, at = self.pick(self.inputs + self.made), "i" if self.is_flat else "i, j"
            reads = [self.read() for _ in range(self.pick([1, 1, 2, 2, 3]))]
            if self.pick(range(4)) == 0:
                reads.append(self.element(target))
            value = " + ".join(f"0.25 * {read}" for read in reads)
            self.write(depth, f"{target}[{at}] {self.pick(['=', '=', '=', '+='])} {value}")
        self.written = [*(name for name in self.written if name != target), target]

    def nest(self, depth: int) -> None:
        low, high = self.pick([("1", "n - 1")] * 4 + [("1", "n // 2"), ("n // 2", "n - 1")])
        ends = self.pick([f"{low}, {high}"] * 5 + [f"{high} - 1, {low} - 1, -1"])
        self.write(depth, f"for i in range({ends}):")
        if not self.is_flat:
            depth += 1
            self.write(depth, f"for j in range({self.pick(['1, m - 1'] * 4 + ['1, m // 2', 'm // 2, m - 1'])}):")
        for _ in range(self.pick([1, 1, 1, 2])):
            self.statement(depth + 1)

    def results(self) -> list[str]:
        """What was written last; mostly all arguments that were written to, so that hardly a task is for nothing."""
        last = self.written[-self.pick([1, 1, 2, 3]) :]
        return [name for name in self.written if name in last or (name in self.inputs and self.pick(range(4)))]

    def program(self) -> DrawnNests:
        self.write(0, f"def drawn({', '.join(self.inputs)}):")
        self.write(1, "n = a.shape[0]" if self.is_flat else "n, m = a.shape")
        for name in self.made:
            self.write(1, f"{name} = np.zeros({'n' if self.is_flat else '(n, m)'})")
        for name, length in SUMS.items():
            if not self.is_flat or name == "s":
                self.write(1, f"{name} = np.zeros({length})")
        for _ in range(self.pick([1, 2, 2, 3, 4])):
            if self.pick(range(6)) == 0:
                self.write(1, f"for t in range({self.pick([2, 3])}):")
                for _ in range(self.pick([1, 1, 2])):
                    self.nest(2)
            else:
                self.nest(1)
        self.write(1, f"return ({', '.join(self.results())},)")
        source = "\n".join(self.lines) + "\n"
        return DrawnNests(function_of(source), source, (self.tiles,) * len(self.inputs))


def drawn_nests(pick: Pick) -> DrawnNests:
    return NestWriter(pick).program()
