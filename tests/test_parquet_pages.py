"""Columns of Parquet that the engine decodes: every encoding and codec, as pyarrow reads them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore._lazy.typed import carried
from outcore._opening.arrow_files import StampedFile
from outcore._opening.parquet_footer import CODECS, read_footer
from outcore._tables import pages
from outcore._tables.parquet import ParquetColumn
from outcore.errors import FormatError, OutcoreError, SourceChangedError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 5000
NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "bool"]
DATES: dict[str, Any] = {
    "day": pa.date32(),
    "ms": pa.timestamp("ms"),
    "us": pa.timestamp("us", "UTC"),
    "ns": pa.timestamp("ns"),
    "time": pa.time32("ms"),
    "long_time": pa.time64("us"),
    "span": pa.duration("us"),
}
ENCODINGS = {
    "dictionary": {"use_dictionary": True},
    "plain": {"use_dictionary": False},
    "delta": {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"},
    "split": {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"},
}


@pytest.fixture
def only_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses blocks that pyarrow decodes."""

    def refused(column: ParquetColumn, block: object) -> None:
        raise AssertionError(f"{column.field.name} is decoded by pyarrow")

    monkeypatch.setattr(ParquetColumn, "read", refused)


def rows(nulls: bool) -> Any:
    """Runs, few and many distinct numbers, the least and the largest of each type."""
    random = np.random.default_rng(5)
    mask = random.random(ROWS) < 0.2 if nulls else None
    if mask is not None:
        mask[:700] = False  # a page of which nothing is missing
        mask[2000:2400] = True
    columns: dict[str, Any] = {}
    for name in NUMBERS:
        kind = np.dtype(name)
        if kind.kind in "iu":
            limits = np.iinfo(kind)
            values = random.integers(limits.min, limits.max, ROWS, kind, endpoint=True)
            values[:2] = limits.min, limits.max
        else:
            values = random.normal(size=ROWS).astype(kind) if kind.kind == "f" else random.random(ROWS) < 0.5
        values[1000:2200] = values[3]
        columns[name] = pa.array(values, mask=mask)
    for name, of in DATES.items():
        whole = random.integers(0, 20_000, ROWS, np.int32)
        columns[name] = pa.array(whole if of.bit_width == 32 else whole.astype("i8") << 20, mask=mask).view(of)
    return pa.table(columns)


def encoded(table: Any, path: Path, encoding: str, **options: Any) -> None:
    """Writes a table, each column in an encoding where its type has that."""
    settings = dict(ENCODINGS[encoding])
    chosen = settings.pop("column_encoding", None)
    if chosen is not None:

        def has(of: Any) -> bool:
            is_float = pa.types.is_floating(of)
            return not pa.types.is_boolean(of) and (chosen == "BYTE_STREAM_SPLIT" or not is_float)

        settings["column_encoding"] = {field.name: chosen for field in table.schema if has(field.type)}
    pq.write_table(table, path, **settings, **options)


def expected(column: Any, nulls: str) -> np.ndarray[Any, Any]:
    of = column.type
    if pa.types.is_temporal(of):
        carrier = column.combine_chunks().view(pa.int32() if of.bit_width == 32 else pa.int64()).cast(pa.int64())
        return np.asarray(carrier.fill_null(np.iinfo("i8").min))
    if pa.types.is_floating(of):
        return np.asarray(column.fill_null(np.nan))
    return np.asarray(column.fill_null(False if pa.types.is_boolean(of) else 0))


def check(path: Path, table: Any, nulls: str) -> None:
    """All columns are as pyarrow has them, whole and in part, and for the bytes that were forecast."""
    opened = oc.read_parquet(path, nulls=nulls)  # type: ignore[arg-type]
    for name in table.column_names:
        column, right = opened[name], expected(table[name], nulls)
        with session() as current:
            array = carried(column)
            before, said = current.counters()["bytes_read"], oc.explain(array).bytes_read
            np.testing.assert_array_equal(array.compute(), right, err_msg=name)
            assert current.counters()["bytes_read"] - before == said
        with session():
            np.testing.assert_array_equal(array[1234:2345].compute(), right[1234:2345], err_msg=name)


