"""Parquet files and text as tables: round trips with pyarrow, missing elements, broken files."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore._opening.arrow_files import DirectFile
from outcore.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    FunctionError,
    IndexingError,
    MissingFileError,
    RangeError,
    ShapeError,
    SourceChangedError,
    TargetExistsError,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from test_tables import arrow_tables, assert_same, rows, trades  # noqa: E402  # needs pyarrow, as this file


def written(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


# -- Parquet ----------------------------------------------------------------------------------------------------------


@settings(max_examples=sized(15, 200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=arrow_tables(), rows_of_group=st.integers(1, 6))
def test_parquet_of_others_is_read_and_written_again(tmp_path: Path, table: Any, rows_of_group: int) -> None:
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=rows_of_group)
    with session():
        dtypes = {name: "category" for name in table.column_names if name == "label"}
        opened = oc.read_parquet(tmp_path / "x.parquet", dtypes=dtypes)
        assert len(opened) == table.num_rows
        assert_same(opened, table)
        oc.to_parquet(opened, tmp_path / "y.parquet", overwrite=True, row_group_rows=rows_of_group)
    again = pq.read_table(tmp_path / "y.parquet")
    for name in table.column_names:
        found = [None if value != value else value for value in again.column(name).to_pylist()]
        assert found == table.column(name).to_pylist()


def test_row_groups_are_tiles_and_slices_read_no_more(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=50_000)
    written(tmp_path / "x.parquet", {"x": values, "y": values.astype(np.float32)}, row_group_size=10_000)
    t = oc.read_parquet(tmp_path / "x.parquet")
    assert t["x"].tile[0] % 10_000 == 0
    with session() as current:
        np.testing.assert_array_equal(t["x"].compute(), values)
        current.clear()
        before = current.counters()["bytes_read"]
        np.testing.assert_array_equal(t["y"][12_345:12_445].compute(), values[12_345:12_445].astype(np.float32))
        metadata = pq.read_metadata(tmp_path / "x.parquet")
        x, y = (
            [metadata.row_group(group).column(column).total_compressed_size for group in range(5)] for column in (0, 1)
        )
        blocks = 2 * 4096  # of which only a part is asked for
        assert y[1] <= current.counters()["bytes_read"] - before <= y[1] + blocks
        assert sum(x) <= oc.explain(t["x"].sum()).bytes_read <= sum(x) + 5 * blocks


def test_large_row_groups_are_read_in_parts_from_many_threads(tmp_path: Path) -> None:
    values = np.arange(3_000_000)
    written(tmp_path / "x.parquet", {"x": values}, row_group_size=3_000_000, compression="none")
    t = oc.read_parquet(tmp_path / "x.parquet")
    assert t["x"].tile == (1_000_000,)
    with session():
        assert int(t["x"].sum().compute()) == values.sum()
        np.testing.assert_array_equal(t["x"][999_990:1_000_010].compute(), values[999_990:1_000_010])
        results: list[Any] = []
        threads = [threading.Thread(target=lambda: results.append(int(t["x"].max().compute()))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [2_999_999] * 3


def test_files_are_read_past_the_page_cache(tmp_path: Path) -> None:
    content = np.random.default_rng(7).integers(0, 256, 50_001, dtype="u1").tobytes()
    path = tmp_path / "bytes"
    path.write_bytes(content)
    for is_direct in (True, False):
        file = DirectFile(str(path), is_direct)
        assert (file.size(), file.tell(), file.seek(-3, os.SEEK_END)) == (50_001, 0, 49_998)
        assert file.read(10).to_pybytes() == content[-3:]  # as many as there are
        for place, count in [(0, 1), (4095, 2), (4096, 4096), (10_000, 40_001), (12_287, 0)]:
            assert file.seek(place) == place
            assert file.read(count).to_pybytes() == content[place : place + count]
            assert file.tell() == place + count
        assert file.read().size == 50_001 - 12_287
        file.close()
        file.close()


def test_tables_of_numbers_load_no_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    columns = {"x": [1.5, None, 2.5], "n": [1, 2, None], "b": [True, None, False], "k": ["a", None, "b"]}
    days = {"d": pa.array([None, 1, 2], pa.date32()), "t": pa.array([None, 1, 2], pa.timestamp("us"))}
    path = written(tmp_path / "x.parquet", columns | days)
    program = f"""
