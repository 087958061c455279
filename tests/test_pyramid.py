"""Pyramids: levels equal NumPy's block means and extremes, metadata is that of OME-Zarr 0.5, one read does it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from support import confined

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, ShapeError

KINDS = ("uint8", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64")


def blocks(x: np.ndarray[Any, Any], axes: tuple[int, ...], factor: int, reduce: Any) -> np.ndarray[Any, Any]:
    """What `reduce` makes of each block of `factor` cells along the axes, smaller at the ends."""
    shape = tuple(-(-n // factor) if axis in axes else n for axis, n in enumerate(x.shape))
    result = np.empty(shape, x.dtype)
    for place in np.ndindex(*shape):
        part = tuple(
            slice(at * factor, (at + 1) * factor) if axis in axes else slice(at, at + 1)
            for axis, at in enumerate(place)
        )
        result[place] = reduce(x[part])
    return result


def mean(part: np.ndarray[Any, Any]) -> Any:
    if part.dtype.kind in "iu":
        return round(Fraction(sum(part.ravel().tolist()), part.size))  # halves to even
    return part.mean(dtype=np.result_type(part.dtype, np.float64)).astype(part.dtype)


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(3)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        bounds = np.iinfo(kind)
        return random.integers(bounds.min, bounds.max, shape, kind, endpoint=True)
    return (random.standard_normal(shape) * 100).astype(kind)


@pytest.mark.parametrize("dtype", KINDS)
def test_means_are_exact(dtype: str) -> None:
    x = values(dtype, (2, 13, 18))
    if x.dtype.kind in "iu":
        x[0] = np.iinfo(x.dtype).max  # sums of 64 bits would overflow
        x[1, :4, :4] = np.arange(16).reshape(4, 4) % 2  # halves
    levels = oc.pyramid(x, 5)
    assert list(levels) == ["0", "1", "2", "3", "4"]
    assert np.array_equal(levels["0"].compute(), x)
    for level in range(1, 5):
        made = levels[str(level)].compute()
        assert made.dtype == x.dtype
        expected = blocks(x, (0, 1, 2), 2**level, mean)
        if x.dtype.kind in "iu":
            np.testing.assert_array_equal(made, expected)
        else:
            close = 4 * np.finfo(x.dtype).eps
            np.testing.assert_allclose(made, expected, rtol=close, atol=100 * close)


@pytest.mark.parametrize("method", ["max", "min"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bool"])
def test_extremes(method: str, dtype: str) -> None:
    x = values("int8", (3, 9, 17)).astype(dtype)
    if dtype == "float32":
        x[0, 3, 5] = np.nan
    levels = oc.pyramid(x, 4, method=method, axes=("y", "x"))  # type: ignore[call-overload]
    for level in range(1, 4):
        np.testing.assert_array_equal(
            levels[str(level)].compute(), blocks(x, (1, 2), 2**level, getattr(np, method)), strict=True
        )


def test_metadata_are_those_of_ome_zarr(tmp_path: Path) -> None:
    path = tmp_path / "ome.zarr"
    x = oc.asarray(values("uint16", (2, 3, 21, 40))).annotate(dims=("t", "c", "y", "x"), name="cells")
    oc.pyramid(x, 3, path, scale={"t": (5.0, "second"), "y": (0.5, "micrometer"), "x": (0.25, "micrometer")})
    document = json.loads((path / "zarr.json").read_text())
    assert document["zarr_format"] == 3
    assert document["node_type"] == "group"
    assert document["attributes"] == {
        "ome": {
            "version": "0.5",
            "multiscales": [
                {
                    "name": "cells",
                    "axes": [
                        {"name": "t", "type": "time", "unit": "second"},
                        {"name": "c", "type": "channel"},
                        {"name": "y", "type": "space", "unit": "micrometer"},
                        {"name": "x", "type": "space", "unit": "micrometer"},
                    ],
                    "datasets": [
                        {
                            "path": "0",
                            "coordinateTransformations": [{"type": "scale", "scale": [5.0, 1.0, 0.5, 0.25]}],
                        },
                        {
                            "path": "1",
                            "coordinateTransformations": [
                                {"type": "scale", "scale": [5.0, 1.0, 1.0, 0.5]},
                                {"type": "translation", "translation": [0.0, 0.0, 0.25, 0.125]},
                            ],
                        },
                        {
                            "path": "2",
                            "coordinateTransformations": [
                                {"type": "scale", "scale": [5.0, 1.0, 2.0, 1.0]},
                                {"type": "translation", "translation": [0.0, 0.0, 0.75, 0.375]},
                            ],
                        },
                    ],
                    "type": "mean",
                    "metadata": {"description": "mean of 2 cells along y, x"},
                }
            ],
        }
    }
    theirs = zarr.open_group(str(path), mode="r")
    for level in range(3):
        # "dimension_names ... MUST match the names in the axes metadata", levels from the largest on
        assert theirs[str(level)].metadata.dimension_names == ("t", "c", "y", "x")  # type: ignore[union-attr]
        expected = blocks(x.compute(), (2, 3), 2**level, mean)
        np.testing.assert_array_equal(theirs[str(level)][...], expected)  # type: ignore[index]
    again = oc.open(path)
    assert again["2"].dims == ("t", "c", "y", "x")
    assert again["2"].shape == (2, 3, 6, 10)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_levels_that_others_stored_have_names_of_axes(tmp_path: Path, version: str) -> None:
    path = str(tmp_path / "theirs.zarr")
    image = {"axes": [{"name": name, "type": "space"} for name in "zyx"], "datasets": [{"path": "s0"}, {"path": "s1"}]}
    theirs = zarr.open_group(path, mode="w", zarr_format=2 if version == "0.4" else 3)
    for name, length in (("s0", 8), ("s1", 4), ("labels", 3)):
        theirs.create_array(name, shape=(2, length, length), chunks=(1, 2, 2), dtype="u1")
    if version == "0.4":
        theirs.attrs["multiscales"] = [{"version": "0.4", **image}]
    else:
        theirs.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
    levels = oc.open(path)
    assert levels["s0"].dims == levels["s1"].dims == ("z", "y", "x")
    assert levels["labels"].dims == (None, None, None)
    assert levels["s0"].max(axis="z").shape == (8, 8)


@pytest.mark.parametrize(
    ("dtype", "shape", "chunks", "method"),
    [("uint16", (128, 1023, 2047), (4, 128, 128), "mean"), ("float32", (8192, 9216), None, "max")],
)
def test_one_read_at_an_eighth_of_the_data(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], chunks: tuple[int, ...] | None, method: str
) -> None:
    path = str(tmp_path / ("x.zarr" if chunks else "x.npy"))
    places = sum(oc.arange(n).reshape((-1,) + (1,) * (len(shape) - axis - 1)) for axis, n in enumerate(shape))
    oc.store({path: (places % 4099).astype(dtype)}, chunks={path: chunks} if chunks else None)
    x = oc.open(path)
    oc.clear()
    with oc.Session(memory_limit="1GiB") as probe:
        process = (1 << 30) - probe.counters()["budget_bytes"]
    with oc.Session(memory_limit=process + x.nbytes // 8), confined.programs() as run:
        oc.pyramid(x, 4, tmp_path / "ome.zarr", method=method, axes=(-2, -1))  # type: ignore[call-overload]
    (figures,) = run
    assert figures.pop("exact")
    assert all(said == did for said, did in figures.values())
    assert figures["bytes_read"][1] <= 1.03 * x.nbytes  # some tiles at the end are read for what is put behind
    assert figures["bytes_written"][1] <= (1.6 if chunks else 1.34) * x.nbytes  # chunks at ends are whole
    end = tuple(slice(n // 8 * 8 - 16, None) for n in shape)
    end = (slice(0, 2), *end[1:]) if chunks else end
    levels = oc.open(tmp_path / "ome.zarr")
    reduce = mean if method == "mean" else np.max
    axes = tuple(range(len(shape) - 2, len(shape)))
    expected = blocks(x[end].compute(), axes, 8, reduce)
    ends = levels["3"][tuple(slice(part.start // 8 if axis in axes else 0, None) for axis, part in enumerate(end))]
    np.testing.assert_array_equal(ends[: len(expected)].compute(), expected)


def test_refusals() -> None:
    x = oc.zeros((4, 4))
    for message, refused in {
        "levels": lambda: oc.pyramid(x, 0),
        "2³⁰": lambda: oc.pyramid(x, 16),
        "scale names 'z'": lambda: oc.pyramid(x, 2, scale={"z": 1.0}),
        "no axis is called 'z'": lambda: oc.pyramid(x, 2, axes="z"),
        "no names in part": lambda: oc.pyramid(x.annotate(dims=("y", None)), 2),
    }.items():
        with pytest.raises(ArgumentError, match=message):
            refused()
    with pytest.raises(ShapeError, match="2 to 5"):
        oc.pyramid(oc.zeros(4), 2)
    with pytest.raises(ShapeError, match="two or three of space"):
        oc.pyramid(oc.zeros((2, 2, 3)).annotate(dims=("y", "x", "t")), 2)
    with pytest.raises(ShapeError, match="no elements"):
        oc.pyramid(oc.zeros((0, 3)), 2)
    with pytest.raises(DTypeError, match="bool"):
        oc.pyramid(x > 0, 2)
    with pytest.raises(DTypeError, match="order"):
        oc.pyramid(x.astype("complex64"), 2, method="max")
