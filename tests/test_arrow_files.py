"""Files of Arrow's own format, as pyarrow and Polars write them, within the limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, ipc

import outcore as oc
from outcore.errors import FormatError, IndexingError

TABLE = pa.table(
    {
        "id": pa.array([3, None, 2**40], pa.int64()),
        "day": pa.array([0, 1, 2], pa.date32()),
        "city": ["rome", "oslo", None],
        "odd": [[1], [2], []],
    }
)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_files_and_streams_are_tables(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "t.arrow"
    feather.write_feather(TABLE, str(path), compression=compression)
    stream = tmp_path / "t.stream"
    with ipc.new_stream(stream, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=2)
    for place in (path, stream):
        t = oc.read_arrow(place, columns=["city", "id", "day"])
        assert t.columns == ["city", "id", "day"]
        values = t.compute()
        np.testing.assert_array_equal(values["id"], [3, np.nan, 2**40])
        assert values["day"].tolist() == np.arange(3).astype("M8[D]").tolist()
        assert values["city"].tolist() == ["rome", "oslo", None]
    assert oc.read_arrow([path, path], columns=["day"])["day"].shape == (6,)


def test_flaws_have_their_file(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    feather.write_feather(TABLE, str(path))
    whole = path.read_bytes()
    for name, content in (("cut", whole[: len(whole) // 2]), ("text", b"no arrow at all"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=f"{name}: no file of Arrow's format"):
            oc.read_arrow(tmp_path / name)
    with pytest.raises(IndexingError, match="no column 'price'"):
        oc.read_arrow(path, columns=["price"])
    feather.write_feather(TABLE.select(["id"]), str(tmp_path / "u.arrow"))
    with pytest.raises(FormatError, match=r"u\.arrow: columns id: int64; in"):
        oc.read_arrow([path, tmp_path / "u.arrow"], columns=["id"])
    with pytest.raises(FormatError, match=r"oc\.read_arrow"):
        oc.open(path)


def test_files_larger_than_memory(tmp_path: Path) -> None:
    """320 MiB in one batch, with 40 MiB for tiles."""
    path, rows = tmp_path / "t.arrow", 20 << 20
    columns = {"n": np.arange(rows), "x": np.arange(rows) % 1000 / 8}
    feather.write_feather(pa.table(columns), str(path), compression="uncompressed", chunksize=rows)
    del columns
    with oc.Session(memory_limit="1GiB") as probe:
        process = (1 << 30) - probe.counters()["budget_bytes"]
    with oc.Session(memory_limit=process + (40 << 20)):
        t = oc.read_arrow(path)
        assert int(t["n"].sum()) == rows * (rows - 1) // 2
        assert float(t["x"].max()) == 999 / 8
