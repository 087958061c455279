"""Names of axes and attributes of stored groups: xarray opens what is stored, and JSON holds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import outcore as oc
from outcore.errors import DTypeError


def test_axes_without_a_name_get_one_that_xarray_opens(tmp_path: Path) -> None:
    path = tmp_path / "g.zarr"
    named = oc.zeros(4).annotate(dims=("dim_0",))
    below = oc.group(z=oc.zeros((3, 2)).annotate(dims=("row", None)))
    oc.store({path: oc.group(x=oc.zeros(3), y=oc.zeros((3, 3, 2)), n=named, below=below)})
    stored = oc.open(path)
    assert stored["n"].dims == ("dim_0",)
    assert stored["x"].dims == ("dim_1",)
    assert stored["y"].dims == ("dim_1", "dim_2", "dim_3")
    assert stored["below/z"].dims == ("row", "dim_3")
    theirs = xr.open_datatree(path, engine="zarr", consolidated=False)
    assert dict(theirs.sizes) == {"dim_0": 4, "dim_1": 3, "dim_2": 3, "dim_3": 2}
    assert theirs["below/z"].dims == ("row", "dim_3")


def test_numbers_that_json_lacks_are_refused_within_lists(tmp_path: Path) -> None:
    x = oc.zeros(3)
    for value in ([1.0, float("nan")], {"v": float("inf")}):
        with pytest.raises(DTypeError, match="attrs: 'a' of"):
            x.annotate(attrs={"a": value})
        with pytest.raises(DTypeError, match="nothing that JSON has"):
            oc.store({tmp_path / "g.zarr": oc.group(x=x, attrs={"a": [value]})})
        assert not (tmp_path / "g.zarr").exists()
    marked = x.annotate(attrs={"missing_value": float("nan"), "pair": np.array([np.inf, 1.0])})
    attrs = {"missing_value": float("nan"), "pair": np.array([np.inf, 1.0])}
    oc.store({tmp_path / "g.zarr": oc.group(x=marked, attrs=attrs)})
    for name in ("zarr.json", "x/zarr.json"):
        written = json.loads((tmp_path / "g.zarr" / name).read_text())["attributes"]
        assert written == {"missing_value": "NaN", "pair": ["Infinity", 1.0]}


def _compared(x: Any, name: str) -> Any:
    return {
        "greater": lambda: x > 1,
        "isnan": lambda: np.isnan(x),
        "argmax": lambda: x.argmax(**({"dim": "a"} if isinstance(x, xr.DataArray) else {"axis": "a"})),
        "product": lambda: x * x,
        "power": lambda: x**2,
        "var": lambda: x.var(),
        "astype": lambda: x.astype("f4"),
    }[name]()


@pytest.mark.parametrize("name", ["greater", "isnan", "argmax", "product", "power", "var", "astype"])
def test_attributes_stay_where_xarray_keeps_them(name: str) -> None:
    theirs = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("a", "b"), attrs={"units": "K"})
    ours = oc.asarray(theirs.values).annotate(dims=("a", "b"), attrs={"units": "K"})
    with xr.set_options(keep_attrs=True):  # the default from 2025.11 on
        assert _compared(ours, name).attrs == _compared(theirs, name).attrs == {"units": "K"}


def test_elements_at_lazy_positions_keep_names() -> None:
    x = oc.asarray(np.arange(6.0).reshape(2, 3)).annotate(dims=("a", "b"), attrs={"units": "K"})
    places = oc.asarray([1, 0, 1])
    assert oc.take(x, places, axis="a").dims == ("a", "b")
    assert oc.take(x, places.annotate(dims=("run",)), axis="a").dims == ("run", "b")
    assert oc.take(x, oc.asarray([[0, 1]]), axis="b").dims == ("a", None, None)
    assert oc.take(x, places, axis="b").attrs == {"units": "K"}
    assert oc.take(x, places, axis="b").compute().tolist() == [[1.0, 0.0, 1.0], [4.0, 3.0, 4.0]]
