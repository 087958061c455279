"""Sliding windows, blocks with their neighbours' edges, and blocks that become numbers: against NumPy and Dask."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import alternating, examples
from test_numpy_habits import arrays

import outcore as oc
from outcore._functions import overlap
from outcore.errors import ArgumentError, DTypeError, FunctionError, OutcoreError, ShapeError

NAMES = ("sum", "mean", "min", "max", "var", "std")


def rolled(name: str, x: Any, window: int, axis: int, least: int | None, correction: float = 0.0) -> Any:
    """What the windows come to, each computed by itself."""
    lanes = np.moveaxis(x.astype(np.float64), axis, -1)
    made = np.full(lanes.shape, np.nan)
    for place in np.ndindex(lanes.shape):
        part = lanes[place[:-1]][max(0, place[-1] - window + 1) : place[-1] + 1]
        number = part[~np.isnan(part)]
        needed = window if least is None else least
        if name != "sum":
            needed = max(needed, 1)
        if number.size >= needed and (name not in ("var", "std") or number.size > correction):
            options = {"ddof": correction} if name in ("var", "std") else {}
            made[place] = getattr(np, name)(number, **options)
    return np.moveaxis(made, -1, axis)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(40), deadline=None)
@given(given_array=arrays(2, nan=True), data=st.data())
def test_windows_are_what_each_of_them_comes_to(name: str, given_array: Any, data: st.DataObject) -> None:
    x, tile = given_array
    axis = data.draw(st.sampled_from([0, 1, -1]))
    window = data.draw(st.integers(1, x.shape[axis] + 2))
    least = data.draw(st.one_of(st.none(), st.integers(0, window)))
    with session():
        found = getattr(oc, f"rolling_{name}")(oc.rechunk(oc.asarray(x), tile), window, axis=axis, min_periods=least)
        assert found.dtype == (x.dtype if x.dtype.kind == "f" else np.float64)
        value = found.compute()
    single = x.dtype == np.float32
    expected = rolled(name, x, window, axis, least)
    np.testing.assert_allclose(value, expected, rtol=2e-6 if single else 1e-9, atol=2e-5 if single else 1e-6)


def test_windows_of_many_blocks_and_a_correction() -> None:
    x = np.random.default_rng(1).normal(size=1000) * 3 + 1e7
    with session():
        for window in (1, 2, 7, 64, 333, 500, 999, 1000, 1001):
            lazy = oc.rolling_std(oc.rechunk(oc.asarray(x), (97,)), window, correction=1)
            np.testing.assert_allclose(lazy.compute(), rolled("std", x, window, 0, None, 1), rtol=1e-7)


def test_a_large_number_spoils_its_own_windows_only() -> None:
    """A difference of running sums would lose the small numbers behind 1e18; so would squares less a squared mean."""
    x = np.random.default_rng(2).normal(size=400)
    x[100] = 1e18
    x[200] = np.inf
    x[300] = np.nan
    far = x + 1e9
    clean = np.ones(400, dtype=bool)
    for place in (100, 200, 300):
        clean[place : place + 10] = False
    clean[:9] = False
    with session(), np.errstate(all="ignore"):
        for name in NAMES:
            found = getattr(oc, f"rolling_{name}")(oc.asarray(x), 10).compute()
            np.testing.assert_allclose(found[clean], rolled(name, x, 10, 0, None)[clean], rtol=1e-12, atol=1e-14)
        found = oc.rolling_var(oc.asarray(far), 10).compute()
        np.testing.assert_allclose(found[clean], rolled("var", far, 10, 0, None)[clean], rtol=1e-5)
        assert oc.rolling_max(oc.asarray(x), 10).compute()[205] == np.inf
        assert np.isnan(oc.rolling_sum(oc.asarray(x), 10).compute()[300:310]).all()


@pytest.mark.parametrize(("name", "window"), alternating(["sum", "max", "var"], [3, 1000, 100_003]))
def test_windows_of_a_file_larger_than_memory_are_one_read(name: str, window: int, data: Any) -> None:
    pool = 112 if name == "var" else 64
    values = np.random.default_rng(3).normal(size=pool * 180_000)
    np.save(data / "x.npy", values)
    with session(pool_limit=pool << 20, threads=1):
        lazy = getattr(oc, f"rolling_{name}")(oc.open(data / "x.npy"), window)
        said = oc.explain(lazy[window - 1 :].sum())
        found = lazy[-1].compute()
    assert said.bytes_read <= 1.1 * values.nbytes
    assert said.bytes_written == 0
    np.testing.assert_allclose(found, getattr(np, name)(values[-window:]), rtol=1e-9)


REFUSED: dict[str, tuple[type[OutcoreError], str, Callable[[], Any]]] = {
    "window": (ArgumentError, r"window must be at least 1, not 0", lambda: oc.rolling_sum(oc.zeros(3), 0)),
    "least": (
        ArgumentError,
        r"min_periods must be between 0 and the window, 3, not 4",
        lambda: oc.rolling_sum(oc.zeros(3), 3, min_periods=4),
    ),
    "number": (ShapeError, r"at least 1 axis", lambda: oc.rolling_sum(oc.asarray(1.0), 3)),
    "axis": (ShapeError, r"axis 1", lambda: oc.rolling_mean(oc.zeros(3), 3, axis=1)),
    "order": (DTypeError, r"complex128 numbers have no order", lambda: oc.rolling_min(oc.zeros(3, dtype=complex), 3)),
    "variance": (DTypeError, r"complex128", lambda: oc.rolling_var(oc.zeros(3, dtype=complex), 3)),
    "blocks": (ShapeError, r"shape \(7,\) must be whole blocks of \(2,\)", lambda: oc.block_reduce(oc.zeros(7), 2)),
    "no reduction": (
        ShapeError,
        r"must reduce the axes of axis=",
        lambda: oc.block_reduce(oc.zeros(4), 2, lambda x, axis: x),
    ),
    "depth": (ArgumentError, r"depth along axis 0 .* not 4", lambda: oc.map_overlap(np.abs, oc.zeros(3), depth=4)),
    "boundary": (ArgumentError, r"'mirror'", lambda: oc.map_overlap(np.abs, oc.zeros(3), depth=1, boundary="mirror")),
    "sample": (
        ShapeError,
        r"shape of a block, \(3,\), not return \(1,\)",
        lambda: oc.map_overlap(lambda b: b[:1], oc.zeros(3), depth=1),
    ),
    "sample fails": (DTypeError, r"pass dtype=", lambda: oc.map_overlap(lambda b: b[9], oc.zeros(3), depth=1)),
    "shape": (
        FunctionError,
        r"shape of a block, \(5,\), not return \(1,\)",
        lambda: oc.map_overlap(lambda b: b[:1], oc.zeros(3), depth=1, boundary=0, dtype=float).compute(),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_words(name: str) -> None:
    kind, text, call = REFUSED[name]
    with session(), pytest.raises(kind, match=text):
        call()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few elements, so that small arrays have many."""
    monkeypatch.setattr(overlap, "_BLOCK_ELEMENTS", 20)
    monkeypatch.setattr(overlap, "_EDGE_SHARE", 1)


