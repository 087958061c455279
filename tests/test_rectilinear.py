"""Rectilinear chunk grids of Zarr: chunks whose lengths differ along an axis."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import forecast, run, session

import outcore as oc
from outcore.errors import FormatError, OutcoreError, SourceChangedError, UnsupportedFormatError


def rectilinear(path: Path, values: Any, axes: list[Any], inner: int | None = None, **options: Any) -> None:
    """An array whose chunks have the lengths `axes`; each chunk is made by zarr-python as an array of its own."""
    apart = path.with_suffix(".apart")
    starts = [list(itertools.accumulate(edges, initial=0)) for edges in axes]
    options = {"fill_value": 0, "compressors": None} | options
    layout: dict[str, Any] = {}
    for index in itertools.product(*(range(len(edges)) for edges in axes)):
        shape = tuple(edges[at] for edges, at in zip(axes, index, strict=True))
        begins = [start[at] for start, at in zip(starts, index, strict=True)]
        if any(begin >= length for begin, length in zip(begins, values.shape, strict=True)):
            continue
        part = values[tuple(slice(begin, begin + length) for begin, length in zip(begins, shape, strict=True))]
        layout = {"chunks": shape} if inner is None else {"chunks": (inner,) * values.ndim, "shards": shape}
        made = zarr.create_array(apart, shape=shape, dtype=values.dtype, overwrite=True, **layout, **options)
        made[tuple(slice(0, length) for length in part.shape)] = part
        name = "/".join(["c", *map(str, index)])
        if (apart / "/".join(["c", *("0" for _ in index)])).exists():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(apart / "/".join(["c", *("0" for _ in index)]), path / name)
    if not layout:
        layout = {"chunks": tuple(edges[0] for edges in axes)}
        zarr.create_array(apart, shape=layout["chunks"], dtype=values.dtype, overwrite=True, **layout, **options)
    document = json.loads((apart / "zarr.json").read_text())
    shutil.rmtree(apart)
    grid = {"kind": "inline", "chunk_shapes": [compressed(edges) for edges in axes]}
    document |= {"shape": list(values.shape), "chunk_grid": {"name": "rectilinear", "configuration": grid}}
    path.mkdir(exist_ok=True)
    (path / "zarr.json").write_text(json.dumps(document))


def compressed(edges: list[int]) -> list[Any]:
    """Lengths as zarr-python has them: a length and a count where some are equal."""
    runs = [(edge, len(list(group))) for edge, group in itertools.groupby(edges)]
    return [edge if count == 1 else [edge, count] for edge, count in runs]


def regrid(path: Path, chunk_shapes: Any, **members: Any) -> None:
    """Gives an array another grid."""
    document = json.loads((path / "zarr.json").read_text())
    document["chunk_grid"]["configuration"] = {"kind": "inline", "chunk_shapes": chunk_shapes} | members
    (path / "zarr.json").write_text(json.dumps(document))


@st.composite
def grids(draw: st.DrawFn) -> tuple[tuple[int, ...], list[list[int]], list[slice]]:
    """A shape, lengths of chunks that go up to four elements beyond, and a region."""
    shape, axes, region = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        edges = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
        length = max(sum(edges) - draw(st.integers(0, 4)), 0)
        start = draw(st.integers(0, length))
        shape.append(length)
        axes.append(edges)
        region.append(slice(start, draw(st.integers(start, length))))
    return tuple(shape), axes, region


@settings(max_examples=20, deadline=None)
@given(
    grid=grids(),
    inner=st.sampled_from([None, 1]),
    options=st.sampled_from([{}, {"compressors": zarr.codecs.ZstdCodec(level=1), "fill_value": 3}]),
    has_holes=st.booleans(),
)
def test_regions_are_those_of_numpy(
    grid: Any, inner: int | None, options: Any, has_holes: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shape, axes, region = grid
    path = tmp_path_factory.mktemp("zarr") / "x.zarr"
    x = np.arange(np.prod(shape), dtype="int32").reshape(shape)
    if has_holes:
        x = np.where(x % 7 < 4, options.get("fill_value", 0), x).astype("int32")
    rectilinear(path, x, axes, inner, **options)
    with session():
        opened = oc.open(path)
        np.testing.assert_array_equal(opened.compute(), x)
        targets = {path.with_name("part.npy"): opened[tuple(region)] + 0}
        assert forecast(targets) == run(targets)
    np.testing.assert_array_equal(np.load(path.with_name("part.npy")), x[tuple(region)])


def test_months_are_read_at_their_bytes(out: Path, scratch: Path) -> None:
    path, months = out / "x.zarr", [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    x = np.random.default_rng(0).random((365, 40, 64))
    rectilinear(path, x, [months, [40], [64]])
    with session(scratch, pool_limit=32 << 20):
        opened = oc.open(path)
        told, did = oc.explain({out / "y.npy": opened * 2}), oc.store({out / "y.npy": opened * 2})
        # Chunks have no codecs, and rows are whole pages: tiles across chunks read nothing twice.
        assert told.bytes_read == did.bytes_read == x.nbytes
        assert did.peak_bytes <= told.peak_bytes
        np.testing.assert_array_equal(np.load(out / "y.npy"), x * 2)
        np.testing.assert_array_equal(opened[181:212].compute(), x[181:212])
        np.testing.assert_allclose(opened.mean(axis=0).compute(), x.mean(axis=0))


def test_a_million_chunks_of_two_lengths_are_two_runs(out: Path) -> None:
    path = out / "x.zarr"
    rectilinear(path, np.zeros(0, "int8"), [[1, 2]])
    document = json.loads((path / "zarr.json").read_text())
    (path / "zarr.json").write_text(json.dumps(document | {"shape": [1 << 40]}))
    regrid(path, [[[1, 10], [1 << 20, 1 << 50]]])
    (path / "c").mkdir(exist_ok=True)
    (path / "c/3").write_bytes(b"\x07")
    with session():
        assert oc.open(path)[:20].compute().tolist() == [0, 0, 0, 7] + [0] * 16
        regrid(path, [1 << 20])
        assert oc.open(path)[(1 << 40) - 2 :].compute().tolist() == [0, 0]


def test_damaged_grids_are_errors_with_their_path(out: Path) -> None:
    path = out / "x.zarr"
    rectilinear(path, np.arange(6.0), [[2, 4]], 2)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ([[2, 3]], {}, "chunk_shapes of axis 0: lengths up to 5 do not cover the array's 6"),
        ([[]], {}, "there are no lengths"),
        ([[2, 0, 4]], {}, "no positive whole number"),
        ([[[2, 3, 1]]], {}, "neither a length nor a length and a count"),
        ([[2, 4], [1]], {}, "no chunk_shapes of 1 axes"),
        ("2", {}, "no chunk_shapes of 1 axes"),
        ([[2, 4]], {"kind": "file"}, 'not of kind "inline"'),
        ([[1 << 62, 1 << 62]], {}, "overflows"),
        ([[3, 4]], {}, "inner chunks of length 2 do not divide shards of length 3|do not divide shards"),
    ]
    with session():
        for shapes, members, match in cases:
            regrid(path, shapes, **members)
            with pytest.raises(FormatError, match=rf"x\.zarr.*({match})"):
                oc.open(path)
        regrid(path, [[2, 4]])
        for update in (lambda: oc.append(path, np.ones(1), axis=0), lambda: oc.store({oc.region(path, np.s_[0]): 1.0})):
            with pytest.raises(UnsupportedFormatError, match="has a rectilinear chunk grid"):
                update()
        opened = oc.open(path)
        (path / "c/1").write_bytes(b"short")
        with pytest.raises(SourceChangedError, match=r"x\.zarr/c/1"):
            opened.compute()
        with pytest.raises(OutcoreError, match=r"x\.zarr/c/1.*5 bytes is too short for its index"):
            oc.open(path).compute()
