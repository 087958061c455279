"""Forecasts of sparse products, held against what is counted, and what masks spare."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import alternating, examples
from support.sparse import random_matrix, write
from test_spgemm import entries, pairs

import outcore as oc
from outcore.errors import ArgumentError, FormatError, ShapeError

MIB = 1 << 20


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared


def counted(current: Any, *given: Any, **options: Any) -> tuple[Any, Any, int]:
    """The forecast of a product, the product, and the bytes that it read."""
    said = oc.sparse.explain_spgemm(*given, **{key: value for key, value in options.items() if key != "path"})
    before = current.counters()
    made = oc.sparse.spgemm(*given, **options)
    _ = made.nnz  # it is made now
    after = current.counters()
    assert after["bytes_written"] - before["bytes_written"] <= said.bytes_written
    assert after["reserved_bytes"] == before["reserved_bytes"]
    return said, made, after["bytes_read"] - before["bytes_read"]


@settings(max_examples=examples(150), deadline=None)
@given(
    given_pair=pairs(("int64", "float64")),
    masked=st.sampled_from([None, False, True]),
    same=st.sampled_from(["", "first", "second"]),
)
def test_every_product_reads_what_was_said(folder: Path, given_pair: Any, masked: bool | None, same: str) -> None:
    """Small ones, of all shapes and sides; also of one file with itself, under itself."""
    first, second, mask, side, other = given_pair
    with session() as current:
        a, b = write(first, folder, side), write(second, folder, other, "b.ocs")
        if same:
            a = b = a if same == "first" else b
            if a.shape[0] != a.shape[1]:
                a = b = oc.sparse.from_coo([0], [0], None, (1, 1), folder / "one.ocs", overwrite=True)
        m = None
        if masked is not None:
            m = a if same else write(mask, folder, side, "m.ocs")
        said, _, read = counted(current, a, b, mask=m, complement=bool(masked))
        assert said.stages[0].exact
        assert (said.bytes_read, said.stages[0].forecast.bytes_written) == (read, 0)


@pytest.mark.parametrize(
    ("pool", "kind"), alternating([56 * MIB, 64 * MIB, 1024 * MIB], ["none", "few", "itself", "complement"])
)
def test_every_memory_reads_what_was_said(tmp_path: Path, pool: int, kind: str) -> None:
    """Several groups of tile rows, each of which reads what it meets of a matrix that does not fit."""
    with session():
        write(random_matrix(20_000, 20_000, 300_000, 1), tmp_path, 512)
        write(random_matrix(20_000, 20_000, 500_000, 2), tmp_path, 512, "b.ocs")
        write(random_matrix(20_000, 20_000, 30_000, 3), tmp_path, 512, "few.ocs")
    with session(pool_limit=pool) as current:
        a, b = oc.sparse.open(tmp_path / "a.ocs"), oc.sparse.open(tmp_path / "b.ocs")
        m = {"none": None, "itself": a}.get(kind, oc.sparse.open(tmp_path / "few.ocs"))
        if kind in ("none", "complement"):  # else the product does not fit in the least memory
            a = oc.sparse.from_coo(*a_few(20_000), (20_000, 20_000), tmp_path / "c.ocs", side=512)
        options = {"mask": m, "complement": kind == "complement"}
        said, made, read = counted(current, a, b, path=tmp_path / "found.ocs", **options)
        stage = said.stages[0]
        if stage.exact:
            assert read == said.bytes_read
        assert read <= said.bytes_read
        assert stage.exact or (pool < 1024 * MIB and kind != "few")
        assert stage.forecast.tasks > 1 or pool == 1024 * MIB or kind in ("none", "complement")
        assert ("exact" if stage.exact else "bound") in str(said)
    product = a.to_scipy() @ b.to_scipy()
    if m is not None:
        inside = product.multiply(m.to_scipy() != 0)
        product = product - inside if kind == "complement" else inside
    with session():
        np.testing.assert_allclose((made.to_scipy() - product).data, 0, atol=1e-11)


def a_few(order: int) -> tuple[Any, Any, Any]:
    rows = np.repeat(np.arange(order), 3)
    random = np.random.default_rng(5)
    columns = np.unique(rows * order + random.integers(0, order, len(rows)))
    return columns // order, columns % order, random.normal(size=len(columns))


def halves(order: int) -> Any:
    """Two heavy blocks, each of half of the rows and columns."""
    half = random_matrix(order // 2, order // 2, 20 * order, 7)
    return scipy.sparse.block_diag([half, half[::-1]], format="csr")


def test_tiles_that_cannot_meet_the_mask_are_not_read(tmp_path: Path) -> None:
    order, side = 32_768, 1024
    first, second = random_matrix(order, order, 200_000, 1), halves(order)
    columns = random_matrix(order, order // 2, 50_000, 2).tocoo()
    left = scipy.sparse.coo_array((np.ones(columns.nnz), columns.coords), shape=(order, order))
    rows = random_matrix(order // 4, order, 50_000, 3).tocoo()
    top = scipy.sparse.coo_array((np.ones(rows.nnz), rows.coords), shape=(order, order))
    with session() as current:
        a, b = write(first, tmp_path, side), write(second, tmp_path, side, "b.ocs")
        plain, _, all_read = counted(current, a, b)
        assert plain.bytes_read == all_read
        for name, mask, spared in (("left", left, b.nbytes // 2), ("top", top, a.nbytes // 2)):
            m = write(mask, tmp_path, side, f"{name}.ocs")
            said, made, read = counted(current, a, b, mask=m)
            assert said.stages[0].exact
            assert said.bytes_read == read
            assert read - m.nbytes < all_read - 0.7 * spared
            expected = (first @ second).multiply(mask.tocsr() != 0)
            np.testing.assert_allclose((made.to_scipy() - expected).data, 0, atol=1e-11)


def test_full_tile_rows_of_a_complemented_mask_are_not_read(tmp_path: Path) -> None:
    first, second = random_matrix(2048, 2048, 300_000, 1), random_matrix(2048, 256, 20_000, 2)
    full = np.zeros((2048, 256), dtype=bool)
    full[:512] = True
    full[600:700, :64] = True
    with session() as current:
        a, b = write(first, tmp_path, 64), write(second, tmp_path, 64, "b.ocs")
        m = oc.sparse.from_coo(*np.nonzero(full), None, full.shape, tmp_path / "m.ocs", side=64)
        said, made, read = counted(current, a, b, mask=m, complement=True)
        plain = oc.sparse.explain_spgemm(a, b)
        top = oc.sparse.explain_spgemm(a.part(slice(512), path=tmp_path / "top.ocs"), b).bytes_read
        assert said.bytes_read == read
        # Its first tile, of eight tile rows, is not read, and the rest of the mask is.
        assert read < plain.bytes_read - (top - b.nbytes) / 2 + m.nbytes
        expected = (first @ second).multiply(scipy.sparse.csr_array(~full))
        np.testing.assert_allclose((made.to_scipy() - expected).data, 0, atol=1e-11)
        assert made.nnz == expected.nnz


def test_one_file_is_read_once(tmp_path: Path) -> None:
    with session() as current:
        a = write(random_matrix(5000, 5000, 100_000, 1), tmp_path, 1024)
        said, _, read = counted(current, a, a, "plus_pair", mask=a)
        assert said.bytes_read == read <= a.nbytes + 8192 * a._core.tiles


@pytest.mark.parametrize("columns", [1 << 21, 1 << 40])
def test_masks_may_name_columns_far_apart(tmp_path: Path, columns: int) -> None:
    """More of them than have bits: by hash, and where a row of the mask has very many, range by range."""
    random = np.random.default_rng(1)
    inner = 50
    shape = (3, columns)
    with session():
        a = oc.sparse.from_coo(*np.nonzero(np.ones((3, inner))), np.arange(150.0), (3, inner), tmp_path / "a.ocs")
        numbers = np.unique(random.integers(0, columns, 4000))
        places = (random.integers(0, inner, 20_000), numbers[random.integers(0, len(numbers), 20_000)])
        b = oc.sparse.from_coo(*places, np.ones(20_000), (inner, columns), tmp_path / "b.ocs")
        few = (np.asarray([0, 0, 2, 2, 2]), numbers[[0, -1, 5, 9, 2000]])
        m = oc.sparse.from_coo(*few, None, shape, tmp_path / "m.ocs")
        whole = entries(a @ b)
        named = set(zip(few[0].tolist(), few[1].tolist(), strict=True))
        assert named & set(whole)
        found = entries(oc.sparse.spgemm(a, b, mask=m))
        assert found == {at: value for at, value in whole.items() if at in named}
        rest = entries(oc.sparse.spgemm(a, b, mask=m, complement=True))
        assert rest == {at: value for at, value in whole.items() if at not in named}


def test_heads_are_under_checksums(tmp_path: Path) -> None:
    """What a tile row says of its tiles decides what is read: no bit of it may be another."""
    order, side = 32_768, 1024
    with session():
        a, b = (
            write(random_matrix(order, order, 50_000, 1), tmp_path, side),
            write(halves(order), tmp_path, side, "b.ocs"),
        )
        mask = oc.sparse.from_coo(*np.divmod(np.arange(5), 3), None, (order, order), tmp_path / "m.ocs", side=side)
        assert oc.sparse.spgemm(a, b, mask=mask).shape == (order, order)
    data = bytearray((tmp_path / "b.ocs").read_bytes())
    directory = struct.unpack_from("<Q", data, 48)[0]
    count = struct.unpack_from("<Q", data, 40)[0]
    offset = struct.unpack_from("<Q", data, directory + 40 * (count - 1) + 8)[0]
    data[offset + 24] ^= 1  # the column of the last tile row's first tile
    (tmp_path / "b.ocs").write_bytes(data)
    with session(), pytest.raises(FormatError, match=f"head of tile row {count - 1}"):
        _ = oc.sparse.spgemm(oc.sparse.open(tmp_path / "a.ocs"), oc.sparse.open(tmp_path / "b.ocs"), mask=mask).nnz


def test_heads_without_checksums_are_not_believed(tmp_path: Path) -> None:
    """Files of before have 0 there: their tiles are known when they are read, and what is said of them is a bound."""
    matrix = random_matrix(3000, 3000, 40_000, 1)
    with session():
        write(matrix, tmp_path, 256)
    data = bytearray((tmp_path / "a.ocs").read_bytes())
    directory, count = struct.unpack_from("<Q", data, 48)[0], struct.unpack_from("<Q", data, 40)[0]
    for at in range(count):
        assert struct.unpack_from("<I", data, directory + 40 * at + 36)[0]
        struct.pack_into("<I", data, directory + 40 * at + 36, 0)
    from test_sparse_files import crc

    data[72:76] = crc(bytes(data[directory : directory + 40 * count]))
    data[76:80] = crc(bytes(data[:76]))
    (tmp_path / "old.ocs").write_bytes(data)
    with session() as current:
        old = oc.sparse.open(tmp_path / "old.ocs")
        said, made, read = counted(current, old, old)
        assert not said.stages[0].exact
        assert read <= said.bytes_read
        np.testing.assert_allclose((made.to_scipy() - matrix @ matrix).data, 0, atol=1e-11)


def test_matrices_of_others_have_bounds(tmp_path: Path) -> None:
    matrix = random_matrix(3000, 3000, 40_000, 1)
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix, compressed=False)
    with session() as current:
        opened = oc.sparse.open(tmp_path / "a.npz", side=256)
        said, made, read = counted(current, opened, opened)
        assert not said.stages[0].exact
        assert read <= said.bytes_read
        assert made.nnz == (matrix @ matrix).nnz


def test_what_has_no_forecast_says_why(tmp_path: Path) -> None:
    with session():
        a = write(random_matrix(30, 20, 50), tmp_path)
        with pytest.raises(ArgumentError, match="transposed"):
            oc.sparse.explain_spgemm(a, a.T)
        with pytest.raises(ShapeError, match="20 and 30"):
            oc.sparse.explain_spgemm(a, a)
        with pytest.raises(ArgumentError, match="complement"):
            oc.sparse.explain_spgemm(a, a.T.copy(), complement=True)
