"""One program for each tile algorithm, with NumPy's answer: every promise is stamped on all of them."""

from __future__ import annotations

import warnings
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

    return Workload("scanning", paths, build, near=frozenset({"last.npy"}))


def masking(folder: Path, mebibytes: float = 12) -> Workload:
    """Rows that a mask chooses, something computed of them, and where they are; and by a mask that is held itself."""
    rows = int(mebibytes * MIB) // (8 * 100)
    paths = _save(folder, X=np.random.default_rng(13).normal(size=(rows, 100)))

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        mask = given["X"][:, 3] > 0.5
        chosen = given["X"][mask]
        return {
            "rows.npy": chosen,
            "means.npy": chosen.sum(axis=0),
            "where.npy": namespace.nonzero(mask)[0],
            "computed.npy": given["X"][:, :3][given["X"].sum(axis=1) > 3],
        }

    return Workload("masking", paths, build, near=frozenset({"means.npy"}))


def quantiles(folder: Path, mebibytes: float = 12) -> Workload:
    """Columns of numbers, with NaN, of NaN alone, of both zeros, of few values, and skewed ones."""
    rows = int(mebibytes * MIB) // (8 * 6)
    random = np.random.default_rng(14)
    columns = random.normal(size=(rows, 6))
    columns[::20, 1] = np.nan
    columns[:, 2] = np.nan
    columns[:, 3] = np.where(columns[:, 3] > 0.5, columns[:, 3], np.copysign(0.0, columns[:, 3]))
    columns[:, 4] = np.round(columns[:, 4])
    columns[:, 5] = np.exp(30 * columns[:, 5])
    columns[::7, 5] = np.inf
    paths = _save(folder, X=columns)
    places = [0.0, 0.01, 0.5, 0.77, 1.0]

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        with warnings.catch_warnings():
            # NumPy says that a column has no numbers, and finds NaN where the largest is an infinity.
            warnings.simplefilter("ignore", RuntimeWarning)
            return {
                "all.npy": namespace.quantile(given["X"], places[:-1], axis=0),
                "numbers.npy": namespace.nanquantile(given["X"], places, axis=0, method="lower"),
                "row.npy": namespace.nanquantile(given["X"], [0.25, 0.5]),
            }

    return Workload("quantiles", paths, build, near=frozenset({"all.npy", "numbers.npy", "row.npy"}))


def taking(folder: Path, mebibytes: float = 12) -> Workload:
    """Elements of a row, named by an index as large: many of them the same, half of them from the end."""
    paths, count = _keys(folder, mebibytes)
    index = np.random.default_rng(15).integers(-count, count, count)
    index[::3] = count // 2
    paths |= _save(folder, index=index)
    return Workload("taking", paths, lambda _, given: {"row.npy": given["x"][given["index"]]})


