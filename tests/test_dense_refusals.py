"""Refusals: numbers beyond their type, places beyond an axis, names and files of other libraries."""

from __future__ import annotations

import os
import pickle
import re

import numpy as np
import pytest
import scipy.io
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, FormatError, IndexingError, RangeError, ShapeError

RNG = np.random.default_rng(0)
INTEGERS = ("int8", "uint8", "int16", "uint32", "int64", "uint64")
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(width=64), st.sampled_from([True, 1j, 2.5, -0.0, 1e300, float("nan")])
)


def value(x):
    return np.asarray(oc.compute(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from((*INTEGERS, "float32", "float64", "bool")), NUMBERS, st.booleans())
def test_what_is_assigned_is_held_or_refused_as_by_numpy(dtype, number, in_a_list):
    put = [number] if in_a_list else number
    expected, ours, refused = np.zeros(3, dtype), oc.zeros(3, dtype=dtype), None
    try:
        expected[:1] = put
    except (OverflowError, ValueError, TypeError) as error:
        refused = type(error)
    if refused is not None:
        with pytest.raises(refused):
            ours[:1] = put
    else:
        ours[:1] = put
        np.testing.assert_array_equal(value(ours), expected)


def test_what_is_inserted_is_held_or_refused():
    with pytest.raises(RangeError):
        oc.insert(np.zeros(3, np.int8), 1, 300)
    with pytest.raises(ArgumentError):
        oc.insert(np.zeros(3, np.int8), 1, np.nan)
    with pytest.raises(DTypeError):
        oc.insert(np.zeros(3), 1, 1j)


def test_means_of_half_precision_are_formed_in_single():
    x = np.full((6000, 2), 270, np.float16)
    x[0] = np.nan
    for function in (oc.nanmean, oc.nanstd, oc.nanvar):
        found, expected = value(function(x, axis=0)), getattr(np, function.__name__)(x.astype(np.float32), axis=0)
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected, atol=1e-3)
    where = oc.asarray(~np.isnan(x))
    np.testing.assert_array_equal(value(np.mean(oc.asarray(x), axis=0, where=where)), [270, 270])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_in_place_of_infinities_are_those_of_the_type(dtype):
    x = np.array([np.nan, np.inf, -np.inf, 1.5], dtype)
    found = value(oc.nan_to_num(x))
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, np.nan_to_num(x))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_to_negative_powers_end_the_run(dtype):
    powers = np.array([3, 0, -1], dtype)
    with pytest.raises(ArgumentError, match="-1"):
        value(oc.pow(oc.asarray(np.array([2, 2, 2], dtype)), oc.asarray(powers)))
    with pytest.raises(ArgumentError, match="-1"):
        value(oc.asarray(np.array([2], dtype)) ** oc.asarray(powers[:, None])[::-1])
    np.testing.assert_array_equal(value(oc.pow(oc.asarray(powers[:2]), oc.asarray(np.array([2, 5], dtype)))), [9, 0])


def test_places_outside_are_named_with_their_axis():
    x, nine = oc.arange(3), oc.asarray(np.array([9]))
    for found in (lambda: oc.take_along_axis(x, nine, axis=0), lambda: oc.take(x, nine), lambda: x[nine]):
        with pytest.raises(IndexingError, match="index 9 is out of bounds for axis 0 with length 3"):
            value(found())
    with pytest.raises(IndexingError, match="index 7"):
        value(oc.choose(np.array([0, 7]), [np.array([1, 2]), np.array([3, 4])]))
    with pytest.raises(IndexingError, match="index -5"):
        value(oc.ravel_multi_index((oc.asarray(np.array([0, -5])), oc.asarray(np.array([0, 1]))), (2, 3)))


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=3, max_size=3))
def test_rows_are_moved_by_orders_only(index):
    x = np.array([5.0, 6, 7])
    inside = all(-3 <= place < 3 for place in index)
    if inside and sorted(place % 3 for place in index) == [0, 1, 2]:
        expected = np.empty(3)
        expected[index] = x
        np.testing.assert_array_equal(value(oc.permute(x, oc.asarray(np.array(index)))), expected)
    else:
        with pytest.raises(IndexingError):
            value(oc.permute(x, oc.asarray(np.array(index))))
        with pytest.raises(IndexingError):
            value(oc.permute(np.stack([x, x], 1), oc.asarray(np.array(index))))


def test_counts_that_wrap_are_refused():
    with pytest.raises(RangeError, match="elements"):
        oc.repeat(oc.arange(3), [2**62] * 3).shape  # noqa: B018 - it is counted then


