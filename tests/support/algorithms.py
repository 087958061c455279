"""One program for each tile algorithm, with NumPy's answer: every promise is stamped on all of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from support.workloads import MIB, Workload, _save


def _keys(folder: Path, mebibytes: float) -> tuple[dict[str, Path], int]:
    count = int(mebibytes * MIB) // 8
    random = np.random.default_rng(11)
    keys = random.normal(size=count)
    keys[::20] = np.nan
    keys[7::31] = -0.0
    keys[8::31] = 0.0
    keys[9::13] = 2.5
    return _save(folder, x=keys, v=random.integers(-9, 9, count)), count


def sorting(folder: Path, mebibytes: float = 12) -> Workload:
    """Keys with NaN, both zeros and many equal ones, in several runs."""
    paths, _ = _keys(folder, mebibytes)

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        if namespace is np:
            return {"sorted.npy": given["x"][np.argsort(given["x"], kind="stable")]}
        return {"sorted.npy": namespace.sort(given["x"])}

    return Workload("sorting", paths, build)


def sorting_by(folder: Path, mebibytes: float = 6) -> Workload:
    """A column and positions in the order of the keys, to Zarr and to .npy."""
    paths, _ = _keys(folder, mebibytes)

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        if namespace is np:
            order = np.argsort(given["x"], kind="stable")
            return {"v.zarr": given["v"][order], "order.npy": order}
        return {"v.zarr": namespace.sort_by(given["x"], given["v"])[1], "order.npy": namespace.argsort(given["x"])}

    return Workload("sorting_by", paths, build)


def scanning(folder: Path, mebibytes: float = 12) -> Workload:
    """Running sums of something computed, along both axes, and a sum over them."""
    rows = int(mebibytes * MIB) // (8 * 100)
    paths = _save(folder, X=np.random.default_rng(12).normal(size=(rows, 100)))

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        if namespace is np:
            down, across = np.cumsum(given["X"] * 2, axis=0), np.cumsum(given["X"], axis=1)
        else:
            down = namespace.cumulative_sum(given["X"] * 2, axis=0)
            across = namespace.cumulative_sum(given["X"], axis=1)
        return {"down.npy": down, "across.zarr": across, "last.npy": across.sum(axis=0)}

    return Workload("scanning", paths, build)


def masking(folder: Path, mebibytes: float = 12) -> Workload:
    """Rows that a mask chooses, something computed of them, and where they are."""
    rows = int(mebibytes * MIB) // (8 * 100)
    paths = _save(folder, X=np.random.default_rng(13).normal(size=(rows, 100)))

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        mask = given["X"][:, 3] > 0.5
        chosen = given["X"][mask]
        return {"rows.npy": chosen, "means.npy": chosen.sum(axis=0), "where.npy": namespace.nonzero(mask)[0]}

    return Workload("masking", paths, build)


MAKERS = (sorting, sorting_by, scanning, masking)
