"""Each format, and each method of xarray, over data eight times as large as the memory, in a real group.

    python -m benchmarks.eightfold [--only WORD] [--parts arrays tables matrices engine manager]

A child per file and per method, in a memory group of the limit. Expected: the right result, no kill, a resident peak of
at most the limit, and the bytes that were forecast. `make test-eightfold` does all, in half an hour and 8 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import cgroup, common

if str(cgroup.ROOT / "tests") not in sys.path:
    sys.path.append(str(cgroup.ROOT / "tests"))

from benchmarks import eightfold_formats, eightfold_tables, eightfold_xarray

FACTOR, DAYS = 8, 7300
TIMEOUT_SECONDS = 240
# Memory of a process beside data: NumPy alone, h5py, pyarrow, xarray and pandas.
LIMITS = {"arrays": 112, "tables": 288, "matrices": 192, "engine": 320, "manager": 320}
# Cases that take more: pandas beside pyarrow, and the encoders' own memory for chunks in flight.
LARGER = {"kerchunk, Parquet, read": 224, "region": 288, "HDF5, shuffle and gzip, written": 288}
LARGER |= dict.fromkeys((f"Zarr, {codec}, written" for codec in ("gzip", "zstd", "blosc", "crc32c")), 288)
LARGER |= {"append, zstd": 288, "region, zstd": 288}
Results = dict[str, list[dict[str, Any]]]
COLUMNS = ("what", "data", "limit", "peak", "seconds", "read", "written", "forecast", "result")


class Case(NamedTuple):
    """A child, how its result is checked, and the folder of its files."""

    name: str
    target: str
    arguments: dict[str, Any]
    check: Callable[[Any, Path], None]
    data_bytes: int

    def limit(self, usual: int) -> int:
        """Bytes of its group: an eighth of its data."""
        return max(usual, LARGER.get(self.name, 0) << 20)


def array_cases(folder: Path, usual: int, chosen: Callable[[str], bool]) -> Iterator[Case]:
    formats = eightfold_formats
    for name, (suffix, dtype, make) in formats.ARRAYS.items():
        if not chosen(f"{name}, read"):
            continue
        limit = max(usual, LARGER.get(f"{name}, read", 0) << 20)
        # Packed numbers of 16 bits are 64 bits wide where they are read.
        size = FACTOR * limit // (4 if name.startswith("NetCDF") else 1)
        numbers, path = formats.Numbers(size, dtype), folder / f"x{suffix}"
        how = make(path, numbers)
        copy = "copy.zarr" if name == ".npy" else "copy.npy"
        given = {"path": str(path), "how": how, "copy": copy}

        def check(value: Any, out: Path, numbers: Any = numbers, how: Any = how) -> None:
            formats.check(numbers, how, out, ("read", "copy"))

        yield Case(f"{name}, read", "eightfold_formats:read", given, check, FACTOR * limit)
    source = folder / "source.npy"
    written = [(f"{name}, written", "write", name) for name in formats.WRITTEN]
    for label, function, name in [*written, *((name, "step", name) for name in formats.STEPS)]:
        if not chosen(label):
            continue
        limit = max(usual, LARGER.get(label, 0) << 20)
        numbers = formats.Numbers(FACTOR * limit)
        formats.make_npy(source, numbers)
        given = {"source": str(source), "name": name}
        if function == "write":
            given["name"], given["options"] = formats.WRITTEN[name]

        def check_copy(value: Any, out: Path, numbers: Any = numbers) -> None:
            formats.check(numbers, {}, out, ("copy",))

        yield Case(label, f"eightfold_formats:{function}", given, check_copy, FACTOR * limit)


def table_cases(folder: Path, limit: int, chosen: Callable[[str], bool]) -> Iterator[Case]:
    size = FACTOR * limit
    for name, (suffix, make) in eightfold_tables.TABLES.items():
        if not chosen(name):
            continue
        rows, path = eightfold_tables.Rows(size), folder / f"x{suffix}"
        make(path, rows)
        target = ".columns" if name == "Parquet" else ".parquet"

        def check(value: Any, out: Path, rows: Any = rows) -> None:
            assert value["results"] == [rows.expected()] * 2

        given = {"path": str(path), "size": size, "target": target}
        yield Case(name, "eightfold_tables:table", given, check, size)


def matrix_cases(folder: Path, limit: int, chosen: Callable[[str], bool]) -> Iterator[Case]:
    for name, (suffix, width, make) in eightfold_tables.MATRICES.items():
        if not chosen(name):
            continue
        order, path = FACTOR * limit // (width * eightfold_tables.DEGREE), folder / f"x{suffix}"
        make(path, order)

        def check(value: Any, out: Path, name: str = name, order: int = order) -> None:
            (result,) = value["results"]
            assert result["least"] == result["largest"] == eightfold_tables.DEGREE
            eightfold_tables.again(name, order, out)

        given = {"path": str(path), "name": name, "order": order}
        yield Case(name, "eightfold_tables:matrix", given, check, FACTOR * limit)


def xarray_cases(folder: Path, limit: int, chosen: Callable[[str], bool], door: str) -> Iterator[Case]:
    field = eightfold_xarray.Field(FACTOR * limit, DAYS)
    path = folder.parent / f"era-{field.longitudes}.zarr"
    names = [*eightfold_xarray.methods(), *eightfold_xarray.FILES]
    if find_spec("matplotlib") is None:
        names.remove("plot")
        print("matplotlib is not installed: plot is left out", file=sys.stderr)
    for name in names:
        if not chosen(name):
            continue
        eightfold_xarray.make(path, field)
        writes = name in eightfold_xarray.FILES

        def check(value: Any, out: Path, name: str = name, writes: bool = writes) -> None:
            if writes:
                eightfold_xarray.check_files(name, field, out)
            else:
                eightfold_xarray.check(name, field, out, value["shape"])

        given = {"path": str(path), "name": name, "door": door}
        yield Case(name, f"eightfold_xarray:{'files' if writes else 'method'}", given, check, field.nbytes)


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def outcome_of(case: Case, out: Path, limit: int) -> dict[str, Any]:
    """What the kernel saw of a child, and whether its result is right."""
    begin = time.perf_counter()
    given = case.arguments | {"out": str(out), "limit": limit}
    ran = cgroup.run_limited(f"benchmarks.{case.target}", given, limit, TIMEOUT_SECONDS)
    value = ran.value or {}
    fault = ran.reason
    if fault is None:
        try:
            case.check(value, out)
        except AssertionError as error:
            fault = f"wrong: {error}"
    if fault is None and (ran.oom_kills or (ran.peak_rss_bytes or 0) > limit):
        fault = "above the limit"
    # Of programs whose steps depend on the numbers, bounds are forecast.
    runs = [run for run in value.get("runs", []) if "forecast" in run]
    exact = all(run["promised"] for run in runs)
    if fault is None and not all(run["forecast"] for run in runs if run["promised"]):
        fault = "not the bytes that were forecast"
    return {
        "name": case.name,
        "data_bytes": case.data_bytes,
        "limit_bytes": limit,
        "limited_by": ran.limited_by,
        "peak_bytes": ran.peak_rss_bytes,
        "oom_kills": ran.oom_kills,
        "seconds": value.get("seconds", time.perf_counter() - begin),
        "read_bytes": ran.io.get("read_bytes"),
        "written_bytes": ran.io.get("write_bytes"),
        "forecast": exact if runs else None,
        "fault": fault,
        "stderr": ran.stderr[-2000:] if fault else "",
    }


def row_of(outcome: dict[str, Any]) -> list[str]:
    """A line of the record."""
    sizes = [common.show_bytes(outcome[f"{name}_bytes"]) for name in ("data", "limit", "peak")]
    moved = [common.show_bytes(outcome[f"{name}_bytes"]) for name in ("read", "written")]
    exact = {True: "exact", False: "bounds", None: "–"}[outcome["forecast"]]
    fault = (outcome["fault"] or "right").splitlines()[0][:160]
    return [outcome["name"], *sizes, f"{outcome['seconds']:.1f}", *moved, exact, fault]


CASES: dict[str, Callable[[Path, int, Callable[[str], bool]], Iterator[Case]]] = {
    "arrays": array_cases,
    "tables": table_cases,
    "matrices": matrix_cases,
    "engine": lambda folder, limit, chosen: xarray_cases(folder, limit, chosen, "engine"),
    "manager": lambda folder, limit, chosen: xarray_cases(folder, limit, chosen, "manager"),
}
TITLES = {
    "arrays": "Arrays: sums along both axes, a copy, and the sums of the copy",
    "tables": "Tables: sums, sums of groups, a copy, and the sums of the copy",
    "matrices": "Sparse matrices and graphs: into `.ocs` or `.ocg`, the sums of rows, and the text again",
    "engine": 'xarray, `engine="outcore"`: all of a result is computed',
    "manager": 'xarray, `engine="zarr"` and the chunk manager',
}


def run_all(folder: Path, parts: list[str], only: list[str] | None, limits: dict[str, int]) -> Results:
    """Outcomes by their parts. They are kept as they come, for a record of several runs."""
    kept = folder.parent / f"{folder.name}.json"
    results: Results = {}
    for part in parts:
        results[part] = []
        for case in CASES[part](emptied(folder / "files"), limits[part], lambda name: not only or name in only):
            outcome = outcome_of(case, emptied(folder / "out"), case.limit(limits[part]))
            results[part].append(outcome)
            kept.write_text(json.dumps(results))
            print(part, *row_of(outcome), sep=" | ", flush=True)
            if part in ("arrays", "tables", "matrices"):
                emptied(folder / "files")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/eightfold"))
    parser.add_argument("--parts", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--only", nargs="+", help="names of cases")
    parser.add_argument("--kept", type=Path, nargs="*", default=[], help="outcomes of runs before, to be in the record")
    parser.add_argument("--limit", type=common.parse_size, help="of all parts, instead of each part's own")
    options = parser.parse_args()
    folder = options.folder.absolute()
    limits = {part: options.limit or LIMITS[part] << 20 for part in CASES}
    results: Results = {}
    for kept in options.kept:
        results |= json.loads(kept.read_text())
    if not options.kept:
        results = run_all(folder, options.parts, options.only, limits)
        shutil.rmtree(folder)
    sections = [
        "A child per line, in a memory group of the limit. Read and written are the device's bytes; the peak is the "
        "child's resident memory. A forecast is exact, or bounds where steps depend on the numbers.",
        *(f"## {TITLES[part]}\n\n{common.table(COLUMNS, list(map(row_of, rows)))}" for part, rows in results.items()),
    ]
    title = "Data eight times as large as the memory: each format, each method of xarray"
    packages = ["xarray", "zarr", "h5py", "netCDF4", "tifffile", "kerchunk", "pyarrow", "pandas"]
    if not options.only:
        common.write_record("eightfold", title, Path.cwd(), sections, {"cases": results}, packages)
    if faults := [row["name"] for rows in results.values() for row in rows if row["fault"]]:
        raise SystemExit(f"{len(faults)} faults: {', '.join(faults)}")


if __name__ == "__main__":
    main()