def test_histograms_need_a_range_that_is_finite():
    for x in (np.array([1.0, np.nan]), np.array([1, np.inf], np.float16), np.array([-np.inf, 1], np.float32)):
        with pytest.raises(ArgumentError, match="finite"):
            value(oc.histogram(x).counts)
        with pytest.raises(ArgumentError, match="finite"):
            value(oc.histogram_bin_edges(x))
    np.testing.assert_array_equal(value(oc.histogram(np.array([1.0, np.nan]), 2, range=(0, 2)).counts), [0, 1])


def test_indices_without_axes_and_without_places():
    n = np.arange(6).reshape(2, 3)
    x, truth = oc.asarray(n), oc.asarray(np.array(5.0))
    np.testing.assert_array_equal(value(x[np.array(1)]), n[np.array(1)])
    assert value(x[[]]).shape == n[[]].shape
    for flag in (True, False, np.bool_(True), oc.asarray(np.array(True))):
        np.testing.assert_array_equal(value(truth[flag]), np.array(5.0)[bool(flag)])
    with pytest.raises(IndexingError, match="nonzero"):
        x[np.array([True, False]), np.array([0])]
    with pytest.raises(ShapeError, match="1 and 3"):
        oc.vecdot(np.ones((2, 1)), np.ones((2, 3)))
    assert type(oc.finfo("float32").eps) is float


def test_arrays_of_files_go_to_other_processes(tmp_path):
    np.save(tmp_path / "t.npy", np.array(["ab", "cde"]))
    np.save(tmp_path / "d.npy", np.array(["2020-01-01", "NaT"], "M8[D]"))
    np.save(tmp_path / "r.npy", np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")]))
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/n\xff.npy")
    np.save(odd, np.arange(3.0))
    for opened in (oc.open(tmp_path / "t.npy"), oc.open(tmp_path / "d.npy"), oc.open(tmp_path / "r.npy", field="b")):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(opened)).compute(), opened.compute())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(oc.open(odd) + 1)).compute(), [1, 2, 3])


def test_names_of_other_libraries_say_what_is_nearest():
    for owner, name, nearest in (
        (oc, "concatenate", "outcore.concat"),
        (oc, "DataFrame", "outcore.table"),
        (oc, "merge", "searchsorted"),
        (oc.sparse.linalg, "spilu", "ilu0"),
        (oc.linalg, "expm", "scipy"),
        (oc.ones(3), "fillna", "isnan"),
    ):
        assert not hasattr(owner, name)
        with pytest.raises(AttributeError, match=nearest):
            getattr(owner, name)
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        oc.nothing  # noqa: B018 - it is not there
    assert dir(oc) == sorted({*oc.__all__, "learn", "show"})


def test_files_of_other_kinds_say_how_they_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    scipy.io.savemat(tmp_path / "a.mat", {"x": np.arange(3)})
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(40))
    for name, kind in (
        ("csv", "read_csv"),
        ("mat", "loadmat"),
        ("parquet", "read_parquet"),
    ):
        with pytest.raises(FormatError, match=kind):
            oc.open(tmp_path / f"a.{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "method",
    [
        lambda a: a.mean("time"),
        lambda a: a.std("time", ddof=1),
        lambda a: a.std("time", skipna=False),
        lambda a: a.var("time"),
        lambda a: a.quantile([0.3, 0.5], "time"),
        lambda a: a.quantile(0.3, "time", skipna=False),
        lambda a: a.rolling(time=3).mean(),
        lambda a: a.weighted(xarray.DataArray(np.arange(1.0, 13), dims="time")).mean("time"),
        lambda a: a.coarsen(time=4).mean(),
        lambda a: a.transpose("x", "y", "time"),
    ],
)
def test_xarray_computes_over_lazy_arrays(method):
    numbers = RNG.normal(size=(12, 3, 4))
    numbers[3, 1, 2] = np.nan
    dims = ("time", "y", "x")
    found, expected = (method(xarray.DataArray(of, dims=dims)) for of in (oc.asarray(numbers), numbers))
    assert isinstance(found.data, oc.Array)
    np.testing.assert_allclose(found.data.compute(), expected.data, rtol=1e-12)


def test_an_ellipsis_stands_for_axes_that_have_no_letter():
    a, b = RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(5, 4, 6))
    for subscripts, operands in (
        ("...ij,...jk->...ik", (a, b)),
        ("...ij->...", (a,)),
        ("i...,i...", (a, a)),
        ("...,...->...", (a, b[0, :, :1].T)),
    ):
        np.testing.assert_allclose(value(oc.einsum(subscripts, *operands)), np.einsum(subscripts, *operands))


def test_names_of_numpy_are_said_in_ours() -> None:
    for name, hint in (("arccos", "outcore.acos(x)"), ("vsplit", "numpy.vsplit(x)"), ("power", "outcore.pow(x)")):
        with pytest.raises(AttributeError, match=re.escape(f"use {hint}")):
            getattr(oc, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        oc.nothing  # noqa: B018
