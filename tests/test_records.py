"""Fields of structured `.npy` files and files viewed as another type, against NumPy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore._base import files
from outcore.errors import DTypeError, FormatError, MissingFileError, UnsupportedFormatError

LAYOUTS: dict[str, Any] = {
    "aligned": np.dtype([("when", "M8[s]"), ("price", "f8"), ("size", "i8")]),
    "packed": np.dtype([("flag", "?"), ("price", "<f8"), ("size", "<i4"), ("three", "f4", (3,)), ("half", "f2")]),
    "odd": np.dtype([("size", "u1"), ("price", "f8"), ("z", "c16"), ("grid", "i2", (2, 2))]),
    "swapped": np.dtype([("size", ">i2"), ("price", ">f8")]),
    "padded": np.dtype([("size", "i1"), ("price", "f8")], align=True),
    "one": np.dtype([("price", "f8")]),
}


def records(layout: Any, shape: Any) -> Any:
    random = np.random.default_rng(1)
    made = np.zeros(shape, dtype=layout)
    for name in layout.names:
        part = made[name]
        made[name] = (random.integers(0, 2 if part.dtype.kind == "b" else 100, part.shape)).astype(part.dtype)
    return made


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("shape", [0, 1, 2, 7, 8, 16, 100_003, (5, 40), ()])
def test_fields_are_numpys(name: str, shape: Any, tmp_path: Path) -> None:
    made = records(LAYOUTS[name], shape)
    np.save(tmp_path / "x.npy", made)
    with session():
        for field in made.dtype.names:
            lazy = oc.open(tmp_path / "x.npy", field=field)
            np.testing.assert_array_equal(lazy.compute(), made[field], strict=made[field].dtype.isnative)


def test_columns_first_and_a_calculation(tmp_path: Path) -> None:
    made = np.asfortranarray(records(LAYOUTS["packed"], (30, 40)))
    np.save(tmp_path / "x.npy", made)
    with session():
        np.testing.assert_array_equal(oc.open(tmp_path / "x.npy", field="three").compute(), made["three"])
        price, size = (oc.open(tmp_path / "x.npy", field=field) for field in ("price", "size"))
        np.testing.assert_allclose((price * size).sum(axis=1).compute(), (made["price"] * made["size"]).sum(axis=1))
        assert price.shape == (30, 40)


def test_a_field_of_a_file_larger_than_memory_is_read_once(data: Path) -> None:
    """Where a record is a whole number of elements; else once for each place that a record may begin at in one."""
    for name, reads, pool in (("aligned", 1, 24), ("padded", 1, 24), ("packed", 8, 128)):
        made = records(LAYOUTS[name], 2_000_000)
        np.save(data / "x.npy", made)
        with session(pool_limit=pool << 20, threads=1):
            lazy = oc.open(data / "x.npy", field="price").sum()
            said = oc.explain(lazy)
            assert lazy.item() == made["price"].sum()
        assert said.bytes_read <= 1.01 * reads * made.nbytes
        assert said.bytes_written == 0


def test_dates_are_read_as_their_integers(tmp_path: Path) -> None:
    dates = np.datetime64("2020-01-01", "s") + np.arange(500) * np.timedelta64(7919, "s")
    dates[3] = np.datetime64("NaT")
    np.save(tmp_path / "d.npy", dates)
    np.save(tmp_path / "r.npy", records(LAYOUTS["aligned"], 50))
    with session():
        lazy = oc.open(tmp_path / "d.npy", view="int64")
        assert lazy.dtype == np.int64
        np.testing.assert_array_equal(lazy.compute().view(dates.dtype), dates)
        np.testing.assert_array_equal(oc.diff(lazy[4:]).compute().view("m8[s]"), np.diff(dates[4:]))
        since = np.datetime64("2020-01-10", "s").astype(np.int64)
        np.testing.assert_array_equal((lazy >= since).compute(), dates >= np.datetime64("2020-01-10"))
        field = oc.open(tmp_path / "r.npy", field="when", view="int64")
        np.testing.assert_array_equal(field.compute().view("M8[s]"), np.load(tmp_path / "r.npy")["when"])


def test_what_cannot_be_read_is_refused_in_words(tmp_path: Path) -> None:
    np.save(tmp_path / "r.npy", records(LAYOUTS["aligned"], 3))
    np.save(tmp_path / "d.npy", np.zeros(3, dtype="m8[ms]"))
    (tmp_path / "text.npy").write_text("no array at all")
    for kind, text, options in (
        (DTypeError, r"no field 'cost'; elements have when, price, size", {"field": "cost"}),
        (DTypeError, r"have 8 bytes, those of float32 4", {"field": "price", "view": "f4"}),
        (DTypeError, r"name one of their fields: when, price, size", {"view": "int64"}),
    ):
        with session(), pytest.raises(kind, match=text):
            oc.open(tmp_path / "r.npy", **options)
    with session():
        with pytest.raises(DTypeError, match=r"no field 'a'; elements have none"):
            oc.open(tmp_path / "d.npy", field="a")
        with pytest.raises(FormatError, match=r"text\.npy"):
            oc.open(tmp_path / "text.npy", field="a")
        with pytest.raises(MissingFileError, match=r"gone\.npy"):
            oc.open(tmp_path / "gone.npy", field="a")
        with pytest.raises(UnsupportedFormatError, match="folder"):
            oc.open(tmp_path, field="a")


def test_fields_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["température", "a b", "日本", "it's", "(x]", "a.b,c"]
    records = np.zeros(5, dtype=[(name, "f8") for name in names] + [("n", "i4")])
    for place, name in enumerate(names):
        records[name] = np.arange(5) + place
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that older versions of NumPy do not read such names
        np.save(tmp_path / "x.npy", records)
    with session():
        for name in names:
            np.testing.assert_array_equal(oc.open(tmp_path / "x.npy", field=name).compute(), records[name])
        with pytest.raises(FormatError, match=r"température, a b, 日本.*field='température'"):
            oc.open(tmp_path / "x.npy")
    monkeypatch.setattr(files, "is_stub", lambda path: True)  # files of volumes are not mapped
    assert files.npy_header(tmp_path / "x.npy").dtype == records.dtype


def test_fields_of_headers_in_latin_1_and_of_python_2(tmp_path: Path) -> None:
    for name, length in (("temp\xe9rature", "4"), ("t", "4L")):
        header = f"{{'descr': [('{name}', '<f8'), ('n', '<i4')], 'fortran_order': False, 'shape': ({length},), }}"
        told = header.encode("latin-1").ljust(117) + b"\n"
        records = np.zeros(4, dtype=[(name, "<f8"), ("n", "<i4")])
        records[name] = [1, 2, 3, 4]
        start = b"\x93NUMPY\x01\x00" + len(told).to_bytes(2, "little")
        (tmp_path / "x.npy").write_bytes(start + told + records.tobytes())
        with session():
            assert oc.open(tmp_path / "x.npy", field=name).tolist() == [1, 2, 3, 4]
