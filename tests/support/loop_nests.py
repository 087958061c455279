"""Loop programs of few tasks that are drawn: nests over arrays of a few tiles of megabytes, for plans that never run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import zarr
from support.loop_sources import INDENT, Pick, function_of

ROWS, COLUMNS = 512, 1024
LENGTH = ROWS * COLUMNS
TILE_BYTES = 8 * LENGTH


class DrawnNests(NamedTuple):
    """A function and the tiles along each axis of its arguments."""

    function: Callable[..., Any]
    source: str
    tiles: tuple[tuple[int, ...], ...]


def chunked(folder: Path, tiles: tuple[int, ...], number: int) -> Path:
    """A Zarr array of whole tiles, whose chunks are files of holes: of the right size, and on disk they take nothing."""
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
    """Writes a program of several nests, over vectors or matrices: steps from array to array, stencils, sweeps in place,
    sums, steps through time, and parts of arrays."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.lines: list[str] = []
        self.is_flat = pick([True, True, False])
        inputs = pick([1, 2, 2, 3])
        if self.is_flat:
            self.tiles: tuple[int, ...] = (pick([2, 3, 3, 4]),)
            self.shape = f"({LENGTH * self.tiles[0]},)"
        else:
            self.tiles = pick([(2, 2), (1, 3), (3, 1), (2, 1), (1, 2), (2, 3), (3, 2)])
            self.shape = f"({ROWS * self.tiles[0]}, {COLUMNS * self.tiles[1]})"
        self.inputs = "abc"[:inputs]
        self.made = "uvw"[: pick([0, 1, 1, 2, 3])]
        self.arrays = self.inputs + self.made

    def write(self, depth: int, line: str) -> None:
        self.lines.append(INDENT * depth + line)

    def row(self) -> str:
        return str(self.pick(["i", "i", "i", "i - 1", "i + 1"]))

    def element(self, name: str, is_turned: bool = False) -> str:
        if self.is_flat:
            return f"{name}[{'n - 1 - i' if is_turned else self.row()}]"
        return f"{name}[{self.row()}, {self.pick(['j', 'j', 'j - 1', 'j + 1'])}]"

    def value(self, target: str) -> str:
        reads = [self.element(self.pick(self.arrays), self.pick(range(8)) == 0) for _ in range(self.pick([1, 1, 2, 2, 3]))]
        if self.pick(range(4)) == 0:
            reads.append(self.element(target))
        return " + ".join(f"0.25 * {read}" for read in reads)

    def statement(self, depth: int) -> None:
        if self.pick(range(8)) == 0:
            target = self.pick(["s[0]"] if self.is_flat else ["p[i]", "q[j]", "s[0]"])
            self.write(depth, f"{target} += {self.element(self.pick(self.arrays))}")
            return
        target = self.pick(self.arrays)
        at = "i" if self.is_flat else "i, j"
        self.write(depth, f"{target}[{at}] {self.pick(['=', '=', '='  , '+='])} {self.value(target)}")

    def nest(self, depth: int) -> None:
        low, high = self.pick([("1", "n - 1")] * 4 + [("1", "n // 2"), ("n // 2", "n - 1")])
        ends = self.pick([f"{low}, {high}"] * 5 + [f"{high} - 1, {low} - 1, -1"])
        self.write(depth, f"for i in range({ends}):")
        if not self.is_flat:
            self.write(depth + 1, f"for j in range({self.pick(['1, m - 1'] * 4 + ['1, m // 2', 'm // 2, m - 1'])}):")
        for _ in range(self.pick([1, 1, 1, 2])):
            self.statement(depth + (1 if self.is_flat else 2))

    def program(self) -> DrawnNests:
        self.write(0, f"def drawn({', '.join(self.inputs)}):")
        self.write(1, "n = a.shape[0]" if self.is_flat else "n, m = a.shape")
        for name in self.made:
            self.write(1, f"{name} = np.zeros({self.shape})")
        for name, length in ("s", "1"), ("p", "n"), ("q", "m"):
            if not self.is_flat or name == "s":
                self.write(1, f"{name} = np.zeros({length})")
        for _ in range(self.pick([1, 2, 2, 3, 4])):
            if self.pick(range(6)) == 0:
                self.write(1, f"for t in range({self.pick([2, 3])}):")
                for _ in range(self.pick([1, 1, 2])):
                    self.nest(2)
            else:
                self.nest(1)
        text = "\n".join(self.lines[1:])
        written = [name for name in (*self.arrays, "s", "p", "q") if any(f"{name}[{at}] " in f"{line} " and line.lstrip().startswith(f"{name}[") for line in self.lines for at in ("i", "i, j", "j", "0"))]
        del text
        results = written[-self.pick([1, 1, 2, 3]) :]
        self.write(1, f"return ({', '.join(results)},)")
        source = "\n".join(self.lines) + "\n"
        return DrawnNests(function_of(source), source, (self.tiles,) * len(self.inputs))


def drawn_nests(pick: Pick) -> DrawnNests:
    return NestWriter(pick).program()
