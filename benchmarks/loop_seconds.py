"""Seconds of the paper's versions and of the default order on eight disks of 200 MB/s, by simulation.

    python -m benchmarks.loop_seconds [--scale 1024] [--pool 64MiB] [--only sar,hf] [--run-scale 256] [--run-pool 32MiB]

`benchmarks/loop_placement.py` gives the steps of an order, `benchmarks/loop_time.py` their time. Only the last table is
of real runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import common
from benchmarks.loop_lists import list_orders
from benchmarks.loop_placement import Rule, placed, placed_by_default
from benchmarks.loop_schedules import VERSIONS, order_of
from benchmarks.loop_tasks import ROUND_ROBIN, Layout, LoopProgram, Order
from benchmarks.loop_time import SATA_SSD, SEEK_AND_TURN, Machine, Power, Timing, timed
from benchmarks.loop_versions import BANDS, SEVEN, Case, all_prepared, checked, mean
from benchmarks.loop_volume import counted, runs

DEFAULT = "default"
STRIPED = Layout(by=common.MIB)
LAYOUTS = {"tiles in turn": ROUND_ROBIN, "stripes of 1 MiB": STRIPED, "bands": BANDS}
MACHINES = {
    "as above": Machine(),
    "0.1 ms a request (SATA SSD)": Machine(latency=SATA_SSD),
    "11.6 ms a request (seek and half a turn)": Machine(latency=SEEK_AND_TURN),
    "tasks 4 times as fast": Machine(compute_rate=4e9),
    "tasks 4 times as slow": Machine(compute_rate=0.25e9),
    "1 thread": Machine(threads=1),
    "8 threads": Machine(threads=8),
}
NO_COMPUTING = Machine(compute_rate=1e15)
NO_DISKS = Machine(disk_rate=1e15, latency=0.0)


class Run(NamedTuple):
    """Bytes and time of a version."""

    moved: int
    timing: Timing

    @property
    def seconds(self) -> float:
        return self.timing.seconds


Runs = dict[tuple[str, bool], Run]  # by version, and whether it reads ahead


def rule_of(case: Case, version: str, threads: int, *, ahead: bool) -> Rule:
    """LRU for the paper's versions. The window is the plan's, or holds the tasks that threads are at, and no others."""
    window = case.window if ahead else threads - 1
    is_default = version == DEFAULT
    return Rule(is_default, window, threads, is_patient=is_default and case.order.endswith("patient"))


def run_of(
    case: Case, version: str, layout: Layout = ROUND_ROBIN, machine: Machine | None = None, *, ahead: bool = True
) -> Run:
    """A version, with tiles read ahead as the default reads them, or not."""
    machine = machine or Machine()
    program = case.program
    rule = rule_of(case, version, machine.threads, ahead=ahead)
    if version == DEFAULT:
        order: Order = checked(program, program.chosen)
        steps = placed_by_default(program, order, rule)
    else:
        order = checked(program, order_of(program, version, layout))
        steps = placed(program, order, rule)
    return Run(steps.moved, timed(program, order, steps, machine, layout))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=1024, help="MiB of a large array")
    parser.add_argument("--pool", type=common.parse_size, default=64 * common.MIB)
    parser.add_argument("--run-scale", type=int, default=256, help="MiB of a large array of the real runs")
    parser.add_argument("--run-pool", type=common.parse_size, default=32 * common.MIB)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=Path("data/bench/loop_seconds"))
    return parser.parse_args()


def all_runs(case: Case, layout: Layout) -> Runs:
    """The default and all versions."""
    found = {(DEFAULT, True): run_of(case, DEFAULT, layout)}
    for version in VERSIONS:
        for ahead in (False, True):
            found[version, ahead] = run_of(case, version, layout, ahead=ahead)
    return found


def best(found: Runs, *, ahead: bool) -> tuple[float, str]:
    """Seconds of the fastest of the paper's versions, and which."""
    return min((found[version, ahead].seconds, version) for version in VERSIONS)


def by_pattern(found_of: dict[str, Runs]) -> str:
    """Seconds of all versions, and those of the fastest of them over the default's."""
    rows = []
    for name, found in found_of.items():
        mine = found[DEFAULT, True].seconds
        row = [name, f"{mine:.1f}"]
        for ahead in (False, True):
            seconds, version = best(found, ahead=ahead)
            row += [f"{found[other, ahead].seconds:.1f}" for other in VERSIONS]
            row.append(f"{seconds / mine:.2f} ({version})")
        rows.append(row)
    columns = ["program", DEFAULT, *VERSIONS, "fastest / default", *(f"{version}, ahead" for version in VERSIONS)]
    return common.table([*columns, "fastest, ahead / default"], rows)


