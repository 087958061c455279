"""Loop programs over files for children in memory groups, and their values at samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks import data

import outcore as oc
from outcore.errors import MemoryLimitError
from support.running import FIGURES, session

STEPS = 4
INNER = 32  # the length of the sums of a product
# Elements older than so many have weights below 2⁻⁶⁰ in a sweep and in a recurrence.
HALO = 64
WINDOW = 6


@oc.loops
def relax(u: Any, f: Any, steps: int) -> Any:
    for _t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return u


@oc.loops
def smooth(x: Any) -> Any:
    y = oc.zeros_like(x)
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


@oc.loops
def add_product(c: Any, a: Any, b: Any) -> Any:
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


class GroupCase(NamedTuple):
    """A program, what follows its arrays, their shapes for so many bytes, and the check of samples."""

    program: Any
    others: tuple[int, ...]
    shapes: Callable[[int], Sequence[tuple[int, ...]]]
    is_right_at: Callable[[Sequence[Any], Any, tuple[int, ...]], bool]


def _side(size: int) -> int:
    return int((size // 16) ** 0.5)


def _windows(arrays: Sequence[Any], place: tuple[int, ...], halo: int) -> tuple[tuple[slice, ...], list[Any]]:
    """A window around a place, with what is as near as `halo` on all sides."""
    wide = tuple(slice(max(0, at - halo), at + WINDOW + halo) for at in place)
    return wide, [np.array(array[wide]) for array in arrays]


def _relaxed(inputs: Sequence[Any], result: Any, place: tuple[int, ...]) -> bool:
    wide, (u, f) = _windows(inputs, place, HALO + STEPS)
    within = tuple(slice(at - part.start, at - part.start + WINDOW) for at, part in zip(place, wide, strict=True))
    right = relax.plain(u, f, STEPS)
    return np.allclose(result[wide][within], right[within], rtol=1e-12, atol=1e-12)


def _smoothed(inputs: Sequence[Any], result: Any, place: tuple[int, ...]) -> bool:
    (wide,), (x,) = _windows(inputs, place, HALO)
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i]
    within = slice(place[0] - wide.start, place[0] - wide.start + WINDOW)
    return np.allclose(result[wide][within], y[within], rtol=1e-12)


def _multiplied(inputs: Sequence[Any], result: Any, place: tuple[int, ...]) -> bool:
    c, a, b = inputs
    rows, columns = (slice(at, at + WINDOW) for at in place)
    return np.allclose(result[rows, columns], c[rows, columns] + a[rows] @ b[:, columns], rtol=1e-12)


CASES = {
    "a sweep in place": GroupCase(relax, (STEPS,), lambda size: ((_side(size), _side(size)),) * 2, _relaxed),
    "a recurrence": GroupCase(smooth, (), lambda size: ((size // 8,),), _smoothed),
    # Half of the bytes are the argument that is written, half the result.
    "a product": GroupCase(
        add_product,
        (),
        lambda size: ((_side(size), _side(size)), (_side(size), INNER), (INNER, _side(size))),
        _multiplied,
    ),
}


def made(name: str, folder: Path, size: int) -> list[str]:
    """The inputs of a case, of so many bytes together (with its result, where an argument is written)."""
    shapes = CASES[name].shapes(size)
    return [str(data.write_npy(folder / f"in{at}.npy", shape, at)) for at, shape in enumerate(shapes)]


def smallest_limit(name: str, inputs: Sequence[str], out: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The least memory limit of the process that a refusal names, and what is refused below it."""
    with session(Path(out), **options):
        try:
            oc.explain(_targets(name, inputs, out))
        except MemoryLimitError as error:
            return {"smallest": error.smallest}
    raise AssertionError("the limit is no refusal's")


def run_in_group(name: str, inputs: Sequence[str], out: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The forecast and the counters of a case, both by `FIGURES`."""
    with session(Path(out), **options):
        targets = _targets(name, inputs, out)
        said = oc.explain(targets)
        outcome = oc.store(targets)
    figures = {"forecast": said, "counters": outcome}
    named = {of: {figure: getattr(one, figure) for figure in FIGURES} for of, one in figures.items()}
    return named | {"seconds": outcome.seconds, "order": said.order, "limit": said.memory_limit}


def _targets(name: str, inputs: Sequence[str], out: str) -> dict[str, Any]:
    case = CASES[name]
    return {f"{out}/out.npy": case.program(*(oc.open(path) for path in inputs), *case.others)}


def is_right(name: str, inputs: Sequence[str], out: Path) -> bool:
    """Whether the result has the values of windows in the middle, near the corners, and some between."""
    arrays = [np.load(path, mmap_mode="r") for path in inputs]
    result = np.load(out / "out.npy", mmap_mode="r")
    random = np.random.default_rng(1)
    ends = [length - WINDOW for length in result.shape]
    places = [tuple(0 for _ in ends), tuple(ends), *(tuple(random.integers(0, ends)) for _ in range(10))]
    return all(CASES[name].is_right_at(arrays, result, place) for place in places)
