"""Tables of columns: what every method gives, against NumPy and pyarrow; what is refused; memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import sized

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, IndexingError, MemoryLimitError, ShapeError

pa = pytest.importorskip("pyarrow")

NAT = np.datetime64("NaT")


def cities(*places: int) -> oc.Categorical:
    return oc.Categorical(oc.asarray(np.asarray(places, dtype=np.int32)), ["bern", "oslo", "rome"])


def trades() -> oc.Table:
    days = np.asarray(["2024-03-01", "NaT", "2024-01-01", "2024-01-01"], dtype="datetime64[D]")
    return oc.table(
        price=np.asarray([2.0, np.nan, 4.0, 1.0]),
        count=np.asarray([3, 1, 2, 2], dtype=np.int32),
        day=days,
        name=np.asarray(["ann", "bo", "", "ann"]),
        city=cities(1, -1, 2, 1),
    )


def rows(table: oc.Table) -> list[tuple[Any, ...]]:
    """Rows as Python values, NaN and NaT as None, so that they compare."""
    values = table.compute()

    def plain(value: Any) -> Any:
        return None if value is None or value != value else value.item() if hasattr(value, "item") else value

    return [tuple(map(plain, row)) for row in zip(*values.values(), strict=True)]


def test_a_table_names_columns_and_computes_nothing() -> None:
    t = trades()
    assert t.columns == ["price", "count", "day", "name", "city"]
    assert len(t) == 4
    assert t.dtypes == {
        "price": "float64",
        "count": "int32",
        "day": "datetime64[D]",
        "name": "U3",
        "city": "category[3]",
    }
    assert isinstance(t["day"], oc.Dates)
    assert isinstance(t["name"], oc.Text)
    assert "price" in t
    assert list(t.select("day", "price")) == ["day", "price"]
    assert t.rename({"day": "when"}).columns == ["price", "count", "when", "name", "city"]
    with session() as current:
        filtered = t.filter(t["price"] > 1)
        assert "?" in repr(filtered)
        assert filtered.sort_by("count").dtypes == t.dtypes
        assert current.counters()["reservations"] == 0
        assert "'ann'" in repr(t)
        assert len(filtered) == 2


def test_rows_are_chosen_in_their_order() -> None:
    t = trades()
    with session():
        assert rows(t.filter(t["city"] == "oslo").select("price", "city")) == [(2.0, "oslo"), (1.0, "oslo")]
        assert rows(t[t["name"] == "ann"].select("name", "day"))[1][0] == "ann"
        assert rows(t.head(2)) == rows(t)[:2]
        assert rows(t[1:3]) == rows(t)[1:3]
        assert len(t.head(9)) == 4
        sampled = t.sample(3, seed=4)
        assert len(sampled) == 3
        assert rows(sampled) == rows(t.sample(3, seed=4))
        assert [row for row in rows(t) if row in rows(sampled)] == rows(sampled)


def test_columns_are_added_and_replaced() -> None:
    t = trades().select("price", "count")
    changed = t.with_columns({"twice": t["count"] * 2}, count=t["count"] + 1)
    assert changed.columns == ["price", "count", "twice"]
    with session():
        assert changed["count"].tolist() == [4, 2, 3, 3]
        kept = t.filter(t["count"] > 1)
        assert kept.with_columns(more=kept["count"] * 10)["more"].tolist() == [30, 20, 20]


def test_labels_compare_as_their_strings() -> None:
    city = cities(1, -1, 2, 0)
    with session():
        assert city.tolist() == ["oslo", None, "rome", "bern"]
        for name in ("bern", "oslo", "paris", "zug", "a"):
            known = [None if label is None else label for label in city.tolist()]
            for flags, expected in (
                (city == name, [label == name for label in known]),
                (city != name, [label != name for label in known]),
                (city < name, [label is not None and label < name for label in known]),
                (city <= name, [label is not None and label <= name for label in known]),
                (city > name, [label is not None and label > name for label in known]),
                (city >= name, [label is not None and label >= name for label in known]),
            ):
                assert flags.tolist() == expected, name
        assert city.sort().tolist() == ["bern", "oslo", "rome", None]
        assert city.sort(descending=True).tolist() == ["rome", "oslo", "bern", None]
        assert city.isin(["rome", "zug"]).tolist() == [False, False, True, False]
        assert city.isnull().tolist() == [False, True, False, False]
        assert city.unique().tolist() == ["bern", "oslo", "rome", None]
        assert city.with_labels(["oslo", "zug"]).tolist() == ["oslo", None, None, None]
        assert (city == cities(1, -1, 0, 0)).tolist() == [True, False, False, True]
        assert city.min().item() == "bern"


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["price", "count", "day", "name", "city"])
def test_a_sort_has_missing_elements_last(name: str, descending: bool) -> None:
    t = trades().with_columns(row=oc.arange(4))
    with session():
        ordered = rows(t.sort_by(name, descending=descending))
    place = t.columns.index(name)
    known = [row for row in rows(t) if row[place] is not None]
    expected = sorted(known, key=lambda row: row[place], reverse=descending)  # stable as well
    assert ordered == expected + [row for row in rows(t) if row[place] is None]


def test_a_sort_by_several_keys() -> None:
    t = oc.table(a=[2, 1, 2, 1], b=[1, 5, 3, 5], c=["x", "y", "z", "w"])
    with session():
        assert rows(t.sort_by("a", "b", descending=[True, False])) == [
            (2, 1, "x"),
            (2, 3, "z"),
            (1, 5, "y"),
            (1, 5, "w"),
        ]
        assert t.sort_by("a", "b", "c")["c"].tolist() == ["w", "y", "x", "z"]


def test_groups_give_a_table() -> None:
    t = trades()
    with session():
        by_city = t.groupby("city").agg(
            rows=("price", "count"),
            total=("count", "sum"),
            first=("name", "first"),
            day=("day", "min"),
            last=("day", "max"),
        )
        assert by_city.columns == ["city", "rows", "total", "first", "day", "last"]
        found = by_city.select("city", "rows", "total").compute()
        assert [list(values) for values in found.values()] == [["oslo", "rome", None], [2, 1, 1], [5, 2, 1]]
        assert [str(day) for day in by_city["day"].compute()] == ["2024-01-01", "2024-01-01", "NaT"]
        both = t.groupby("city", "count").agg(mean=("price", "mean"))
        assert rows(both) == [("oslo", 2, 1.0), ("oslo", 3, 2.0), ("rome", 2, 4.0), (None, 1, None)]
        filtered = t.filter(t["price"] > 1).groupby("count").agg(rows=("price", "count"))
        assert rows(filtered) == [(2, 1), (3, 1)]
        with pytest.raises(DTypeError, match=r"'sum' of day"):
            t.groupby("city").agg(x=("day", "sum"))["x"].compute()
        with pytest.raises(IndexingError, match="name of a key"):
            t.groupby("city").agg(city=("price", "sum"))
        with pytest.raises(ArgumentError, match="no pair"):
            t.groupby("city").agg(x="sum")  # type: ignore[arg-type]


def test_counts_and_figures() -> None:
    t = trades()
    with session():
        assert rows(t.value_counts("city")) == [("oslo", 2), ("rome", 1), (None, 1)]
        assert rows(t.rename({"count": "n"}).value_counts("n")) == [(2, 2), (1, 1), (3, 1)]
        with pytest.raises(IndexingError, match="rename"):
            t.value_counts("count")
        said = t.describe()
    assert list(said) == ["price", "count"]
    assert (said["price"]["count"], said["price"]["missing"]) == (3, 1)
    prices = np.asarray([2.0, 4.0, 1.0])
    np.testing.assert_allclose(said["price"]["mean"], prices.mean())
    np.testing.assert_allclose(said["price"]["std"], prices.std(ddof=1))
    assert (said["count"]["min"], said["count"]["max"]) == (1, 3)


def test_tables_behind_each_other() -> None:
    t = trades()
    other = oc.table(
        city=oc.Categorical(oc.asarray(np.asarray([0], dtype=np.int32)), ["zug"]),
        name=np.asarray(["charles"]),
        price=np.asarray([7], dtype=np.int64),
        count=np.asarray([1.5]),
        day=np.asarray(["2024-03-01T12"], dtype="datetime64[h]"),
    )
    with session():
        together = t.concat(other)
        assert together.columns == t.columns
        assert len(together) == 5
        found = together.compute()
    assert list(found["city"]) == ["oslo", None, "rome", "oslo", "zug"]
    assert list(found["name"]) == ["ann", "bo", "", "ann", "charles"]
    assert found["count"].dtype == np.float64
    assert found["day"].dtype == "datetime64[h]"
    assert found["day"][-1] == np.datetime64("2024-03-01T12")


# -- joins ------------------------------------------------------------------------------------------------------------

KEYS = st.lists(st.integers(0, 4) | st.none(), max_size=12)


def joined_rows(left: list[int | None], right: list[int | None], how: str) -> list[tuple[Any, ...]]:
    """The rows of a join, by two loops."""
    found = []
    for i, key in enumerate(left):
        partners = [j for j, other in enumerate(right) if key is not None and other == key]
        if (how == "semi" and partners) or (how == "anti" and not partners):
            found.append((key, i))
        elif how in ("inner", "left"):
            found += [(key, i, float(j)) for j in partners]
            if how == "left" and not partners:
                found.append((key, i, None))
    return found


def column_of(keys: list[int | None], kind: str) -> Any:
    if kind == "label":
        return cities(*(-1 if key is None else min(key, 2) for key in keys))
    if kind == "day":
        return np.asarray([NAT if key is None else np.datetime64(key, "D") for key in keys], dtype="datetime64[D]")
    return np.asarray([np.nan if key is None else key for key in keys], dtype=np.float64)


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("kind", ["number", "day", "label"])
@settings(max_examples=sized(4, 50), deadline=None)
@given(left=KEYS, right=KEYS)
def test_a_join_gives_each_pair(how: Any, kind: str, left: list[int | None], right: list[int | None]) -> None:
    if kind == "label":
        left, right = ([None if key is None else min(key, 2) for key in keys] for keys in (left, right))
    mine = oc.table(key=column_of(left, kind), i=np.arange(len(left)))
    its = oc.table(other=column_of(right, kind), j=np.arange(len(right), dtype=np.float64))
    with session():
        result = mine.join(its, {"key": "other"}, how=how)
        found = [row[1:] for row in rows(result)]
        assert len(result) == len(found)
    expected = [row[1:] for row in joined_rows(left, right, how)]
    ordered = {"inner", "left"} & {how}
    assert (sorted(found, key=str), len(found)) == (sorted(expected, key=str), len(expected))
    if not ordered:
        assert found == expected


def test_a_join_by_several_keys_and_long_text() -> None:
    mine = oc.table(a=[1, 1, 2], b=["longer than three", "x", "x"], value=[1, 2, 3])
    its = oc.table(a=[1, 2, 1], b=["x", "x", "longer than three"], value=[10, 20, 30])
    with session():
        found = mine.join(its, ["a", "b"])
        assert found.columns == ["a", "b", "value", "value_right"]
        assert rows(found) == [(1, "longer than three", 1, 30), (1, "x", 2, 10), (2, "x", 3, 20)]
        assert rows(mine.join(its, "b").select("value", "value_right")) == [(1, 30), (2, 10), (2, 20), (3, 10), (3, 20)]
        outer = mine.join(its.filter(its["a"] == 2), ["a", "b"], how="left")
        assert sorted(rows(outer.select("value", "value_right")), key=str) == [(1, None), (2, None), (3, 20.0)]


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ShapeError, match="a 2, b 3"):
        oc.table(a=[1, 2], b=[1, 2, 3])
    with pytest.raises(ShapeError, match="'a' of shape"):
        oc.table(a=[[1, 2]])
    with pytest.raises(ArgumentError, match="no column"):
        oc.table()
    with pytest.raises(ArgumentError, match="mapping"):
        oc.table([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="ascend"):
        oc.Categorical(oc.asarray(np.zeros(1, np.int32)), ["b", "a"])
    with pytest.raises(DTypeError, match="int32"):
        oc.Categorical(oc.asarray([0]), ["b"])


def test_columns_that_are_missing_are_named() -> None:
    t = trades()
    for call in (
        lambda: t["prize"],
        lambda: t.select("prize"),
        lambda: t.sort_by("prize"),
        lambda: t.groupby("prize"),
        lambda: t.rename({"prize": "price"}),
        lambda: t.join(t, "prize"),
        lambda: t.value_counts("prize"),
    ):
        with pytest.raises(IndexingError, match="no column 'prize'; columns are price, count"):
            call()


def test_other_wrong_calls_are_refused() -> None:
    t = trades()
    with pytest.raises(ShapeError, match="mask of 2 rows for a table of 4"):
        t.filter(np.asarray([True, False]))
    with pytest.raises(IndexingError, match="row of bool"):
        t.filter(t["count"])
    with pytest.raises(ShapeError, match="more 2, price 4"):
        t.with_columns(more=[1, 2])
    with pytest.raises(ArgumentError, match="n=5 of 4 rows"):
        t.sample(5)
    with pytest.raises(ArgumentError, match="outer"):
        t.join(t, "count", how="outer")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="directions"):
        t.sort_by("price", descending=[True, False])
    with pytest.raises(ArgumentError, match="one name"):
        t.rename({"day": "price"})
    with pytest.raises(ShapeError, match="more"):
        t.concat(t.with_columns(more=t["price"]))
    with pytest.raises(DTypeError, match="do not go together"):
        t.select("day").concat(oc.table(day=[1.0]))["day"]
    with pytest.raises(DTypeError, match="supported"):
        np.add(t["city"], 1)


# -- Arrow's stream ---------------------------------------------------------------------------------------------------


def test_the_stream_has_all_types_and_missing_elements() -> None:
    t = trades()
    with session():
        found = pa.table(t)
    assert found.column("price").null_count == 0
    assert found.column("day").to_pylist()[1] is None
    assert found.column("city").to_pylist() == ["oslo", None, "rome", "oslo"]
    assert found.column("name").to_pylist() == ["ann", "bo", "", "ann"]
    assert found.schema.field("city").type == pa.dictionary(pa.int32(), pa.string())
    with session(), pytest.raises(DTypeError, match="complex"):
        pa.table(oc.table(x=np.zeros(2, complex)))


def test_the_stream_comes_in_batches_and_back() -> None:
    values = np.random.default_rng(0).permutation(1_000_000)
    # The pool is what is small: a worker of many tests has hundreds of MiB of its own.
    with session(memory_limit=4 << 30, pool_limit=32 << 20) as current:
        t = oc.table(x=values, y=values * 0.5).filter(values % 3 > 0).sort_by("x")
        reader = pa.RecordBatchReader.from_stream(t)
        sizes = [batch.num_rows for batch in reader]
        assert len(sizes) > 3
        again = oc.from_arrow(t)
        expected = np.sort(values[values % 3 > 0])
        np.testing.assert_array_equal(again["x"].compute(), expected)
        np.testing.assert_array_equal(again["y"].compute(), expected * 0.5)
        assert current.counters()["peak_bytes"] <= 32 << 20


ELEMENTS: dict[str, tuple[Any, Any]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**53), 2**53)),
    "uint16": (pa.uint16(), st.integers(0, 2**16 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "float64": (pa.float64(), st.floats(allow_nan=False)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "duration": (pa.duration("ms"), st.integers(-(10**9), 10**9)),
    "label": (pa.string(), st.text(max_size=3)),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b", "ccc"])),
}


@st.composite
def arrow_tables(draw: st.DrawFn) -> Any:
    """Tables of pyarrow, in several chunks, with missing elements."""
    names = draw(st.lists(st.sampled_from(sorted(ELEMENTS)), min_size=1, max_size=4, unique=True))
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    columns = {}
    for name in names:
        kind, elements = ELEMENTS[name]
        chunks = [draw(st.lists(elements | st.none(), min_size=length, max_size=length)) for length in lengths]
        columns[name] = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)
    return pa.table(columns)


def assert_same(found: oc.Table, expected: Any) -> None:
    """Elements of a table are those of pyarrow's, missing ones missing."""
    with session():
        again = pa.table(found)
    assert again.column_names == expected.column_names
    for name in expected.column_names:
        mine = [None if value != value else value for value in again.column(name).to_pylist()]
        assert mine == expected.column(name).to_pylist(), name