@pytest.mark.usefixtures("only_pages")
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("nulls", ["nan", "mask"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_type_in_every_encoding(tmp_path: Path, encoding: str, nulls: str, version: str) -> None:
    table = rows(nulls == "mask")
    options = {"row_group_size": 1900, "data_page_size": 3000, "write_batch_size": 100}
    encoded(table, tmp_path / "x.parquet", encoding, data_page_version=version, **options)
    check(tmp_path / "x.parquet", table, nulls)


@pytest.mark.usefixtures("only_pages")
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_codec_and_checksums(tmp_path: Path, codec: str, version: str) -> None:
    table = rows(False).select(["int16", "float64", "bool", "day"])
    options = {"compression": codec, "write_page_checksum": True, "row_group_size": 2000}
    encoded(table, tmp_path / "x.parquet", "dictionary", data_page_version=version, **options)
    check(tmp_path / "x.parquet", table, "nan")


@pytest.mark.usefixtures("only_pages")
def test_missing_floats_and_dates_are_nan_and_nat(tmp_path: Path) -> None:
    table = rows(True).select(["float32", "float64", *DATES])
    pq.write_table(table, tmp_path / "x.parquet", data_page_size=2000)
    check(tmp_path / "x.parquet", table, "nan")
    t = oc.read_parquet(tmp_path / "x.parquet")
    with session():
        assert np.isnat(t["us"].compute()).sum() == table["us"].null_count


@pytest.mark.usefixtures("only_pages")
def test_row_groups_of_any_lengths_and_several_files(tmp_path: Path) -> None:
    parts = [rows(False).select(["int32"]).slice(begin, 900) for begin in (0, 900, 1800)]
    for number, lengths in enumerate([(400, 400, 100), (100, 300, 500), (900,)]):
        with pq.ParquetWriter(tmp_path / f"{number}.parquet", parts[0].schema) as writer:
            begin = 0
            for length in lengths:
                writer.write_table(parts[number].slice(begin, length))
                begin += length
    right = np.concatenate([np.asarray(part["int32"]) for part in parts])
    t = oc.read_parquet(tmp_path / "*.parquet")
    with session():
        np.testing.assert_array_equal(t["int32"].compute(), right)
        np.testing.assert_array_equal(t["int32"][350:2000:7].compute(), right[350:2000:7])


def test_what_pyarrow_decodes_is_as_before(tmp_path: Path) -> None:
    table = pa.table(
        {
            "seconds": pa.array([1, None, 3], pa.timestamp("s")),
            "half": pa.array(np.array([1, 2, 3], "f2")),
            "gaps": pa.array([1, None, 3]),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "of_numbers": pa.array([7, 8, 7]).dictionary_encode(),
            "sum": pa.array([1, 2, 3], pa.decimal128(5, 1)),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    t = oc.read_parquet(tmp_path / "x.parquet", dtypes={"sum": "float64"})
    with session():
        assert t["half"].compute().tolist() == [1, 2, 3]
        np.testing.assert_array_equal(t["gaps"].compute(), [1, np.nan, 3])
        assert t["kind"].compute().tolist() == ["a", "b", "a"]
        assert t["of_numbers"].compute().tolist() == [7, 8, 7]
        assert t["sum"].compute().tolist() == [1, 2, 3]
        assert t["seconds"].compute().astype("M8[s]").astype("i8").tolist()[::2] == [1, 3]
    pq.write_table(table.select(["gaps"]), tmp_path / "y.parquet", compression="brotli")
    with session():
        np.testing.assert_array_equal(oc.read_parquet(tmp_path / "y.parquet")["gaps"].compute(), [1, np.nan, 3])


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_damaged_files_are_errors_with_their_place(tmp_path: Path, codec: str) -> None:
    path, values = tmp_path / "x.parquet", np.arange(4000) % 700
    pq.write_table(pa.table({"x": values}), path, compression=codec, write_page_checksum=True, data_page_size=1000)
    whole, random = path.read_bytes(), np.random.default_rng(3)
    column = pq.read_metadata(path).row_group(0).column(0)
    begin, length = column.dictionary_page_offset, column.total_compressed_size
    messages = []
    for _ in range(60):
        place = begin + int(random.integers(length))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << random.integers(8)]) + whole[place + 1 :])
        with session():
            try:
                np.testing.assert_array_equal(oc.read_parquet(path)["x"].compute(), values)
            except FormatError as error:
                messages.append(str(error))
    assert all(f"{path}: byte {begin}: " in message for message in messages)
    assert len(messages) > 40  # other bits are those of headers that nothing depends on


def test_statistics_that_are_wrong_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": pa.array([1, None, 3])}), path, use_dictionary=False, compression="none")
    whole = path.read_bytes()
    # In the footer: the count of missing elements, field 3 of the statistics, from 1 to 0.
    footer = whole.rindex(b"\x16\x02", 0, len(whole) - 8)
    for place in [at for at in range(4, footer + 1) if whole[at : at + 2] == b"\x16\x02"]:
        path.write_bytes(whole[:place] + b"\x16\x00" + whole[place + 2 :])
        try:
            t = oc.read_parquet(path)
        except OutcoreError:
            continue
        if t.dtypes["x"] == "int64" and len(t) == 3:
            break
    else:
        pytest.fail("the footer has another form")
    with session(), pytest.raises(FormatError, match="1 elements are missing, none of which"):
        t["x"].compute()


def test_a_file_that_is_another_by_the_time_of_its_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(1000), "y": np.arange(1000)}), path)
    t = oc.read_parquet(path)
    first = t["x"]
    pq.write_table(pa.table({"x": np.arange(9), "y": np.arange(9)}), path)
    with pytest.raises(SourceChangedError, match="changed since it was opened"):
        t["y"]
    with session(), pytest.raises(SourceChangedError, match=r"x\.parquet"):
        first.compute()


