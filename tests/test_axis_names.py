"""Functions of the whole namespace take an axis by its name where they take one by its number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.namespace import MODULES, arrays_in

import outcore as oc
from outcore.errors import ArgumentError

DIMS = ("time", "lat", "lon")
PARAMETERS = ("axis", "axes")
# Axes of results, of coordinates, of rows, of files; `groupby` has methods that take names.
NAMELESS = {
    *("expand_dims", "geomspace", "groupby", "logspace", "lexsort", "open", "random.choice", "stack"),
}
NUMBERS = np.random.default_rng(1).permutation(64).reshape(4, 4, 4)
NAMED: dict[str, Callable[[oc.Array, Any], Any]] = {
    "aggregate": lambda x, axis: oc.aggregate(x, "add", axis=axis),
    "append": lambda x, axis: None,  # a file's axis: tests/test_append.py
    "apply_along_axis": lambda x, axis: oc.apply_along_axis(np.sort, axis, x),
    "apply_over_axes": lambda x, axis: oc.apply_over_axes(oc.sum, x, axis),
    "argpartition": lambda x, axis: oc.argpartition(x, 1, axis=axis),
    "array_split": lambda x, axis: oc.array_split(x, 3, axis=axis),
    "compress": lambda x, axis: oc.compress([True, False, True, True], x, axis=axis),
    "concat": lambda x, axis: oc.concat([x, x], axis=axis),
    "delete": lambda x, axis: oc.delete(x, 1, axis=axis),
    "fft.fftn": lambda x, axis: oc.fft.fftn(x, axes=[axis]),
    "fft.ifftn": lambda x, axis: oc.fft.ifftn(x, axes=[axis]),
    "fft.irfftn": lambda x, axis: oc.fft.irfftn(x, axes=[axis]),
    "fft.rfftn": lambda x, axis: oc.fft.rfftn(x, axes=[axis]),
    "fft.fftshift": lambda x, axis: oc.fft.fftshift(x, axes=axis),
    "fft.ifftshift": lambda x, axis: oc.fft.ifftshift(x, axes=axis),
    "insert": lambda x, axis: oc.insert(x, 1, 7, axis=axis),
    "linalg.cross": lambda x, axis: oc.linalg.cross(x[:3, :3, :3], x[:3, :3, :3] + 1, axis=axis),
    "linalg.tensordot": lambda x, axis: oc.linalg.tensordot(x, x, axes=([axis], [axis])),
    "linalg.vecdot": lambda x, axis: oc.linalg.vecdot(x, x, axis=axis),
    "nanpercentile": lambda x, axis: oc.nanpercentile(x + 0.0, 30, axis=axis),
    "nanquantile": lambda x, axis: oc.nanquantile(x + 0.0, 0.3, axis=axis),
    "packbits": lambda x, axis: oc.packbits(x.astype("u1"), axis=axis),
    "partition": lambda x, axis: oc.partition(x, 1, axis=axis)[..., :0],
    "percentile": lambda x, axis: oc.percentile(x, 30, axis=axis),
    "permute_dims": lambda x, axis: oc.permute_dims(x, (axis, *(a for a in (0, 1, 2) if a != DIMS.index("lat")))),
    "pyramid": lambda x, axis: list(oc.pyramid(x, 2, axes=(axis, 2)).values()),
    "quantile": lambda x, axis: oc.quantile(x, 0.3, axis=axis),
    "repeat": lambda x, axis: oc.repeat(x, 2, axis=axis),
    "roll": lambda x, axis: [oc.roll(x, 1, axis=axis), oc.roll(x, (1, 2), axis=(axis, 0))],
    "rot90": lambda x, axis: oc.rot90(x, axes=(axis, 0)),
    "split": lambda x, axis: oc.split(x, 2, axis=axis),
    "squeeze": lambda x, axis: oc.squeeze(x[:, :1], axis=axis),
    "take": lambda x, axis: oc.take(x, np.asarray([2, 0]), axis=axis),
    "take_along_axis": lambda x, axis: oc.take_along_axis(x, x % 4, axis=axis),
    "tensordot": lambda x, axis: oc.tensordot(x, x, axes=([axis], [axis])),
    "transpose": lambda x, axis: oc.transpose(x, (axis, 2, 0)),
    "unpackbits": lambda x, axis: oc.unpackbits(x.astype("u1"), axis=axis),
    "vecdot": lambda x, axis: oc.vecdot(x, x, axis=axis),
    **{
        f"rolling_{name}": lambda x, axis, name=name: getattr(oc, f"rolling_{name}")(x, 2, axis=axis)
        for name in ("max", "mean", "min", "std", "sum", "var")
    },
}


def with_axis() -> list[str]:
    names = []
    for prefix, module in MODULES.items():
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and set(PARAMETERS) & set(inspect.signature(function).parameters):
                names.append(prefix + name)
    return [name for name in names if name not in NAMELESS]


@pytest.mark.parametrize("name", with_axis())
def test_a_name_is_its_number(name: str) -> None:
    prefix, _, short = name.rpartition(".")
    function = getattr(MODULES[f"{prefix}." if prefix else ""], short)
    call = NAMED.get(name, lambda x, axis: function(x, axis=axis))
    x = oc.asarray(NUMBERS).annotate(dims=DIMS)
    if name in ("fft.hfft", "fft.ihfft") or "nan" in name:
        x = x + 0.0
    by_name, by_number = list(arrays_in(call(x, "lat"))), list(arrays_in(call(x, 1)))
    assert len(by_name) == len(by_number)
    for ours, theirs in zip(oc.compute(*by_name, x), oc.compute(*by_number, x), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if name != "append":
        with pytest.raises(ArgumentError, match="no axis is called 'height'"):
            list(arrays_in(call(x, "height")))


def test_methods_and_moves_take_names() -> None:
    x = oc.asarray(NUMBERS[:, :2, :3]).annotate(dims=DIMS)
    assert x.transpose("lat", "lon", "time").dims == ("lat", "lon", "time")
    assert x.transpose(["lon", "lat", "time"]).shape == (3, 2, 4)
    assert oc.moveaxis(x, "time", -1).dims == oc.moveaxis(x, ("time",), "lon").dims == ("lat", "lon", "time")
    assert oc.swapaxes(x, "time", "lon").dims == ("lon", "lat", "time")
    assert x.take(np.asarray([1, 0]), axis="lat").shape == (4, 2, 3)
    for name, number in (("cumsum", 1), ("cumprod", 1), ("argmax", 2), ("argsort", 2), ("squeeze", 1)):
        part = x[:, :1] if name == "squeeze" else x
        ours = getattr(part, name)(axis=DIMS[number])
        np.testing.assert_array_equal(ours.compute(), getattr(part, name)(axis=number).compute())
    with pytest.raises(ArgumentError, match=r"groups\.mean"):
        oc.groupby(np.asarray([0, 1]), axis="lat")  # type: ignore[arg-type]
    assert oc.groupby(np.asarray([0, 1])).sum(x, axis="lat").shape == (4, 2, 3)


def test_a_new_axis_of_a_stack_has_the_name_that_it_is_given() -> None:
    x = oc.zeros((2, 3)).annotate(dims=("lat", "lon"))
    assert oc.stack([x, x, x, x], axis="time").dims == ("time", "lat", "lon")
    assert oc.stack([x, x, x, x], axis="time").shape == (4, 2, 3)
    with pytest.raises(ArgumentError, match="concat joins along it"):
        oc.stack([x, x], axis="lat")


def test_products_have_the_axes_of_their_stacks_and_sides() -> None:
    x = oc.zeros((2, 3, 4, 5)).annotate(dims=("step", "run", "row", "inner"))
    y = oc.zeros((3, 5, 6)).annotate(dims=("run", "inner", "column"))
    assert (x @ y).dims == ("step", "run", "row", "column")
    assert (x @ y.annotate(dims=("other", "inner", "column"))).dims == ("step", None, "row", "column")
    assert (x @ oc.zeros((3, 5, 6))).dims == ("step", "run", "row", None)
    assert oc.tensordot(x, y, axes=([1, 3], [0, 1])).dims == ("step", "row", "column")
    assert oc.tensordot(x, y, axes=([3], [1])).dims == ("step", None, "row", None, "column")
