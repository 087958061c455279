"""The four versions of Kandemir, Son and Karakoy (FAST 2008) beside the order that is found, by exact simulation.

    python -m benchmarks.loop_versions [--scale 1024] [--pool 64MiB] [--only sar,hf]

Nothing is read, written or computed: arrays are files without data, orders go through a simulated buffer, and "found"
is the forecast of the core, which is exact. `benchmarks/loop_schedules.py` says what each version is taken to be.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import outcore as oc
from benchmarks import common
from benchmarks.loop_buffer import Traffic, farthest, hamming, lru
from benchmarks.loop_lists import list_orders
from benchmarks.loop_mixes import PROGRAMS_II, mixed, parallel_mix
from benchmarks.loop_patterns import LoopCase, cases
from benchmarks.loop_schedules import VERSIONS, order_of, threads_order
from benchmarks.loop_tasks import ROUND_ROBIN, Layout, LoopProgram, loop_program, replay
from benchmarks.loop_time import Machine
from benchmarks.loops import WRITTEN, made

SEVEN = ("sar", "hf", "apsi", "wupwise", "e_elem", "astro", "contour")
BANDS = Layout(by="bands")
LAYOUTS = {
    "8 disks, tiles in turn": ROUND_ROBIN,
    "8 disks, bands": BANDS,
    "32 disks, bands": Layout(32, "bands"),
    "a disk for each tile": Layout(1 << 20),
}
STRIPES = (64 * common.KIB, common.MIB, 4 * common.MIB, 16 * common.MIB)
BUFFERS = (1, 2, 4, 8)
THREADS = (1, 2, 4, 8)


class Case(NamedTuple):
    """A pattern: its tasks, and forecasts of the order found, of that of the text, and of the text under LRU."""

    program: LoopProgram
    found: int
    order: str
    least: int
    zeros_first: int  # bytes of the text's order under LRU with zeros and copies where they stand
    rows: int  # the core's forecast of that order, under the session's policy
    window: int  # tasks that the plan has at work or reads ahead for, at most


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=1024, help="MiB of a large array")
    parser.add_argument("--pool", type=common.parse_size, default=64 * common.MIB)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=Path("data/bench/loop_versions"))
    return parser.parse_known_args()[0]  # flags of bench-loops come here too


def prepared(case: LoopCase, folder: Path, pool: int, policy: str = "next-use") -> Case:
    """A case as a session plans it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    chosen = {"policy": policy, "threads": Machine().threads, "scratch": [str(folder)], "progress": False}
    with oc.Session(pool_limit=pool, memory_limit="16GiB", **chosen):
        results = case.program(*made(case, folder), *case.others)
        results = results if isinstance(results, tuple) else (results,)
        targets = {str(folder / f"out{number}.npy"): result for number, result in enumerate(results)}
        said = oc.explain(targets, overwrite=True)
        program = loop_program(targets)
        zeros_first = loop_program(targets, zeros_first=True)
    shutil.rmtree(folder)
    text = lru(zeros_first, range(len(zeros_first.tasks))).moved
    tried = {order["order"]: order["bytes_read"] + order["bytes_written"] for order in said.candidates}
    found = said.bytes_read + said.bytes_written
    return Case(program, found, said.order, least_bytes(program), text, tried.get(WRITTEN, found), said.window)


def least_bytes(program: LoopProgram) -> int:
    """Inputs that are read and results, once each."""
    read = {tile for task in program.tasks for tile in task.read if program.tiles[tile].is_there}
    return sum(program.tiles[tile].read for tile in read) + sum(tile.result for tile in program.tiles)


def all_prepared(names: Sequence[str], scale: int, pool: int, folder: Path) -> dict[str, Case]:
    return {name: prepared(cases(scale)[name], folder, pool) for name in names}


def checked(program: LoopProgram, order: Sequence[int]) -> Sequence[int]:
    """The order, if it is legal."""
    if not replay(program, order):
        raise AssertionError("an order that breaks dependences")
    return order


def traffic(case: Case, version: str, layout: Layout = ROUND_ROBIN) -> Traffic:
    """What a version moves through the paper's buffer."""
    order = checked(case.program, order_of(case.program, version, layout))
    return lru(case.program, order, layout=layout)


def mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


