"""The page of a profile answers, of ten programs of the guide: what bound the run, what was read twice and why, and
what the memory limit cost. Its figures are held against counters and sizes of files."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from support.running import session

import outcore as oc
from outcore import errors
from outcore._base.sizes import format_size
from outcore._session.caller import Call
from outcore._session.reached import Reached, refused, tentative
from outcore._session.record import Outcome
from outcore._session.trace import ArrayStrip, ProgramTrace, Run
from outcore._show.profile import Profile
from outcore._show.verdict import bound, limit_cost, read_twice

POOL = 22 << 20
BOUND = re.compile(
    r"The disk bound it|Computing bound it|Disk and computing bound it|Neither the disk nor|start and end weigh most"
)
COST = re.compile(r"[Tt]he pool limit of [\d.]+ MiB( cost|; oc.explain)")
MORE = "Nothing was read twice and nothing spilled"
SHORT = "shorter runs are not looked at"


def sentences(profile: Profile) -> list[str]:
    """The paragraphs of the page, as a reader has them."""
    page = re.sub(r"<(svg|style).*?</\1>", "", profile.page(), flags=re.DOTALL)
    return [html.unescape(re.sub(r"<.*?>", "", text)) for text in re.findall(r"<p.*?</p>", page, re.DOTALL)]


def matrix(folder: Path, rows: int = 5000, columns: int = 800) -> oc.Array:
    np.save(folder / "x.npy", np.random.default_rng(0).random((rows, columns)))
    return oc.open(folder / "x.npy")


def nmf(folder: Path) -> None:
    x = matrix(folder)
    w, h = oc.ones((x.shape[0], 5)), oc.ones((5, x.shape[1]))
    for _ in range(3):
        h = h * (w.T @ x) / (w.T @ w @ h + 1e-9)
        w = w * (x @ h.T) / (w @ (h @ h.T) + 1e-9)
    oc.store({folder / "w.npy": w, folder / "h.npy": h})


def a_resumed_sort(folder: Path) -> None:
    x = matrix(folder).reshape(-1)
    oc.store({folder / "s.zarr": oc.sort(x)}, resume=True)


def a_loop(folder: Path) -> None:
    x = matrix(folder)
    oc.iterate(lambda v: oc.linalg.matmul(x.T, x @ v) / 1e6, oc.ones((800,)), max_iter=3)


def k_means(folder: Path) -> None:
    oc.learn.KMeans(3, max_iter=3, random_state=0, n_init=1).fit(matrix(folder))


def a_sparse_product(folder: Path) -> None:
    A = oc.sparse.from_scipy(scipy.sparse.random(3000, 3000, 0.02, format="csr", rng=0), folder / "a.ocs")
    oc.store({folder / "p.npy": A @ oc.ones((3000, 40))})


def a_cholesky(folder: Path) -> None:
    x = matrix(folder, 1600, 1600)
    oc.store({folder / "spd.npy": x @ x.T + 1600 * oc.eye(1600)})
    oc.linalg.cholesky(oc.open(folder / "spd.npy")).sum().compute()


def a_search(folder: Path) -> None:
    G = oc.graph.from_arrays([0, 1, 2, 3], [1, 2, 3, 4], folder / "g.ocg")
    oc.graph.bfs(G, 0)


def a_rechunk(folder: Path) -> None:
    oc.store({folder / "t.zarr": matrix(folder)}, chunks={folder / "t.zarr": (5000, 40)})


def a_quantile(folder: Path) -> None:
    oc.quantile(matrix(folder), 0.9).item()


def a_mask(folder: Path) -> None:
    x = matrix(folder)
    x[x > 0.75].sum().compute()


PROGRAMS: list[Callable[[Path], None]] = [
    nmf,
    a_resumed_sort,
    a_loop,
    k_means,
    a_sparse_product,
    a_cholesky,
    a_search,
    a_rechunk,
    a_quantile,
    a_mask,
]


# Tiles of these are larger.
ROOMY = {a_cholesky: 110 << 20, a_rechunk: 36 << 20}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_page_answers(program: Callable[[Path], None], tmp_path: Path) -> None:
    with session(tmp_path, pool_limit=ROOMY.get(program, POOL)), oc.profile(tmp_path / "run.html") as seen:
        program(tmp_path)
    text = sentences(seen)
    if program is a_search:
        assert any(line.startswith("bfs: 5 iterations") for line in text)
        assert any("read in" in line for line in text), text
        return
    assert any(BOUND.search(line) for line in text), text
    for number, group in enumerate(seen.groups, 1):
        run = group.run
        section = seen.page().partition(f'id="run-{number}"')[2].partition("<h2")[0]
        if "work" in group.longest.other:
            assert f"The {group.longest.other['work']} took" in section
            continue
        if run is None or not run.traces:
            assert SHORT in section
            continue
        again = sum(strip.read_again for trace in run.traces for strip in (trace.occupancy or NONE).arrays)
        handed = sum(trace.forecast["bytes_written"] for trace in run.traces[:-1])
        needs_more = bool(again or handed or group.longest.bytes_spilled)
        assert (MORE in section) != needs_more
        assert bool(COST.search(section)) == needs_more
        read = sum(sum(trace.counted_read().values()) for trace in run.traces)
        assert read <= group.longest.bytes_read
        assert format_size(group.bytes_read) in seen.page()


class NONE:
    arrays = ()


def test_a_file_that_is_read_twice_is_named_with_its_reason(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        (x @ x.T).sum().compute()
    (line,) = (line for line in sentences(seen) if line.startswith("x.npy was read"))
    size = (tmp_path / "x.npy").stat().st_size
    read = seen.bytes_read
    assert read > 1.5 * size
    assert f"was read {read / size:.1f} times: {format_size(read)}" in line
    assert "tiles left memory" in line
    assert "the plan had" in line


def test_another_limit_is_named_and_does_what_is_said(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((3000, 3000)))
    x = oc.open(tmp_path / "x.npy")
    with oc.Session(memory_limit="1GiB", threads=2) as large:
        overhead = (1 << 30) - large.counters()["budget_bytes"]  # of a process that other tests have filled
    with (
        oc.Session(memory_limit=overhead + (100 << 20), scratch=[str(tmp_path)], threads=2),
        oc.profile() as seen,
    ):
        (x @ x.T).sum().compute()
    (group,) = seen.groups
    assert group.run is not None
    if not group.run.sweep:
        pytest.skip("planning took longer than such a run may")
    better = [point for point in group.run.sweep if (point.moved or 0) < seen.bytes_read]
    assert better, group.run.sweep
    assert any(
        f"A limit of {format_size(point.memory_limit)} would move" in line
        for line in sentences(seen)
        for point in better
    )


def test_traces_of_many_lines_are_bounded(tmp_path: Path) -> None:
    calls = {}
    lines = "\n".join(f"def call{number}(): oc.arange(200_000).sum().compute()" for number in range(300))
    exec(compile(lines, str(tmp_path / "lines.py"), "exec"), {"oc": oc}, calls)
    with session(tmp_path), oc.profile() as seen:
        for call in calls.values():
            call()
    kept = [group.run for group in seen.groups if group.run is not None]
    assert len(seen.groups) == 300
    assert sum(run.bytes for run in kept) <= 8 << 20
    assert len(seen.page()) < 5 << 20


def test_reads_beyond_a_slice_are_explained(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        (x[:, :40] + 1).sum().compute()
    size = x.shape[0] * 40 * 8
    (line, *_) = (line for line in sentences(seen) if "whole rows or chunks" in line)
    assert f"{seen.bytes_read / size:.1f} × what its slices need" in line
    assert f"{format_size(seen.bytes_read)} for {format_size(size)}" in line


def test_a_file_that_is_used_whole_as_well_has_no_reads_beyond_its_slices(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        (x[:, :40].sum() + x.sum()).compute()
    assert not any("whole rows or chunks" in line for line in sentences(seen))


@pytest.mark.parametrize("spilled", [0, 1 << 20])
def test_a_run_that_computing_bound_says_that_memory_would_hardly_help(spilled: int) -> None:
    strip = ArrayStrip(("t#1",), "temporary", (8,), "f8", (8,), 1, 64, 0, 0, 0, 0, spilled, 64, (100,), (0,), 0)
    run = timed(0.1, 3.9, 0.0, [strip])
    text = " ".join(limit_cost(Outcome(seconds=4.0, bytes_spilled=spilled, other={"stages": [0]}), run))
    assert "ore memory would hardly help" in text


def test_scratch_files_have_names_of_what_they_hold(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        oc.store({tmp_path / "s.npy": oc.sort(x.reshape(-1))})
    page = html.unescape(seen.page())
    assert "outcore-scratch-" not in page
    assert "scratch: sort" in page


def test_a_run_that_an_error_ends_is_told_with_what_it_had_done(tmp_path: Path) -> None:
    x = matrix(tmp_path)

    def broken(tile: np.ndarray) -> np.ndarray:
        if tile[0, 0] == last:
            raise KeyboardInterrupt("enough")
        return tile

    last = np.load(tmp_path / "x.npy", mmap_mode="r")[4608, 0]
    with session(tmp_path, pool_limit=3 * POOL), pytest.raises(KeyboardInterrupt), oc.profile() as seen:
        oc.map_blocks(broken, x, dtype="f8").sum().compute()
    (failure,) = seen.failed
    assert failure.seconds > 0
    (line,) = (line for line in sentences(seen) if "was ended after" in line)
    assert "by KeyboardInterrupt: enough." in line


def test_lines_and_names_of_charts_are_explained(tmp_path: Path) -> None:
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        (matrix(tmp_path) + 1).sum().compute()
    text = sentences(seen)
    assert any("Dashed line: the resident size of the process" in line for line in text)
    assert any("in the line below it, transfers" in line for line in text)
    if "first touches" in seen.page():
        assert any(line.startswith("First touches: ") for line in text)


def test_slow_transfers_have_the_tile_and_the_name_of_scratch(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        oc.store({tmp_path / "s.npy": oc.sort(x.reshape(-1))})
    slow = _slowest(seen)
    assert "tile, at most" in slow
    # So few that all are listed, however fast some are.
    with session(tmp_path), oc.profile() as seen:
        oc.sum(x[:2000], axis=0).compute()
    slow = _slowest(seen)
    assert re.search(r"<td[^>]*>task \(\d+(, \d+)*\)</td>", slow)
    assert re.search(r"read x\.npy</td><td[^>]*>tile \([\d, ]+\)</td><td[^>]*>[\d,× ]+ float64<", slow), slow


def _slowest(seen: Profile) -> str:
    return seen.page().partition("Slowest tasks and transfers")[2].partition("</table>")[0]


def test_the_last_report_of_a_failed_run_is_on_the_page() -> None:
    reports = []
    reached = Reached(Call("sum", "", 0, ""), lambda *figures: reports.append(figures))
    reached.report(1 << 20, 4 << 20, 3, 12, 0.25, 1.0)
    reached.report(0, 0, 0, 0, 0.0, None)
    profile = Profile(None)
    profile.fail(reached.failure(ValueError("a bad tile")))
    profile.fail(Reached(Call("max", "", 0, ""), None).failure(KeyboardInterrupt()))
    some, none = sentences(profile)
    assert len(reports) == 2, "reports are passed on"
    assert "by ValueError: a bad tile. " in some
    assert some.endswith("3 of 12 tasks, 1.00 MiB of 4.00 MiB read and written.")
    assert none.endswith("by KeyboardInterrupt. No task had been reported as done.")


def test_a_plan_that_is_refused_is_told_with_its_reason(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        with pytest.raises(errors.MemoryLimitError) as told:
            x.compute()
        with pytest.raises(errors.MemoryLimitError) as chosen:
            oc.cumsum(x[x > 0.5])[::-1].compute()
        with pytest.raises(errors.TargetExistsError):
            oc.store({tmp_path / "x.npy": oc.zeros(3)})
        with pytest.raises(errors.MemoryLimitError):
            oc.explain(x)
    lines = sentences(seen)
    assert [failure.is_refused for failure in seen.failed] == [True] * 3, lines
    assert [failure.message for failure in seen.failed[:2]] == [str(told.value), str(chosen.value)]
    assert re.match(r"Array\.compute \(test_profile_answers\.py:\d+\) was refused before it began, by Memory", lines[0])
    assert lines[0].rstrip(".").endswith(str(told.value).rstrip("."))
    assert "by TargetExistsError: " in lines[2]
    assert not any("Nothing ran" in line or "No task" in line for line in lines)


def test_a_plan_for_which_another_is_made_is_no_refusal(tmp_path: Path) -> None:
    with oc.profile() as seen:
        with tentative():
            refused(errors.MemoryLimitError("sum: needs 2 GiB"))
        refused(errors.MemoryLimitError("max: needs 3 GiB"))
    assert [failure.message for failure in seen.failed] == ["max: needs 3 GiB"]


def test_a_fit_that_is_refused_is_told(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=1 << 20), oc.profile() as seen, pytest.raises(errors.MemoryLimitError):
        oc.learn.KMeans(4, random_state=0).fit(x)
    assert [failure.call.partition(" ")[0] for failure in seen.failed] == ["KMeans.fit"]


def test_chunks_of_which_a_slice_needs_a_part_are_told(tmp_path: Path) -> None:
    target = tmp_path / "t.zarr"
    oc.store({target: matrix(tmp_path)}, chunks={target: (5000, 40)}, compression="zstd")
    z = oc.open(target)
    with session(tmp_path, pool_limit=2 * POOL), oc.profile() as seen:
        z[:10].sum().compute()
    (group,) = seen.groups
    assert group.run is not None
    assert group.run.sliced == {str(target): 10 * 800 * 8}
    assert any("t.zarr is read in whole rows or chunks" in line for line in sentences(seen)), sentences(seen)


def timed(transfer: float, compute: float, touched: float, strips: Sequence[ArrayStrip] = (), both: float = 0.0) -> Run:
    """A run of 4 seconds."""
    content = {
        "program": {"bytes_read": 1 << 20, "bytes_written": 0, "budget_bytes": 2 << 20, "fixed_bytes": 0},
        "occupancy": {
            "columns": 1,
            "memory": [(64, 0, 0)],
            "passes": [],
            "arrays": [
                {"array" if name == "number" else name: value for name, value in strip._asdict().items()}
                for strip in strips
            ],
            "flows": [],
            "arrays_left_out": 0,
            "results_bytes": 0,
            "unseen_bytes": 0,
        },
        "lanes": {"compute": [[100]]},
        "bin_seconds": 4.0,
        "transfer_seconds": transfer,
        "compute_seconds": compute,
        "both_seconds": both,
        "touch_seconds": touched,
        "pass_seconds": [compute],
        "written": [],
    }
    return Run(Call("sum", "", 0, ""), 1 << 30, None, 1, (ProgramTrace("", 0.0, 4.0, json.dumps(content)),))


@pytest.mark.parametrize(
    ("transfer", "compute", "touched", "said"),
    [
        (1.0, 0.2, 2.8, "First touches of memory bound it, 70 % of the time"),
        (1.5, 1.5, 1.0, "they took turns: reads and writes were under way 38 % of the time"),
        (1.5, 1.5, 1.0, "first touches of memory, with nothing else under way, took 25 %"),
        (0.5, 0.5, 0.0, "Neither the disk nor computing bound it"),
    ],
)
def test_first_touches_of_memory_are_told(transfer: float, compute: float, touched: float, said: str) -> None:
    run = timed(transfer, compute, touched)
    assert said in bound(Outcome(seconds=4.0, bytes_read=1 << 20, other={"stages": [0]}), run)


@pytest.mark.parametrize(
    ("transfer", "compute", "both", "said"),
    [
        (3.1, 3.0, 2.6, "Disk and computing bound it together"),
        (2.8, 1.6, 1.0, "The disk bound it"),
        (1.2, 2.6, 0.6, "Computing bound it"),
        (2.0, 2.0, 0.0, "Neither the disk nor computing bound it alone, they took turns"),
        (1.4, 0.6, 0.2, "Neither the disk nor computing bound it: 2.2 s of 4 s passed in planning"),
        (2.2, 2.0, 0.6, "Neither the disk nor computing bound it alone, they took turns"),
    ],
)
def test_disk_and_computing_bind_together_only_where_both_go_on_most_of_the_time(
    transfer: float, compute: float, both: float, said: str
) -> None:
    run = timed(transfer, compute, 0.0, both=both)
    assert bound(Outcome(seconds=4.0, bytes_read=1 << 20, other={"stages": [0]}), run).startswith(said)


@pytest.mark.parametrize(
    ("read", "again", "tiles", "said"),
    [
        (
            600,
            8,
            1,
            "a part of which was in memory, 600 B were read, of which 8 B again, since tiles left memory once",
        ),
        (1500, 500, 4, "x.npy was read 1.5 times: 1.46 KiB, of which 500 B again, since tiles left memory 4 times"),
    ],
)
def test_reads_of_a_file_are_told_in_words(read: int, again: int, tiles: int, said: str) -> None:
    strip = ArrayStrip(
        ("x.npy",), "stored", (125,), "f8", (8,), 16, 1000, read, again, tiles, 0, 0, 64, (100,), (0,), 0
    )
    assert said in read_twice(timed(1.0, 1.0, 0.0, [strip]))[0]


def test_programs_of_one_run_do_not_add_to_the_bytes_of_one_read(tmp_path: Path) -> None:
    x = matrix(tmp_path)
    with session(tmp_path, pool_limit=POOL), oc.profile() as seen:
        oc.quantile(x, 0.9).item()
        x.sum().compute()
    file, size = seen.files[str(tmp_path / "x.npy")], (tmp_path / "x.npy").stat().st_size
    assert seen.groups[0].run is not None
    assert len(seen.groups[0].run.traces) > 1
    assert file.once < 1.01 * size  # whole pages are read, one more for each tile at most
    assert file.read > 2 * size