@settings(max_examples=sized(15, 200), deadline=None)
@given(table=arrow_tables())
def test_tables_of_arrow_come_and_go(table: Any) -> None:
    with session():
        assert_same(oc.from_arrow(table), table)


def test_columns_are_stored_in_a_folder(tmp_path: Path) -> None:
    source = pa.table({"a/b": [3, None, 1], "city": ["rome", None, "bern"], "text": ["x", "yy", "z"]})
    with session():
        made = oc.from_arrow(source, path=tmp_path / "t", dtypes={"text": "U4"})
        opened = oc.open_table(tmp_path / "t")
        assert rows(opened) == rows(made) == [(3.0, "rome", "x"), (None, None, "yy"), (1.0, "bern", "z")]
        assert np.load(tmp_path / "t" / "city.npy").tolist() == [1, -1, 0]
        with pytest.raises(FileExistsError, match="exists"):
            oc.from_arrow(source, path=tmp_path / "t")
        with pytest.raises(DTypeError, match="list"):
            oc.from_arrow(pa.table({"x": [[1]]}), path=tmp_path / "u")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]
        with pytest.raises(ArgumentError, match="no __arrow_c_stream__"):
            oc.from_arrow([1])  # type: ignore[arg-type]
        (tmp_path / "t" / "table.json").write_text("{}")
        with pytest.raises(oc.errors.FormatError, match=r"table\.json"):
            oc.open_table(tmp_path / "t")


