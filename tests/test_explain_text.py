"""What `explain()` prints: files by name, repeated passes as one line, the chosen order as the totals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.loop_fixed import product
from support.running import session

import outcore as oc
from outcore._base.times import format_time
from outcore._show.explanation import Explanation, _joined_label, _repeats
from outcore._show.names import short_names


def text(explanation: Any) -> str:
    """The explanation without what depends on the machine: the process's own bytes, and threads in the window."""
    said = re.sub(r", [^,]* of it not for tiles", ", … of it not for tiles", str(explanation))
    return re.sub(r" +$", "", said, flags=re.MULTILINE)


@pytest.fixture
def matrix(tmp_path: Path) -> oc.Array:
    np.save(tmp_path / "x.npy", np.zeros((200_000, 40)))
    return oc.open(tmp_path / "x.npy")


def nmf(x: oc.Array, iterations: int) -> tuple[oc.Array, oc.Array]:
    """W and H with W H ≈ X by multiplicative updates (Lee and Seung, 2001)."""
    w, h = oc.ones((x.shape[0], 5)), oc.ones((5, x.shape[1]))
    for _ in range(iterations):
        h = h * (w.T @ x) / (w.T @ w @ h + 1e-9)
        w = w * (x @ h.T) / (w @ (h @ h.T) + 1e-9)
    return w, h


def test_a_scan_into_two_files(matrix: oc.Array, tmp_path: Path) -> None:
    with session(tmp_path, pool_limit=64 << 20, window=4):
        said = text(oc.explain({tmp_path / "sum.npy": matrix.sum(axis=0), tmp_path / "y.zarr": matrix * 2.0}))
    assert said == SCAN


SCAN = """\
pass  what           over         tasks      read   written  files
────  ─────────────  ───────────  ─────  ────────  ────────  ───────────────────────
   0  sum, multiply  200000/8192     25  61.1 MiB  61.0 MiB  x.npy → sum.npy, y.zarr

bytes read (exact)     64,098,432 B (61.1 MiB)
bytes written (exact)  64,008,694 B (61.0 MiB)
  of these spilled     0 B, 0 B at once
peak reserved (exact)  63,397,888 B (60.5 MiB) of 64.0 MiB
memory limit           8,589,934,592 B (8.00 GiB), … of it not for tiles
tasks                  25, 4 in flight
policy, order          next-use, rows
order tried            rows: 61.1 MiB read, 61.0 MiB written, chosen
legend                 over: length/tile of each axis; 3 × 39: 39 such passes from 3 on, their sums"""


def test_iterations_are_one_line_each_with_their_count(matrix: oc.Array, tmp_path: Path) -> None:
    w, h = nmf(matrix, 40)
    with session(tmp_path, pool_limit=64 << 20, window=4):
        explanation = oc.explain({tmp_path / "w.npy": w, tmp_path / "h.zarr": h})
    assert text(explanation) == ITERATIONS
    # What is folded is all there still.
    assert len(explanation.passes) > 80
    assert sum(part.bytes_read for part in explanation.passes) == explanation.bytes_read