def saved(moved: Sequence[float], base: Sequence[float]) -> float:
    """Percent less than the base, in the mean over programs."""
    return 100 - 100 * mean([mine / other for mine, other in zip(moved, base, strict=True)])


def show_saved(moved: Sequence[float], base: Sequence[float]) -> str:
    return f"{saved(moved, base):.1f} %"


def by_pattern(all_cases: dict[str, Case]) -> str:
    """All versions of all patterns, with the figures of the disks."""
    rows: list[list[Any]] = []
    for name, case in all_cases.items():
        for version in VERSIONS:
            order = order_of(case.program, version)
            found = lru(case.program, checked(case.program, order))
            rows.append([name, version, *_cells(case, found), hamming(case.program, order), *_disk_cells(found)])
        chosen = checked(case.program, case.program.chosen)
        placed = farthest(case.program, chosen)
        cells = [common.show_bytes(case.found), f"{case.found / case.least:.2f}", f"≈ {placed.visits:.2f}"]
        rows.append([name, f"found ({case.order})", *cells, hamming(case.program, chosen), *_disk_cells(placed)])
    columns = ["program", "version", "moved", "× least", "visits", "Hamming", "switches", "idle", "per disk"]
    return common.table(columns, rows)


def _cells(case: Case, found: Traffic) -> list[str]:
    return [common.show_bytes(found.moved), f"{found.moved / case.least:.2f}", f"{found.visits:.2f}"]


def _disk_cells(found: Traffic) -> list[Any]:
    per_disk = f"{common.show_bytes(min(found.disks))} – {common.show_bytes(max(found.disks))}"
    return [found.switches, f"{100 * found.idle:.0f} %", per_disk]


def in_the_mean(all_cases: dict[str, Case]) -> tuple[str, dict[str, Any]]:
    """Figures 15 and 17: bytes saved over the base, and visits, for each layout."""
    paper = {
        "as-written": ("0 %", "3.9"),
        "clo": ("10.4 %", "–"),
        "disk-maps-nest": ("16.1 %", "–"),
        "disk-maps": ("23.9 %", "2.1"),
    }
    listed = list(all_cases.values())
    base = [traffic(case, "as-written").moved for case in listed]
    rows, figures = [], {}
    for version in VERSIONS:
        for title, layout in LAYOUTS.items():
            if version in ("as-written", "clo") and layout is not ROUND_ROBIN:
                continue
            all_moved = [traffic(case, version, layout) for case in listed]
            visits = mean([moved.visits for moved in all_moved])
            less = saved([moved.moved for moved in all_moved], base)
            rows.append([version, title, f"{less:.1f} %", paper[version][0], f"{visits:.2f}", paper[version][1]])
            figures[f"{version}, {title}"] = {"saved": less, "visits": visits}
    visits = mean([farthest(case.program, case.program.chosen).visits for case in listed])
    less = saved([case.found for case in listed], base)
    rows.append(["found", "any", f"{less:.1f} %", "–", f"≈ {visits:.2f}", "–"])
    text = saved([case.found for case in listed], [case.zeros_first for case in listed])
    rows.append(["found", "any, over the text with zeros first", f"{text:.1f} %", "–", "", "–"])
    figures["found"] = {"saved": less, "saved over zeros first": text, "visits": visits}
    columns = ["version", "layout", "bytes saved", "paper: I/O time saved", "visits", "paper"]
    return common.table(columns, rows), figures


def _row(title: str, listed: list[Case], layout: Layout) -> list[str]:
    """Bytes saved by each version, by what was found, and visits of the base and of disk-maps."""
    base = [traffic(case, "as-written", layout) for case in listed]
    moved = [found.moved for found in base]
    row = [title]
    for version in VERSIONS[1:]:
        row.append(show_saved([traffic(case, version, layout).moved for case in listed], moved))
    row.append(show_saved([case.found for case in listed], moved))
    whole = [traffic(case, "disk-maps", layout).visits for case in listed]
    return [*row, f"{mean([found.visits for found in base]):.2f}", f"{mean(whole):.2f}"]


def sensitivity(first: str, rows: list[list[str]]) -> str:
    columns = [first, *VERSIONS[1:], "found", "visits as written", "visits disk-maps"]
    return common.table(columns, rows)