def taking_rows(folder: Path, mebibytes: float = 6) -> Workload:
    """Rows narrow enough for sorting them back, and wide ones that are swept over, of more than fits beside them."""
    count = int(mebibytes * MIB) // (8 * 8)
    random = np.random.default_rng(21)
    narrow, wide = random.normal(size=(2 * count, 8)), random.normal(size=(count, 16))
    narrow[::20] = np.nan
    index = random.integers(-2 * count, 2 * count, count * 3 // 2)
    index[::3] = count
    places = random.integers(-count, count, count // 2)
    paths = _save(folder, narrow=narrow, wide=wide, index=index, places=places)

    def build(_: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"narrow.npy": given["narrow"][given["index"]], "wide.zarr": given["wide"][given["places"]]}

    return Workload("taking_rows", paths, build)


def taking_along(folder: Path, mebibytes: float = 6) -> Workload:
    """Every lane takes from itself, down and across."""
    rows = int(mebibytes * MIB) // (8 * 2 * 30)
    random = np.random.default_rng(16)
    values = random.normal(size=(rows, 30))
    values[::9] = np.nan
    down, across = random.integers(-rows, rows, (rows // 2, 30)), random.integers(-30, 30, (rows, 40))
    paths = _save(folder, X=values, down=down, across=across)

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        take = namespace.take_along_axis
        return {
            "down.npy": take(given["X"], given["down"], axis=0),
            "across.zarr": take(given["X"], given["across"], axis=1),
        }

    return Workload("taking_along", paths, build)


def searching(folder: Path, mebibytes: float = 12) -> Workload:
    """Values among sorted ones: NaN, both zeros and many equal ones in both, from either side."""
    paths, count = _keys(folder, mebibytes)
    keys = np.load(paths["x"])
    paths = _save(folder, row=np.sort(keys[5:], kind="stable"), values=np.round(keys[: count // 2], 2))

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        search = namespace.searchsorted
        return {
            "left.npy": search(given["row"], given["values"], side="left"),
            "right.zarr": search(given["row"], given["values"], side="right"),
        }

    return Workload("searching", paths, build)


def counting(folder: Path, mebibytes: float = 12) -> Workload:
    """Counts and sums of numbers of which a few are most; histograms with edges given and found."""
    paths, count = _keys(folder, mebibytes / 3)
    random = np.random.default_rng(17)
    numbers = np.minimum(random.geometric(0.001, count), 9000)
    paths |= _save(folder, numbers=numbers, weights=random.normal(size=count))
    edges = [-np.inf, -1.0, 0.0, 0.0, 0.5, 2.5, 3.0]

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        # Many more tiles than there are counters.
        numbers = _cut(namespace, given["numbers"], 1 << 15)
        even, found = namespace.histogram(_cut(namespace, given["weights"], 50_000), 50)
        return {
            "counts.npy": namespace.bincount(numbers),
            "sums.npy": namespace.bincount(numbers, weights=given["weights"]),
            "uneven.npy": namespace.histogram(_cut(namespace, given["x"], 9999), edges)[0],
            "even.npy": even,
            "edges.npy": found,
        }

    return Workload("counting", paths, build, near=frozenset({"sums.npy", "edges.npy"}))


def _cut(namespace: Any, x: Any, *tile: int) -> Any:
    """An array in tiles of a shape of their own; NumPy has none."""
    return x if namespace is np else namespace.rechunk(x, tile)


def distinct(folder: Path, mebibytes: float = 36) -> Workload:
    """Distinct values, where each is first, how often it is there, and which of them every element is."""
    count = int(mebibytes * MIB) // 48  # each is sorted twice, with a position
    random = np.random.default_rng(18)
    values = np.where(random.random(count) < 0.7, random.integers(-99, 99, count), random.normal(size=count))
    values[::50_000] = np.nan
    values[7::31] = -0.0
    paths = _save(folder, x=values)

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        found = _distinct(given["x"]) if namespace is np else namespace.unique_all(given["x"])
        names = ("values.npy", "indices.npy", "inverse.zarr", "counts.npy")
        return dict(zip(names, found, strict=True))

    return Workload("distinct", paths, build)


def _distinct(x: Any) -> tuple[Any, ...]:
    """`numpy.unique`, but of the two zeros and of each value the first."""
    order = np.argsort(x, kind="stable")
    first = np.concatenate([[True], x[order][1:] != x[order][:-1]])
    inverse = np.empty(len(x), np.int64)
    inverse[order] = np.cumsum(first) - 1
    return x[order][first], order[first], inverse, np.bincount(inverse)


def repeating(folder: Path, mebibytes: float = 12) -> Workload:
    """Elements and columns by their own counts: most of them none, and one a great many times."""
    paths, count = _keys(folder, mebibytes)
    random = np.random.default_rng(19)
    counts = np.where(random.random(count) < 0.6, 0, random.integers(1, 4, count))
    counts[count // 3] = count // 4
    paths |= _save(folder, counts=counts, X=random.normal(size=(count // 40, 40)), columns=np.arange(40) % 3)

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "row.npy": namespace.repeat(given["x"], given["counts"]),
            "columns.zarr": namespace.repeat(given["X"], given["columns"], axis=1),
        }

    return Workload("repeating", paths, build)


def rechunking(folder: Path, mebibytes: float = 12) -> Workload:
    """Something computed, cut across its tiles, and cut along them again behind a transpose."""
    rows = int(mebibytes * MIB) // (8 * 1000)
    paths = _save(folder, X=np.random.default_rng(20).normal(size=(rows, 1000)))

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        across = _cut(namespace, given["X"] * 2, -1, 170)
        along = _cut(namespace, across.T - 1, 130, -1)
        return {"across.zarr": across, "along.npy": along, "sums.npy": across.sum(axis=1)}

    return Workload("rechunking", paths, build, near=frozenset({"sums.npy"}))


def factorizing(folder: Path, mebibytes: float = 12) -> Workload:
    """QR of a tall matrix in tiles, least squares with it, and inverses of many small ones."""
    rows = int(mebibytes * MIB) // (8 * 16)
    random = np.random.default_rng(22)
    paths = _save(folder, X=random.normal(size=(rows, 16)), small=random.normal(size=(2000, 6, 6)) + 9 * np.eye(6))

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        q, r = namespace.linalg.qr(given["X"])
        signs = namespace.sign(namespace.linalg.diagonal(r))
        found = namespace.linalg.lstsq(given["X"], given["X"][:, 3] * 2 + 1)
        return {
            "q.npy": q * signs,
            "r.zarr": r * signs[:, None],
            "x.npy": found[0],
            "inverses.npy": namespace.linalg.inv(given["small"]),
        }

    return Workload("factorizing", paths, build, near=frozenset({"q.npy", "r.zarr", "x.npy", "inverses.npy"}))


def transforming(folder: Path, mebibytes: float = 12) -> Workload:
    """Fourier transforms down and across, of real and complex numbers, and back.

    Rounding is as large for numbers near zero as for others of their lane, so there are none.
    """
    rows = int(mebibytes * MIB) // (8 * 600)
    paths = _save(folder, X=np.random.default_rng(23).normal(size=(rows, 600)) + 100)

    def build(namespace: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        down = namespace.fft.fft(given["X"][:, :200], axis=0)
        across = namespace.fft.rfft(given["X"], axis=1)
        return {"down.npy": down, "back.zarr": namespace.fft.irfft(across * 2, n=600, axis=1)}

    return Workload("transforming", paths, build, near=frozenset({"down.npy", "back.zarr"}))


MAKERS = (
    sorting,
    sorting_by,
    scanning,
    masking,
    quantiles,
    taking,
    taking_rows,
    taking_along,
    searching,
    counting,
    distinct,
    repeating,
    rechunking,
    factorizing,
    transforming,
)
