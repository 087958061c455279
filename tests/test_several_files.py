"""Several files opened as one array, by a list of paths or by wildcards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, AxisError, DTypeError, FormatError, MissingFileError, ShapeError


@pytest.fixture
def parts(tmp_path: Path) -> list[Any]:
    """Twelve parts of different lengths, numbered without leading zeros."""
    rng = np.random.default_rng(1)
    made = [rng.normal(size=(place % 3 + 1, 4)) for place in range(12)]
    for place, part in enumerate(made):
        np.save(tmp_path / f"part-{place}.npy", np.asfortranarray(part) if place % 2 else part)
    return made


def test_wildcards_join_files_in_the_order_of_their_numbers(parts: list[Any], tmp_path: Path) -> None:
    with session():
        for name in (tmp_path / "part-*.npy", f"{tmp_path}/part-*.npy", str(tmp_path / "part-*.npy").encode()):
            np.testing.assert_array_equal(oc.open(name).compute(), np.concatenate(parts))
        np.testing.assert_array_equal(oc.open(f"{tmp_path}/part-[13].npy").compute(), np.concatenate(parts[1:4:2]))
        np.testing.assert_array_equal(oc.open(f"{tmp_path}/**/part-1?.npy").compute(), np.concatenate(parts[10:]))


def test_lists_keep_their_order(parts: list[Any], tmp_path: Path) -> None:
    names = [tmp_path / "part-7.npy", str(tmp_path / "part-2.npy"), tmp_path / "part-1?.npy", tmp_path / "part-2.npy"]
    wanted = np.concatenate([parts[7], parts[2], *parts[10:], parts[2]])
    with session():
        np.testing.assert_array_equal(oc.open(names).compute(), wanted)
        np.testing.assert_array_equal(oc.open(tuple(names)).max(axis=0).compute(), wanted.max(axis=0))
        np.testing.assert_array_equal(oc.open(names[:1]).compute(), parts[7])


def test_along_another_axis(tmp_path: Path) -> None:
    first, second = np.arange(6).reshape(2, 3), np.arange(4).reshape(2, 2)
    np.save(tmp_path / "a.npy", first)
    np.save(tmp_path / "b.npy", second)
    with session():
        for axis in (1, -1):
            found = oc.open(f"{tmp_path}/?.npy", axis=axis)
            np.testing.assert_array_equal(found.compute(), np.concatenate([first, second], axis=1))
        with pytest.raises(AxisError, match="axis 2"):
            oc.open(f"{tmp_path}/?.npy", axis=2)


def test_zarr_arrays_and_fields(tmp_path: Path) -> None:
    records = np.zeros(5, dtype=[("when", "M8[D]"), ("city", "U9"), ("x", "f4")])
    records["when"], records["city"], records["x"] = np.arange(5).astype("M8[D]"), "Amsterdam", np.arange(5)
    np.save(tmp_path / "r1.npy", records[:2])
    np.save(tmp_path / "r2.npy", records[2:])
    with session():
        oc.store({tmp_path / f"{name}.zarr": oc.arange(3) + place for place, name in enumerate("ab")})
        assert oc.open(tmp_path / "*.zarr").tolist() == [0, 1, 2, 1, 2, 3]
        for field in ("when", "city", "x"):
            found = oc.open(tmp_path / "r?.npy", field=field)
            np.testing.assert_array_equal(found.compute(), records[field])
            assert found.dtype == records[field].dtype


def test_a_file_named_as_a_pattern_is_itself(tmp_path: Path) -> None:
    np.save(tmp_path / "x[1].npy", np.arange(3))
    np.save(tmp_path / "x1.npy", np.arange(5))
    with session():
        assert oc.open(tmp_path / "x[1].npy").shape == (3,)
        assert oc.open([tmp_path / "x[1].npy", tmp_path / "x1.npy"]).shape == (8,)


def test_what_does_not_go_together_is_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "c.npy", np.zeros((2, 4)))
    np.save(tmp_path / "d.npy", np.zeros(3))
    np.save(tmp_path / "n.npy", np.float64(1))
    (tmp_path / "t.npy").write_text("text")
    with session():
        for other, kind in (("b", DTypeError), ("c", ShapeError), ("d", ShapeError)):
            with pytest.raises(kind, match=rf"a\.npy.*{other}\.npy"):
                oc.open(f"{tmp_path}/[a{other}].npy")
        with pytest.raises(ShapeError, match=r"n\.npy is a number"):
            oc.open([tmp_path / "n.npy"])
        with pytest.raises(FormatError, match=r"t\.npy"):
            oc.open(f"{tmp_path}/[at].npy")
        with pytest.raises(MissingFileError, match=r"\*\.zarr: no file matches"):
            oc.open(tmp_path / "*.zarr")
        with pytest.raises(MissingFileError, match=r"gone\.npy"):
            oc.open([tmp_path / "a.npy", tmp_path / "gone.npy"])
        with pytest.raises(ArgumentError, match="empty"):
            oc.open([])
        with pytest.raises(ArgumentError, match="sorted"):
            oc.open(tmp_path.glob("*.npy"))  # type: ignore[arg-type]
