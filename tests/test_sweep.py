"""Sweeps: the forecast of a computation under other memory limits, which are those of sessions with such limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse

import outcore as oc
from outcore import errors
from outcore._base.sizes import format_size
from outcore._session.trace import SweepPoint
from outcore._show.sweep import LimitSweep, smallest_limit

# Bytes that limits of these tests leave to arrays, beside a process of any size.
LEFT = 300 << 20
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def product(tmp_path: Path) -> Iterator[oc.Array]:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((2400, 2400)))
    x = oc.open(tmp_path / "x.npy")
    with oc.Session(memory_limit="8GiB", scratch=[str(tmp_path)], threads=2) as large:
        process = (8 << 30) - large.counters()["budget_bytes"]
    with oc.Session(memory_limit=process + LEFT, scratch=[str(tmp_path)], threads=2):
        yield x @ x.T


def test_points_are_the_forecasts_of_sessions_with_these_limits(product: oc.Array, tmp_path: Path) -> None:
    said = oc.explain(product.sum())
    limits = [said.overhead_bytes + room for room in (84 << 20, 100 << 20, 240 << 20)]
    sweep = oc.explain(product.sum(), sweep=limits).sweep
    assert sweep is not None
    assert [point.memory_limit for point in sweep.points] == limits
    for point in sweep.points:
        with oc.Session(memory_limit=point.memory_limit, scratch=[str(tmp_path)], threads=2) as other:
            if other.counters()["budget_bytes"] + said.overhead_bytes != point.memory_limit:
                continue  # the process has grown meanwhile
            try:
                alone = oc.explain(product.sum())
            except errors.MemoryLimitError:
                assert point.moved is None
                continue
        assert (alone.bytes_read, alone.bytes_written, alone.peak_bytes) == (*point[1:3], point.peak_bytes)
        assert point.exact
    reads = [point.bytes_read for point in sweep.points if point.bytes_read is not None]
    assert reads == sorted(reads, reverse=True)
    assert reads[-1] >= 2400 * 2400 * 8


def test_sixteen_limits_are_chosen_around_the_one_in_force(product: oc.Array) -> None:
    sweep = oc.explain(product, sweep=True).sweep
    assert sweep is not None
    assert len(sweep.points) == 16
    assert sweep.memory_limit in [point.memory_limit for point in sweep.points]
    assert sweep.knee is not None
    least = min(point.moved for point in sweep.points if point.moved is not None)
    at_knee = next(point for point in sweep.points if point.memory_limit == sweep.knee)
    assert at_knee.moved is not None
    assert at_knee.moved <= 1.05 * least
    assert all((point.moved or 1 << 60) > 1.05 * least for point in sweep.points if point.memory_limit < sweep.knee)


def test_a_limit_that_is_too_small_says_what_it_needs(product: oc.Array) -> None:
    sweep = oc.explain(product, sweep=["1MiB", "8GiB"]).sweep
    assert sweep is not None
    small, enough = sweep.points
    assert small.moved is None
    assert small.need > 1 << 20
    assert enough.moved is not None
    assert "does not fit: needs" in str(sweep)


def test_text_and_picture_mark_the_knee(product: oc.Array) -> None:
    said = oc.explain(product, sweep=True)
    assert said.sweep is not None
    text = str(said)
    assert text.count("knee") == 1
    assert "limit in force" in text
    assert all(len(line) <= 110 for line in str(said.sweep).splitlines())
    picture = ElementTree.fromstring(said.sweep.svg())
    words = [part.text or "" for part in picture.iter(f"{SVG}text")]
    assert any(word.startswith("knee, ") for word in words)
    assert len(re.findall("<tr>", said.sweep._repr_html_())) == 17
    assert str(said.sweep).splitlines()[0].split() == ["limit", "read", "written", "spilled", "peak"]
    assert said.sweep.to_dict()["knee"] == said.sweep.knee


def a_sweep(in_force: int, knee: int) -> LimitSweep:
    """A sweep in MiB: less is moved up to the knee, and no less beyond it."""
    limits = sorted({*(100 << power for power in range(8)), in_force, knee})
    points = [SweepPoint(limit << 20, max(knee * 1000 // limit, 1000), 0, 0, 1, True, 0) for limit in limits]
    return LimitSweep(points, in_force << 20)


@pytest.mark.parametrize("knee", [100, 190, 1000, 1100, 6000, 12_800])
@pytest.mark.parametrize("in_force", [100, 150, 1000, 4000, 9000, 12_800])
def test_labels_of_marked_limits_are_whole_and_crossed_by_no_line(in_force: int, knee: int) -> None:
    sweep = a_sweep(in_force, knee)
    assert sweep.knee is not None
    picture = ElementTree.fromstring(sweep.svg())
    wide = float((picture.get("viewBox") or "").split()[2])
    marked = [line for line in picture.iter(f"{SVG}line") if line.get("class") in ("line write", "line limit")]
    labels = [text for text in picture.iter(f"{SVG}text") if (text.text or "").startswith(("knee", "limit in force"))]
    assert len(marked) == len(labels) == 2
    for label in labels:
        x, y, length = float(label.get("x", "")), float(label.get("y", "")), 6.6 * len(label.text or "")
        begin, end = (x - length, x) if label.get("class") == "value" else (x, x + length)
        assert 0 <= begin < end <= wide
        for line in marked:
            at, top = float(line.get("x1", "")), float(line.get("y1", ""))
            assert not (begin < at < end and top < y), "the line crosses the label"


def test_nothing_is_made_or_read(product: oc.Array, tmp_path: Path) -> None:
    with oc.profile() as seen:
        oc.explain({tmp_path / "p.zarr": product}, sweep=True)
    assert seen.outcomes == []
    assert not (tmp_path / "p.zarr").exists()


def test_limits_that_are_none_are_refused(product: oc.Array) -> None:
    for sweep, why in (
        (["many"], "sweep has 'many'"),
        ([0], "from 1 MiB"),
        ([1 << 64], "from 1 MiB"),
        ("4GiB", "a list"),
    ):
        with pytest.raises(errors.ArgumentError, match=why):
            oc.explain(product, sweep=sweep)


def test_the_smallest_limit_that_works_is_named(product: oc.Array) -> None:
    sweep = oc.explain(product.sum(), sweep=True).sweep
    assert sweep is not None
    assert sweep.smallest is not None
    assert f"The smallest limit that works is {format_size(sweep.smallest)}." in str(sweep)
    assert "smallest limit that works" in sweep._repr_html_()
    below, at = sweep.smallest - (4 << 20), sweep.smallest
    around = oc.explain(product.sum(), sweep=[below, at]).sweep
    assert around is not None
    assert [point.moved is not None for point in around.points] == [False, True]
    none = oc.explain(product.sum(), sweep=["1MiB"]).sweep
    assert none is not None
    assert none.smallest is None


def test_the_pool_limit_of_a_session_is_said_to_bind(product: oc.Array, tmp_path: Path) -> None:
    assert "pool limit" not in str(oc.explain(product, sweep=True).sweep)
    pool = 192 << 20
    with oc.Session(memory_limit="8GiB", pool_limit=pool, scratch=[str(tmp_path)], threads=2):
        said = oc.explain(product, sweep=["4GiB", "8GiB"])
    assert said.sweep is not None
    assert said.sweep.pool_binds_from == said.overhead_bytes + pool
    assert f"pool limit of {format_size(pool)} binds" in str(said)
    four, eight = said.sweep.points
    assert four[1:] == eight[1:]


def test_a_sparse_product_is_refused_with_the_calls_that_do(tmp_path: Path) -> None:
    A = oc.sparse.from_scipy(scipy.sparse.eye(30, format="csr"), tmp_path / "a.ocs")
    with pytest.raises(
        errors.ArgumentError, match=r"store\(\{'a.ocs': A\}\) stores it, and outcore.explain\(\{"
    ) as raised:
        oc.explain(A @ A.T)
    assert str(raised.value).startswith("explain: ")
    assert oc.explain({tmp_path / "p.ocs": A @ A.T}).bytes_written > 0


@pytest.mark.parametrize("works_from", [101 << 20, 130 << 20, 199 << 20])
def test_the_search_for_the_smallest_limit_ends_near_it(works_from: int) -> None:
    def plan(limits: list[int]) -> list[SweepPoint]:
        return [
            SweepPoint(limit, *((0, 0, 0, 0, True, 0) if limit >= works_from else (None, None, None, None, False, 1)))
            for limit in limits
        ]

    least, step = 100 << 20, (100 << 20) / 5**3
    for limits in ([200 << 20], [110 << 20, 140 << 20, 200 << 20]):
        smallest = smallest_limit(plan(limits), least, plan)
        assert works_from <= smallest <= works_from + step + 1
    assert smallest_limit(plan([50 << 20]), least, plan) == 0