def seconds_of(found_of: dict[str, Runs]) -> dict[str, Any]:
    return {
        name: {f"{version}{', ahead' if ahead else ''}": run.seconds for (version, ahead), run in found.items()}
        for name, found in found_of.items()
    }


def savings(by_layout: dict[str, dict[str, Runs]]) -> str:
    """Figures 16 and 21: total time saved over the text without reading ahead, in the mean over programs."""
    paper = {"clo": "5.9 %", "disk-maps-nest": "9.0 %", "disk-maps": "13.5 %"}
    rows = []
    for version, ahead in [(v, a) for a in (False, True) for v in VERSIONS] + [(DEFAULT, True)]:
        cells = []
        for found_of in by_layout.values():
            listed = found_of.values()
            shares = [found[version, ahead].seconds / found["as-written", False].seconds for found in listed]
            cells.append(f"{100 - 100 * mean(shares):.1f} %")
        rows.append([version, "yes" if ahead else "no", *cells, "–" if ahead else paper.get(version, "–")])
    return common.table(["version", "reads ahead", *by_layout, "paper (figure 16)"], rows)


def disks(all_cases: dict[str, Case], layout: Layout) -> str:
    """Busy and idle times, switches and energy, of versions that do not read ahead and of the default."""
    rows = []
    power = Power()
    for name, case in all_cases.items():
        for version in (*VERSIONS, DEFAULT):
            run = run_of(case, version, layout, ahead=version == DEFAULT)
            rows.append([name, version, common.show_bytes(run.moved), *_disk_cells(run.timing, power)])
    columns = ["program", "version", "moved", "seconds", "busy a disk, s", "idle a disk, s", "switches a disk"]
    return common.table([*columns, "longest idle, s", "energy, kJ", "with standby, kJ"], rows)


def _disk_cells(timing: Timing, power: Power) -> list[str]:
    busy = [disk.busy for disk in timing.disks]
    switches = [disk.switches for disk in timing.disks]
    idle = [timing.seconds - seconds for seconds in busy]
    energy = [timing.joules(power, sleeps=sleeps) / 1000 for sleeps in (False, True)]
    return [
        f"{timing.seconds:.1f}",
        f"{min(busy):.1f} – {max(busy):.1f}",
        f"{min(idle):.1f} – {max(idle):.1f}",
        f"{min(switches)} – {max(switches)}",
        f"{timing.longest_gap:.1f}",
        *(f"{kilojoules:.2f}" for kilojoules in energy),
    ]


def other_machines(all_cases: dict[str, Case], layout: Layout) -> str:
    """The fastest version's seconds over the default's, on other machines."""
    rows = []
    for title, machine in MACHINES.items():
        for ahead in (False, True):
            cells = []
            for case in all_cases.values():
                seconds = [run_of(case, version, layout, machine, ahead=ahead).seconds for version in VERSIONS]
                cells.append(f"{min(seconds) / run_of(case, DEFAULT, layout, machine).seconds:.2f}")
            rows.append([title, "yes" if ahead else "no", *cells])
    return common.table(["machine", "versions read ahead", *all_cases], rows)


def reasons(all_cases: dict[str, Case], layout: Layout) -> str:
    """Orders placed by the farthest next use, with and without patience: seconds, also of disks and of tasks alone."""
    rows = []
    for name, case in all_cases.items():
        program = case.program
        orders: dict[str, Sequence[int]] = {f"chosen, {case.order}": program.chosen, "clo": order_of(program, "clo")}
        orders["list, 90 % of memory"] = list_orders(program)["list, 90 % of memory"]
        for title, order in orders.items():
            for is_patient in (False, True):
                rule = Rule(True, case.window, Machine().threads, is_patient=is_patient)
                rows.append([name, title, "yes" if is_patient else "no", *_parts(program, order, rule, layout)])
    columns = ["program", "order", "patient", "moved", "seconds", "without computing", "without disks"]
    return common.table(columns, rows)


def _parts(program: LoopProgram, order: Order, rule: Rule, layout: Layout) -> list[str]:
    steps = placed(program, order, rule)
    machines = (Machine(), NO_COMPUTING, NO_DISKS)
    seconds = [timed(program, order, steps, machine, layout).seconds for machine in machines]
    return [common.show_bytes(steps.moved), *(f"{one:.1f}" for one in seconds)]


def forecasts(all_cases: dict[str, Case]) -> str:
    """Bytes of the default as it is placed here, beside the forecast of the core."""
    rows = []
    for name, case in all_cases.items():
        moved = run_of(case, DEFAULT).moved
        rows.append([name, case.order, case.window, common.show_bytes(case.found), f"{moved / case.found:.3f}"])
    return common.table(["program", "order", "window", "forecast of the core", "placed here / forecast"], rows)