@pytest.mark.parametrize("is_required", [True, False])
def test_a_column_is_told_from_a_part_of_another_with_its_path(tmp_path: Path, is_required: bool) -> None:
    parts = pa.struct([pa.field("b", pa.int64(), nullable=not is_required)])
    schema = pa.schema([pa.field("a", parts, nullable=is_required), pa.field("a.b", pa.int64()), pa.field("c", "f8")])
    columns = [
        pa.array([{"b": -row} for row in range(10)], parts),
        pa.array(range(100, 110)),
        pa.array([None] * 10, "f8"),
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), tmp_path / "x.parquet")
    t = oc.read_parquet(tmp_path / "x.parquet")
    with session():
        assert t["a.b"].compute().tolist() == list(range(100, 110))
        assert np.isnan(t["c"].compute()).all()


def test_damaged_footers_are_errors_of_a_format(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(100)}), path)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[:footer] + bytes([whole[footer] ^ 1]) + whole[footer + 1 :])
    with pytest.raises(FormatError, match="is no whole Parquet file"):
        oc.read_parquet(path)


def test_large_row_groups_are_decoded_in_parts_where_memory_is_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, values = tmp_path / "x.parquet", np.random.default_rng(0).normal(size=1_000_000)
    pq.write_table(pa.table({"x": values}), path)
    for shares, is_ours in ((1 << 12, False), (1 << 8, True)):
        monkeypatch.setattr(pages, "_SHARES", shares)
        with session(memory_limit=4 << 30):
            x = oc.read_parquet(path)["x"]
            assert (oc.explain(x).bytes_read != values.nbytes) == is_ours  # pyarrow's are counted by their elements
            assert x.max().compute() == values.max()


def test_every_flipped_bit_of_a_footer_is_an_error_or_the_same(tmp_path: Path) -> None:
    """pyarrow ends the process over some of them, when it is asked for facts of a chunk."""
    path, values = tmp_path / "x.parquet", np.arange(100)
    pq.write_table(pa.table({"x": values, "gaps": pa.array([1.5, None] * 50)}), path)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    random = np.random.default_rng(2)
    with session():
        for place in random.integers(footer, len(whole) - 8, examples(300)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << random.integers(8)]) + whole[place + 1 :])
            with suppress(OutcoreError):
                table = oc.read_parquet(path)
                for name in table.columns:
                    with suppress(OutcoreError):
                        table[name].compute()


def test_facts_of_chunks_are_those_of_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    columns = {
        "a": pa.array(range(1000)),
        "b": pa.array([{"c": 1, "d": [1.5, None]}] * 1000),
        "e": pa.array(["x"] * 1000),
    }
    pq.write_table(pa.table(columns), path, row_group_size=300, compression={"a": "zstd", "e": "gzip"})
    footer, metadata = read_footer(str(path), StampedFile(str(path)).opened()), pq.read_metadata(path)
    assert footer.rows.tolist() == [300, 300, 300, 100]
    assert [footer.leaf(name) for name in ("a", "b", "e", "none")] == [0, None, 3, None]
    for group in range(4):
        for leaf in range(4):
            column, facts = metadata.row_group(group).column(leaf), footer.chunks[group, leaf]
            assert facts[3:7].tolist() == [
                *(column.total_compressed_size, column.total_uncompressed_size, column.num_values),
                column.statistics.null_count if column.statistics else -1,
            ]
            assert facts[2] == (column.dictionary_page_offset or column.data_page_offset)
            assert CODECS[facts[1]] == column.compression
