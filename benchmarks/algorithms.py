"""What is built on sorting, scanning and counting, each on data larger than memory: time, bytes, forecast, result.

    python -m benchmarks.algorithms [--size 4GiB] [--limit 512MiB] [--only argsort,take] [--repeats 1]

Every program runs in a child under a cgroup limit; its result is checked afterwards, here, by NumPy with memory enough.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cgroup, common, data, keys

COLUMNS = 32
FACTORS = (3, 5, 7, 11)
QUANTILES = [0.01, 0.5, 0.99]
BLOCK_ROWS = 1 << 17
MOVED = ("bytes_read", "bytes_written")

Inputs = Mapping[str, Any]


# -- programs: named inputs, opened, to targets by the names of their files ------------------------------------------


def sort_by(oc: Any, given: Inputs) -> dict[str, Any]:
    columns = oc.sort_by(given["key"], *(given[f"value{number}"] for number in range(len(FACTORS))))
    return {"key": columns[0]} | {f"value{number}": column for number, column in enumerate(columns[1:])}


def argsort(oc: Any, given: Inputs) -> dict[str, Any]:
    return {"order": oc.argsort(given["keys"])}


def quantile(oc: Any, given: Inputs) -> dict[str, Any]:
    return {"quantiles": oc.quantile(given["X"], QUANTILES, axis=0)}


def mask(oc: Any, given: Inputs) -> dict[str, Any]:
    rows = given["X"]
    return {"rows": rows[rows[:, 3] > 0.5]}


def nonzero(oc: Any, given: Inputs) -> dict[str, Any]:
    return {"places": oc.nonzero(given["keys"] > 0)[0]}


def unique(oc: Any, given: Inputs) -> dict[str, Any]:
    return {"values": oc.unique_values(given["keys"])}


def cumulative_sum(oc: Any, given: Inputs) -> dict[str, Any]:
    return {"sums": oc.cumulative_sum(given["keys"])}


def take(oc: Any, given: Inputs) -> dict[str, Any]:
    return {"taken": oc.take(given["keys"], given["places"])}


def groups(oc: Any, given: Inputs) -> dict[str, Any]:
    grouped = oc.groupby(given["labels"])
    return {"means": grouped.mean(given["X"]), "labels": grouped.keys}


# -- checks: what is wrong with the files that a program left, or None -----------------------------------------------


def blocks(*paths: Path) -> Iterator[tuple[int, list[Any]]]:
    """The same rows of several .npy files at a time, with where they start."""
    maps = [np.load(path, mmap_mode="r") for path in paths]
    for start in range(0, len(maps[0]), BLOCK_ROWS):
        yield start, [np.array(one[start : start + BLOCK_ROWS]) for one in maps]


def check_sort_by(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    for _, (key, *values) in blocks(made["key"], *(made[f"value{number}"] for number in range(len(FACTORS)))):
        for factor, value in zip(FACTORS, values, strict=True):
            if not np.array_equal(value, key * factor):
                return f"a value column of factor {factor} lost its keys"
    digest = keys.Digest()
    for block in keys.npy_blocks(given["key"]):
        digest.add(block)
    return keys.wrong(keys.npy_blocks(made["key"]), vars(digest))


def check_argsort(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    values, order = np.load(given["keys"]), np.load(made["order"])
    seen = np.zeros(values.size, bool)
    seen[order] = True
    if order.size != values.size or not seen.all():
        return "not a permutation"
    ordered = values[order]
    same = ordered[1:] == ordered[:-1]
    if not (same | (ordered[1:] > ordered[:-1])).all():
        return "not sorted"
    return None if (order[1:] > order[:-1])[same].all() else "not stable"


def check_quantile(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    found, rows = np.load(made["quantiles"]), np.load(given["X"], mmap_mode="r")
    for column in (0, COLUMNS // 2, COLUMNS - 1):
        wanted = np.quantile(np.array(rows[:, column]), QUANTILES)
        if not np.allclose(found[:, column], wanted, rtol=1e-12, atol=0):
            return f"column {column}: {found[:, column]}, wanted {wanted}"
    return None


def check_mask(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    found, place = np.load(made["rows"], mmap_mode="r"), 0
    for start, (rows,) in blocks(given["X"]):
        wanted = rows[rows[:, 3] > 0.5]
        if not np.array_equal(found[place : place + len(wanted)], wanted):
            return f"rows picked from {start} on differ"
        place += len(wanted)
    return None if place == len(found) else f"{len(found)} rows, wanted {place}"


def check_nonzero(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    found, place = np.load(made["places"], mmap_mode="r"), 0
    for start, (block,) in blocks(given["keys"]):
        wanted = np.flatnonzero(block > 0) + start
        if not np.array_equal(found[place : place + wanted.size], wanted):
            return f"places from {start} on differ"
        place += wanted.size
    return None if place == len(found) else f"{len(found)} places, wanted {place}"


def check_unique(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    values = np.load(given["keys"])
    values.sort()
    first = np.append(True, values[1:] != values[:-1])
    return None if np.array_equal(np.load(made["values"]), values[first]) else "other values"


def check_cumulative_sum(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    total = np.zeros(1, np.int64)
    for start, (block, sums) in blocks(given["keys"], made["sums"]):
        if not np.array_equal(np.cumsum(block) + total, sums):
            return f"sums from {start} on differ"
        total = sums[-1:]
    return None


def check_take(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    values = np.load(given["keys"])
    for start, (places, taken) in blocks(given["places"], made["taken"]):
        if not np.array_equal(values[places], taken):
            return f"elements from {start} on differ"
    return None


def check_groups(given: dict[str, Path], made: dict[str, Path]) -> str | None:
    labels, rows = np.load(given["labels"]), np.load(given["X"], mmap_mode="r")
    counts = np.bincount(labels)
    present = np.flatnonzero(counts)
    if not np.array_equal(np.load(made["labels"]), present):
        return "other labels"
    means = np.load(made["means"], mmap_mode="r")
    for column in (0, COLUMNS // 2, COLUMNS - 1):
        wanted = np.bincount(labels, weights=np.array(rows[:, column]))[present] / counts[present]
        if not np.allclose(means[:, column], wanted, rtol=1e-10, atol=0):
            return f"means of column {column} differ"
    return None


# -- inputs -------------------------------------------------------------------------------------------------------


def make_keys(folder: Path, size: int) -> dict[str, Path]:
    paths = {"keys": folder / f"keys-{size}.npy"}
    if not paths["keys"].exists():
        keys.write(paths["keys"], "duplicates", size // 8)
    return paths


def make_rows(folder: Path, size: int) -> dict[str, Path]:
    path = folder / f"rows-{size}.npy"
    if not path.exists():
        data.write_npy(path, (size // (8 * COLUMNS), COLUMNS), keys.SEED)
    return {"X": path}


def make_columns(folder: Path, size: int) -> dict[str, Path]:
    """A key and its multiples, so that a row that falls apart is seen."""
    count = size // 8 // (1 + len(FACTORS))
    paths = {"key": folder / f"key-{size}.npy"}
    paths |= {f"value{number}": folder / f"value{number}-{size}.npy" for number in range(len(FACTORS))}
    if not all(path.exists() for path in paths.values()):
        keys.write(paths["key"], "duplicates", count)
        key = np.load(paths["key"], mmap_mode="r")
        for number, factor in enumerate(FACTORS):
            value = np.lib.format.open_memmap(paths[f"value{number}"], "w+", key.dtype, key.shape)
            for start in range(0, count, keys.BLOCK):
                value[start : start + keys.BLOCK] = key[start : start + keys.BLOCK] * factor
    return paths


def make_labels(groups: int) -> Callable[[Path, int], dict[str, Path]]:
    """A table, and a label for each row, drawn evenly."""

    def make(folder: Path, size: int) -> dict[str, Path]:
        paths = make_rows(folder, size) | {"labels": folder / f"labels-{groups}-{size}.npy"}
        if not paths["labels"].exists():
            count = size // (8 * COLUMNS)
            np.save(paths["labels"], np.random.default_rng(keys.SEED).integers(0, groups, count))
        return paths

    return make


def make_places(folder: Path, size: int) -> dict[str, Path]:
    """Keys and as many places of them, drawn evenly."""
    paths = make_keys(folder, size // 2) | {"places": folder / f"places-{size}.npy"}
    if not paths["places"].exists():
        count = size // 16
        target = np.lib.format.open_memmap(paths["places"], "w+", np.int64, (count,))
        random = np.random.default_rng(keys.SEED)
        for start in range(0, count, keys.BLOCK):
            target[start : start + keys.BLOCK] = random.integers(0, count, min(keys.BLOCK, count - start))
    return paths


@dataclass(frozen=True)
class Program:
    make: Callable[[Path, int], dict[str, Path]]
    build: Callable[[Any, Inputs], dict[str, Any]]
    check: Callable[[dict[str, Path], dict[str, Path]], str | None]


PROGRAMS = {
    "sort_by": Program(make_columns, sort_by, check_sort_by),
    "argsort": Program(make_keys, argsort, check_argsort),
    "quantile": Program(make_rows, quantile, check_quantile),
    "mask": Program(make_rows, mask, check_mask),
    "nonzero": Program(make_keys, nonzero, check_nonzero),
    "unique": Program(make_keys, unique, check_unique),
    "cumulative_sum": Program(make_keys, cumulative_sum, check_cumulative_sum),
    "take": Program(make_places, take, check_take),
    "ten groups": Program(make_labels(10), groups, check_groups),
    "10⁴ groups": Program(make_labels(10**4), groups, check_groups),
    "10⁷ groups": Program(make_labels(10**7), groups, check_groups),
}


def run(program: str, inputs: Mapping[str, str], out: str, session: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """In the child: plans and stores; the forecast made before beside what was counted."""
    import outcore as oc

    with oc.Session(progress=False, **(session or {})) as current:
        started = time.perf_counter()
        given = {name: oc.open(path) for name, path in inputs.items()}
        made = PROGRAMS[program].build(oc, given)
        targets = {f"{out}/{name}.npy": array for name, array in made.items()}
        told = oc.explain(targets, overwrite=True)
        done = oc.store(targets, overwrite=True)
        seconds = time.perf_counter() - started
        counted = current.counters()
    # A shape that depends on data is found before there is a program to forecast: the session counts that as well.
    totals = {f"session_{name}": counted[name] for name in MOVED}
    forecast = {name: getattr(told, name) for name in (*MOVED, "exact")}
    return (
        {"seconds": seconds, "forecast": forecast, "results": list(made)}
        | totals
        | {name: getattr(done, name) for name in (*MOVED, "bytes_spilled", "peak_bytes")}
    )


def input_paths(name: str, options: argparse.Namespace) -> dict[str, Path]:
    """A program's inputs; those that are there are kept."""
    return PROGRAMS[name].make(options.folder, options.size)