def test_a_stream_is_refused_where_memory_has_no_room() -> None:
    with session(pool_limit=None, memory_limit=1 << 20), pytest.raises(MemoryLimitError):
        oc.from_arrow(pa.table({"x": [1]}))


# -- memory -----------------------------------------------------------------------------------------------------------

LIMITED = """
import sys
import numpy as np
import outcore as oc

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

folder, limit = sys.argv[1], 272 << 20
with oc.Session(memory_limit=limit, threads=2, progress=False, scratch=[folder]):
    rows = 12_000_000
    x = oc.random.uniform((rows,), seed=1)
    oc.to_parquet({"x": x, "y": x * 2, "z": oc.arange(rows)}, f"{folder}/t.parquet", compression="none")
    t = oc.read_parquet(f"{folder}/t.parquet")
    few = t.filter(t["x"] > 0.75)
    oc.to_parquet(few, f"{folder}/few.parquet", compression="none")
    with open(f"{folder}/t.csv", "w") as file:
        file.write("a,b\\n" + "".join(f"{number},{2 * number}\\n" for number in range(40_000)))
    again = oc.read_parquet(f"{folder}/few.parquet")
    csv = oc.read_csv(f"{folder}/t.csv")
    difference = oc.compute((again["x"] * 2 - again["y"]).sum(), t["z"].sum(), csv["b"].sum())
    print(len(again), *difference, peak() - limit, 24 * rows - limit)
"""


def test_tables_larger_than_the_limit(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    count, difference, total, csv, above, beyond = ended.stdout.split()
    assert abs(int(count) - 3_000_000) < 20_000
    assert float(difference) == 0
    assert int(total) == 12_000_000 * 11_999_999 // 2
    assert int(csv) == 40_000 * 39_999
    assert int(above) <= 0 < int(beyond)