import sys
import outcore as oc
for nulls in ("nan", "mask"):
    table = oc.read_parquet({str(path)!r}, dtypes={{"k": "category"}}, nulls=nulls)
    oc.to_parquet(table, {str(tmp_path / "y.parquet")!r}, overwrite=True)
    oc.from_arrow(table).compute()
assert "pyarrow" in sys.modules
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    with session():
        assert_same(
            oc.read_parquet(tmp_path / "y.parquet", dtypes={"k": "category"}, columns=["k", "d", "t"]),
            pa.table({"k": pa.array(columns["k"]), **days}),
        )


def test_several_files_are_one_table(tmp_path: Path) -> None:
    for part in (10, 2):
        written(
            tmp_path / f"part-{part}.parquet",
            {"x": [part, part + 1], "city": pa.array(["b", f"c{part}"]).dictionary_encode()},
        )
    with session():
        t = oc.read_parquet(tmp_path / "part-*.parquet")
        assert t["x"].tolist() == [2, 3, 10, 11]
        assert t["city"].tolist() == ["b", "c2", "b", "c10"]
        assert oc.read_parquet([tmp_path / "part-10.parquet"], columns=["x"]).columns == ["x"]
    written(tmp_path / "part-3.parquet", {"x": [1.5], "city": pa.array(["b"]).dictionary_encode()})
    with pytest.raises(
        DTypeError, match=r"part-2.parquet: column 'x' is of int64; in .*part-3.parquet it is of double"
    ):
        oc.read_parquet(tmp_path / "part-*.parquet")
    written(tmp_path / "part-3.parquet", {"x": [1]})
    with pytest.raises(DTypeError, match=r"column 'city' .* it is not there"):
        oc.read_parquet(tmp_path / "part-*.parquet")


def test_missing_elements_by_choice(tmp_path: Path) -> None:
    columns = {
        "i": pa.array([1, None, 3]),
        "b": pa.array([True, None, False]),
        "f": pa.array([1.5, None, 2.5]),
        "k": [1, 2, 3],
    }
    path = written(tmp_path / "x.parquet", columns)
    with session():
        t = oc.read_parquet(path)
        assert t.dtypes == {"i": "float64", "b": "float64", "f": "float64", "k": "int64"}
        np.testing.assert_array_equal(t["i"].compute(), [1, np.nan, 3])
        np.testing.assert_array_equal(t["b"].compute(), [1, np.nan, 0])
        t = oc.read_parquet(path, nulls="mask")
        assert t.columns == ["i", "i.isnull", "b", "b.isnull", "f", "f.isnull", "k"]
        assert t["i"].tolist() == [1, 0, 3]
        assert t["b"].tolist() == [True, False, False]
        assert t["f.isnull"].tolist() == [False, True, False]
        t = oc.read_parquet(path, nulls="error")
        assert t["k"].tolist() == [1, 2, 3]
        with pytest.raises(FunctionError, match="1 missing elements in column 'i'") as refused:
            t["i"].compute()
        assert isinstance(refused.value.__cause__, DTypeError)
        large = written(tmp_path / "large.parquet", {"i": pa.array([2**60 + 1, None])})
        with pytest.raises(FunctionError, match="float64 does not hold exactly") as refused:
            oc.read_parquet(large)["i"].compute()
        assert isinstance(refused.value.__cause__, RangeError)
        assert oc.read_parquet(large, nulls="mask")["i"].tolist() == [2**60 + 1, 0]
    with pytest.raises(ArgumentError, match="nulls='zero'"):
        oc.read_parquet(path, nulls="zero")  # type: ignore[arg-type]