def by_buffer(names: Sequence[str], options: argparse.Namespace) -> str:
    """Figure 18."""
    rows = []
    for factor in BUFFERS:
        pool = factor * options.pool
        listed = list(all_prepared(names, options.scale, pool, options.folder).values())
        for layout, title in ((ROUND_ROBIN, "in turn"), (BANDS, "bands")):
            rows.append(_row(f"{common.show_bytes(pool)}, {title}", listed, layout))
    return sensitivity("memory, layout", rows)


def by_data(names: Sequence[str], options: argparse.Namespace) -> str:
    """Figure 19: arrays of a quarter, of the default and of one and a half times its size."""
    rows = []
    for pool in (options.pool, 4 * options.pool):
        for scale in (options.scale // 4, options.scale, options.scale * 3 // 2):
            listed = list(all_prepared(names, scale, pool, options.folder).values())
            rows.append(_row(f"{scale} MiB, {common.show_bytes(pool)}", listed, BANDS))
    return sensitivity("arrays, memory", rows)


def by_stripe(listed: list[Case]) -> str:
    """Figure 20, of stripes over the disks; the buffer goes on by tiles."""
    return sensitivity("stripe", [_row(common.show_bytes(size), listed, Layout(by=size)) for size in STRIPES])


def by_threads(listed: list[Case]) -> str:
    """Figure 23."""
    base = [traffic(case, "as-written").moved for case in listed]

    def moved(threads: int, is_collective: bool, layout: Layout) -> list[int]:
        found = []
        for case in listed:
            order = threads_order(case.program, threads, is_collective=is_collective, layout=layout)
            found.append(lru(case.program, checked(case.program, order), layout=layout).moved)
        return found

    rows = []
    for threads in THREADS:
        paper = ("25.7 %", "33.3 %") if threads == 8 else ("–", "–")
        cells: list[str] = []
        for layout in (ROUND_ROBIN, BANDS):
            cells += [show_saved(moved(threads, kind, layout), base) for kind in (False, True)]
        rows.append([threads, *cells, *paper])
    head = ["threads", "individual, in turn", "collective, in turn", "individual, bands", "collective, bands"]
    return common.table([*head, "paper: individual", "paper: collective"], rows)


def by_mix(all_cases: dict[str, Case]) -> str:
    """Figure 24: programs at once, task by task in turn through one buffer, and one after the other."""
    rows = []
    for title, chosen, order in _scenarios(all_cases):
        alone = sum(case.found for case in chosen)
        base = mixed([case.program for case in chosen], [order(case.program, "as-written") for case in chosen]).moved
        for version in VERSIONS:
            orders = [order(case.program, version) for case in chosen]
            together = mixed([case.program for case in chosen], orders).moved
            apart = sum(lru(case.program, mine).moved for case, mine in zip(chosen, orders, strict=True))
            cells = [common.show_bytes(together), f"{100 - 100 * together / base:.1f} %", common.show_bytes(apart)]
            rows.append([title, version, *cells, common.show_bytes(alone)])
    columns = ["programs", "version", "at once, in turn", "saved", "one after the other", "found, one after the other"]
    return common.table(columns, rows)


Ordered = Callable[[LoopProgram, str], Sequence[int]]


def _scenarios(all_cases: dict[str, Case]) -> list[tuple[str, list[Case], Ordered]]:
    two = [case for name, case in all_cases.items() if name in PROGRAMS_II]
    single = ("one thread each", list(all_cases.values()), lambda program, version: order_of(program, version))
    return [single, (f"{len(two)} of two threads", two, parallel_mix)]


def losses(all_cases: dict[str, Case]) -> str:
    """What was found beside the best order of these, placed by the farthest next use, one task at a time."""
    rows = []
    for name, case in all_cases.items():
        same = farthest(case.program, case.program.chosen).moved
        best, least = best_placed(case)
        cells = [common.show_bytes(part) for part in (case.found, same, least)]
        rows.append([name, *cells, best, f"{case.found / least:.2f}"])
    columns = ["program", "found", "its order, placed here", "best order, placed here", "which", "found / best"]
    return common.table(columns, rows)


def best_placed(case: Case) -> tuple[str, int]:
    """The order, of all versions and list schedules, that moves least under the farthest next use, and its bytes."""
    tried = dict(list_orders(case.program))
    for title, layout in LAYOUTS.items():
        for version in VERSIONS:
            is_disk_map = version.startswith("disk-maps")
            tried[f"{version}, {title}" if is_disk_map else version] = order_of(case.program, version, layout)
    moved = {title: farthest(case.program, checked(case.program, order)).moved for title, order in tried.items()}
    best = min(moved, key=lambda title: moved[title])
    return best, moved[best]


def main() -> None:
    options = arguments()
    names = [name for name in SEVEN if not options.only or name in options.only.split(",")]
    all_cases = all_prepared(names, options.scale, options.pool, options.folder)
    listed = list(all_cases.values())
    means, figures = in_the_mean(all_cases)
    small = all_prepared(names, options.scale // 4, options.pool // 2, options.folder)
    middle = all_prepared(names, options.scale // 4, options.pool, options.folder)
    compared = "\n\n".join(
        f"{scale} MiB under {common.show_bytes(pool)}.\n\n{losses(chosen)}"
        for scale, pool, chosen in (
            (options.scale, options.pool, all_cases),
            (options.scale // 4, options.pool, middle),
            (options.scale // 4, options.pool // 2, small),
        )
    )
    sections = [
        f"Arrays of about {options.scale} MiB, {common.show_bytes(options.pool)} for tiles. {TERMS}",
        f"## In the mean over programs (figures 15 and 17)\n\n{means}\n\n{MEANING}",
        f"## By program\n\nEight disks, tiles in turn.\n\n{by_pattern(all_cases)}",
        f"## Memory (figure 18)\n\n{PAPER_MEMORY}\n\n{by_buffer(names, options)}",
        f"## Data (figure 19)\n\nBands. The paper: gains grow with data.\n\n{by_data(names, options)}",
        f"## Stripes (figure 20)\n\n{PAPER_STRIPES}\n\n{by_stripe(listed)}",
        f"## Threads (figure 23)\n\nBytes saved over one thread as written.\n\n{by_threads(listed)}",
        f"## Programs at once (figure 24)\n\nSessions take turns at the memory.\n\n{by_mix(all_cases)}",
        f"## Orders against the search\n\n{AGAINST}\n\n{compared}",
        NOT_COMPARED,
    ]
    title = "The paper's versions of loop programs"
    common.write_record("loop-versions", title, options.folder.parent, sections, figures)


TERMS = """Versions run through an LRU buffer over tiles, by exact simulation; "found" is the forecast of the core.
Visits are times that a tile comes into the buffer, read or new, by tile; those of what is found are simulated. Zeros of
new arrays and copies of arguments that are written come with the first task that uses them, so the base reads and
writes nothing for them; the last row of the first table counts them where they stand in the text. A switch is a disk
that begins or ends to work from one task with transfers to the next; idle is the share of disks' time if each task
waits for its busiest disk."""
MEANING = """Least Hamming distance goes to another tile of the same disks before it goes to a tile at hand. So it saves
where the share of a disk fits the buffer (arrays as large as the memory, last table of figure 19: about the paper's
figures) or each tile has a disk of its own, and moves more where a disk holds many more tiles than the buffer."""
PAPER_MEMORY = "The paper: gains fall with the buffer, 6.7 % of total time at the largest."
PAPER_STRIPES = """The paper: gains are higher with small stripes. Here a stripe below a tile puts tiles on several
disks or all, and maps say less."""
AGAINST = """Under the same memory, with all of it for one task at a time; the core keeps the tiles of tasks at work and
read ahead for. Lists are schedules by the fewest bytes brought in (`benchmarks/loop_lists.py`), in which zeros and
copies run with the task that first uses them."""
NOT_COMPARED = """## Not compared

The programs are reconstructions after names and descriptions; the paper prints no code, and of its figures the text
alone is at hand. The paper measures seconds, here are bytes; `benchmarks/loop_seconds.py` simulates seconds, with and
without prefetching (figure 21). Its blocks of 64 KiB are 1/16384 of the buffer, tiles are about 1/15, and tasks over
tiles have the reuse within a tile already, in the base too: so visits as written are fewer than its 3.9. Layouts by
permuted dimensions (figure 22) need other files."""


if __name__ == "__main__":
    main()
