"""Sparse matrices to test with: drawn ones, their files, and products by a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

import outcore as oc

SIDES = (1, 4, 16, 64, 1024, 16384)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, "float32", "float64", "complex64", "complex128")
MULTIPLY: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda a, x: a * x,
    "plus": lambda a, x: a + x,
    "pair": lambda a, x: type(x)(1),
    "first": lambda a, x: type(x)(a),
    "second": lambda a, x: x,
}
ADD: dict[str, Callable[[Any, Any], Any]] = {
    "plus": lambda a, b: a + b,
    "min": min,
    "max": max,
    "any": lambda a, b: b,
}


def whole(random: np.random.Generator, shape: Any, dtype: str) -> Any:
    """Small whole numbers of a type: sums of them are exact in every order."""
    values = random.integers(0 if dtype[0] in "bu" else -4, 2 if dtype == "bool" else 5, size=shape)
    if dtype.startswith("complex"):
        return (values + 1j * random.integers(-4, 5, size=shape)).astype(dtype)
    return values.astype(dtype)


@st.composite
def matrices(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES, longest: int = 40) -> Any:
    """A SciPy matrix, and the side of the tiles to cut it by."""
    rows, columns = (draw(st.sampled_from((0, 1, 2, 5, 16, 17, longest))) for _ in range(2))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mask = random.random((rows, columns)) < draw(st.sampled_from((0.0, 0.02, 0.2, 1.0)))
    if rows and columns and draw(st.booleans()):
        mask[random.integers(rows)] = True
        mask[:, random.integers(columns)] = draw(st.booleans())
    found = scipy.sparse.coo_array(mask)
    values = whole(random, found.nnz, draw(st.sampled_from(dtypes)))
    made = scipy.sparse.coo_array((values, found.coords), shape=(rows, columns))
    return made, draw(st.sampled_from(SIDES))


def write(matrix: Any, folder: Path, side: int = 16384, name: str = "a.ocs") -> oc.sparse.SparseMatrix:
    return oc.sparse.from_scipy(matrix, folder / name, side=side, overwrite=True)


def pattern(matrix: Any, folder: Path, side: int) -> oc.sparse.SparseMatrix:
    found = matrix.tocoo()
    rows, columns = found.coords
    return oc.sparse.from_coo(rows, columns, None, found.shape, folder / "p.ocs", side=side, overwrite=True)


def random_matrix(rows: int, columns: int, entries: int, seed: int = 0, dtype: str = "float64") -> Any:
    """Entries at random places, heavier rows first, and values of all sizes."""
    random = np.random.default_rng(seed)
    r = np.minimum((rows * random.random(entries) ** 2).astype(np.int64), rows - 1)
    c = random.integers(0, columns, entries)
    values = random.normal(size=entries).astype(dtype)
    return scipy.sparse.coo_array((values, (r, c)), shape=(rows, columns)).tocsr()


def nothing(semiring: str, dtype: np.dtype[Any]) -> Any:
    """The sum of nothing."""
    if semiring.startswith(("min", "max")):
        if dtype.kind == "f":
            return dtype.type(np.inf if semiring.startswith("min") else -np.inf)
        return np.iinfo(dtype).max if semiring.startswith("min") else np.iinfo(dtype).min
    return dtype.type(0)


def by_loop(matrix: Any, x: Any, semiring: str, dtype: np.dtype[Any]) -> Any:
    """The product of a matrix and a dense one, entry by entry in the type of the result."""
    result = np.full((matrix.shape[0], x.shape[1]), nothing(semiring, dtype), dtype=dtype)
    seen = np.zeros(matrix.shape[0], dtype=bool)
    found = matrix.tocoo()
    if semiring == "lor_land":
        for row, column, value in zip(*found.coords, found.data, strict=True):
            result[row] |= bool(value) & x[column].astype(bool)
        return result
    plus, times = semiring.split("_")
    for row, column, value in zip(*found.coords, found.data, strict=True):
        for lane in range(x.shape[1]):
            term = MULTIPLY[times](dtype.type(value), dtype.type(x[column, lane]))
            result[row, lane] = ADD[plus](result[row, lane], term) if seen[row] or plus == "plus" else term
        seen[row] = True
    return result