def test_statistics_are_not_needed(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", {"i": pa.array([1, 2])}, write_statistics=False)
    with session():
        assert oc.read_parquet(path).dtypes == {"i": "float64"}
        assert oc.read_parquet(path)["i"].tolist() == [1.0, 2.0]
        assert oc.read_parquet(path, nulls="error")["i"].dtype == np.int64


def test_text_and_times_and_what_has_no_place(tmp_path: Path) -> None:
    columns = {
        "fixed": pa.array([b"abc", b"def"], pa.binary(3)),
        "text": ["ä", "xyz"],
        "time": pa.array([1, None], pa.time32("s")),
        "zone": pa.array([0, 1], pa.timestamp("ms", "Europe/Oslo")),
        "list": [[1], [2]],
        "dec": pa.array([1, 2], pa.decimal128(5, 2)),
    }
    path = written(tmp_path / "x.parquet", columns)
    with session():
        t = oc.read_parquet(path)
        assert t.dtypes["list"].endswith("refused")
        assert t["fixed"].tolist() == [b"abc", b"def"]
        assert str(t["time"].compute()) == "[ 1000 'NaT']"  # Parquet's are milliseconds
        assert t["zone"].dtype == "datetime64[ms]"
        for name in ("list", "dec"):
            with pytest.raises(DTypeError, match=f"column '{name}'"):
                t[name]
        with pytest.raises(DTypeError, match=r"dtypes=\{'text': 'category'\}"):
            t["text"]
        assert oc.read_parquet(path, dtypes={"text": "U3", "dec": "float64"}).select("text", "dec").compute()[
            "text"
        ].tolist() == ["ä", "xyz"]
        assert oc.read_parquet(path, dtypes={"text": "category"})["text"].tolist() == ["ä", "xyz"]
        with pytest.raises(FunctionError, match="3 letters, more than"):
            oc.read_parquet(path, dtypes={"text": "U2"})["text"].compute()
        with pytest.raises(IndexingError, match="no column 'prize'; columns are fixed, text"):
            oc.read_parquet(path, dtypes={"prize": "U2"})


def test_what_is_written_keeps_types(tmp_path: Path) -> None:
    t = trades().with_columns(
        hours=np.asarray([1, 2, 3, 4], dtype="timedelta64[h]"), code=np.asarray([b"a", b"bc", b"", b"d"])
    )
    with session():
        oc.to_parquet(t, tmp_path / "x.parquet")
        again = oc.read_parquet(tmp_path / "x.parquet")
        assert again.dtypes == t.dtypes | {"hours": "timedelta64[s]", "city": "category"}
        assert rows(again.select("price", "name", "code", "city", "day")) == rows(
            t.select("price", "name", "code", "city", "day")
        )
        empty = t.filter(t["price"] > 100)
        oc.to_parquet(empty, tmp_path / "empty.parquet")
        assert pq.read_table(tmp_path / "empty.parquet").num_rows == 0
        assert len(oc.read_parquet(tmp_path / "empty.parquet")) == 0


def test_an_output_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with session():
        oc.to_parquet({"x": oc.arange(5)}, path)
        with pytest.raises(TargetExistsError, match="overwrite=True"):
            oc.to_parquet({"x": oc.arange(6)}, path)
        path.chmod(0o640)

        def fail(block: Any) -> Any:
            raise ValueError("no block")

        failing = oc.map_blocks(fail, oc.arange(5000), dtype=np.int64)
        with pytest.raises(FunctionError, match="no block"):
            oc.to_parquet({"x": failing}, path, overwrite=True, row_group_rows=1000)
        assert pq.read_table(path)["x"].to_pylist() == [0, 1, 2, 3, 4]
        oc.to_parquet({"x": oc.arange(2)}, path, overwrite=True)
        assert os.stat(path).st_mode & 0o777 == 0o640
        with pytest.raises(DTypeError, match="complex"):
            oc.to_parquet({"x": oc.arange(2) * 1j}, tmp_path / "c.parquet")
        with pytest.raises(ShapeError, match="different lengths"):
            oc.to_parquet({"x": oc.arange(2), "y": oc.arange(3)}, tmp_path / "c.parquet")
        with pytest.raises(ArgumentError, match="compression='zip'"):
            oc.to_parquet({"x": oc.arange(2)}, tmp_path / "c.parquet", compression="zip")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.parquet"]


def test_files_that_are_none_or_changed_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", {"x": np.arange(1000)})
    t = oc.read_parquet(path)
    whole = path.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match=r"cut.parquet: is no whole Parquet file"):
        oc.read_parquet(tmp_path / "cut.parquet")
    with pytest.raises(MissingFileError, match=r"none\.parquet"):
        oc.read_parquet(tmp_path / "none.parquet")
    with pytest.raises(MissingFileError, match="no file matches"):
        oc.read_parquet(tmp_path / "none-*.parquet")
    (tmp_path / "damaged.parquet").write_bytes(whole[:4] + bytes(2000) + whole[2004:])
    with session(), pytest.raises(FormatError, match=r"damaged.parquet: byte 4: parquet: the header of a page"):
        oc.read_parquet(tmp_path / "damaged.parquet")["x"].compute()
    # As float64 it is pyarrow's, whose errors are those of a function.
    with session(), pytest.raises(FunctionError, match=r"damaged.parquet: column 'x', row group 0") as refused:
        oc.read_parquet(tmp_path / "damaged.parquet", dtypes={"x": "float64"})["x"].compute()
    assert isinstance(refused.value.__cause__, FormatError)
    by_pyarrow = oc.read_parquet(path, dtypes={"x": "float64"})["x"]
    written(path, {"x": np.arange(999)})
    with pytest.raises(SourceChangedError, match="changed since it was opened"):
        t["x"]
    with session(), pytest.raises(FunctionError, match="changed since it was opened") as refused:
        by_pyarrow.compute()
    assert isinstance(refused.value.__cause__, SourceChangedError)