def _bodies() -> str:
    return "loops compiled by numba" if find_spec("numba") else "loops not compiled, since numba is not installed"


def main() -> None:
    options = arguments()
    names = tuple(name for name in SEVEN if not options.only or name in options.only.split(","))
    all_cases = all_prepared(names, options.scale, options.pool, options.folder)
    sections = [
        f"Arrays of about {options.scale} MiB, {common.show_bytes(options.pool)} for tiles. {MODEL}".replace("\n", " "),
        f"## Bytes of the default\n\n{forecasts(all_cases)}",
    ]
    by_layout = {
        title: {name: all_runs(case, layout) for name, case in all_cases.items()} for title, layout in LAYOUTS.items()
    }
    figures: dict[str, Any] = {title: seconds_of(found_of) for title, found_of in by_layout.items()}
    tables = [f"{title[0].upper()}{title[1:]}.\n\n{by_pattern(found_of)}" for title, found_of in by_layout.items()]
    sections.append("\n\n".join(["## Seconds", SECONDS, *tables]))
    sections += [
        f"## In the mean over programs (figures 16 and 21)\n\n{PAPER}\n\n{savings(by_layout)}",
        f"## Where the default is not the fastest\n\n{REASONS}\n\n{reasons(all_cases, STRIPED)}",
        f"## Disks\n\n{ENERGY}\n\n{disks(all_cases, ROUND_ROBIN)}",
        f"## Other machines, stripes of 1 MiB\n\n{OTHERS}\n\n{other_machines(all_cases, STRIPED)}",
    ]
    ran = runs(names, options.run_scale, options.run_pool, options.folder)
    figures["runs"] = ran
    size = f"Arrays of about {options.run_scale} MiB, {common.show_bytes(options.run_pool)} for tiles, {_bodies()}."
    sections.append(f"## Real runs\n\n{size} {RUNS}\n\n{counted(ran)}")
    title = "Simulated seconds of the paper's versions of loop programs"
    common.write_record("loop-seconds", title, options.folder.parent, sections, figures)


MODEL = """All seconds but those of the last table are simulated: nothing of them was measured. Eight disks of 200 MB/s
serve one request after the other, each 3 ms (half a turn at the paper's 10,000 a minute; the paper names no seek time)
and its bytes. Two threads go through 1 GB of their tasks' tiles a second each. All versions have the same memory, and
tiles lie alike for all of them. Reads are issued as far ahead as the window and the memory allow; a tile that leaves
memory is written as soon as no task of the window uses it. The paper's versions run through an LRU buffer, without
reading ahead (each thread reads the tiles of its task) and, "ahead", in the window of outcore's plan, which is more
than the paper's versions have in its figures 15 to 20. The default is the order and the placement of outcore's plan."""
SECONDS = """The paper stripes round robin, and the stripe is the block of the buffer: tiles in turn. Volumes have
stripes of 1 MiB over all disks. Bands put a contiguous part of each array on each disk (figure 3)."""
PAPER = """Time saved over the text that does not read ahead. In the paper prefetching and DRO-WP together are the best
(figure 21, of which the text has no numbers)."""
REASONS = """Stripes of 1 MiB, the farthest next use; the versions are above. The default's order is chosen by bytes
alone. A patient placement waits for the tasks of the window before a tile leaves that is needed again, so reads and
tasks go one after the other; and successive tasks of a list schedule often depend on each other, so that one thread
waits. Both save bytes, and cost time where computing takes as long as the disks do. Besides, where sweeps begin anew
the tile with the farthest next use is the one that was used last: its frame waits for its write, while LRU's victims
have been written for long. With tiles in turn that is a write to one disk (astro)."""
ENERGY = """Tiles in turn; versions do not read ahead. Seconds are the least and the most of the eight disks. Energy is
an estimate: 12 W at work, 7.5 W idle, 1 W in standby, 336 J to spin up (`Power` in `benchmarks/loop_time.py` has the
sources), and "with standby" as if the length of each idle time were known when it begins. The paper supposes that idle
disks could sleep; with these figures a disk has to be idle for 62 s before that saves anything."""
OTHERS = """The fastest version's seconds over the default's: above 1 the default is the fastest."""
RUNS = """On a volume of eight directories with its default layout, which are on one disk, so seconds say nothing of
eight. The store's tests have simulated disks of 200 MB/s (`crates/store/src/maintain/tests/simulated.rs`): a backend of
those tests, which keeps no bytes and which Python cannot choose."""


if __name__ == "__main__":
    main()
