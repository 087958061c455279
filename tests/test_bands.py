"""Groups, sorts and quantiles of many columns: all at once, in bands, with the reads and the memory promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore._groups import groups as chapter
from outcore.errors import ArgumentError, DTypeError, ShapeError

SHAPE = (96, 60, 1024)  # 23.6 MB of float32
MONTHS = np.arange(SHAPE[0]) // 3 % 12
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.7e308, -1.7e308, 5e-324)


@pytest.fixture(scope="module")
def grid() -> Any:
    return np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


@pytest.fixture(scope="module")
def files(grid: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    import zarr

    folder = tmp_path_factory.mktemp("grid")
    np.save(folder / "x.npy", grid)
    stored = zarr.create_array(
        str(folder / "x.zarr"), shape=SHAPE, dtype="f4", chunks=(16, 15, 256), compressors=None, overwrite=True
    )
    stored[...] = grid
    return {"npy": folder / "x.npy", "zarr": folder / "x.zarr"}


def opened(files: dict[str, Path], grid: Any, kind: str) -> oc.Array:
    return oc.asarray(grid) if kind == "memory" else oc.open(files[kind])


def by_month(function: Any, grid: Any, labels: Any = MONTHS) -> Any:
    return np.stack([function(grid[labels == label].astype(np.float64), axis=0) for label in np.unique(labels)])


@pytest.mark.parametrize("kind", ["npy", "zarr", "memory"])
@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "prod"])
def test_a_grid_is_grouped_by_one_read_with_the_same_bits_at_every_limit(
    kind: str, name: str, files: dict[str, Path], grid: Any, scratch: Path
) -> None:
    bits = set()
    for pool, threads in [(24 << 20, 1), (40 << 20, 2), (256 << 20, 3)]:
        with session(scratch, pool_limit=pool, threads=threads):
            found = getattr(oc.groupby(MONTHS), name)(opened(files, grid, kind))
            said = oc.explain(found)
            assert said.bytes_read <= (0 if kind == "memory" else 1.15 * grid.nbytes)
            assert said.bytes_written == 0
            value = found.compute()
            bits.add(value.tobytes())
    assert len(bits) == 1
    np.testing.assert_allclose(value, by_month(getattr(np, name), grid), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["npy", "zarr"])
@pytest.mark.parametrize("name", ["var", "std", "argmin", "argmax", "median"])
def test_what_needs_a_second_look_reads_twice_at_most(
    kind: str, name: str, files: dict[str, Path], grid: Any, scratch: Path
) -> None:
    bits = set()
    for pool, threads in [(40 << 20, 1), (256 << 20, 3)]:
        with session(scratch, pool_limit=pool, threads=threads):
            found = getattr(oc.groupby(MONTHS), name)(opened(files, grid, kind))
            said = oc.explain(found)
            assert said.bytes_read <= 2.2 * grid.nbytes
            assert said.bytes_written == 0
            value = found.compute()
            bits.add(value.tobytes())
    assert len(bits) == 1
    if name.startswith("arg"):
        rows = [np.flatnonzero(month == MONTHS) for month in range(12)]
        expected = np.stack([row[getattr(np, name)(grid[row], axis=0)] for row in rows])
        np.testing.assert_array_equal(value, expected)
    else:
        np.testing.assert_allclose(value, by_month(getattr(np, name), grid), rtol=1e-5, atol=1e-6)


def test_results_computed_together_share_their_reads(files: dict[str, Path], grid: Any, scratch: Path) -> None:
    with session(scratch, pool_limit=256 << 20):
        several = oc.groupby(MONTHS).aggregate(oc.open(files["npy"]), ["sum", "mean", "min", "max", "count"])
        assert oc.explain(*several).bytes_read <= 1.1 * grid.nbytes


def nodes_of(array: oc.Array) -> int:
    """Nodes that an expression is made of."""
    found, stack = {}, [array._expr]
    while stack:
        node = stack.pop()
        if node.id not in found:
            found[node.id] = node
            stack.extend(node.inputs)
    return len(found)


@pytest.mark.parametrize("table_bytes", [4 << 20, 0])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "median", "first", "argmin", "cumsum", "rank", "transform"])
def test_expressions_do_not_grow_with_columns(name: str, table_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapter, "_TABLE_BYTES", table_bytes)
    monkeypatch.setattr(chapter, "_WIDE_TABLE_BYTES", table_bytes)
    arguments = ("mean",) if name == "transform" else ()
    with session():
        labels = np.arange(24) % 12
        few, many = (
            nodes_of(getattr(oc.groupby(labels), name)(oc.zeros((24, columns), dtype=np.float32), *arguments))
            for columns in (20_000, 4_000_000)
        )
        assert abs(few - many) <= 2  # a cut more
        assert nodes_of(oc.sort(oc.zeros((24, 4_000_000)), axis=0)) < 9
        long = 5 << 20
        assert nodes_of(oc.sort(oc.zeros((3000, long)), axis=1)) < 19


@st.composite
def grids(draw: st.DrawFn) -> Any:
    """Values with special ones anywhere, cut anywhere, and labels of several kinds."""
    shape = (draw(st.integers(1, 14)), *draw(st.sampled_from([(), (3,), (5, 2), (2, 3, 2), (40,)])))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "int16", "uint8", "bool"]))
    values = (random.normal(size=shape) * 50).astype(dtype)
    if dtype.startswith("f"):
        with np.errstate(over="ignore"):
            special = np.asarray(draw(st.lists(st.sampled_from(SPECIAL), max_size=6)), dtype)
        values.flat[random.integers(0, values.size, special.size)] = special
    labels = random.integers(0, draw(st.sampled_from([1, 3, 9])), shape[0])
    kind = draw(st.sampled_from(["int64", "float64", "distant"]))
    labels = labels * (1 << 40) if kind == "distant" else labels.astype(kind)
    return values, labels, tuple(draw(st.integers(1, length)) for length in shape)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("table_bytes", [4 << 20, 0])
@settings(max_examples=examples(60), deadline=None)
@given(drawn=grids(), name=st.sampled_from(["sum", "mean", "var", "min", "max", "median", "argmin", "argmax", "first"]))
def test_groups_of_any_labels_and_columns_are_those_of_numpy(table_bytes: int, drawn: Any, name: str) -> None:
    values, labels, tile = drawn
    kept = chapter._TABLE_BYTES, chapter._WIDE_TABLE_BYTES
    chapter._TABLE_BYTES = chapter._WIDE_TABLE_BYTES = table_bytes
    try:
        with session():
            lazy = oc.rechunk(oc.asarray(values), tile)
            found = getattr(oc.groupby(labels), name)(lazy).compute()
    finally:
        chapter._TABLE_BYTES, chapter._WIDE_TABLE_BYTES = kept
    for row, label in zip(found, np.unique(labels), strict=True):
        places = np.flatnonzero(labels == label)
        group = values[places]
        if name == "first":
            np.testing.assert_array_equal(row, group[0])
        elif name.startswith("arg"):
            np.testing.assert_array_equal(row, places[getattr(np, name)(group, axis=0)])
        else:
            wide = group.astype(np.float64) if name in ("mean", "var", "median") or group.dtype.kind == "f" else group
            expected = getattr(np, name)(wide, axis=0)
            # Beyond the largest number orders of addition differ.
            inside = np.isfinite(expected) | np.isnan(expected) if name in ("sum", "mean", "var") else True
            close = np.isclose(row, expected.astype(found.dtype), rtol=1e-5, atol=1e-6, equal_nan=True)
            assert (close | ~np.asarray(inside)).all() or not np.isfinite(wide).all()


@pytest.mark.parametrize("labels", [np.arange(300) % 7 * 1e6, np.arange(300) % 9 * (1 << 40)], ids=["float", "distant"])
def test_sorted_groups_of_wide_rows_move_them_in_bands(labels: Any, tmp_path: Path, scratch: Path) -> None:
    x = np.random.default_rng(1).normal(size=(300, 20_000))
    np.save(tmp_path / "x.npy", x)
    bits = set()
    for pool in (30 << 20, 400 << 20):
        with session(scratch, pool_limit=pool):
            found = oc.groupby(labels).sum(oc.open(tmp_path / "x.npy"))
            said = oc.explain(found)
            assert said.bytes_read <= 3.5 * x.nbytes
            bits.add(found.compute().tobytes())
    assert len(bits) == 1
    expected = np.stack([x[labels == label].sum(axis=0) for label in np.unique(labels)])
    np.testing.assert_allclose(np.frombuffer(bits.pop()).reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(drawn=grids(), descending=st.booleans(), positions=st.booleans())
def test_sorts_along_the_first_axis_are_those_of_numpy(drawn: Any, descending: bool, positions: bool) -> None:
    values, _, tile = drawn
    if values.ndim == 1:
        values, tile = values[:, None], (*tile, 1)
    with session():
        function = oc.argsort if positions else oc.sort
        found = function(oc.rechunk(oc.asarray(values), tile), axis=0, descending=descending).compute()
    lanes = values.reshape(values.shape[0], -1).T
    for column, lane in zip(found.reshape(values.shape[0], -1).T, lanes, strict=True):
        row = oc.argsort(oc.asarray(lane), descending=descending).compute()
        np.testing.assert_array_equal(column, row if positions else lane[row])


@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_columns_are_sorted_and_ranked_in_bands_that_fit(
    kind: str, files: dict[str, Path], grid: Any, scratch: Path, tmp_path: Path
) -> None:
    for pool in (24 << 20, 200 << 20):
        with session(scratch, pool_limit=pool):
            x = oc.open(files[kind])
            quantiles = oc.quantile(x, [0.1, 0.5, 0.95], axis=0)
            said = oc.explain(quantiles)
            assert said.bytes_read <= 2 * grid.nbytes
            assert said.bytes_written <= 1.1 * grid.nbytes
            np.testing.assert_allclose(quantiles.compute(), np.quantile(grid, [0.1, 0.5, 0.95], axis=0), rtol=1e-5)
            oc.store({tmp_path / "sorted.npy": oc.sort(x, axis=0)}, overwrite=True)
            np.testing.assert_array_equal(np.load(tmp_path / "sorted.npy"), np.sort(grid, axis=0))
            oc.store({tmp_path / "places.npy": oc.argsort(x, axis=0)}, overwrite=True)
            expected = np.argsort(grid, axis=0, kind="stable")
            np.testing.assert_array_equal(np.load(tmp_path / "places.npy"), expected)


def test_chunks_of_single_steps_are_cut_into_bands_by_a_copy(tmp_path: Path, scratch: Path) -> None:
    import zarr

    x = np.random.default_rng(2).normal(size=(300, 50, 800)).astype(np.float32)
    stored = zarr.create_array(str(tmp_path / "x.zarr"), shape=x.shape, dtype="f4", chunks=(1, 50, 800))
    stored[...] = x
    with session(scratch, pool_limit=32 << 20):
        found = oc.median(oc.open(tmp_path / "x.zarr"), axis=0)
        said = oc.explain(found)
        assert said.bytes_written <= 1.1 * x.nbytes
        assert said.bytes_read <= 2.2 * x.nbytes
        np.testing.assert_allclose(found.compute(), np.median(x, axis=0), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_quantiles_beside_infinities_and_across_wide_ranges(dtype: str) -> None:
    big = float(np.finfo(dtype).max)
    inf = np.inf
    rows = [[1, 2, inf], [-inf, 1, 2], [-inf, -inf, 5], [-big, big, big], [-big, -big, big], [inf, inf, inf]]
    with session():
        x = np.asarray(rows, dtype)
        np.testing.assert_array_equal(oc.median(x, axis=1).compute(), np.sort(x, axis=1)[:, 1])
        np.testing.assert_array_equal(oc.quantile(x, 0, axis=1).compute(), x.min(axis=1))
        np.testing.assert_array_equal(oc.quantile(x, 1, axis=1).compute(), x.max(axis=1))
        np.testing.assert_array_equal(oc.nanmedian(x.T, axis=0).compute(), np.sort(x, axis=1)[:, 1])
        pair = oc.asarray(np.asarray([-big, big], dtype))
        assert oc.median(pair).item() == 0
        assert oc.quantile(pair, 0.75).item() == pytest.approx(big / 2, rel=1e-3)
        assert oc.quantile(np.asarray([3, inf], dtype), 0.5).item() == inf
        assert oc.quantile(np.asarray([-inf, 3], dtype), 0.25).item() == -inf
        assert np.isnan(oc.median(np.asarray([-inf, inf], dtype)).item())


@settings(max_examples=examples(80), deadline=None)
@given(
    drawn=grids(),
    fractions=st.lists(st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.75, 1.0]), min_size=1, max_size=3),
    method=st.sampled_from(["linear", "lower", "higher", "nearest", "midpoint"]),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_are_those_of_numpy_where_it_finds_any(drawn: Any, fractions: list[float], method: Any) -> None:
    values, _, tile = drawn
    if values.dtype == np.bool_:
        return
    with session():
        found = oc.quantile(oc.rechunk(oc.asarray(values), tile), fractions, axis=0, method=method).compute()
    expected = np.quantile(values, fractions, axis=0, method=method)
    is_found = np.isfinite(expected) | np.isnan(values).any(axis=0)
    np.testing.assert_allclose(found[is_found], expected[is_found], rtol=1e-5, atol=1e-300)


def test_means_of_integers_do_not_wrap() -> None:
    seconds = 1704067200 * 10**9 + np.arange(10) * 10**9
    with session():
        groups = oc.groupby(np.zeros(10, int))
        expected = seconds.astype(float).mean()
        assert groups.mean(seconds).compute()[0] == expected
        assert groups.transform(seconds, "mean").compute()[3] == expected
        assert groups.aggregate(seconds, ["mean"])[0].compute()[0] == expected
        extremes = np.asarray([np.iinfo(np.int64).max] * 3)
        assert oc.groupby(np.zeros(3, int)).mean(extremes).compute()[0] == float(2**63)
        assert oc.groupby(np.zeros(3)).mean(extremes).compute()[0] == float(2**63)


def test_rows_of_many_columns_are_accumulated_and_ranked_at_once() -> None:
    random = np.random.default_rng(5)
    x, labels = random.integers(0, 9, (40, 30)).astype(float), random.integers(0, 4, 40)
    import pandas as pd

    table = pd.DataFrame(x).groupby(labels)
    with session():
        groups = oc.groupby(labels)
        np.testing.assert_array_equal(groups.cumsum(x).compute(), table.cumsum())
        np.testing.assert_array_equal(groups.cummax(x).compute(), table.cummax())
        for method in ("average", "min", "max", "dense", "first"):
            np.testing.assert_array_equal(groups.rank(x, method=method).compute(), table.rank(method=method))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("table_bytes", [4 << 20, 0])
@pytest.mark.parametrize("shape", [(60,), (60, 4)])
def test_nan_is_passed_over(shape: tuple[int, ...], table_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapter, "_TABLE_BYTES", table_bytes)
    random = np.random.default_rng(6)
    x, labels = random.normal(size=shape), random.integers(0, 5, 60)
    x[random.random(shape) < 0.3] = np.nan
    x[labels == 2] = np.nan
    with session():
        groups = oc.groupby(labels)
        for name in ("sum", "prod", "min", "max", "mean", "var", "std", "median"):
            expected = np.stack([getattr(np, f"nan{name}")(x[labels == label], axis=0) for label in range(5)])
            found = getattr(groups, name)(x, skipna=True).compute()
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)
            np.testing.assert_array_equal(groups.agg(x, f"nan{name}").compute(), found)
        whole = np.arange(60)
        np.testing.assert_array_equal(groups.mean(whole, skipna=True).compute(), groups.mean(whole).compute())


def test_results_have_names_of_their_own() -> None:
    x = np.asarray([3.0, 2.0, 4.0, 8.0])
    with session():
        groups = oc.groupby(np.asarray([3, 1, 3, 1]))
        np.testing.assert_array_equal(groups.agg(x, "mean").compute(), [5, 3.5])
        low, high = groups.agg(x, ["min", "max"])
        np.testing.assert_array_equal(high.compute(), [8, 4])
        named = groups.agg(x, {"low": "min"}, middle="median")
        assert list(named) == ["low", "middle"]
        np.testing.assert_array_equal(named["low"].compute(), low.compute())
        for wrong, kwargs in [(None, {}), ("mode", {}), ("mean", {"low": "min"})]:
            with pytest.raises(ArgumentError):
                groups.agg(x, wrong, **kwargs)


@pytest.mark.parametrize("second", [np.asarray([7, 0, 7, 0, 0, 7]), np.asarray([0.5, -1, 0.5, np.inf, -1, 0.5])])
def test_several_keys_are_grouped_by_what_pairs_there_are(second: Any) -> None:
    import pandas as pd

    first, x = np.asarray([2, 1, 2, 1, 2, 2]), np.asarray([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    expected = pd.DataFrame({"a": first, "b": second, "x": x}).groupby(["a", "b"])["x"]
    with session():
        for keys in ((first, second), [oc.asarray(first), second]):
            groups = oc.groupby(keys)
            a, b = groups.keys
            pairs = list(zip(a.compute().tolist(), b.compute().tolist(), strict=True))
            assert pairs == expected.sum().index.to_list()
            for name in ("sum", "mean", "median", "first"):
                np.testing.assert_array_equal(getattr(groups, name)(x).compute(), getattr(expected, name)())
            np.testing.assert_array_equal(groups.transform(x, "sum").compute(), expected.transform("sum"))
        with pytest.raises(ShapeError, match="lengths 6, 2"):
            oc.groupby((first, second[:2]))
        with pytest.raises(ArgumentError, match="several keys"):
            oc.groupby((first, second), groups=3)


def test_what_cannot_be_added_up_is_refused_by_every_result() -> None:
    groups = oc.groupby(np.asarray([1, 2]))
    for name in ("sum", "mean", "argmin", "min"):
        with pytest.raises(DTypeError, match="uint64"):
            getattr(groups, name)(np.asarray([1, 2], np.uint64))
    with pytest.raises(ShapeError):
        groups.median(np.zeros((3, 2)))


def test_a_reshape_across_a_transpose_takes_the_memory_of_the_transpose(tmp_path: Path, scratch: Path) -> None:
    x = np.arange(6000 * 3000, dtype=np.float32).reshape(6000, 3000)
    np.save(tmp_path / "x.npy", x)
    with session(scratch, pool_limit=20 << 20):
        flat = oc.reshape(oc.open(tmp_path / "x.npy").T, (-1,))
        said = oc.explain({tmp_path / "flat.npy": flat})
        assert said.bytes_read <= 2.5 * x.nbytes
        oc.store({tmp_path / "flat.npy": flat})
        np.testing.assert_array_equal(np.load(tmp_path / "flat.npy"), x.T.reshape(-1))
        pairs = oc.reshape(oc.open(tmp_path / "x.npy").T, (1500, 2 * 6000)) + 1
        np.testing.assert_array_equal(oc.sum(pairs, axis=0).compute()[:5], (x.T.reshape(1500, -1) + 1).sum(axis=0)[:5])