def near(block: Any) -> Any:
    """Two neighbours on each side along all axes, with other weights before and behind."""
    wide = np.pad(block, 2)
    made = np.zeros(block.shape)
    for axis in range(block.ndim):
        for shift in range(5):
            key = [slice(2, -2)] * block.ndim
            key[axis] = slice(shift, shift + block.shape[axis])
            made += (shift * shift + 1 + axis) * wide[tuple(key)]
    return made


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("boundary", ["reflect", "periodic", "nearest", "none", 1.5, {0: "reflect"}])
@pytest.mark.parametrize(("shape", "depth"), [((17,), 2), ((9, 13), 2), ((25, 5), (2, 2)), ((6, 5, 7), 2), ((5,), 4)])
def test_neighbourhoods_are_dasks(boundary: Any, shape: tuple[int, ...], depth: Any) -> None:
    x = np.random.default_rng(len(shape)).normal(size=shape)
    theirs = da.map_overlap(
        near,
        da.from_array(x, chunks=tuple(max(5, length // 2) for length in shape)),
        depth=depth,
        boundary=boundary,
        dtype=float,
    )
    with session():
        found = oc.map_overlap(near, oc.asarray(x), depth=depth, boundary=boundary)
        np.testing.assert_allclose(found.compute(), theirs.compute())


@pytest.mark.usefixtures("small_blocks")
def test_depths_may_differ_by_axis_and_side() -> None:
    x = np.random.default_rng(7).normal(size=(23, 4))
    later = lambda block: np.concatenate([block[2:], block[:2] * 0]) if len(block) > 2 else block * 0  # noqa: E731
    with session():
        found = oc.map_overlap(later, oc.asarray(x), depth={0: (0, 2)}, boundary=0)
        np.testing.assert_array_equal(found.compute(), np.concatenate([x[2:], np.zeros((2, 4))]))
        plain = oc.map_overlap(np.exp, oc.asarray(x), depth=0)
        np.testing.assert_array_equal(plain.compute(), np.exp(x))
        kind = oc.map_overlap(lambda block: block > 0, oc.asarray(x), depth=(1, 0))
        assert kind.dtype == bool
        np.testing.assert_array_equal(kind.compute(), x > 0)


def test_a_neighbourhood_of_a_file_is_one_read(data: Any) -> None:
    x = np.random.default_rng(8).normal(size=(3000, 1000))
    np.save(data / "x.npy", x)
    with session(pool_limit=64 << 20, threads=1):
        lazy = oc.map_overlap(near, oc.open(data / "x.npy"), depth={0: 2}, boundary="nearest")
        said = oc.explain(lazy.sum())
        assert (said.bytes_read <= 1.1 * x.nbytes, said.bytes_written) == (True, 0)


@settings(max_examples=examples(20), deadline=None)
@given(given_array=arrays(2), data=st.data())
def test_blocks_become_numbers(given_array: Any, data: st.DataObject) -> None:
    x, tile = given_array
    sizes = tuple(data.draw(st.integers(1, length)) for length in x.shape)
    whole = x[tuple(slice(length // size * size) for length, size in zip(x.shape, sizes, strict=True))]
    apart = whole.reshape(whole.shape[0] // sizes[0], sizes[0], whole.shape[1] // sizes[1], sizes[1])
    with session():
        lazy = oc.rechunk(oc.asarray(x), tile)
        cut = lazy[tuple(slice(length) for length in whole.shape)]
        for name in ("mean", "max", "sum"):
            found = oc.block_reduce(cut, sizes, getattr(oc, name)).compute()
            np.testing.assert_allclose(found, getattr(apart, name)(axis=(1, 3)), rtol=1e-5)
        filled = oc.block_reduce(lazy, sizes, np.sum, fill=0).compute()
        np.testing.assert_allclose(filled.sum(), x.sum(), rtol=1e-4, atol=1e-3)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(overlap._REDUCTIONS)),
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
)
def test_blocks_are_reduced_by_numpys_function_of_the_name(seed: int, name: str, block: tuple[int, int]) -> None:
    random = np.random.default_rng(seed)
    x = np.round(random.normal(size=(block[0] * 3, block[1] * 2)), 1)
    if name.startswith("nan"):
        x[random.random(x.shape) < 0.1] = np.nan
    apart = x.reshape(3, block[0], 2, block[1])
    with session(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = getattr(np, name)(apart, axis=(1, 3))
        np.testing.assert_allclose(oc.block_reduce(x, block, name).compute(), expected, rtol=1e-12)


def test_a_reduction_of_another_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'average' is none of 'mean', 'sum'"):
        oc.block_reduce(np.zeros(4), 2, "average")
