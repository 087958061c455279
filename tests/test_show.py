"""Pictures of data: their numbers against NumPy's, what they read, and that they fit a terminal and a page."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import ROOMY, session

import outcore as oc
from outcore._show.degrees import svg
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, OutcoreError, ShapeError
from outcore.show import _blocks

COLUMNS_MAX = 100
ROOM = 44 << 20  # of a limit of 128 MiB, beside an interpreter
ROWS, COLUMNS = 3072, 2048
needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib, the optional extra outcore[show], is not there"
)


@pytest.fixture
def current(tmp_path: Path) -> Iterator[Any]:
    with session(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def large(shared: Path) -> Path:
    """A matrix of 48 MiB, for which there is no room, as a file of rows and in chunks of three forms."""
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS))
    np.save(shared / "x.npy", x)
    with session(shared):
        for name, chunks in (("square", (512, 512)), ("tall", (ROWS, 64)), ("wide", (64, COLUMNS))):
            path = str(shared / f"{name}.zarr")
            oc.store({path: oc.asarray(x)}, chunks={path: chunks})
    return shared


def block_means(x: np.ndarray, tall: int, wide: int) -> np.ndarray:
    rows, columns = np.arange(0, x.shape[0], tall), np.arange(0, x.shape[1], wide)
    sums = np.add.reduceat(np.add.reduceat(x.astype(np.float64), columns, axis=1), rows, axis=0)
    return sums / np.outer(np.diff(rows, append=x.shape[0]), np.diff(columns, append=x.shape[1]))


def of_blocks(x: np.ndarray, tall: int, wide: int, how: Any) -> np.ndarray:
    rows, columns = range(0, x.shape[0], tall), range(0, x.shape[1], wide)
    return np.asarray([[how(x[i : i + tall, j : j + wide]) for j in columns] for i in rows])


def svg_of(drawing: oc.show.Drawing) -> str:
    """The SVG, once it has been read as XML and its colours are those of the page."""
    text = drawing._repr_svg_()
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert 'fill="currentColor"' in text
    return text


def assert_fits(drawing: oc.show.Drawing) -> None:
    lines = repr(drawing).splitlines()
    assert max(map(len, lines)) <= COLUMNS_MAX
    assert len(lines) <= 48
    svg_of(drawing)


@pytest.mark.parametrize("shape", [(12, 9), (700, 901), (1, 5000), (5000, 1), (97, 89)])
@pytest.mark.parametrize("size", [(7, 5), (100, 40), 3, (800, 600)])
def test_cells_of_an_image_are_means_of_their_own_rows_and_columns(current: Any, shape: Any, size: Any) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    drawing = oc.show.image(x, size, ax=False)
    width, height = size if isinstance(size, tuple) else (size, size)
    tall, wide = -(-shape[0] // height), -(-shape[1] // width)
    assert drawing.cells.shape[0] <= height
    assert drawing.cells.shape[1] <= width
    np.testing.assert_allclose(drawing.cells, block_means(x, tall, wide), rtol=1e-12, atol=1e-14)
    assert drawing.y_edges.tolist() == [*range(0, shape[0], tall), shape[0]]
    assert drawing.x_edges.tolist() == [*range(0, shape[1], wide), shape[1]]
    assert_fits(drawing)


@pytest.mark.parametrize("how", ["mean", "max", "min"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "uint64", "float16", "float32", "float64"])
def test_images_of_all_real_types_are_as_numpys(current: Any, how: Any, dtype: str) -> None:
    x = (np.random.default_rng(2).random((50, 61)) * 100).astype(dtype)
    drawing = oc.show.image(x, (9, 8), how=how, ax=False)
    wide = x.astype(np.float64) if how == "mean" or dtype == "bool" else x
    np.testing.assert_allclose(drawing.cells, of_blocks(wide, 7, 7, getattr(np, how)), rtol=1e-12)
    assert_fits(drawing)


def test_large_integers_are_averaged_without_overflow(current: Any) -> None:
    x = np.full((8, 8), 2**31 - 1, dtype=np.int32)
    assert (oc.show.image(x, (2, 2), ax=False).cells == 2**31 - 1).all()


def test_a_cell_with_nan_has_no_number_and_says_so(current: Any) -> None:
    x = np.ones((10, 10))
    x[3, 3] = np.nan
    drawing = oc.show.image(x, (5, 5), ax=False)
    assert np.isnan(drawing.cells).sum() == 1
    assert np.isnan(drawing.cells[1, 1])
    assert "×: 1 of 25 cells hold NaN" in repr(drawing)
    assert "grey: 1 of 25 cells hold NaN" in svg_of(drawing)


@pytest.mark.parametrize("special", [np.inf, -np.inf, 1e308, -1e308])
def test_numbers_at_the_ends_of_float64_are_drawn(current: Any, special: float) -> None:
    x = np.zeros((4, 4))
    x[0, 0], x[3, 3] = special, -special
    assert_fits(oc.show.image(x, (4, 4), ax=False))


@contextmanager
def narrow(scratch: Path) -> Iterator[Any]:
    """A session in less memory than the large matrix takes."""
    with session(scratch) as roomy:
        overhead = ROOMY - roomy.counters()["budget_bytes"]
    with session(scratch, memory_limit=overhead + ROOM) as made:
        yield made


@pytest.mark.parametrize("name", ["x.npy", "square.zarr", "tall.zarr", "wide.zarr"])
@pytest.mark.parametrize("size", [(800, 600), (100, 30), (1200, 37)])
def test_an_image_of_a_file_larger_than_memory_is_one_read(large: Path, tmp_path: Path, name: str, size: Any) -> None:
    with narrow(tmp_path) as current:
        x = oc.open(large / name)
        forecast = oc.explain(oc.sum(x)).bytes_read
        drawing = oc.show.image(x, size, ax=False)
        counted = current.counters()
    assert counted["bytes_read"] == forecast
    assert forecast == x.nbytes or name == "x.npy"  # whose rows begin behind a head, within pages
    assert forecast < 1.005 * x.nbytes
    assert counted["bytes_written"] == 0
    tall, wide = -(-ROWS // size[1]), -(-COLUMNS // size[0])
    stored = np.load(large / "x.npy")
    np.testing.assert_allclose(drawing.cells, block_means(stored, tall, wide), rtol=1e-9, atol=1e-12)


def test_the_forecast_of_blocks_is_one_read_and_the_outcome_agrees(large: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "blocks.npy")
    for name in ("wide.zarr", "tall.zarr"):
        with narrow(tmp_path):
            x = oc.open(large / name)
            (blocks,) = _blocks.block_arrays(_blocks.upright(x), (8, 6), "sum")
            said, outcome = oc.explain({target: blocks}, overwrite=True), oc.store({target: blocks}, overwrite=True)
            assert said.bytes_read == outcome.bytes_read == x.nbytes
            assert said.peak_bytes == outcome.peak_bytes


def test_cells_have_the_same_bits_in_any_memory(large: Path, tmp_path: Path) -> None:
    for name in ("square.zarr", "x.npy"):
        with narrow(tmp_path):
            one = oc.show.image(oc.open(large / name), (90, 70), ax=False).cells
        with session(tmp_path, threads=1):
            two = oc.show.image(oc.open(large / name), (90, 70), ax=False).cells
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("bins", [1, 10, 200, [-1.0, 0.0, 0.5, 2.0]])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_histograms_are_numpys(current: Any, bins: Any, dtype: str) -> None:
    x = (3 * np.random.default_rng(3).standard_normal((100, 77))).astype(dtype)
    drawing = oc.show.histogram(x, bins, ax=False)
    counts, edges = np.histogram(x.astype(np.float64), bins)
    assert drawing.counts.tolist() == counts.tolist()
    np.testing.assert_allclose(drawing.edges, edges)
    assert_fits(drawing)


def test_elements_that_no_bin_has_are_left_out_and_counted(current: Any) -> None:
    x = np.asarray([0.0, 1.0, 2.0, np.nan, np.inf, -np.inf, np.nan, 9.0])
    assert oc.show.histogram(x, 3, ax=False).edges.tolist() == [0.0, 3.0, 6.0, 9.0]
    drawing = oc.show.histogram(x, 2, range=(0, 2), ax=False)
    assert drawing.counts.tolist() == [1, 2]
    assert drawing.notes == ("2 NaN left out", "2 infinite left out", "1 outside of 0.0 to 2.0 left out")
    assert all(note in repr(drawing) and note in svg_of(drawing) for note in drawing.notes)
    assert oc.show.histogram(np.full(3, np.nan), ax=False).counts.sum() == 0
    assert_fits(oc.show.histogram(np.full(3, np.nan), ax=False))


def test_axes_have_round_numbers_dates_and_the_edges_of_uneven_bins(current: Any) -> None:
    last = {
        "-1   0       2": oc.show.histogram(np.ones(3), [-1.0, 0.0, 2.0], ax=False),
        "1000000000.00": oc.show.histogram(1e9 + np.arange(10) * 1e-3, ax=False),
        "0 1": oc.show.image(np.ones((2, 2)), ax=False),
        "2020-01-01T00:00:00 ": oc.show.histogram(
            np.arange("2020-01-01", "2020-01-03", dtype="M8[h]").astype("M8[ns]"), 5, ax=False
        ),
    }
    for labels, drawing in last.items():
        assert " ".join(labels.split()) in " ".join(repr(drawing).split())
        assert_fits(drawing)


def test_few_integers_have_a_bin_each_and_many_equally_many(current: Any) -> None:
    few = oc.show.histogram(np.asarray([1, 2, 2, 5], dtype=np.uint8), ax=False)
    assert (few.counts.tolist(), few.edges.tolist()) == ([1, 2, 0, 0, 1], [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    many = oc.show.histogram(np.arange(1000), ax=False)
    assert set(many.counts.tolist()) == {20}
    flags = oc.show.histogram(np.asarray([True, False, True]), ax=False)
    assert (flags.counts.tolist(), flags.edges.tolist()) == ([1, 2], [-0.5, 0.5, 1.5])
    wide = oc.show.histogram(np.asarray([-(2**63), 2**63 - 1]), ax=False)
    assert (wide.counts.sum(), wide.counts[0], wide.counts[-1]) == (2, 1, 1)


def test_dates_are_counted_in_whole_steps_of_their_unit(current: Any) -> None:
    days = np.datetime64("2024-01-01") + np.arange(366).astype("timedelta64[D]")
    drawing = oc.show.histogram(np.append(days, np.datetime64("NaT")), 12, ax=False)
    assert drawing.counts.tolist() == [31] * 11 + [25]
    assert drawing.edges[0] == days[0]
    assert drawing.edges.dtype == days.dtype
    assert drawing.notes == ("1 NaT left out",)
    assert "2024-01-01" in repr(drawing)
    assert_fits(drawing)
    part = oc.show.histogram(days, 2, range=("2024-01-01", "2024-01-10"), ax=False)
    assert part.counts.tolist() == [5, 5]
    assert part.notes[0].startswith("356 outside of 2024-01-01")
    assert_fits(oc.show.histogram(days - days[0], ax=False))


@pytest.mark.parametrize("name", ["x.npy", "square.zarr", "tall.zarr"])
def test_a_histogram_reads_its_data_once_between_bounds_and_twice_without(
    large: Path, tmp_path: Path, name: str
) -> None:
    for interval, reads in (((-3.0, 3.0), 1), (None, 2)):
        with narrow(tmp_path) as current:
            x = oc.open(large / name)
            once = oc.explain(oc.sum(x)).bytes_read
            drawing = oc.show.histogram(x, 40, range=interval, ax=False)
            assert current.counters()["bytes_read"] <= reads * once
            assert current.counters()["bytes_written"] == 0
        stored = np.load(large / "x.npy")
        assert drawing.counts.tolist() == np.histogram(stored, 40, interval)[0].tolist()


def test_a_scatter_is_numpys_histogram_of_two_coordinates(current: Any) -> None:
    random = np.random.default_rng(4)
    x, y = random.standard_normal(5000), random.standard_normal(5000)
    x[:3], y[2:7] = np.nan, np.inf
    whole = np.isfinite(x) & np.isfinite(y)
    drawing = oc.show.scatter(x, y, (30, 20), ax=False)
    counts, x_edges, y_edges = np.histogram2d(x[whole], y[whole], (30, 20))
    assert np.array_equal(drawing.cells, counts.T)
    assert np.allclose(drawing.x_edges, x_edges)
    assert np.allclose(drawing.y_edges, y_edges)
    assert drawing.notes == ("7 points left out: NaN, infinite, or outside",)
    assert_fits(drawing)
    ranged = oc.show.scatter(x, y, 10, range=((-1, 1), None), ax=False)
    assert (ranged.x_edges[0], ranged.x_edges[-1]) == (-1, 1)
    assert_fits(oc.show.scatter(np.arange(3), np.zeros(3), ax=False))


def test_the_first_row_of_an_image_is_on_top_and_of_a_scatter_below(current: Any) -> None:
    matrix = repr(oc.show.spy(np.eye(4)[:1].repeat(2, axis=0) * [[1], [0]], ax=False)).splitlines()
    assert "█" in matrix[2]
    points = repr(oc.show.scatter(np.asarray([0.0, 1.0]), np.asarray([0.0, 1.0]), 8, ax=False)).splitlines()
    rows = [line for line in points if "█" in line]
    assert rows[0].index("█") > rows[-1].index("█")


def test_spy_of_a_sparse_matrix_reads_the_directory_and_no_entry(current: Any, out: Path) -> None:
    random = np.random.default_rng(5)
    rows, columns = random.integers(0, 5000, 200_000), random.integers(0, 3000, 200_000)
    A = oc.sparse.from_coo(rows, columns, np.ones(200_000), (5000, 3000), out / "a.ocs", side=256)
    r, c = (np.concatenate(parts) for parts in list(zip(*A.blocks(), strict=True))[:2])
    exact = np.zeros((20, 12), dtype=int)
    np.add.at(exact, (r.astype(int) // 256, c.astype(int) // 256), 1)
    before = current.counters()["bytes_read"]
    drawing = oc.show.spy(A, ax=False)
    assert current.counters()["bytes_read"] - before < A.nbytes / 4  # a page or so for each of 20 tile rows
    assert np.array_equal(drawing.cells, exact)
    assert np.array_equal(oc.show.spy(A.T, ax=False).cells, exact.T)
    assert drawing.cells.sum() == A.nnz
    assert "no entry was read" in repr(drawing)
    assert_fits(drawing)
    fine = oc.show.spy(A, (50, 100), ax=False)
    exact = np.zeros((100, 50), dtype=int)
    np.add.at(exact, (r.astype(int) // 50, c.astype(int) // 60), 1)
    assert np.array_equal(fine.cells, exact)


def test_spy_shades_cells_at_the_ends_by_their_density(current: Any) -> None:
    entries = np.arange(700 * 600)
    A = oc.sparse.from_coo(entries // 600, entries % 600, np.ones(len(entries)), (700, 600), side=256)
    drawing = oc.show.spy(A, ax=False)
    assert drawing.cells[0, 0] > 2 * drawing.cells[-1, -1], "numbers are counts"
    text = repr(drawing)
    assert "shades by density: of smaller cells at the ends as of whole ones" in text
    assert len(set("░▒▓█") & set(text)) == 1, "all cells are as dense"
    assert (drawing._shaded() == 256 * 256).all()
    whole = oc.show.spy(A[:512, :512], ax=False)
    assert "density" not in repr(whole)
    assert np.array_equal(whole._shaded(), whole.cells)
    points = oc.show.scatter(np.asarray([0.0, 1.0]), np.asarray([0.0, 1.0]), 3, ax=False)
    assert np.array_equal(points._shaded(), points.cells)


def test_numbers_beside_text_are_those_of_its_rows_and_columns(current: Any) -> None:
    A = oc.sparse.from_coo([0, 699], [0, 599], [1.0, 2.0], (700, 600), side=256)
    lines = repr(oc.show.spy(A, ax=False)).splitlines()
    assert lines[1:8] == [
        "row",
        "  0 ┤░░",  # less dense than the one below, which is smaller
        "256 ┤",
        "512 ┤    ██",
        "700 └┴───┴┴",
        "     0  512 600",
        "     column",
    ]
    few = repr(oc.show.spy(oc.sparse.from_coo([0], [0], [1.0], (3, 4)), ax=False)).splitlines()
    assert few[2:5] == ["0 ┤██", "3 └┴┴", "   0 4"]
    x = np.zeros((997, 311))
    x[640, 200] = 1
    drawn = repr(oc.show.image(x, ax=False)).splitlines()
    (row,) = (place for place, line in enumerate(drawn) if "█" in line)
    tall, wide = (int(part) for part in drawn[-1].removeprefix("a shade is the mean of ").split()[::2][:2])
    rows = {place: int(line.split()[0]) for place, line in enumerate(drawn) if "┤" in line}
    begin = (row - 2) * tall
    assert begin <= 640 < begin + tall
    assert rows == {place: (place - 2) * tall for place in rows}
    column = drawn[row].index("█") - drawn[row].index("│") - 1
    assert column // 2 * wide <= 200 < (column // 2 + 1) * wide


def test_text_says_what_its_shades_stand_for_and_its_axes_are_called(current: Any) -> None:
    text = repr(oc.show.image(np.ones((300, 200)), ax=False))
    assert "a cell is an element" in text
    assert text.endswith("a shade is the mean of 10 × 5 elements")
    assert "a shade" not in repr(oc.show.image(np.ones((30, 20)), ax=False))
    assert "a cell is the max of 10 × 10 elements" in repr(
        oc.show.image(np.ones((300, 200)), (20, 30), "max", ax=False)
    )
    x, y = (oc.asarray(np.arange(6)).annotate(name=name) for name in ("longitude", "latitude"))
    lines = repr(oc.show.scatter(x, y, ax=False)).splitlines()
    assert lines[1] == "latitude"
    assert lines[-2].strip() == "longitude"
    points = repr(oc.show.scatter(np.asarray([0, 3, 5]), np.asarray([0, 4, 5]), ax=False)).splitlines()
    assert [line for line in points if line.startswith("4 ┤")] == ["4 ┤      ██"]


def test_a_refusal_names_a_limit_that_works(large: Path, tmp_path: Path) -> None:
    with session(tmp_path) as roomy:
        overhead = ROOMY - roomy.counters()["budget_bytes"]
    with session(tmp_path, memory_limit=overhead + (6 << 20)), pytest.raises(MemoryLimitError) as refused:
        oc.show.image(oc.open(large / "wide.zarr"), ax=False)
    smallest = refused.value.smallest
    assert smallest is not None
    with session(tmp_path, memory_limit=smallest + (8 << 20)):
        assert oc.show.image(oc.open(large / "wide.zarr"), ax=False).cells.shape == (512, 683)


def test_spy_of_an_array_holds_one_byte_for_an_element(large: Path, tmp_path: Path) -> None:
    with session(tmp_path) as roomy:
        overhead = ROOMY - roomy.counters()["budget_bytes"]
    with session(tmp_path, memory_limit=overhead + (16 << 20), threads=1):
        assert oc.show.spy(oc.open(large / "square.zarr"), ax=False).cells.sum() == ROWS * COLUMNS


def test_spy_of_a_matrix_without_entries_and_one_that_is_not_made_yet(current: Any) -> None:
    A = oc.sparse.from_coo([], [], np.zeros(0), (30, 40))
    assert oc.show.spy(A, ax=False).cells.sum() == 0
    assert_fits(oc.show.spy(A, ax=False))
    B = oc.sparse.from_coo([0, 1], [1, 2], [1.0, 2.0], (3, 3))
    assert oc.show.spy(B @ B, ax=False).cells.tolist() == [[1]]
    assert oc.show.spy(2 * B, (3, 3), ax=False).cells.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
def test_spy_of_an_array_counts_elements_that_are_not_zero(current: Any, dtype: str) -> None:
    x = (np.random.default_rng(6).integers(0, 3, (40, 50)) == 1).astype(dtype)
    drawing = oc.show.spy(x, (10, 10), ax=False)
    assert np.array_equal(drawing.cells, of_blocks(x, 4, 5, np.count_nonzero))


def test_degrees_are_counted_by_powers_of_two(current: Any) -> None:
    G = oc.graph.from_arrays(np.zeros(20, dtype=int), np.arange(1, 21), directed=True)
    assert oc.show.degrees(G, "out", ax=False).counts.tolist() == [20, 0, 0, 0, 0, 1]
    drawing = oc.show.degrees(G, ax=False)
    assert drawing.counts.tolist() == [0, 20, 0, 0, 0, 1]
    assert drawing.edges.tolist() == [0, 1, 2, 4, 8, 16, 32]
    assert "16-31   1" in repr(drawing)
    assert "vertices by neighbours" in svg_of(drawing)
    assert "1.90476 in the mean" in svg_of(drawing)
    assert_fits(drawing)


def refusals() -> dict[str, Any]:
    x, dates = np.ones((4, 4)), np.zeros(3, dtype="datetime64[D]")
    return {
        "image: draws arrays of 2 axes, and shape (2, 2, 3) has 3": lambda: oc.show.image(np.ones((2, 2, 3))),
        "shape (3,) has 1": lambda: oc.show.image(np.ones(3)),
        "image: an array of shape (0, 3) has no elements": lambda: oc.show.image(np.ones((0, 3))),
        "complex128 numbers have no shade": lambda: oc.show.image(x * 1j),
        "image: elements of datetime64[D]": lambda: oc.show.image(oc.asarray(dates)),
        "image: size=(0, 5)": lambda: oc.show.image(x, (0, 5)),
        "image: size='large'": lambda: oc.show.image(x, "large"),
        "image: how='median'": lambda: oc.show.image(x, how="median"),
        "histogram: complex64 numbers have no order": lambda: oc.show.histogram(np.ones(3, np.complex64)),
        "histogram: elements of <U2": lambda: oc.show.histogram(np.asarray(["a", "bc"])),
        "histogram: an array of shape (0,) has no elements": lambda: oc.show.histogram(np.ones(0)),
        "histogram: bins=0": lambda: oc.show.histogram(x, 0),
        "histogram: bins='auto'": lambda: oc.show.histogram(x, "auto"),
        "edges of shape (1,)": lambda: oc.show.histogram(x, [1.0]),
        "range (2.0, 1.0)": lambda: oc.show.histogram(x, range=(2, 1)),
        "is not finite in float64": lambda: oc.show.histogram(np.asarray([-1.7e308, 1.7e308])),
        "x of shape (3,), y of shape (4,)": lambda: oc.show.scatter(np.ones(3), np.ones(4)),
        "x of shape (4, 4), y of shape (4, 4)": lambda: oc.show.scatter(x, x),
        "x and y of shape (0,) have no points": lambda: oc.show.scatter(np.ones(0), np.ones(0)),
        "scatter: complex128": lambda: oc.show.scatter(np.ones(2) * 1j, np.ones(2)),
        "3 bins and 2 ranges": lambda: oc.show.scatter(np.ones(2), np.ones(2), (1, 2, 3)),
        "scatter: range=5": lambda: oc.show.scatter(np.ones(2), np.ones(2), range=5),
        "degrees: draws an outcore.graph.Graph, not ndarray": lambda: oc.show.degrees(x),
        "degrees: direction must be": lambda: oc.show.degrees(oc.graph.from_arrays([0], [1]), "up"),
        "spy: an array of shape (0, 0) has no elements": lambda: oc.show.spy(np.ones((0, 0))),
        "image: ax=True": lambda: oc.show.image(x, ax=True),
    }


@pytest.mark.parametrize("text", refusals())
def test_errors_say_what_is_wrong(current: Any, text: str) -> None:
    with pytest.raises((ArgumentError, DTypeError, ShapeError)) as error:
        refusals()[text]()
    assert text in str(error.value)
    assert isinstance(error.value, OutcoreError)


def test_a_damaged_directory_is_refused(current: Any, out: Path) -> None:
    A = oc.sparse.from_coo([0, 300], [0, 300], [1.0, 2.0], (400, 400), out / "a.ocs", side=256)
    content = bytearray((out / "a.ocs").read_bytes())
    content[4096 + 24 + 4] += 1  # the entries of the first tile
    (out / "a.ocs").write_bytes(content)
    with pytest.raises(OutcoreError, match="entries of tiles are not those of their tile rows"):
        oc.show.spy(A, ax=False)


def test_without_matplotlib_drawings_come_back(current: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outcore.show._drawing.find_spec", lambda name: None)
    drawing = oc.show.histogram(np.ones(3))
    assert isinstance(drawing, oc.show.BarDrawing)
    with pytest.raises(ArgumentError, match="matplotlib is not installed"):
        drawing.plot()


def test_importing_outcore_loads_no_drawing_and_drawing_loads_no_matplotlib() -> None:
    code = (
        "import sys, outcore as oc; assert 'outcore.show' not in sys.modules;"
        "repr(oc.show.histogram([1.0, 2.0], ax=False)); assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_matplotlib
def test_drawings_go_on_axes_of_matplotlib(current: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    random = np.random.default_rng(8)
    x = random.standard_normal(1000)
    figure, axes = pyplot.subplots(2, 4)
    bars, image, spy, degrees, points, days, spans, flags = axes.flat
    assert oc.show.histogram(np.append(x, np.nan), ax=bars) is bars
    assert bars.patches[0].get_data().values.sum() == 1000
    assert "1 NaN left out" in bars.get_title()
    assert oc.show.image(x.reshape(40, 25), (5, 8), ax=image) is image
    np.testing.assert_allclose(image.collections[0].get_array(), block_means(x.reshape(40, 25), 5, 5))
    assert image.get_ylim() == (40, 0)
    assert oc.show.spy(np.eye(30), ax=spy) is spy
    assert oc.show.degrees(oc.graph.from_arrays([0, 0], [1, 2]), ax=degrees) is degrees
    assert degrees.get_yscale() == "log"
    assert oc.show.scatter(x, x, 20, ax=points) is points
    assert points.collections[0].get_array().sum() == 1000
    assert oc.show.histogram(np.datetime64("2024-01-01") + np.arange(90), ax=days) is days
    assert oc.show.histogram(np.arange(90).astype("timedelta64[s]"), ax=spans) is spans
    assert oc.show.spy(np.zeros((3, 3)), ax=flags) is flags
    figure.canvas.draw()
    pyplot.close("all")
    assert isinstance(oc.show.histogram(x), Axes)
    assert oc.show.histogram(x) is pyplot.gca()
    assert isinstance(oc.show.histogram(x, ax=False), oc.show.Drawing)
    pyplot.close("all")


@needs_matplotlib
def test_bars_of_degrees_are_of_one_width(current: Any) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    G = oc.graph.from_arrays([0, 0, 0, 1, 5, 5, 5, 5, 5], [1, 2, 3, 2, 6, 7, 8, 9, 10], directed=False)
    _, ax = pyplot.subplots()
    oc.show.degrees(G, ax=ax)
    ends = ax.transData.transform([(edge, 1.0) for edge in (0, 1, 2, 4, 8)])[:, 0]
    assert np.allclose(np.diff(ends), ends[1] - ends[0])
    pyplot.close("all")


@pytest.mark.parametrize("number", [3, 9, 14, 20, 40])
def test_labels_below_a_plot_are_as_far_from_each_other(number: int) -> None:
    picture = ElementTree.fromstring(svg([5] * number, "a title"))
    labels = [text for text in picture.iter("{http://www.w3.org/2000/svg}text") if text.get("text-anchor") == "middle"]
    places = [float(text.get("x", "")) for text in labels if re.fullmatch(r"\d+(-\d+)?", text.text or "")]
    assert len(places) > 1
    assert np.allclose(np.diff(places), places[1] - places[0], atol=0.11)


@needs_matplotlib
def test_titles_end_within_the_figure_and_dates_beside_each_other(current: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    days = np.datetime64("2024-01-01") + np.random.default_rng(9).integers(0, 366, 500)
    name = "a variable that somebody measured in many places over many years " * 3
    x = oc.asarray(np.append(np.random.default_rng(9).random(1000), [np.nan, np.inf])).annotate(name=name)
    for draw in (
        lambda: oc.show.histogram(days),
        lambda: oc.show.histogram(x, range=(0, 0.5)),
        lambda: oc.show.scatter(x, x),
    ):
        figure = pyplot.figure()
        ax = draw()
        figure.canvas.draw()
        for text in (ax.title, ax.xaxis.label):
            place = text.get_window_extent()
            assert figure.bbox.x0 <= place.x0 < place.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= place.y0 < place.y1 <= figure.bbox.y1
        labels = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
        assert all(one.x1 < other.x0 for one, other in pairwise(labels))
        pyplot.close(figure)


def test_infinite_cells_are_said() -> None:
    drawing = oc.show.image(np.array([[1.0, np.inf], [-np.inf, 2.0]]), ax=False)
    assert "2 of 4 cells hold infinite numbers, beyond the shades" in repr(drawing)
    assert "2 of 4 cells hold infinite numbers, beyond the shades" in svg_of(drawing)
    assert "infinite" not in repr(oc.show.image(np.eye(2), ax=False))
