"""Random expressions over random shapes, types and ways of storage give what NumPy gives, types included."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.expressions import Builder, check
from support.running import load, session
from support.sizes import sized

import outcore as oc

MIB = 1 << 20
# No deadline: a first example compiles nothing, but a busy machine may be slow, and time is not the property.
CALM: dict[str, Any] = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def grow(build: Builder, shapes: list[tuple[int, ...]], steps: int) -> None:
    for shape in shapes:
        build.pairs.append(build.source(shape))
    for _ in range(steps):
        build.step()


@settings(max_examples=sized(120, 1500), **CALM)
@given(data=st.data())
def test_small_arrays_of_every_shape(data: Any) -> None:
    """0-d, empty, of length one, odd; up to eight steps, all results from one common program."""
    with tempfile.TemporaryDirectory() as folder, session(pool_limit=64 * MIB):
        build = Builder(data.draw, Path(folder), lengths=(0, 1, 2, 3, 5, 7, 8, 13))
        grow(build, [build.shape()], data.draw(st.integers(1, 8)))
        found = oc.compute(*(pair.lazy for pair in build.pairs), build.pairs[-1].lazy)
        for pair, value in zip([*build.pairs, build.pairs[-1]], found, strict=True):
            check(value, pair, build.steps)


@settings(max_examples=sized(30, 450), **CALM)
@given(data=st.data())
def test_arrays_of_many_tiles(data: Any) -> None:
    """One axis so long that the array has many tiles, with a pool that does not hold them all."""
    rows = data.draw(st.sampled_from((262_144, 300_007, 1_000_003)))
    with tempfile.TemporaryDirectory() as folder, session(pool_limit=96 * MIB, threads=data.draw(st.integers(1, 4))):
        build = Builder(data.draw, Path(folder), lengths=(rows,), dimensions_max=1)
        grow(
            build,
            [data.draw(st.sampled_from(((rows,), (rows, 3), (2, rows), (rows, 1))))],
            data.draw(st.integers(1, 5)),
        )
        last = build.pairs[-1]
        check(oc.compute(last.lazy), last, build.steps)


@settings(max_examples=sized(70, 900), **CALM)
@given(data=st.data())
def test_stored_results_read_back(data: Any) -> None:
    """Through a file, .npy or Zarr with drawn chunks, as the formats' own libraries read it."""
    with tempfile.TemporaryDirectory() as folder, session(pool_limit=64 * MIB):
        build = Builder(data.draw, Path(folder), lengths=(0, 1, 2, 3, 5, 7, 13))
        grow(build, [build.shape()], data.draw(st.integers(0, 4)))
        last = build.pairs[-1]
        path = Path(folder) / data.draw(st.sampled_from(("result.npy", "result.zarr")))
        chunks = None
        if path.suffix == ".zarr" and data.draw(st.booleans()):
            chunks = {path: [data.draw(st.integers(1, length + 1)) for length in last.value.shape]}
        oc.store({path: last.lazy}, chunks=chunks)
        check(load(path), last, build.steps)


@settings(max_examples=sized(70, 900), **CALM)
@given(data=st.data())
def test_rewrites_change_no_value(data: Any) -> None:
    """With every rewrite off the plan is another, the values are the same within rounding."""
    with tempfile.TemporaryDirectory() as folder, session(pool_limit=64 * MIB, rewrites={"all": False}):
        build = Builder(data.draw, Path(folder), lengths=(1, 2, 3, 7, 13))
        grow(build, [build.shape()], data.draw(st.integers(1, 8)))
        for pair in build.pairs[-2:]:
            check(oc.compute(pair.lazy), pair, build.steps)