ITERATIONS = """\
  pass  what                over          tasks       read   written  files
──────  ──────────────────  ────────────  ─────  ─────────  ────────  ────────────────
     0  matmul              200000/8192      25   61.1 MiB       0 B  x.npy
     1  matmul              200000/65536      4        0 B       0 B
2 × 39  divide, matmul      once             39        0 B       0 B
3 × 39  divide, 2 × matmul  200000/8192     975  509.0 MiB       0 B  x.npy
    80  divide, matmul      once              1        0 B  4.00 KiB  → h.zarr
    81  divide              200000/8192      25   12.5 MiB  7.63 MiB  x.npy, h → w.npy

bytes read (exact)     610,916,992 B (582.6 MiB)
bytes written (exact)  8,012,270 B (7.64 MiB)
  of these spilled     0 B, 0 B at once
peak reserved (exact)  62,410,752 B (59.5 MiB) of 64.0 MiB
memory limit           8,589,934,592 B (8.00 GiB), … of it not for tiles
tasks                  1,069, 4 in flight
policy, order          next-use, rows, alternating
order tried            rows: 709.4 MiB read, 7.64 MiB written
order tried            rows, alternating: 582.6 MiB read, 7.64 MiB written, chosen
order tried            shared tiles: 708.3 MiB read, 7.64 MiB written
order tried            searched, with 90 % of memory: 705.8 MiB read, 7.64 MiB written
order tried            searched, with 65 % of memory: 705.8 MiB read, 7.64 MiB written
order tried            searched, with 40 % of memory: 705.8 MiB read, 7.64 MiB written
legend                 over: length/tile of each axis; 3 × 39: 39 such passes from 3 on, their sums"""


@pytest.mark.parametrize("pool", [16 << 20, 48 << 20, 512 << 20])
def test_the_order_chosen_has_the_figures_of_the_totals(pool: int, matrix: oc.Array, tmp_path: Path) -> None:
    w, h = nmf(matrix, 3)
    with session(tmp_path, pool_limit=pool):
        told = oc.explain({tmp_path / "w.npy": w, tmp_path / "h.zarr": h, tmp_path / "t.npy": matrix.T})
    (chosen,) = (candidate for candidate in told.candidates if candidate["chosen"])
    assert chosen["order"] == told.order
    assert (chosen["bytes_read"], chosen["bytes_written"]) == (told.bytes_read, told.bytes_written)
    assert str(told).count(", chosen") == 1


def test_of_many_orders_the_best_are_shown(tmp_path: Path) -> None:
    np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype="f8", shape=(1536, 1536)).flush()
    with session(tmp_path, pool_limit=12 << 20):
        x = oc.rechunk(oc.open(tmp_path / "x.npy"), (256, 256))
        told = oc.explain(
            {tmp_path / "y.npy": oc.loops(product)(x, x.T, oc.rechunk(oc.zeros((1536, 1536)), (256, 256)))}
        )
    lines = [line for line in str(told).splitlines() if line.startswith("order tried")]
    assert len(told.candidates) > 12
    assert len(lines) == 11
    assert f"  {len(told.candidates) - 10} others, of more bytes" in lines[-1]
    assert f"  {told.candidates[0]['order']}: " in lines[0]
    assert sum(line.endswith(", chosen") for line in lines) == 1


def test_a_pass_names_its_files(matrix: oc.Array, tmp_path: Path) -> None:
    with session():
        told = oc.explain({tmp_path / "a.npy": matrix + 1, tmp_path / "b.npy": matrix + 1})
    (part,) = told.passes
    assert part.inputs == (str(tmp_path / "x.npy"),)
    assert set(part.outputs) == {str(tmp_path / "a.npy"), str(tmp_path / "b.npy")}


def test_files_of_one_name_are_told_apart() -> None:
    found = short_names(["/data/a/x.npy", "/data/b/x.npy", "/data/y.npy"])
    assert found == {"/data/a/x.npy": "a/x.npy", "/data/b/x.npy": "b/x.npy", "/data/y.npy": "y.npy"}


@pytest.mark.parametrize(
    ("kinds", "runs"),
    [
        ("", []),
        ("a", [(0, 1, 1)]),
        ("abc", [(0, 1, 1), (1, 1, 1), (2, 1, 1)]),
        ("aaaa", [(0, 4, 1)]),
        ("xabababy", [(0, 1, 1), (1, 3, 2), (7, 1, 1)]),
        ("abcabcabca", [(0, 3, 3), (9, 1, 1)]),
        ("aabaab", [(0, 2, 3)]),
    ],
)
def test_repeats_are_found(kinds: str, runs: list[tuple[int, int, int]]) -> None:
    assert _repeats(kinds) == runs


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("sum", "sum"),
        ("a, a, a, b", "3 × a, b"),
        (", ".join(["expand_dims"] * 40), "40 × expand_dims"),
        (", ".join(f"operator{k}" for k in range(20)), "operator0, operator1, operator2 … and 17 more"),
        ("x" * 60, "x" * 60),
    ],
)
def test_runs_of_an_operator_are_their_number_and_long_rows_are_cut(label: str, said: str) -> None:
    assert _joined_label(label) == said