def case(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One run of a program in a child, and the check of its files."""
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    program = PROGRAMS[name]
    given = input_paths(name, options)
    cgroup.drop_page_cache(options.folder)
    session = {"memory_limit": options.limit, "threads": options.threads, "scratch": [str(out)]}
    arguments = {"program": name, "inputs": {key: str(path) for key, path in given.items()}, "out": str(out)}
    outcome = cgroup.run_limited(
        "benchmarks.algorithms:run", arguments | {"session": session}, options.limit, options.timeout
    )
    if outcome.reason:
        return {"failed": outcome.reason, "limited_by": outcome.limited_by}
    made = {result: out / f"{result}.npy" for result in outcome.value["results"]}
    wrong = program.check(given, made)
    return outcome.value | {
        "limited_by": outcome.limited_by,
        "peak_rss_bytes": outcome.peak_rss_bytes,
        "device_read_bytes": outcome.io["read_bytes"],
        "device_written_bytes": outcome.io["write_bytes"],
        "input_bytes": sum(path.stat().st_size for path in given.values()),
        "output_bytes": sum(path.stat().st_size for path in made.values()),
        **({"failed": f"**wrong: {wrong}**"} if wrong else {}),
    }


def row(name: str, result: dict[str, Any]) -> list[str]:
    if result.get("failed"):
        return [name, result["failed"], *[""] * (len(HEADER) - 2)]
    forecast, size = result["forecast"], result["input_bytes"]
    sign = "=" if forecast["exact"] else "≤"
    inside = [result[key] == forecast[key] if forecast["exact"] else result[key] <= forecast[key] for key in MOVED]
    return [
        name,
        f"{result['seconds']:.2f}",
        f"{result['seconds_min']:.2f}–{result['seconds_max']:.2f} (n={result['n']})",
        *(f"{result[key] / size:.3f} × {sign} {forecast[key] / size:.3f} ×" for key in MOVED),
        "yes" if all(inside) else "**NO**",
        *(f"{result[f'session_{key}'] / size:.3f} ×" for key in MOVED),
        *(f"{result[key] / size:.3f} ×" for key in ("device_read_bytes", "device_written_bytes")),
        f"{result['output_bytes'] / size:.3f} ×",
        common.show_bytes(result["peak_rss_bytes"]),
    ]


HEADER = [
    *("program", "seconds", "spread", "read", "written", "as forecast", "read in all", "written in all"),
    *("device read", "device written", "result", "RSS"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=common.parse_size, default=4 * common.GIB, help="bytes of each program's inputs")
    parser.add_argument("--limit", type=common.parse_size, default=512 * common.MIB)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--only", default=",".join(PROGRAMS), help="programs by comma")
    parser.add_argument("--keep", action="store_true", help="keep the inputs for the next time")
    parser.add_argument("--folder", type=Path, default=Path("data/bench"))
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in options.only.split(",") if name]
    if set(names) - set(PROGRAMS):
        parser.error(f"--only {options.only}: the programs are {', '.join(PROGRAMS)}")
    inputs = {path for name in names for path in input_paths(name, options).values()}
    results = common.alternating({name: lambda name=name: case(name, options) for name in names}, options.repeats)
    shutil.rmtree(options.folder / "out", ignore_errors=True)
    for path in () if options.keep else inputs:
        path.unlink(missing_ok=True)
    about = (
        f"Inputs of {common.show_bytes(options.size)} for each program, limit {common.show_bytes(options.limit)}, "
        f"{options.threads} threads. Bytes are multiples of the inputs: of the store against its forecast (= exact, "
        "≤ a bound), of the session in all, with finding shapes that depend on data, and as the kernel saw them at the "
        "device. Every result was checked against NumPy."
    )
    table = common.table(HEADER, [row(name, result) for name, result in results.items()])
    common.write_record("algorithms", "Algorithms on data larger than memory", options.folder, [about, table], results)
    if any(result.get("failed") for result in results.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