# -- text -------------------------------------------------------------------------------------------------------------


def test_text_becomes_numbers_dates_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('id,"x,y",day,city,flag\n1,1.5,2024-01-01,a,true\n,2,,"b\nb",false\n\n3,NA,2024-01-03,,true\n')
    with session():
        t = oc.read_csv(path)
        assert t.dtypes == {
            "id": "float64",
            "x,y": "float64",
            "day": "datetime64[D]",
            "city": "category[2]",
            "flag": "bool",
        }
        assert rows(t.select("id", "x,y", "city")) == [(1.0, 1.5, "a"), (None, 2.0, "b\nb"), (3.0, None, None)]
        assert np.isnat(t["day"].compute()).tolist() == [False, True, False]
        t = oc.read_csv(path, columns=["city", "id"], dtypes={"city": "U4", "id": "int16"}, nulls="mask")
        assert rows(t) == [("a", 1), ("b\nb", 0), ("", 3)]
        kept = oc.read_csv(path, folder=tmp_path / "kept")
        assert rows(oc.open_table(tmp_path / "kept").select("city")) == rows(kept.select("city"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.zst"])
def test_text_of_many_blocks_with_quotes(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from outcore._tables import csv

    monkeypatch.setattr(csv, "_BLOCK_BYTES", 4096)
    separator = "\t" if ending.startswith("tsv") else ","
    numbers = np.random.default_rng(0).normal(size=5000)
    labels = [f'say ""{place % 7}""{separator}\nso' for place in range(5000)]
    lines = [
        separator.join((str(place), repr(float(x)), f'"{label}"'))
        for place, (x, label) in enumerate(zip(numbers, labels, strict=True))
    ]
    text = "\r\n".join([separator.join(("i", "x", "label")), *lines]).encode()
    path = tmp_path / f"x.{ending}"
    codec = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.output_stream(str(path), compression=codec) as file:
        file.write(text)
    with session():
        t = oc.read_csv(path)
        np.testing.assert_array_equal(t["i"].compute(), np.arange(5000))
        np.testing.assert_array_equal(t["x"].compute(), numbers)
        assert t["label"].tolist() == [label.replace('""', '"') for label in labels]


@settings(max_examples=sized(15, 100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=st.lists(
        st.tuples(
            st.integers(-(2**40), 2**40),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text('ab",\n ', min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_text_of_pyarrow_is_read(tmp_path: Path, table: list[tuple[int, float, str]]) -> None:
    from pyarrow import csv

    columns = dict(zip(("i", "x", "s"), map(list, zip(*table, strict=True)), strict=True))
    csv.write_csv(pa.table(columns), tmp_path / "x.csv")
    with session():
        found = oc.read_csv(tmp_path / "x.csv", dtypes={"s": "category", "x": "float64"})
        assert rows(found) == [(i, x, s) for i, x, s in table]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3\n", "line 3: Expected 2 columns, got 1: 3"),
        ('a,b\n1,2\n\n"x\ny",5,6\n', "line 4: Expected 2 columns, got 3"),
        ("a,b\n" + "1,2\n" * 5000 + "3,x\n", r"line 5002: column 'b': no conversion to int64: invalid value 'x'"),
        ("a,a\n1,2\n", "line 1: 'a' is there twice"),
        ("a,b\r1,2\r", "line 1: new-line character"),
        ('"a\nb"\n1\n2\n', "line 1: unexpected end"),
        ("", "line 1: is empty"),
    ],
)
def test_what_is_wrong_in_text_has_its_line(
    tmp_path: Path, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outcore._tables import csv

    monkeypatch.setattr(csv, "_BLOCK_BYTES", 4096)
    (tmp_path / "x.csv").write_text(text)
    with session(scratch=tmp_path), pytest.raises(FormatError, match=f"x.csv: {said}") as refused:
        oc.read_csv(tmp_path / "x.csv", folder=tmp_path / "kept")
    assert refused.value.details["line"] >= 1
    assert not (tmp_path / "kept").exists()
    assert not list(tmp_path.glob(".outcore-partial-*"))


def test_integers_that_int64_does_not_hold_are_not_rounded(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"id,x,y\n{2**64 - 1},1e19,-1\n5,2,{2**63}\n")
    with session():
        t = oc.read_csv(tmp_path / "x.csv").compute()
        wished = oc.read_csv(tmp_path / "x.csv", dtypes={"id": "float64"})["id"]
    assert t["id"].dtype == np.uint64
    assert t["id"].tolist() == [2**64 - 1, 5]
    assert (t["x"].dtype, t["y"].dtype, wished.dtype) == (np.float64, np.float64, np.float64)


def test_other_faults_of_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "y.csv").write_text("a,c\n1,2\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n" + os.urandom(500).hex().encode())[:-100])
    with session():
        with pytest.raises(IndexingError, match="no column 'c'; columns are a, b"):
            oc.read_csv(tmp_path / "x.csv", columns=["c"])
        with pytest.raises(FormatError, match=r"y.csv: line 1: columns a, c; in .*x.csv they are a, b"):
            oc.read_csv([tmp_path / "x.csv", tmp_path / "y.csv"])
        with pytest.raises(FormatError, match=r"cut.csv.gz: line 1: Truncated"):
            oc.read_csv(tmp_path / "cut.csv.gz")
        with pytest.raises(MissingFileError):
            oc.read_csv(tmp_path / "none.csv")
        with pytest.raises(ArgumentError, match="single character"):
            oc.read_csv(tmp_path / "x.csv", delimiter="||")
        with pytest.raises(DTypeError, match="complex64"):
            oc.read_csv(tmp_path / "x.csv", dtypes={"a": "complex64"})
        (tmp_path / "head.csv").write_text("a,b\n")
        assert rows(oc.read_csv(tmp_path / "head.csv")) == []
        t = oc.read_csv([tmp_path / "x.csv", tmp_path / "x.csv"])
        assert rows(t) == [(1, 2), (1, 2)]
        assert rows(oc.read_csv(tmp_path / "y.csv", names=["p", "q"])) == [("a", "c"), ("1", "2")]