def test_an_explanation_is_one_line_where_it_is_not_printed() -> None:
    with session():
        said = repr(oc.explain(oc.arange(1000).sum()))
    assert said.startswith("Explanation(1 pass, 0 B read, 0 B written, peak ")
    assert "\n" not in said


def unrolled(x: oc.Array, steps: int) -> oc.Array:
    """A stencil along the first axis, its steps written out in one expression."""
    for _ in range(steps):
        x = oc.concat([x[:1], (x[:-2] + x[1:-1] + x[2:]) / 3.0, x[-1:]], axis=0)
    return x


def test_a_loop_that_spills_its_states_is_told_of_iterate(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3000, 2000)))
    with session(pool_limit=40 << 20):
        x = oc.open(tmp_path / "x.npy")
        long, short = (oc.explain({str(tmp_path / "y.npy"): unrolled(x, steps)}) for steps in (40, 4))
        roomy = oc.explain({str(tmp_path / "y.npy"): x - x.mean(axis=0)})
    (advice,) = long.advice
    assert "oc.iterate(step, start, max_iter=" in advice
    assert advice in str(long)
    assert short.advice == roomy.advice == ()


def test_the_band_of_time_is_that_of_earlier_runs(matrix: oc.Array, tmp_path: Path) -> None:
    with session(pool_limit=32 << 20):
        target = {tmp_path / "y.npy": matrix * 2.0}
        said = oc.explain(target)
        assert said.seconds is None
        assert "\ntime " not in str(said)
        took = [oc.store(target, overwrite=True).seconds for _ in range(2)]
        said = oc.explain(target, overwrite=True)
        assert said.seconds is not None
        least, most = said.seconds
        assert 0.5 * min(took) <= least <= most <= 2 * max(took)
        band = " to ".join(dict.fromkeys(map(format_time, (least, most))))
        assert f"\ntime                   {band} by the rates of the last 2 runs\n" in str(said)
        oc.arange(9).sum().compute()  # too short to tell anything
        staged = oc.explain({tmp_path / "z.npy": oc.median(matrix)})
        assert len(staged.stages) > 1
        assert re.search(r"^time +.* s by the rates of the last 2 runs$", str(staged), re.MULTILINE)


@pytest.mark.parametrize(
    ("band", "text"),
    [
        ((830.4, 831.2, 1), "13 min 50 s to 13 min 51 s by the rates of the last run"),
        ((31.0, 31.02, 3), "31 s by the rates of the last 3 runs"),
        ((5.1e-10, 7.4e-10, 1), "< 1 µs by the rates of the last run"),
    ],
)
def test_a_band_of_time_is_in_the_units_of_people(band: tuple[float, float, int], text: str, matrix: oc.Array) -> None:
    said = oc.explain(matrix.sum())
    assert f" {text}\n" in str(Explanation(said.to_dict(), band))


def test_stages_that_are_alike_are_one(matrix: oc.Array) -> None:
    content = oc.explain(oc.median(matrix)).to_dict()
    first, last = content["stages"][0], content["stages"][-1]
    said = Explanation(content | {"stages": [first, *[last] * 40]})
    titles = [line for line in str(said).splitlines() if line.startswith("stage")]
    assert [title.split(":")[0] for title in titles] == ["stage 1 of 41", "stages 2 to 41 of 41, each"]
    assert said._repr_html_().count("<h3") == 2
