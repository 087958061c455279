"""The programs that every promise is tested on: inputs on disk, the lazy expression, and NumPy's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import programs

MIB = 1 << 20
COLUMNS, FACTORS = 100, 10


@dataclass(frozen=True)
class Workload:
    """Inputs by name, how to build the outputs from them, and what the outputs must be.

    Outputs in `near` may differ from NumPy's by rounding: sums go another way.
    """

    name: str
    paths: Mapping[str, Path]
    build: Callable[..., dict[str, Any]]
    iterations: int | None = None
    near: frozenset[str] = frozenset()

    @property
    def data_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths.values())

    def targets(self, out: Path) -> dict[str, Any]:
        """{path: lazy array}, in the current session."""
        import outcore as oc

        built = self.build(oc, {name: oc.open(path) for name, path in self.paths.items()})
        return {str(out / name): array for name, array in built.items()}

    def expected(self) -> dict[str, Any]:
        return self.build(np, {name: np.load(path) for name, path in self.paths.items()})


def _save(folder: Path, **arrays: Any) -> dict[str, Path]:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return {name: folder / f"{name}.npy" for name in arrays}


def _tall(mebibytes: float, seed: int) -> tuple[int, np.random.Generator]:
    return int(mebibytes * MIB) // (8 * COLUMNS), np.random.default_rng(seed)


def nmf(folder: Path, mebibytes: float = 24, iterations: int = 2) -> Workload:
    rows, random = _tall(mebibytes, 1)
    inputs = _save(
        folder,
        X=random.random((rows, COLUMNS)),
        W0=random.random((rows, FACTORS)) + 0.1,
        H0=random.random((FACTORS, COLUMNS)) + 0.1,
    )

    def build(_: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        w, h = programs.nmf(given["X"], given["W0"], given["H0"], iterations)
        return {"W.zarr": w, "H.npy": h}

    return Workload("nmf", inputs, build, iterations)


def logistic(folder: Path, mebibytes: float = 24, iterations: int = 3) -> Workload:
    rows, random = _tall(mebibytes, 2)
    inputs = _save(folder, X=random.random((rows, COLUMNS)), y=random.integers(0, 2, (rows, 1)).astype(float))

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        start = namespace.zeros((COLUMNS, 1))
        return {"w.npy": programs.logistic(namespace, given["X"], given["y"], start, iterations)}

    return Workload("logistic", inputs, build, iterations)


def product(folder: Path, mebibytes: float = 24) -> Workload:
    side = int((mebibytes * MIB / 16) ** 0.5)
    random = np.random.default_rng(3)
    inputs = _save(folder, A=random.random((side, side + 37)), B=random.random((side + 37, side - 11)))
    return Workload("product", inputs, lambda _, given: {"C.zarr": programs.product(given["A"], given["B"])})


def transpose(folder: Path, mebibytes: float = 24) -> Workload:
    side = int((mebibytes * MIB / 8) ** 0.5)
    inputs = _save(folder, A=np.random.default_rng(4).random((side, side + 61)))
    return Workload("transpose", inputs, lambda _, given: {"T.zarr": programs.transpose(given["A"])})


def gram_of_sum(folder: Path, mebibytes: float = 24) -> Workload:
    side = int((mebibytes * MIB / 16) ** 0.5)
    random = np.random.default_rng(5)
    inputs = _save(folder, A=random.random((side, side + 5)), B=random.random((side, side + 5)))
    return Workload("gram_of_sum", inputs, lambda _, given: {"G.zarr": programs.gram_of_sum(given["A"], given["B"])})


def reductions(folder: Path, mebibytes: float = 24) -> Workload:
    """Sums and their kin over either axis and over both: the order of additions is what could differ."""
    rows, random = _tall(mebibytes, 6)
    inputs = _save(folder, X=random.standard_normal((rows, COLUMNS)))

    def build(_: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        x = given["X"]
        return {
            "sum.npy": x.sum(axis=0),
            "total.npy": (x * x).sum(),
            "mean.npy": x.mean(axis=1),
            "var.npy": x.var(axis=0),
            "max.npy": x.max(axis=1),
            "argmin.npy": x.argmin(axis=0),
        }

    return Workload("reductions", inputs, build)


PROMISED = (nmf, logistic, product, transpose, gram_of_sum)
Maker = Callable[..., Workload]
